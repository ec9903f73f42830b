"""Exact amounts of one run: parameters, bytes written and messages, from the derived tables.

Where the report departs from what is derived, a slip says so; without slips amounts are true.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from sympy import Expr

from symbolic_cost.ledger import Phase, Quantity, Row
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.placement import WHOLE, Placement
from symbolic_cost.published.megatron_report.declaration import SIZES, TENSOR, derived
from symbolic_cost.published.megatron_report.run import Run


class Slip(StrEnum):
    """Where the report departs from the true figure; data/megatron_report.toml explains each."""

    FIRST_NORM = "first-norm"
    LAYER_MASK = "layer-mask"
    QKV_BIAS = "qkv-bias"
    FINAL_NORM = "final-norm"
    LOGITS = "logits"
    DATA_SCOPE = "data-scope"
    GATHER_SIZE = "gather-size"
    PIPELINE_ENDS = "pipeline-ends"
    TENSOR_ENDS = "tensor-ends"
    EVERY_STAGE = "every-stage"
    WHOLE_BIASES = "whole-biases"
    WHOLE_ROWS = "whole-rows"


AS_PRINTED = frozenset(Slip)
"""All slips: the report as published."""

CORRECTED: frozenset[Slip] = frozenset()
"""No slip."""

_COLUMN_BIASES = ("query_key_value.bias", "bias_glue.bias.bias")
_LOGITS_WORDS = Fraction(9, 2)
"""Words per logit of the full model, in every precision."""

LAYER_WRITES = (
    "layer.input_layernorm",
    "layer.rearrange_qkv",
    "layer.core_attention_flash",
    "layer.rearrange_ctx",
    "layer.dense",
    "layer.post_attention_layernorm",
    "layer.bias_glue",
    "layer.dense_4h_to_h",
    "layer.drop_add_fusion",
)
"""Ops of a layer whose results the report counts as activations."""


@dataclass(frozen=True)
class Amounts:
    """Amounts of a run under some of the slips.

    Args:
        run: the inputs.
        slips: which departures of the report are kept.
    """

    run: Run
    slips: frozenset[Slip] = AS_PRINTED

    def parameters(
        self, path: str, placement: Placement = WHOLE, *, whole_biases: bool = False
    ) -> Fraction:
        """Return parameters [element] of one rank below a path, once per repeated layer."""
        rows = derived(placement).select(Quantity.PARAMETER, path=path)
        return sum((self._parameters(row, whole_biases=whole_biases) for row in rows), Fraction(0))

    def _parameters(self, row: Row, *, whole_biases: bool) -> Fraction:
        if row.tensor == "query_key_value.bias" and Slip.QKV_BIAS in self.slips:
            return Fraction(self.run.hidden)
        whole = whole_biases and row.tensor in _COLUMN_BIASES
        return self._number(row.expr) * (self.run.tp if whole else 1)

    def full_parameters(self) -> Fraction:
        """Return the parameters of the model [element]."""
        layers = self.run.layers * self.parameters("layer")
        return self.parameters("embedding") + layers + self._final_norm()

    def stage_parameters(self, stage: int) -> Fraction:
        """Return the parameters of one rank of a pipeline stage [element]."""
        biases = Slip.WHOLE_BIASES in self.slips
        found = self.run.stage_layers * self.parameters("layer", TENSOR, whole_biases=biases)
        if stage == 0 or Slip.EVERY_STAGE in self.slips:
            found += self.parameters("embedding", TENSOR)
        elif stage == self.run.pp - 1:
            found += self.parameters("embedding.word_embeddings", TENSOR)
        return found + (self._final_norm() if stage == self.run.pp - 1 else 0)

    def pipeline_parameters(self) -> Fraction:
        """Return the parameters of one rank of each stage, added [element]."""
        ends = sum(self.stage_parameters(stage) for stage in {0, self.run.pp - 1})
        middle = max(self.run.pp - 2, 0)
        return ends + (middle * self.stage_parameters(1) if middle else Fraction(0))

    def _final_norm(self) -> Fraction:
        missing = Slip.FINAL_NORM in self.slips
        return Fraction(0) if missing else self.parameters("head.final_layernorm")

    def writes(self, paths: Iterable[str], placement: Placement = WHOLE) -> Fraction:
        """Return what ops write in forward [byte], once per repeated layer."""
        table = derived(placement)
        rows = (
            row
            for path in paths
            for row in table.select(Quantity.WRITE, phase=Phase.FORWARD, path=path)
        )
        return sum((self._number(row.expr) for row in rows), Fraction(0))

    def layer_activations(self, placement: Placement = WHOLE) -> Fraction:
        """Return the activations of one layer [byte]."""
        found = self.writes(LAYER_WRITES, placement)
        if Slip.LAYER_MASK in self.slips:
            masks = derived(placement).select(Quantity.WRITE, tensor="dropped.mask")
            found -= sum(self._number(row.expr) for row in masks)
        return found

    def full_activations(self) -> Fraction:
        """Return the activations of the model on one rank [byte]."""
        slip = Slip.LOGITS in self.slips
        words = _LOGITS_WORDS if slip else Fraction(self.run.words.logits)
        return (
            self.run.layers * self.layer_activations()
            + self.writes(["embedding.dropout"])
            + words * self.writes(["head.logits"])
        )

    def stage_activations(self) -> Fraction:
        """Return the activations of the first stage [byte]: one microbatch in flight per stage."""
        layers = self.run.stage_layers * self.layer_activations(TENSOR)
        return self.run.pp * (layers + self.writes(["embedding.dropout"], TENSOR))

    def stage_logits(self) -> Fraction:
        """Return the logits of the first stage [byte]: it has them if it is the last one too."""
        if self.run.pp > 1:
            return Fraction(0)
        return self.run.words.logits * self.writes(["head.logits"], TENSOR)

    def message(self) -> Fraction:
        """Return the bytes of one residual tensor, what pipeline and tensor ranks exchange."""
        return self.writes(["layer.dense"])

    def all_reduces(self, path: str) -> list[tuple[Phase, Fraction]]:
        """Return the all-reduces of tensor parallelism below a path: phase and message [byte]."""
        rows = derived(TENSOR).select(Quantity.COMMUNICATION, path=path)
        if self.run.tp == 1:
            return []
        return [
            (row.phase, self._number(row.collective.message))
            for row in rows
            if row.collective is not None
        ]

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
