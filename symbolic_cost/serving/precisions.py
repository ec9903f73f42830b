"""Bytes of weights, of the cache and of values, and how the cache is read."""

from collections.abc import Mapping
from enum import StrEnum

from sympy import Expr, Integer, Rational

STORED = "stored"
"""Weights as the configuration stores them."""

WEIGHTS: Mapping[str, tuple[Expr, str]] = {
    "bf16": (Integer(2), "bf16"),
    "fp16": (Integer(2), "fp16"),
    "fp8": (Integer(1), "fp8"),
    "int8": (Integer(1), "bf16"),
    "int4": (Rational(1, 2) + Rational(2, 128), "bf16"),
    STORED: (Integer(2), "bf16"),
}
"""Bytes of a weight and the precision of its products; int4 has a scale of 16 bits for 128.

Stored weights are those of a configuration: in few bits as it says, products in bf16.
"""

CACHES: Mapping[str, Expr] = {"bf16": Integer(2), "fp16": Integer(2), "fp8": Integer(1)}
"""Bytes of one element of the cache."""

WIDE = ("bf16", "fp16")
"""Precisions of 16 bits."""

VALUE = Integer(2)
"""Bytes of an element that is neither a weight nor in the cache."""


class Reading(StrEnum):
    """How a decode step reads the cache of a prefix that its sequences share."""

    EACH = "each"
    CASCADE = "cascade"


READINGS: Mapping[Reading, str] = {
    Reading.EACH: "once for every sequence, as paged attention does",
    Reading.CASCADE: "once for all, in a kernel of its own whose result is merged",
}


class Decoding(StrEnum):
    """How a decode step reads keys and values that query heads share."""

    GROUPED = "grouped"
    """Once for all heads that share them."""
    PER_HEAD = "per-head"
    """Once for every query head, from the second-level cache, as kernels of 2023."""
