"""Rates of a device, and rooflines: how its times for computing and for memory make one time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import Expr, Max

MATRIX_KINDS = frozenset({"einsum"})
"""Kinds of ops that run on matrix units; all others run on vector units."""


@dataclass(frozen=True, slots=True)
class Device:
    """Peak rates of one device.

    Args:
        matrix: of its matrix units [FLOP/s].
        vector: of its vector units [FLOP/s].
        memory: bandwidth of its memory [byte/s].
    """

    matrix: Expr
    vector: Expr
    memory: Expr

    def compute_time(self, kind: str, flop: Expr) -> Expr:
        """Return the time of computing [s].

        Args:
            kind: of the op; decides which units compute.
            flop: that are computed [FLOP].
        """
        return flop / (self.matrix if kind in MATRIX_KINDS else self.vector)

    def memory_time(self, traffic: Expr) -> Expr:
        """Return the time of reading and writing [s].

        Args:
            traffic: what is read and written [byte].
        """
        return traffic / self.memory


@dataclass(frozen=True, slots=True)
class Roofline:
    """A named answer to the question how long an op takes.

    Args:
        name: of the answer.
        meaning: one line.
        rule: time of an op from its times for computing and for memory [s].
    """

    name: str
    meaning: str
    rule: Callable[[Expr, Expr], Expr]

    def time(self, compute: Expr, memory: Expr) -> Expr:
        """Return the time of an op from its times for computing and for memory [s]."""
        return self.rule(compute, memory)


MAXIMUM = Roofline("maximum", "computing and memory traffic overlap; the longer one counts", Max)
