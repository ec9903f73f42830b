"""The inputs of the prefill step, and the sizes that follow from them."""

from __future__ import annotations

import re
from typing import Literal

from sympy import Expr

from symbolic_cost.published.inputs import Count, Index, Inputs, indivisible
from symbolic_cost.published.ulysses_prefill.memory import WORKSPACE


class Run(Inputs):
    """One prefill step.

    N tokens, d embedding width, h heads, P GPUs; TP and DP split a perceptron of L layers and width
    d_ff; elements of nbytes. `rank` prints; log is the commit whose lines are computed, allocator
    what is counted for a request, and workspace that of the matrix products [byte].
    """

    N: Count
    d: Count
    h: Count
    P: Count
    TP: Count
    DP: Count
    L: Count
    d_ff: Count
    nbytes: Count = 2
    rank: Index = 0
    log: Literal["3b1a699", "d7a62c8", "5e270bf"] = "3b1a699"
    allocator: Literal["caching", "payload"] = "caching"
    workspace: Index = WORKSPACE

    def contradictions(self) -> list[str]:
        """Say which inputs do not go together."""
        problems = []
        if self.P != self.TP * self.DP:
            degree = f"TP * DP = {self.TP} * {self.DP} = {self.TP * self.DP}"
            problems.append(f"P = {self.P} is not {degree}")
        if self.rank >= self.P:
            problems.append(f"rank = {self.rank} is not below P = {self.P}")
        return [
            *problems,
            *indivisible("h", self.h, "P", self.P),
            *indivisible("N", self.N, "P", self.P),
            *indivisible("d", self.d, "h", self.h),
            *indivisible("d_ff", self.d_ff, "TP", self.TP),
        ]

    def shape(self, dims: str) -> list[int]:
        """Return the sizes of dimensions such as "h, N/P, d/h"."""
        return [self._size(term.strip()) for term in dims.split(",")]

    def _size(self, term: str) -> int:
        numerator, *denominators = re.sub("d'", "d_ff", term).split("/")
        size: int = getattr(self, numerator)
        for denominator in denominators:
            size //= getattr(self, denominator)
        return size

    @property
    def bindings(self) -> dict[Expr, Expr]:
        """Number by symbol."""
        return self.bound("l=N e=d h f=d_ff n_layers=L s1=P m1=TP dp=DP s=nbytes")
