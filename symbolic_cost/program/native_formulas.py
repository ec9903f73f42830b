"""Text of machine code for one number or a vector: constants, logarithms, powers of two.

These two take the steps of `scalars`, so that their bits are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from llvmlite import binding as llvm

from symbolic_cost.program import scalars

FEATURES = llvm.get_host_cpu_features()
LANES = 8 if FEATURES.get("avx512f") else 4
"""Elements of a vector: one register of AVX-512 or AVX2, several of narrower machines."""

VECTOR = f"<{LANES} x double>"
BITS = f"<{LANES} x i64>"


def bit_type(vector: bool) -> str:  # noqa: FBT001 - as its siblings
    """Return the type of a truth value."""
    return f"<{LANES} x i1>" if vector else "i1"


@cache
def float_text(value: float) -> str:
    """Write a float by its bits."""
    return f"0x{np.float64(value).view(np.uint64):016X}"


@cache
def constant(value: float, *, vector: bool) -> str:
    """Return a constant."""
    return (
        f"<{', '.join([f'double {float_text(value)}'] * LANES)}>" if vector else float_text(value)
    )


class Formula:
    """Writes steps of one function on scalars or vectors.

    Args:
        write: takes a line.
        name: makes a new name.
    """

    def __init__(
        self, write: Callable[[str], None], name: Callable[[], str], *, vector: bool
    ) -> None:
        self._write, self._name, self._vector = write, name, vector
        self._types = {
            "d": VECTOR if vector else "double",
            "i": BITS if vector else "i64",
            "b": bit_type(vector),
        }

    def __call__(self, pattern: str, *operands: str, own: str = "") -> str:
        """Write a step, and return its name."""
        name = own or self._name()
        self._write(f"{name} = {pattern.format(*operands, **self._types)}")
        return name

    def real(self, value: float) -> str:
        """Return a constant."""
        return constant(value, vector=self._vector)

    def integer(self, value: int) -> str:
        """Return a constant of bits."""
        return f"<{', '.join([f'i64 {value}'] * LANES)}>" if self._vector else str(value)

    def series(self, terms: Sequence[float], by: str) -> str:
        """Return a polynomial."""
        total = self.real(terms[-1])
        for term in terms[-2::-1]:
            product = self("fmul {d} {0}, {1}", total, by)
            total = self("fadd {d} {0}, {1}", product, self.real(term))
        return total


def log2(do: Formula, own: str, value: str) -> None:
    """Write a logarithm."""
    bits = do("bitcast {d} {0} to {i}", value)
    biased = do("lshr {i} {0}, {1}", bits, do.integer(52))
    exponent = do("sitofp {i} {0} to {d}", do("sub {i} {0}, {1}", biased, do.integer(1022)))
    mantissa = do("and {i} {0}, {1}", bits, do.integer((1 << 52) - 1))
    part = do("bitcast {i} {0} to {d}", do("or {i} {0}, {1}", mantissa, do.integer(1022 << 52)))
    small = do("fcmp olt {d} {0}, {1}", part, do.real(scalars.HALF_ROOT))
    twice = do("fmul {d} {0}, {1}", part, do.real(2.0))
    part = do("select {b} {0}, {d} {1}, {d} {2}", small, twice, part)
    less = do("fsub {d} {0}, {1}", exponent, do.real(1.0))
    exponent = do("select {b} {0}, {d} {1}, {d} {2}", small, less, exponent)
    above = do("fsub {d} {0}, {1}", part, do.real(1.0))
    below = do("fadd {d} {0}, {1}", part, do.real(1.0))
    ratio = do("fdiv {d} {0}, {1}", above, below)
    series = do.series(scalars.LOG2_TERMS, do("fmul {d} {0}, {0}", ratio))
    result = do("fadd {d} {0}, {1}", exponent, do("fmul {d} {0}, {1}", ratio, series))
    positive = do("fcmp ogt {d} {0}, {1}", value, do.real(0.0))
    result = do("select {b} {0}, {d} {1}, {d} {2}", positive, result, do.real(math.nan))
    top = do("fcmp oeq {d} {0}, {1}", value, do.real(math.inf))
    do("select {b} {0}, {d} {1}, {d} {2}", top, do.real(math.inf), result, own=own)


def exp2(do: Formula, own: str, value: str, floor: str) -> None:
    """Write a power of two; floor is the name of that function."""
    high = do("fcmp olt {d} {0}, {1}", value, do.real(scalars.LARGEST_POWER))
    low = do("fcmp ogt {d} {0}, {1}", value, do.real(-scalars.LARGEST_POWER))
    bounded = do("select {b} {0}, {d} {1}, {d} {2}", high, value, do.real(0.0))
    bounded = do("select {b} {0}, {d} {1}, {d} {2}", low, bounded, do.real(0.0))
    half = do("fadd {d} {0}, {1}", bounded, do.real(0.5))
    exponent = do(f"call {{d}} @{floor}({{d}} {{0}})", half)
    series = do.series(scalars.EXP2_TERMS, do("fsub {d} {0}, {1}", bounded, exponent))
    shift = do("shl {i} {0}, {1}", do("fptosi {d} {0} to {i}", exponent), do.integer(52))
    raised = do("add {i} {0}, {1}", do("bitcast {d} {0} to {i}", series), shift)
    result = do("bitcast {i} {0} to {d}", raised)
    result = do("select {b} {0}, {d} {1}, {d} {2}", low, result, do.real(0.0))
    result = do("select {b} {0}, {d} {1}, {d} {2}", high, result, do.real(math.inf))
    unknown = do("fcmp uno {d} {0}, {0}", value)
    do("select {b} {0}, {d} {1}, {d} {2}", unknown, value, result, own=own)
