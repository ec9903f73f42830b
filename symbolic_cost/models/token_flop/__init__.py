"""The FLOP of one token, as frameworks charge it: read off the declaration of a model."""
