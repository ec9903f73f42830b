"""The inputs of the report, and the sizes and degrees that follow from them."""

from __future__ import annotations

from typing import Literal

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.parallel.groups import MOST_RANKS
from symbolic_cost.published.inputs import Count, Inputs, indivisible
from symbolic_cost.published.printed import printed_data

REPORT = printed_data("megatron_report.toml")
"""Texts of the sections, what is said about each slip, precisions, lines of the layer table."""


class Run(Inputs):
    """One training run. Heads enter no number of the report."""

    hidden: Count
    seq: Count
    micro_batch: Count
    global_batch: Count
    layers: Count
    heads: Count = 1
    tp: Count
    pp: Count
    gpus_per_node: Count
    nodes: Count
    vocab: Count
    vocab_multiple: Count = 128
    precision: Literal["bf16", "fp16", "fp32"]

    def contradictions(self) -> list[str]:
        """Say which inputs do not go together."""
        problems = self._of_ranks() + indivisible("layers", self.layers, "pp", self.pp)
        if self.hidden < 24:  # noqa: PLR2004 - 8 e/3 rounded down to a multiple of 64
            problems.append(
                f"hidden = {self.hidden} leaves the perceptron no width: "
                "8/3 of it, rounded down to a multiple of 64, must be at least 64"
            )
        return problems

    def _of_ranks(self) -> list[str]:
        name = f"gpus_per_node * nodes = {self.gpus_per_node} * {self.nodes}"
        ranks = f"{name} = {self.world}"
        degree = self.tp * self.pp
        if self.world < degree:
            return [f"{ranks} is fewer than the tp * pp = {self.tp} * {self.pp} = {degree} needed"]
        if self.world > MOST_RANKS:
            return [f"{ranks} is more than the {MOST_RANKS} ranks that the report can name"]
        problems = indivisible(name, self.world, f"tp * pp = {self.tp} * {self.pp}", degree)
        needed = self.micro_batch * self.dp
        if self.global_batch < needed:
            problems.append(
                f"global_batch = {self.global_batch} is smaller than micro_batch * data-parallel "
                f"degree = {self.micro_batch} * {self.dp} = {needed}"
            )
        return problems

    @property
    def world(self) -> int:
        """Ranks."""
        return self.gpus_per_node * self.nodes

    @property
    def dp(self) -> int:
        """Data-parallel degree."""
        return self.world // self.pp // self.tp

    @property
    def accumulation(self) -> int:
        """Microbatches per pipeline and iteration."""
        return self.global_batch // self.micro_batch // self.dp

    @property
    def stage_layers(self) -> int:
        """Layers of one pipeline stage."""
        return self.layers // self.pp

    @property
    def padded_vocab(self) -> int:
        """Vocabulary, padded to a multiple that tensor parallelism divides."""
        multiple = self.vocab_multiple * self.tp
        return -(-self.vocab // multiple) * multiple

    @property
    def mlp_width(self) -> int:
        """Width of the gated perceptron: two thirds of 4 e, rounded down to a multiple of 64."""
        return self.hidden // 24 * 64

    @property
    def words(self) -> dict[str, int]:
        """Words of the precision."""
        found: dict[str, int] = REPORT["precisions"][self.precision]
        return found

    @property
    def bindings(self) -> dict[Expr, Expr]:
        """Number by symbol."""
        return self.bound(
            "b=micro_batch l=seq e=hidden h=heads f=mlp_width V=padded_vocab n_layers=layers m1=tp"
        ) | {symbols.s: Integer(self.words["word"])}
