"""Encoders of texts: their parts, their families as values, and the builder."""
