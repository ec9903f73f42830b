"""The layer table: which declared ops stand on which line, and the cells of a line."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from symbolic_cost.ledger import Phase
from symbolic_cost.ops.placement import WHOLE, Placement
from symbolic_cost.published.contract import rounded_like
from symbolic_cost.published.megatron_report.amounts import Amounts, Slip
from symbolic_cost.published.megatron_report.declaration import TENSOR
from symbolic_cost.units import IEC

Figures = dict[str, str | list[int] | list[list[str]]]
"""Figures by name: printed numbers, shapes, groups of ranks."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the layer table.

    Args:
        name: of the line.
        weights: paths of its parameters, the weight's first.
        shape: axes of the weight as printed, merged ones between commas.
        bias: axes of the bias.
        writes: paths of what counts as its activations.
        whole: what the tensor-parallel table shows undivided, "weights" or "writes".
    """

    name: str
    weights: tuple[str, ...] = ()
    shape: str = ""
    bias: str = ""
    writes: tuple[str, ...] = ()
    whole: str = ""


_QKV, _CORE = ("layer.rearrange_qkv",), ("layer.core_attention_flash",)
_CONTEXT, _DENSE = ("layer.rearrange_ctx",), ("layer.dense",)
_GLUE, _NARROW = ("layer.bias_glue",), ("layer.dense_4h_to_h",)
_FIRST, _SECOND = ("layer.input_layernorm",), ("layer.post_attention_layernorm",)

LINES = (
    Line("embedding", writes=("embedding.dropout",)),
    Line("word_embeddings", ("embedding.word_embeddings",), "v,e", whole="weights"),
    Line("position_embeddings", ("embedding.position_embeddings",), "p,e"),
    Line("input_layernorm", _FIRST, "e", "e", _FIRST),
    Line("self_attention", writes=_QKV + _CORE + _CONTEXT + _DENSE, whole="writes"),
    Line("query_key_value", ("layer.query_key_value",), "c h d,e", "c h d"),
    Line("rearrange_qkv", writes=_QKV),
    Line("core_attention_flash", writes=_CORE),
    Line("rearrange_ctx", writes=_CONTEXT),
    Line("dense", _DENSE, "h d,e", "e", _DENSE),
    Line("post_attention_layernorm", _SECOND, "e", "e", _SECOND),
    Line("mlp", writes=_GLUE + _NARROW, whole="writes"),
    Line("dense_h_to_4h", ("layer.dense_h_to_4h", *_GLUE), "g f,e", "g f"),
    Line("bias_glue", writes=_GLUE, whole="writes"),
    Line("dense_4h_to_h", _NARROW, "e,f", "e", _NARROW, whole="weights"),
    Line("drop_add_fusion", writes=("layer.drop_add_fusion",)),
)
"""The lines of the layer table, in order."""


def full_table(amounts: Amounts) -> Figures:
    """Return the cells of the model on one rank."""
    found: Figures = {}
    for line in LINES:
        found |= _shapes(amounts, "full", line, WHOLE)
        found |= _sizes(amounts, "full", line, WHOLE, WHOLE)
    found["full.transformer.num_layers"] = str(amounts.run.layers)
    found["full.transformer.act_mb_per_layer"] = megabytes(amounts.layer_activations())
    return found


def tensor_table(amounts: Amounts) -> Figures:
    """Return the cells of one tensor-parallel rank, and what it reduces."""
    undivided = Slip.WHOLE_ROWS in amounts.slips
    found: Figures = {}
    for line in LINES:
        weights = WHOLE if undivided and line.whole == "weights" else TENSOR
        writes = WHOLE if undivided and line.whole == "writes" else TENSOR
        found |= _shapes(amounts, "tp", line, TENSOR)
        found |= _sizes(amounts, "tp", line, weights, writes)
        found |= _reductions(amounts, line)
    layer = amounts.layer_activations(WHOLE if undivided else TENSOR)
    found["tp.transformer.num_layers"] = str(amounts.run.stage_layers)
    found["tp.transformer.act_mb_per_layer"] = megabytes(layer)
    return found


def megabytes(size: Fraction) -> str:
    """Print bytes in units of 2**20."""
    return rounded_like("0.0", size / IEC["Mi"])


def _shapes(amounts: Amounts, table: str, line: Line, placement: Placement) -> Figures:
    if not line.shape:
        return {}
    key = f"{table}.{line.name}"
    weight = amounts.shape(line.shape, placement)
    if table == "tp" and line.name.endswith("_embeddings"):
        # The report prints the columns of a table of embeddings where a bias stands.
        return {f"{key}.w": weight[:1], f"{key}.b": weight[1:]}
    found: Figures = {f"{key}.w": weight}
    if line.bias:
        slip = line.name == "query_key_value" and Slip.QKV_BIAS in amounts.slips
        found[f"{key}.b"] = amounts.shape("e" if slip else line.bias, placement)
    return found


def _sizes(
    amounts: Amounts, table: str, line: Line, of_weights: Placement, of_writes: Placement
) -> Figures:
    key = f"{table}.{line.name}"
    found: Figures = {}
    if line.weights:
        parameters = sum(
            (amounts.parameters(path, of_weights) for path in line.weights), Fraction(0)
        )
        if line.name == "input_layernorm" and Slip.FIRST_NORM in amounts.slips:
            parameters += amounts.run.micro_batch - amounts.run.hidden
        found[f"{key}.param_mb"] = megabytes(amounts.run.words.word * parameters)
    if line.writes:
        found[f"{key}.act_mb"] = megabytes(amounts.writes(line.writes, of_writes))
    return found


def _reductions(amounts: Amounts, line: Line) -> Figures:
    if not line.weights:
        return {}
    found: Figures = {}
    for phase, message in amounts.all_reduces(line.weights[0]):
        key = f"tp.{line.name}.{'forward' if phase is Phase.FORWARD else 'backward'}"
        found[f"{key}_shape"] = amounts.shape("b,l,e")
        found[f"{key}_mb"] = megabytes(message)
    return found
