"""Decoders: their parts, their families as values, and the builders that read configurations."""
