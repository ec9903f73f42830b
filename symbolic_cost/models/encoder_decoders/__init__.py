"""Encoder-decoders: their parts, their families as values, and the builders."""
