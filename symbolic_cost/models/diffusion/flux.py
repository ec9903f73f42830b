"""Diffusion transformers of blocks of two streams, then of one: Flux, Chroma, HunyuanVideo.

Axes: as in `diffusion`; n_c pieces of all modulations of a Chroma.
"""

from collections.abc import Mapping

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Rotated
from symbolic_cost.layers.conditioning import (
    LAST,
    Embedded,
    conditioned,
    gated,
    modulation,
    parted,
)
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.joint_attention import IMAGE, JOINED, TEXT, Joint, Stream
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.patch import Patches, Piece, Places
from symbolic_cost.models.build import Fields, Shape
from symbolic_cost.models.diffusion.blocks import (
    Made,
    behind_first,
    double_block,
    ending,
    image_alone,
    joined_streams,
    pieces_of,
    single_block,
    unbiased,
)
from symbolic_cost.models.diffusion.transformers import (
    ANGLES,
    EMBEDDED,
    GUIDANCE,
    POOLED,
    PROMPT,
    TIME,
    Numbers,
    Sample,
    assumed_side,
    declared,
    heads_of,
    is_null,
    rms_of,
    rotated,
    sample,
    sizes_of,
    video,
)
from symbolic_cost.models.vision.maps_families import ratio_of
from symbolic_cost.ops.declare import Model, Op, Part, Place, einsum, pointwise, scope
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass, field, replace


@dataclass(frozen=True)
class Usual:
    """What stands where a configuration does not say it.

    Args:
        sizes: by the name of a key.
        turned: widths of a head that positions along each axis rotate.
        places: key of these widths.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    turned: tuple[int, ...] = (16, 56, 56)
    places: str = "axes_dims_rope"

    def size(self, fields: Fields, name: str) -> int:
        """Read a size."""
        return fields.size(name, {**_FLUX, **self.sizes}[name])

    def numbers(self, fields: Fields) -> Numbers:
        """Read heads and depth."""
        heads = self.size(fields, "num_attention_heads")
        numbers = heads_of(fields, heads, self.size(fields, "attention_head_dim"))
        numbers["n_layers"] = self.size(fields, "num_layers")
        rotated(fields, numbers, self.places, self.turned)
        return numbers


_FLUX: Mapping[str, int] = {
    "in_channels": 64,
    "num_attention_heads": 24,
    "attention_head_dim": 128,
    "num_layers": 19,
    "num_single_layers": 38,
    "joint_attention_dim": 4096,
}


@dataclass(frozen=True)
class Streams:
    """A network of blocks of two streams and of one.

    Args:
        perceptron: of every block.
        made: what makes the pieces of a modulation.
        norm: of queries and keys.
        takes: ports of all blocks, of those of two streams, of those of one, and of the head.
        ended: what makes the pieces of the head.
    """

    perceptron: MLP | GatedMLP = MLP("gelu_tanh")
    made: Made = pieces_of
    norm: Norm | None = Norm.RMS
    takes: tuple[Mapping[str, str], Mapping[str, str], Mapping[str, str]] = (
        {"cond": "time"},
        {"cond": "time"},
        {"cond": "time"},
    )
    ended: tuple[Op, ...] = modulation(LAST)

    def blocks(self) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
        """Declare a block of two streams and one of one."""
        attention = Joint((TEXT, IMAGE), (TEXT, IMAGE), self.norm, rotated=Rotated.WHOLE)
        single = replace(attention, streams=(JOINED,), results=())
        return (
            double_block(attention, made=self.made, perceptron=self.perceptron),
            single_block(single, made=self.made, perceptron=self.perceptron),
        )

    def parts(self, singles: int, before: tuple[Part, ...]) -> tuple[Part, ...]:
        """Declare it behind the parts "prompt" and "embedding"."""
        of_two, of_one, last = self.takes
        double, ops = self.blocks()
        streams = {"x": "embedding", "prompt": "prompt", **of_two}
        return (
            *before,
            Part("block", double, symbols.n_layers, streams, Place.LEADING),
            Part("joined", joined_streams(), takes={"x": "block", "prompt": "block"}),
            Part("single.block", ops, Integer(singles), {"x": "joined", **of_one}, Place.BLOCK),
            Part("image", image_alone(), takes={"x": "single.block"}),
            Part("head", ending(self.ended), takes={"x": "image", **last}),
        )


def packed(
    fields: Fields, shape: Shape, usual: Usual, *, closed: bool = False
) -> tuple[Sample, Numbers, int, dict[str, Expr | int]]:
    """Read packed latents, heads, and blocks of one stream; what is closed gives what it takes."""
    channels, patch = usual.size(fields, "in_channels"), fields.size("patch_size", 1)
    assumed_side(fields, 128)
    image = sample(fields, shape, 128, 2, channels)
    own: dict[str, Expr | int] = {"e_x": usual.size(fields, "joint_attention_dim")}
    out = channels if closed else fields.size("out_channels", channels)
    own["pixels"] = out * patch**2
    return image, usual.numbers(fields), usual.size(fields, "num_single_layers"), own


BEFORE = (
    Part("rotation", (ANGLES,)),
    Part("prompt", (PROMPT,)),
    Part("embedding", (EMBEDDED,)),
)


def flux(fields: Fields, shape: Shape) -> Model:
    """Declare a Flux, whose every block makes its own modulation."""
    image, numbers, singles, own = packed(fields, shape, Usual())
    guided = fields.flag("guidance_embeds", default=False)
    own["e_pool"] = fields.size("pooled_projection_dim", 768)
    fields.refuse()
    parts = Streams().parts(singles, (time_of(guided, POOLED), *BEFORE))
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def time_of(guided: bool, *others: Embedded) -> Part:  # noqa: FBT001 - one of few conditions
    """Declare what conditions the blocks: the time step, perhaps the strength of guidance."""
    return Part("time", conditioned((TIME, *((GUIDANCE,) if guided else ()), *others)))


_FLUX_2 = Usual(
    {
        "in_channels": 128,
        "num_attention_heads": 48,
        "num_layers": 8,
        "num_single_layers": 48,
        "joint_attention_dim": 15360,
    },
    (32,) * 4,
)


def flux_2(fields: Fields, shape: Shape) -> Model:
    """Declare a Flux 2: one modulation for all blocks of a kind, and no biases.

    Raises:
        InputError: every problem of the fields.
    """
    image, numbers, singles, own = packed(fields, shape, _FLUX_2)
    guided = fields.flag("guidance_embeds", default=True)
    own["n_f"] = fields.size("timestep_guidance_channels", 256)
    own["f"] = int(numbers["e"] * ratio_of(fields, "mlp_ratio", 3))
    fields.refuse()
    streams = Streams(GatedMLP("silu"), _modulation_pieces, takes=(_TWO, _ONE, {"cond": "time"}))
    made = Part("pieces", _MADE_ONCE, takes={"cond": "time"})
    parts = streams.parts(singles, (time_of(guided), made, *BEFORE))
    bare = (replace(part, ops=unbiased(part.ops)) for part in parts)
    return declared(fields, tuple(bare), sizes_of(image, shape, **own), numbers)


_TWO = dict.fromkeys(("image_pieces", "text_pieces"), "pieces")
_ONE = {"joined_pieces": "pieces"}


def _modulation_pieces(stream: Stream, pieces: tuple[str, ...]) -> tuple[Op, ...]:
    """Declare the pieces of a stream's modulation, of those that were made for all."""
    own = stream.name
    names = {piece: f"{own}.{piece}" for piece in pieces}
    return scope(f"{own}.modulation", (parted(pieces),), pieces=f"{own}_pieces", **names)


def _made_of(name: str, number: int) -> tuple[Op, ...]:
    """Declare the pieces of a stream for all blocks."""
    made = f"{name}.a[b e_t], *w[m_{number} e_t e] -> {name}_pieces[m_{number} b e]"
    act = pointwise(f"{name}.act", f"cond[b e_t] -> {name}.a[b e_t]", "silu")
    return (act, einsum(f"{name}.linear", made))


_MADE_ONCE = (*_made_of("image", 6), *_made_of("text", 6), *_made_of("joined", 3))


def chroma(fields: Fields, shape: Shape) -> Model:
    """Declare a Chroma: a Flux of which one small network makes all modulations.

    Raises:
        InputError: every problem of the fields.
    """
    image, numbers, singles, own = packed(fields, shape, Usual())
    entered, wide = (
        fields.size(f"approximator_{name}", usual)
        for name, usual in (("num_channels", 64), ("hidden_dim", 5120))
    )
    problem = f"{entered} channels are no four equal parts"
    fields.require(holds=entered % 4 == 0, problem=problem, name="approximator_num_channels")
    depth = Integer(fields.size("approximator_layers", 5))
    own |= {"n_f": entered, "e_h": wide, "e_q": wide}
    own["n_c"] = 3 * singles + 12 * numbers["n_layers"] + 2
    fields.refuse()
    before = (
        Part("condition", (_ENTERED,)),
        Part("approximator", _APPROXIMATED, depth, {"x": "condition"}),
        Part("pieces", _PIECES, takes={"x": "approximator"}),
        *BEFORE,
    )
    last = {"modulation.pieces": "pieces"}
    streams = Streams(made=_modulation_pieces, takes=(_TWO, _ONE, last), ended=(parted(LAST),))
    parts = streams.parts(singles, before)
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


_ENTERED = einsum("in_proj", "!times[b n_c n_f], *w[n_f e_h] + *bias[e_h] -> x[b n_c e_h]")
_APPROXIMATED = (
    Norm.RMS.op("norm", "x[b n_c e_h]", "fine[b n_c e_h]", row="e_h"),
    einsum("linear_1", "fine[b n_c e_h], *w[e_h e_q] + *bias[e_q] -> u[b n_c e_q]"),
    pointwise("act", "u[b n_c e_q] -> a[b n_c e_q]", "silu"),
    einsum("linear_2", "a[b n_c e_q], *w[e_q e_h] + *bias[e_h] -> done[b n_c e_h]"),
    pointwise("residual", "x[b n_c e_h], done[b n_c e_h] -> y[b n_c e_h]", "add"),
)
_PIECES = (
    einsum("out_proj", "x[b n_c e_h], *w[e_h e] + *bias[e] -> every[b n_c e]"),
    *(
        pointwise(name, f"every[b n_c e] -> {name}_pieces[m_{number} b e]", "copy", laid="n_c")
        for name, number in (("image", 6), ("text", 6), ("joined", 3), ("last", 2))
    ),
)


_HUNYUAN = Usual(
    {"in_channels": 16, "num_layers": 20, "num_single_layers": 40}, places="rope_axes_dim"
)


def hunyuan_video(fields: Fields, shape: Shape) -> Model:
    """Declare a HunyuanVideo: a Flux of videos, whose prompt is refined first.

    Raises:
        InputError: every problem of the fields.
    """
    channels, side = _HUNYUAN.size(fields, "in_channels"), fields.size("patch_size", 2)
    usual = Sample((90, 160), side, channels, symbols.l, (33, fields.size("patch_size_t", 1)))
    image = video(fields, shape, usual)
    numbers = _HUNYUAN.numbers(fields)
    singles = _HUNYUAN.size(fields, "num_single_layers")
    refined = Integer(fields.size("num_refiner_layers", 2))
    guided = fields.flag("guidance_embeds", default=True)
    norm = rms_of(fields, "rms_norm")
    if fields.has("image_condition_type"):  # joined to the latents, it is no work of its own
        fields.text("image_condition_type", "latent_concat", ("latent_concat",))
    fields.ignore("image_condition_type")
    own: dict[str, Expr | int] = {"e_x": fields.size("text_embed_dim", 4096)}
    own["e_pool"] = fields.size("pooled_projection_dim", 768)
    out = fields.size("out_channels", channels if is_null(fields) else 16)
    own |= {"pixels": out * image.frames[1] * side**2, "f_s": 4 * numbers["e"]}
    own["f"] = int(numbers["e"] * ratio_of(fields, "mlp_ratio", 4))
    fields.refuse()
    condition = conditioned((TIME, Embedded("averaged", "e_x")))
    before = (
        time_of(guided, POOLED),
        Part("rotation", (ANGLES,)),
        Part("refiner.time", condition),
        Part("context", (PROMPT,)),
        Part("prompt", _REFINED, refined, {"x": "context", "cond": "refiner.time"}, Place.END),
        Part("embedding", Patches(Piece.BIAS | Piece.FRAMES, Places.NONE).ops()),
    )
    parts = Streams(norm=norm).parts(singles, before)
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def _refined() -> tuple[Op, ...]:
    """Declare a block of the prompt alone, of whose layers a condition opens the results."""
    a, opened = "[b r_x e]", ("gate_a", "gate_m")
    made = scope("modulation", modulation(opened), cond="cond", gate_a="gate_a", gate_m="gate_m")
    attention = Joint((TEXT,), (TEXT,)).ops()
    perceptron = MLP("silu", width="f_s").ops()
    own = retitled(perceptron, {"r": TEXT.residual, "l": TEXT.query})
    return (
        *behind_first((Norm.LAYER.op("norm_a", f"x{a}", f"entry{a}"),), made),
        *scope("attention", attention, x_text="entry", y_text="seen"),
        *_opened("gate_a", x="x", outcome="seen", y="middle"),
        Norm.LAYER.op("norm_m", f"middle{a}", f"fine{a}"),
        *scope("mlp", own, x="fine", y="done"),
        *_opened("gate_m", x="middle", outcome="done", y="y"),
    )


def _opened(gate: str, **names: str) -> tuple[Op, ...]:
    return scope(f"{gate}.exit", gated(gate, "b r_x"), **{gate: gate}, **names)


_REFINED = _refined()
