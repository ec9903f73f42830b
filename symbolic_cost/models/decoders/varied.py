"""Decoders whose layers have heads and perceptrons of sizes of their own.

Axes: those of a decoder; k, g and f of the layers from the n-th on are k_n, g_n and f_n.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.models.build import Fields, Shape, is_size
from symbolic_cost.models.decoders.config import declared, decoder_of
from symbolic_cost.models.decoders.decoder import AXES, Decoder
from symbolic_cost.models.decoders.kinds import DENSE, FULL, NONE, Kind
from symbolic_cost.ops.declare import Glossary, Model, Op, Part, Place, einsum, view
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass, replace

_OWN = ("k", "g", "f")


@dataclass(frozen=True)
class Layers:
    """Layers in a row that are alike.

    Args:
        heads: of queries; 0 where nothing attends.
        groups: of keys and values.
        width: of the perceptron; 0 without one.
        products: whether one product stands in the place of attention, and of the perceptron.
    """

    heads: int
    groups: int
    width: int
    products: tuple[bool, bool] = (False, False)

    @property
    def kind(self) -> Kind:
        """What they are made of."""
        first, second = self.products
        mixer = FULL if self.heads or first else NONE
        return Kind(mixer, DENSE if self.width or second else NONE, Integer(1))


@dataclass(frozen=True)
class Product:
    """One product from x[b r e] to y[b r e], with the bias of what it stands for."""

    bias: Bias

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        bias = " + *bias[n_e]" if Bias.OUTPUT in self.bias else ""
        return (
            einsum("linear", f"x[b r e], *w[e n_e]{bias} -> z[b r n_e]"),
            view("stream", "z[b r n_e] -> y[b r e]"),
        )


@dataclass(frozen=True)
class Varied(Decoder):
    """A decoder of such layers.

    Args:
        layers: from first to last.
    """

    layers: tuple[Layers, ...] = ()

    def blocks(self, kinds: tuple[Kind, ...]) -> tuple[Part, ...]:  # noqa: ARG002 - its own
        """Declare the blocks; those of which nothing is left are none."""
        return tuple(
            Part(f"layers{first}.block", self._ops(first, own), Integer(count), place=Place.BLOCK)
            for first, own, count in self._rows()
            if own.heads or own.width or any(own.products)
        )

    def _ops(self, first: int, own: Layers) -> tuple[Op, ...]:
        alike = self.stepping(Step.COPY, on=False) if own.heads == own.groups else self
        places = zip(("attention", "perceptron"), own.products, strict=True)
        for place in (name for name, stands in places if stands):
            other: Any = {place: Product(getattr(self, place).bias)}
            alike = replace(alike, **other)
        return retitled(alike.block(own.kind), {axis: f"{axis}_{first}" for axis in _OWN})

    def _rows(self) -> list[tuple[int, Layers, int]]:
        """Return the first of some layers that are alike, what they are, and how many."""
        rows, first = [], 0
        for own, run in groupby(self.layers):
            count = len(list(run))
            rows.append((first, own, count))
            first += count
        return rows

    @property
    def own_axes(self) -> Glossary:
        """Roles of the axes of every layer."""
        names = (f"{axis}_{first}" for first, _, _ in self._rows() for axis in _OWN)
        return {name: replace(AXES[name[0]], name=name) for name in names}

    def sized(self) -> Varied:
        """Return the family with the sizes of its layers' axes."""
        lengths: dict[str, Expr] = {}
        for first, own, _ in self._rows():
            sizes = (own.groups or 1, own.heads // (own.groups or 1) or 1, own.width or 1)
            lengths |= {f"{axis}_{first}": Integer(n) for axis, n in zip(_OWN, sizes, strict=True)}
        return replace(self, lengths=lengths)


def _declared(fields: Fields, shape: Shape, layers: list[Layers]) -> Model:
    """Declare the model of layers that were read; a problem of theirs stands before the others."""
    whole = Layers(max(x.heads for x in layers), 1, max(x.width for x in layers))
    own = {"num_attention_heads": whole.heads, "num_key_value_heads": 1}
    values = {k: v for k, v in fields.source.values.items() if k not in _LISTED}
    own |= {"intermediate_size": whole.width or 1, "num_hidden_layers": len(layers)}
    fields.source = replace(fields.source, values=values | own)
    family = decoder_of(fields)
    decoder = Varied(**vars(family), layers=tuple(layers)).sized()
    model = declared(fields, shape, decoder)
    return replace(model, bindings={k: v for k, v in model.bindings.items() if k not in {"k", "f"}})


_LISTED = (
    *("num_query_heads", "num_kv_heads", "ffn_multipliers", "num_transformer_layers"),
    *("block_configs", "num_key_value_heads_per_layer", "num_attention_heads", "intermediate_size"),
    *("num_key_value_heads", "ffn_with_glu", "num_hidden_layers", "ffn_dim_divisor"),
)
"""What is read of every layer, and the sizes that follow."""


def _sizes_of_layers(fields: Fields, name: str, layers: int) -> tuple[int, ...]:
    """Read a size of every layer."""
    listed = fields.items(name)
    if not (len(listed) == layers and all(map(is_size, listed))):
        fields.note(name, f"{layers} positive integers are accepted, one for every layer")
    return (tuple(one if is_size(one) else 1 for one in listed) + (1,) * layers)[:layers]


def openelm(fields: Fields, shape: Shape) -> Model:
    """Declare an OpenELM: widths grow with depth, as multiples of the embedding's.

    Source: apple/OpenELM, modeling_openelm.py.
    """
    layers, e = fields.size("num_hidden_layers"), fields.size("hidden_size")
    heads, groups = (
        _sizes_of_layers(fields, f"num_{one}_heads", layers) for one in ("query", "kv")
    )
    for h, k in zip(heads, groups, strict=True):
        if h % k != 0:
            fields.note("num_kv_heads", f"{k} do not divide {h} heads")
    step = fields.size("ffn_dim_divisor", 256)
    factors = fields.items("ffn_multipliers")
    fine = len(factors) == layers and all(map(_is_factor, factors))
    if not fine:
        fields.note("ffn_multipliers", f"{layers} positive numbers are accepted")
    widths = [_rounded(x * e, step) for x in factors] if fine else [1] * layers
    return _declared(fields, shape, [Layers(*x) for x in zip(heads, groups, widths, strict=True)])


def _rounded(width: float, step: int) -> int:
    """Round to a multiple, never below nine tenths of what is asked for.

    For example 640 to multiples of 256 is 768, as 640 + 128 reaches it.
    """
    near = max(step, int(width + step / 2) // step * step)
    return near + step if near < width * 9 / 10 else near


def deci(fields: Fields, shape: Shape) -> Model:
    """Declare a DeciLM, whose layers have numbers of key/value heads of their own.

    Source: Deci/DeciLM-7B, modeling_decilm.py.
    """
    layers, h = fields.size("num_hidden_layers"), fields.size("num_attention_heads")
    f = fields.size("intermediate_size")
    groups = _sizes_of_layers(fields, "num_key_value_heads_per_layer", layers)
    for k in groups:
        problem = f"{k} do not divide {h} heads"
        fields.require(holds=h % k == 0, problem=problem, name="num_key_value_heads_per_layer")
    return _declared(fields, shape, [Layers(h, k, f) for k in groups])


def nas(fields: Fields, shape: Shape) -> Model:
    """Declare a Nemotron of searched layers: some lack attention or perceptron.

    Source: nvidia/Llama-3_3-Nemotron-Super-49B-v1, block_config.py and modeling_decilm.py.
    """
    blocks, h = fields.items("block_configs"), fields.size("num_attention_heads")
    e = fields.size("hidden_size")
    count = fields.size("num_hidden_layers", max(len(blocks), 1))
    if len(blocks) != count:
        fields.note("block_configs", f"{count} objects are accepted")
    rows = [_block(fields, block, h, e) for block in blocks]
    fields.ignore("num_key_value_heads", "intermediate_size")
    return _declared(fields, shape, rows or [Layers(h, 1, 1)])


def _block(fields: Fields, block: object, h: int, e: int) -> Layers:
    parts = [block.get(x) if isinstance(block, Mapping) else None for x in ("attention", "ffn")]
    attends, follows = (dict(x) if isinstance(x, Mapping) else {} for x in parts)
    group, factor = attends.pop("n_heads_in_group", None), follows.pop("ffn_mult", None)
    first, second = (_replaced(own) for own in (attends, follows))
    harmless = {
        "window_length": None,
        "num_sink_tokens": 0,
        "use_prefill_window_in_sink_attention": False,
    }
    more = [k for x in (attends, follows) for k, v in x.items() if v and v != harmless.get(k)]
    fine = first is not None or (is_size(group) and h % group == 0)
    fine &= second is not None or _is_factor(factor)
    fields.require(
        holds=all(isinstance(x, Mapping) for x in parts) and fine and not more,
        problem="attention {n_heads_in_group, no_op, replace_with_linear} and ffn {ffn_mult, ...} "
        "are accepted" + (f", {more[0]} is not declared" if more else ""),
        name="block_configs",
    )
    if not fine:
        return Layers(h, 1, 1)
    # As the class does: in floating point, whose last digit may decide.
    width = -(-int(2 * round(factor, 6) * e / 3) // _STEP) * _STEP if second is None else 0
    groups = h // group if first is None else 0
    return Layers(h if groups else 0, groups, width, (first is True, second is True))


def _replaced(own: dict[str, object]) -> bool | None:
    """Return whether a product stands for a layer: None where the layer itself does."""
    nothing, product = (own.pop(key, False) is True for key in ("no_op", "replace_with_linear"))
    return product and not nothing if nothing or product else None


def _is_factor(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _STEP


_STEP = 256
"""Widths are multiples of it."""
