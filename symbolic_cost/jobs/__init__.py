"""Jobs: this model, run this way; a value, what follows from it, and its tables for people."""
