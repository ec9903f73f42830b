"""Exact amounts of one run: parameters, bytes written and messages, from the derived tables.

Where the report departs from what is derived, a slip says so; without slips amounts are true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sympy import Expr

from symbolic_cost.ledger import CostTable, Phase, Quantity, Row
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.placement import WHOLE, Placement
from symbolic_cost.published.megatron_report.declaration import SIZES, TENSOR, derived
from symbolic_cost.published.megatron_report.run import REPORT, Run

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
        found = Fraction(0)
        for row in self._rows(placement, Quantity.PARAMETER, path):
            whole = whole_biases and row.tensor in _COLUMN_BIASES
            slip = row.tensor == "query_key_value.bias" and "qkv-bias" in self.slips
            own = Fraction(value(row.expr)) * (self.run.tp if whole else 1)
            found += self.run.hidden if slip else own
        return found

    def full_parameters(self) -> Fraction:
        """Return the parameters of the model [element]."""
        layers = self.run.layers * self.parameters("layer")
        return self.parameters("embedding") + layers + self._final_norm()

    def stage_parameters(self, stage: int) -> Fraction:
        """Return the parameters of one rank of a pipeline stage [element]."""
        biases, last = "whole-biases" in self.slips, stage == self.run.pp - 1
        found = self.run.stage_layers * self.parameters("layer", TENSOR, whole_biases=biases)
        if stage == 0 or "every-stage" in self.slips:
            found += self.parameters("embedding", TENSOR)
        elif last:
            found += self.parameters("embedding.word_embeddings", TENSOR)
        return found + (self._final_norm() if last else 0)

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
        found = self.writes(LAYER_WRITES, placement)
        if "layer-mask" in self.slips:
            masks = self._table(placement).select(Quantity.WRITE, tensor="dropped.mask")
            found -= sum(Fraction(value(row.expr)) for row in masks)
        return found

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
