"""Models of several parts, every one read by the family of its own."""
