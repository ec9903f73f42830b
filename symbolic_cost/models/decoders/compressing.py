"""Decoders that compress positions, on copies of the residual stream: DeepSeek V4."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr, Integer, floor

from symbolic_cost import symbols
from symbolic_cost.extrema import Min
from symbolic_cost.layers import compressed_attention
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.compressed_attention import CompressedAttention
from symbolic_cost.models.build import Fields, Shape, is_size
from symbolic_cost.models.decoders.config import declared, decoder_of
from symbolic_cost.models.decoders.fields import indexer_width
from symbolic_cost.models.decoders.kinds import EXPERTS, SLIDES
from symbolic_cost.ops.declare import Axis, Glossary, Model, Op
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass, field, replace

SPARSE, HEAVY = "compressed_sparse_attention", "heavily_compressed_attention"
_RATES: Mapping[str, int] = {SPARSE: 4, HEAVY: 128}
_ENDS: Mapping[str, str] = {SLIDES: "w", SPARSE: "c", HEAVY: "v"}
"""Ends of the names of axes that differ between kinds of layers."""

_OWN = ("n_w", "n_p", "n_b", "n_l", "n_n", "n_f", "n_k", "n_j", "n_win")


@dataclass(frozen=True)
class Compressing:
    """Attention of layers of one kind, in numbers.

    Args:
        kind: of layers.
        rate: positions that make a compressed one.
        chosen: compressed positions that a query meets; all if 0.
        numbers: sizes by axis that no length changes.
    """

    kind: str
    layer: CompressedAttention
    rate: int = 1
    chosen: int = 0
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def _names(self) -> dict[str, str]:
        return {axis: f"{axis}_{_ENDS[self.kind]}" for axis in _OWN}

    @property
    def axes(self) -> Glossary:
        names = {axis: self._names.get(axis, axis) for axis in compressed_attention.AXES}
        entries = compressed_attention.AXES.items()
        return {names[a]: Axis(names[a], one.role, one.copy) for a, one in entries}

    def ops(self) -> tuple[Op, ...]:
        return retitled(self.layer.ops(), self._names)

    def on(self, shape: Shape) -> Compressing:
        """Return the layer on a shape: too short a sequence has no compressed position."""
        short = shape.c == 0 and shape.l.is_Integer and int(shape.l) < self.rate
        if self.layer.pooled and short:
            return replace(self, layer=replace(self.layer, pooled="unread"))
        return self

    def sizes(self, shape: Shape) -> Mapping[str, Expr]:
        before, all_of = floor(shape.c / self.rate), floor((shape.c + shape.l) / self.rate)
        parts = 2 if self.kind == SPARSE else 1
        near = Min(shape.c, symbols.W - 1) + shape.l
        own = {
            "n_w": Integer(parts),
            "n_p": shape.l,
            "n_b": shape.c + shape.l - self.rate * all_of,
            "n_l": Min(all_of, Integer(1)) * self.rate * (parts - 1),
            "n_n": all_of - before,
            "n_f": all_of,
            "n_k": near + all_of,
            "n_win": symbols.W + (Min(all_of, self.chosen) if self.chosen else all_of),
            "n_j": Integer(self.rate),
        }
        fixed = {axis: Integer(size) for axis, size in self.numbers.items()}
        heads = symbols.h / fixed["k_s"]
        return {**{self._names[a]: size for a, size in own.items()}, **fixed, "g_s": heads}

    def read(self, fields: Fields) -> tuple[Compressing, dict[str, int]]:
        width, rotated = fields.size("head_dim", 512), _rotated(fields)
        heads, groups = fields.size("num_attention_heads"), fields.size("o_groups", 8)
        fields.require(
            holds=heads * width % groups == 0,
            problem=f"{groups} groups do not divide {heads} heads of width {width}",
            name="o_groups",
            other="num_attention_heads",
        )
        whole = heads % groups == 0
        numbers = {
            "k_s": groups if whole else heads,
            "k_o": groups,
            "d_o": max(heads * width // groups, 1),
            "r_o": fields.size("o_lora_rank", 1024),
            "n_1": 1,
            "d_l": width,
            "d_k": width - rotated,
        }
        layer = replace(self.layer, whole="heads" if whole else "")
        chosen = fields.size("index_topk", 512) if self.kind == SPARSE else 0
        fields.ignore("index_topk")
        own = {
            "h": heads,
            "q": width,
            "d_r": rotated,
            "r_q": fields.size("q_lora_rank", 1024),
            "h_x": fields.size("index_n_heads", 64),
            "d_x": indexer_width(fields, rotated, 128),
        }
        return replace(self, layer=layer, chosen=chosen, numbers=numbers), own


def _rotated(fields: Fields) -> int:
    width = fields.size("head_dim", 512)
    given = fields.optional_size("qk_rope_head_dim")
    usual = given / width if given else 1 / 8
    share = fields.share("partial_rotary_factor", usual)
    return min(max(int(width * share), 1), width - 1)


def deepseek_v4(fields: Fields, shape: Shape) -> Model:
    """Declare a DeepSeek V4: layers attend to a window and to compressed positions."""
    decoder = decoder_of(fields)
    rates = _rates(fields)
    copies = fields.size("hc_mult", 4)
    core = decoder.attention.core
    core = replace(core, steps=core.steps & Step.DROP | Step.MASK | Step.SINK | Step.COPY)
    mixers = {
        SLIDES: Compressing(SLIDES, CompressedAttention(core, pooled="")),
        SPARSE: Compressing(SPARSE, CompressedAttention(core, indexed="chosen"), rates[SPARSE]),
        HEAVY: Compressing(HEAVY, CompressedAttention(core), rates[HEAVY]),
    }
    fields.ignore("num_key_value_heads", "n_shared_experts", "num_nextn_predict_layers")

    def kinds(fields: Fields, layers: int) -> tuple[list[str], list[str]]:
        _experts(fields, layers)
        return _kinds(fields, layers), [EXPERTS] * layers

    changed = replace(
        decoder,
        mixers=mixers,
        reads=replace(decoder.reads, kinds=kinds),
        lengths={
            "n_o": Integer(copies),
            "n_t": Integer(copies),
            "n_x": Integer((2 + copies) * copies),
            "n_r": Integer(2 * fields.size("hc_sinkhorn_iters", 20)),
            "n_c": Integer(3),
            "window": symbols.W,
        },
    )
    numbers = {"W": fields.size("sliding_window", 128)}
    fields.require(holds=numbers["W"] > 1, problem="1 is no window", name="sliding_window")
    model = declared(fields, shape, changed)
    return replace(model, bindings={**model.bindings, **numbers})


def _rates(fields: Fields) -> Mapping[str, int]:
    part = fields.part("compress_rates")
    rates = {kind: part.size(kind, rate) if part else rate for kind, rate in _RATES.items()}
    for kind, key in ((SPARSE, "compress_rate_csa"), (HEAVY, "compress_rate_hca")):
        rates[kind] = fields.size(key, rates[kind])
    for kind, rate in rates.items():
        if rate <= 1:
            fields.note("compress_rates", f"{rate} of {kind} compress nothing")
    return rates


def _kinds(fields: Fields, layers: int) -> list[str]:
    """Read the kinds of layers: listed, by their rates, or by turns after two heavy ones."""
    ratios = {0: SLIDES, 4: SPARSE, 128: HEAVY}
    stated = fields.items("compress_ratios")
    listed = fields.items("layer_types")
    if not (not stated or (len(stated) >= layers and all(one in ratios for one in stated))):
        fields.note("compress_ratios", f"{layers} of 0, 4 or 128 are accepted")
    if not (not listed or (len(listed) == layers and all(one in _ENDS for one in listed))):
        fields.note("layer_types", f"{layers} of {', '.join(_ENDS)} are accepted")
    turns = [HEAVY if n < 2 or n % 2 == 0 else SPARSE for n in range(layers)]  # noqa: PLR2004
    by_rate = [ratios.get(one, HEAVY) for one in stated if is_size(one) or one == 0]
    kinds = [*listed] or by_rate[:layers] or turns
    return [kind if kind in _ENDS else HEAVY for kind in kinds]


def _experts(fields: Fields, layers: int) -> None:
    listed, hashed = fields.items("mlp_layer_types"), fields.optional_size("num_hash_layers", 3)
    if not (
        not listed or (len(listed) == layers and all(one in ("moe", "hash_moe") for one in listed))
    ):
        fields.note("mlp_layer_types", f"{layers} of moe or hash_moe are accepted")
    fields.derived("num_hash_layers", hashed)
