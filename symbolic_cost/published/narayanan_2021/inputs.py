"""Inputs under our names and the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sympy import Expr, Integer

from symbolic_cost.published.inputs import Count, Inputs, Rate
from symbolic_cost.symbols import F_m, X, exact

TERA = Integer(10**12)


class Run(Inputs):
    """A training run; what is not given leaves out the numbers that need it.

    Args:
        e: embedding width.
        n_layers: blocks.
        B: global batch [sequences].
        R: GPUs.
        tflops_per_gpu: achieved [TFLOP/s].
        tokens: trained on.
        V: vocabulary.
        l: sequence length [tokens].
        peak_tflops: of one GPU [TFLOP/s].
        h: heads; they cancel.
        m1: tensor-parallel degree; the achieved rate includes its effect.
        pp: pipeline-parallel degree, likewise.
    """

    NAMES: ClassVar[Mapping[str, str]] = {
        "s": "l",
        "h": "e",
        "heads": "h",
        "l": "n_layers",
        "t": "m1",
        "p": "pp",
        "n_gpus": "R",
        "batch": "B",
        "global_batch": "B",
    }

    e: Count
    n_layers: Count
    B: Count | None = None
    R: Count | None = None
    tflops_per_gpu: Rate | None = None
    tokens: Count | None = None
    V: Count = 51200
    l: Count = 2048
    peak_tflops: Rate = 312
    h: Count = 1
    m1: Count = 1
    pp: Count = 1

    def numbers(self) -> dict[Expr, Expr]:
        """Return the number of every symbol that is given."""
        rates = {F_m: self.peak_tflops, X: self.tflops_per_gpu}
        found = {key: exact(rate) * TERA for key, rate in rates.items() if rate is not None}
        return self.bound("e n_layers B R V l tokens") | found


class Budget(Inputs):
    """What Eq 4 takes: P parameters, T tokens, n GPUs, X achieved by each [FLOP/s]."""

    P: Rate
    T: Rate
    n: Count
    X: Rate

    def numbers(self) -> dict[Expr, Expr]:
        """Return the number of every symbol."""
        return self.bound("P tokens=T R=n X")
