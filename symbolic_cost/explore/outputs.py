"""Names of the outputs of a structure's program, beside those of its step."""

MEMORY = "memory"
"""Output: the most that one rank of any stage holds at any moment [byte]."""

HELD, SHARE = "held ", "share "
"""Outputs that begin so say what a stage holds at a moment, or of a quantity [byte]."""

LEGAL = "legal: "
"""Outputs that begin so are one where a condition is met; the rest of the name says which."""
