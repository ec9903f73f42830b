"""Inputs of the report, and exact amounts of one run: parameters, bytes written and messages.

Where the report departs from what is derived, a slip says so; without slips amounts are true.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.ledger import CostTable, Phase, Quantity, Row
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.placement import WHOLE, Placement
from symbolic_cost.parallel.groups import MOST_RANKS
from symbolic_cost.published.contract import printed_data
from symbolic_cost.published.inputs import Count, Inputs, indivisible
from symbolic_cost.published.megatron_report.declaration import SIZES, TENSOR, derived
from symbolic_cost.records import dataclass

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
        words: dict[str, int] = REPORT["precisions"][self.precision]
        return words

    @property
    def bindings(self) -> dict[Expr, Expr]:
        """Number by symbol."""
        return self.bound(
            "b=micro_batch l=seq e=hidden h=heads f=mlp_width V=padded_vocab n_layers=layers m1=tp"
        ) | {symbols.s: Integer(self.words["word"])}


SLIPS = frozenset(REPORT["slips"])
"""Where the report departs from the true figure; data/megatron_report.toml explains each."""

_COLUMN_BIASES = ("query_key_value.bias", "bias_glue.bias.bias")
_LOGITS_WORDS = Fraction(9, 2)
"""Words per logit of the full model, in every precision."""

_SUMS = ("embedding", "self_attention", "mlp")
LAYER_WRITES = " ".join(
    line.get("writes", "") for name, line in REPORT["lines"].items() if name not in _SUMS
)
"""Ops of a layer whose results the report counts as activations."""


@lru_cache(2)
def _bound(run: Run) -> tuple[CostTable, CostTable]:
    """Return the costs of one rank of a run, whole and split over tensors; layers count once."""
    numbers = run.bindings
    whole, split = (
        derived(placement).map(lambda expr: expr.xreplace(numbers)) for placement in (WHOLE, TENSOR)
    )
    return whole, split


@dataclass(frozen=True)
class Amounts:
    """Amounts of a run under some of the slips, all of them as published."""

    run: Run
    slips: frozenset[str] = SLIPS

    def _table(self, placement: Placement) -> CostTable:
        return _bound(self.run)[placement is TENSOR]

    def _rows(self, placement: Placement, quantity: Quantity, path: str) -> Iterator[Row]:
        for one in path.split():
            yield from self._table(placement).select(quantity, path=one)

    def parameters(
        self, path: str, placement: Placement = WHOLE, *, whole_biases: bool = False
    ) -> Fraction:
        """Return parameters [element] of one rank below paths, once per repeated layer."""
        total = Fraction(0)
        for row in self._rows(placement, Quantity.PARAMETER, path):
            whole = whole_biases and row.tensor in _COLUMN_BIASES
            slip = row.tensor == "query_key_value.bias" and "qkv-bias" in self.slips
            own = Fraction(value(row.expr)) * (self.run.tp if whole else 1)
            total += self.run.hidden if slip else own
        return total

    def full_parameters(self) -> Fraction:
        """Return the parameters of the model [element]."""
        layers = self.run.layers * self.parameters("layer")
        return self.parameters("embedding") + layers + self._final_norm()

    def stage_parameters(self, stage: int) -> Fraction:
        """Return the parameters of one rank of a pipeline stage [element]."""
        biases, last = "whole-biases" in self.slips, stage == self.run.pp - 1
        total = self.run.stage_layers * self.parameters("layer", TENSOR, whole_biases=biases)
        if stage == 0 or "every-stage" in self.slips:
            total += self.parameters("embedding", TENSOR)
        elif last:
            total += self.parameters("embedding.word_embeddings", TENSOR)
        return total + (self._final_norm() if last else 0)

    def pipeline_parameters(self) -> Fraction:
        """Return the parameters of one rank of each stage, added [element]."""
        ends = sum(self.stage_parameters(stage) for stage in {0, self.run.pp - 1})
        middle = max(self.run.pp - 2, 0)
        return ends + (middle * self.stage_parameters(1) if middle else Fraction(0))

    def _final_norm(self) -> Fraction:
        missing = "final-norm" in self.slips
        return Fraction(0) if missing else self.parameters("head.final_layernorm")

    def writes(self, path: str, placement: Placement = WHOLE) -> Fraction:
        """Return what ops below paths write in forward [byte], once per repeated layer."""
        rows = self._rows(placement, Quantity.WRITE, path)
        return sum((Fraction(value(r.expr)) for r in rows if r.phase is Phase.FORWARD), Fraction(0))

    def layer_activations(self, placement: Placement = WHOLE) -> Fraction:
        """Return the activations of one layer [byte]."""
        total = self.writes(LAYER_WRITES, placement)
        if "layer-mask" in self.slips:
            masks = self._table(placement).select(Quantity.WRITE, tensor="dropped.mask")
            total -= sum(Fraction(value(row.expr)) for row in masks)
        return total

    def full_activations(self) -> Fraction:
        """Return the activations of the model on one rank [byte]."""
        words = _LOGITS_WORDS if "logits" in self.slips else Fraction(self.run.words["logits"])
        ends = self.writes("embedding.dropout") + words * self.writes("head.logits")
        return self.run.layers * self.layer_activations() + ends

    def stage_activations(self) -> Fraction:
        """Return the activations of the first stage [byte]: one microbatch in flight per stage."""
        layers = self.run.stage_layers * self.layer_activations(TENSOR)
        return self.run.pp * (layers + self.writes("embedding.dropout", TENSOR))

    def stage_logits(self) -> Fraction:
        """Return the logits of the first stage [byte]: it has them if it is the last one too."""
        alone = self.run.words["logits"] if self.run.pp == 1 else 0
        return alone * self.writes("head.logits", TENSOR)

    def message(self) -> Fraction:
        """Return the bytes of one residual tensor, what pipeline and tensor ranks exchange."""
        return self.writes("layer.dense")

    def all_reduces(self, path: str) -> list[tuple[Phase, Fraction]]:
        """Return the all-reduces of tensor parallelism below paths: phase and message [byte]."""
        rows = self._rows(TENSOR, Quantity.COMMUNICATION, path) if self.run.tp > 1 else ()
        moves = [(row.phase, row.collective) for row in rows]
        return [(phase, Fraction(value(move.message))) for phase, move in moves if move is not None]

    def shape(self, axes: str, placement: Placement = WHOLE) -> list[int]:
        """Return the shape of a weight: sizes of axes that are merged, separated by commas."""
        return [self._merged(group.split(), placement) for group in axes.split(",") if group]

    def _merged(self, axes: list[str], placement: Placement) -> int:
        size, degree = Fraction(1), Fraction(1)
        for axis in axes:
            size *= self._number(SIZES[axis])
            degree *= self._number(placement.degree(placement.meshes(axis)))
        return size // degree

    def _number(self, expr: Expr) -> Fraction:
        return Fraction(value(expr.xreplace(self.run.bindings)))
