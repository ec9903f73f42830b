"""Gemmas whose layers have features of their own, and whose last layers have no keys of their own.

In Gemma 4 full layers have other heads than sliding ones, and experts run beside a perceptron; in
Gemma 3n the residual stream has copies (layers/altup.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from symbolic_cost.axes import Glossary, axes, glossary
from symbolic_cost.layers import altup, attention_core, per_layer
from symbolic_cost.layers.attention_core import SLIDING
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.moe import Trait
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch
from symbolic_cost.layers.rotary import angles
from symbolic_cost.models.decoders.decoder import Decoder, Habit, path_of
from symbolic_cost.models.decoders.kinds import FULL, MOST_LAYERS, SLIDES, Kind
from symbolic_cost.models.decoders.other_heads import WIDE, turned
from symbolic_cost.ops.declare import Op, Part, Place, einsum, pointwise, scope, view
from symbolic_cost.records import dataclass, replace

if TYPE_CHECKING:
    from symbolic_cost.models.fields import Fields

TAKING = {SLIDES: "taking_sliding", FULL: "taking_full"}
"""Layers that take keys and values of another layer, by the kind of that."""

WIDENED = "widened"
"""Perceptrons twice as wide, of layers that have no keys of their own."""

THINNED = "thinned"
"""Perceptrons of whose gate only the largest features remain."""


def own_heads(fields: Fields) -> tuple[int, int]:
    """Read number and width of the key/value heads of full layers: apart, or layer by layer."""
    usual = fields.size("num_key_value_heads", 4)
    apart = fields.flag("attention_k_eq_v", default=False)
    width = fields.size("global_head_dim", 512)
    fields.require(holds=width > 1, problem="1 is no width of a head", name="global_head_dim")
    heads = fields.optional_size("num_global_key_value_heads")
    layers = fields.source.values.get("per_layer_config")
    fields.ignore("per_layer_config")
    if layers is None and "per_layer_config" not in fields.source.values:
        return (heads or usual) if apart else usual, width
    if layers is None:  # null, which makes no layer differ
        return usual, fields.size("head_dim", 256)
    own = list(layers.values()) if isinstance(layers, Mapping) else []
    full = [n for n, kind in enumerate(full_layers(fields)) if kind == FULL]
    places = [int(place) for place in layers if str(place).isdecimal()] if own else []
    sizes = own[0] if own and isinstance(own[0], Mapping) else {}
    known = {"head_dim", "num_key_value_heads"}
    fits = isinstance(layers, Mapping) and len(places) == len(own) and sorted(places) in ([], full)
    numbers = all(isinstance(size, int) and size > 0 for size in sizes.values())
    if not (fits and numbers and sizes.keys() <= known and all(one == sizes for one in own)):
        fields.note(
            "per_layer_config",
            "one head_dim and num_key_value_heads for all full layers, and no others, are accepted",
        )
    return (
        int(sizes.get("num_key_value_heads", usual)) if numbers else usual,
        int(sizes.get("head_dim", fields.size("head_dim", 256))) if numbers else width,
    )


def full_layers(fields: Fields, period: int = 6) -> list[str]:
    """Read which layers slide; the last of every so many is full unless they are listed."""
    layers = fields.size("num_hidden_layers", 30)
    entries = fields.items("layer_types")
    if not (all(entry in tuple(TAKING) for entry in entries) and len(entries) in (0, layers)):
        fields.note("layer_types", f"{layers} of {' or '.join(TAKING)} are accepted")
    return list(entries) or [
        FULL if (n + 1) % period == 0 else SLIDES for n in range(min(layers, MOST_LAYERS))
    ]


@dataclass(frozen=True)
class Gemma3(Decoder):
    """A Gemma 3: beside layers that slide, full ones rotate by angles of their own."""

    def turning(self, kinds: tuple[Kind, ...]) -> tuple[Op, ...]:
        own = super().turning(kinds)
        apart = (replace(op, path="full_angles") for op in turned(own))
        return (*own, *apart) if _apart(kinds) else own

    def blocks(self, kinds: tuple[Kind, ...]) -> tuple[Part, ...]:
        parts = zip(super().blocks(kinds), kinds, strict=True)
        return tuple(
            replace(part, ops=turned(part.ops)) if _apart(kinds) and kind.mixer == FULL else part
            for part, kind in parts
        )


def _apart(kinds: tuple[Kind, ...]) -> bool:
    return {SLIDES, FULL} <= {kind.mixer for kind in kinds}


@dataclass(frozen=True)
class Gemma(Decoder):
    """A Gemma; `lengths` has "d_y" if layers have features of their own, "n_s" copies if any."""

    @property
    def own_axes(self) -> Glossary:
        return glossary(per_layer.AXES, altup.AXES, axes("f_y inner"))

    @property
    def featured(self) -> bool:
        """Whether layers have features of their own."""
        return "d_y" in self.lengths

    @property
    def copied(self) -> bool:
        """Whether the residual stream has copies."""
        return "n_s" in self.lengths

    def turning(self, kinds: tuple[Kind, ...]) -> tuple[Op, ...]:
        full = (angles("d_s"),) if FULL in self.mixers else ()
        apart = (replace(op, path="full_angles") for op in turned(full))
        return (*super().turning(kinds), *apart)

    def blocks(self, kinds: tuple[Kind, ...]) -> tuple[Part, ...]:
        """Declare the blocks, before them the features of all, and copies around them."""
        entry = {"x": "embedding"}
        before = [Part("per_layer", self.features(), takes=entry)] if self.featured else []
        before += [Part("copies", altup.copies(), takes=entry)] if self.copied else []
        source = before[-1].path if self.copied else "embedding"
        parts = []
        for kind in kinds:
            takes = {"x": source} | ({"per_layer": "per_layer"} if self.featured else {})
            if kind.mixer in TAKING.values():
                takes |= dict.fromkeys(("keys", "values"), self._giver(kind, kinds))
            path = path_of(kind, kinds)
            *ops, last = self.block(kind)  # what the next block takes comes last
            ops = [*ops, *self._handed_on(kind, kinds), last]
            parts.append(Part(path, tuple(ops), kind.count, takes, Place.BLOCK, layers=kind.layers))
            source = ""
        after = (Part("mean", altup.joined()),) if self.copied else ()
        return (*before, *parts, *after)

    def features(self) -> tuple[Op, ...]:
        """Declare the features that layers have of their own."""
        return per_layer.features()

    def _giver(self, kind: Kind, kinds: tuple[Kind, ...]) -> str:
        own = next(mixer for mixer, taking in TAKING.items() if taking == kind.mixer)
        return path_of(next(other for other in kinds if other.mixer == own), kinds)

    def _handed_on(self, kind: Kind, kinds: tuple[Kind, ...]) -> tuple[Op, ...]:
        if TAKING.get(kind.mixer) not in {other.mixer for other in kinds}:
            return ()
        key = SLIDING.key if kind.mixer == SLIDES else attention_core.FULL.key
        own = WIDE if kind.mixer in self.mixers else {}
        axes_of = f"[b {key} {own.get('k', 'k')} {own.get('d', 'd')}]"
        return tuple(
            view(f"hand_{name}", f"attention.{name}{axes_of} -> handed_{name}{axes_of}")
            for name in ("keys", "values")
        )

    def ports(self, kind: Kind) -> Mapping[str, str]:
        """Return the keys and values that layers of a kind take."""
        return {name: name for name in ("keys", "values") if kind.mixer in TAKING.values()}

    def block(self, kind: Kind) -> tuple[Op, ...]:
        own, ports = self._mixer(kind).ops(), self.ports(kind)
        if self.copied:
            return self._copied_block(own, self._dense(kind).ops(), ports)
        last = "computed" if self.featured else "y"
        return (
            *self.branch.around("attention", own, "x", "middle", **ports),
            *self._perceptron(kind, "middle", last),
            *(self._opened("computed", "y") if self.featured else ()),
        )

    def _perceptron(self, kind: Kind, x: str, y: str) -> tuple[Op, ...]:
        if kind.sparse:
            return self.branch.around("mlp", self._beside_experts(), x, y, residual=x)
        return self.branch.around("mlp", self._dense(kind).ops(), x, y)

    def _dense(self, kind: Kind) -> GatedMLP:
        width = "f_y" if kind.layer == WIDENED else "f"
        below = Norm.LAYER_BARE if kind.layer == THINNED else None
        return GatedMLP(self.perceptron.function, width=width, thinned=below)

    def _beside_experts(self) -> tuple[Op, ...]:
        """Declare a perceptron on x[b r e] and experts on the residual stream, to y[b r e]."""
        norm = self.branch.norm
        experts = replace(self.experts, shared="", scored="scored", traits=Trait.WEIGHED)
        dense = GatedMLP(self.experts.function, width=self.experts.shared)
        state = "residual[b r e]"
        return (
            *scope("dense", dense.ops(), x="x", y="plain"),
            norm.op("norm_dense", "plain[b r e]", "normed[b r e]"),
            norm.op("norm_router", state, "scored[b r e]"),
            norm.op("norm_sent", state, "sent[b r e]"),
            *scope("experts", experts.ops(), x="sent", scored="scored", y="mixed"),
            norm.op("norm_experts", "mixed[b r e]", "sparse[b r e]"),
            pointwise("join", "normed[b r e], sparse[b r e] -> y[b r e]", "add"),
        )

    def _opened(self, x: str, y: str) -> tuple[Op, ...]:
        own = per_layer.opening(self.perceptron.function)
        plain = Branch(self.branch.norm, self.branch.placing.NONE)
        return plain.around("per_layer", own, x, y, per_layer="per_layer")

    def _copied_block(
        self, layer: tuple[Op, ...], dense: tuple[Op, ...], ports: Mapping[str, str]
    ) -> tuple[Op, ...]:
        """Declare a block on copies of the residual stream, from x[n_s b r e] to y[n_s b r e]."""
        norm: Norm = self.branch.norm
        stream = "[b r e]"
        inside = {name: name for name in ("x", "predictions", "computed", "result", "corrections")}
        opening = per_layer.opening(self.perceptron.function)
        return (
            *scope("altup", altup.predicted(), **inside),
            *scope(
                "attention", (norm.op("norm", f"x{stream}", f"y{stream}"),), x="computed", y="entry"
            ),
            *scope("laurel", altup.low_rank(), x="entry", y="learned"),
            *scope("attention", layer, x="entry", y="attended", **ports),
            norm.op("norm_attended", f"attended{stream}", f"normed{stream}"),
            pointwise(
                "attention_residual", f"computed{stream}, normed{stream} -> summed{stream}", "add"
            ),
            pointwise(
                "laurel_residual", f"summed{stream}, learned{stream} -> middle{stream}", "add"
            ),
            *self.branch.around("mlp", dense, "middle", "result"),
            *scope("altup", altup.corrected(), **inside),
            *scope(
                "chosen",
                altup.chosen(scaled=Habit.SCALE in self.habits),
                x="corrections",
                y="chosen",
            ),
            *scope("per_layer", opening, x="chosen", y="added", per_layer="per_layer"),
            pointwise("residual", f"corrections[n_s b r e], added{stream} -> y[n_s b r e]", "add"),
        )


@dataclass(frozen=True)
class Embedding(Gemma):
    """An EmbeddingGemma 2: features come from the embedding alone, and what is embedded is wide."""

    def features(self) -> tuple[Op, ...]:
        return per_layer.projected()

    def output(self) -> tuple[Part, ...]:
        norm = scope("norm", (self.branch.normed("norm"),), x="x", y="normed")
        wide = einsum("project", "normed[b r e], *w[e w] -> embedded[b r w]")
        return (Part("head", (*norm, wide)),)
