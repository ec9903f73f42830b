"""Inputs under our names and the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sympy import Expr

from symbolic_cost.published.inputs import Count, Inputs, Rate
from symbolic_cost.symbols import F_m, exact


class Training(Inputs):
    """A GPT in training; what is not given leaves out the numbers that need it.

    Args:
        b: microbatch [sequences].
        l: sequence length [tokens].
        e: embedding width; the MLP is 4 e wide.
        h: heads.
        m1: tensor-parallel degree.
        n_layers: blocks.
        V: vocabulary.
        pp: pipeline-parallel degree.
        R: GPUs.
        B: global batch [sequences].
        peak_tflops: of one GPU [TFLOP/s].
        iter_s_full_recompute: time of an iteration with tensor parallelism and full
            recomputation [s].
        iter_s_present: time of one with the techniques of the paper [s].
    """

    NAMES: ClassVar[Mapping[str, str]] = {
        "a": "h",
        "s": "l",
        "h": "e",
        "L": "n_layers",
        "v": "V",
        "t": "m1",
        "p": "pp",
        "gpus": "R",
        "global_batch": "B",
        "micro_batch": "b",
    }

    b: Count
    l: Count
    e: Count
    h: Count
    m1: Count = 1
    n_layers: Count | None = None
    V: Count | None = None
    pp: Count | None = None
    R: Count | None = None
    B: Count | None = None
    peak_tflops: Rate = 312
    iter_s_full_recompute: Rate | None = None
    iter_s_present: Rate | None = None

    def numbers(self) -> dict[Expr, Expr]:
        """Return the number of every symbol that is given."""
        found = self.bound("b l e h m1 n_layers V pp R B T_step=iter_s_present")
        return found | {F_m: exact(self.peak_tflops) * 10**12}
