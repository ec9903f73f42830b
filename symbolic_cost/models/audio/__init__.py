"""Networks of recordings: encoders of samples and of spectrograms, and what writes them down."""
