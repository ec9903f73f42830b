"""Sana: attention that is linear in positions, perceptrons that see the positions around.

Axes: as in `diffusion`; h_x and d_x heads of attention to the prompt and their width, d_o width of
a head and one more, y_m and x_m sides of the map of patches, y_n and x_n those after a convolution,
k_y and k_x its kernel.
"""

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Bias, output
from symbolic_cost.layers.attention_core import Positions
from symbolic_cost.layers.conditioning import conditioned
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.patch import Patches, Piece, Places
from symbolic_cost.models.build import Fields, Shape
from symbolic_cost.models.diffusion.blocks import block, ending
from symbolic_cost.models.diffusion.tabled import CAPTION, LAST_TABLE, SHARED, prompted, tabled_six
from symbolic_cost.models.diffusion.transformers import (
    GUIDANCE,
    TIME,
    declared,
    heads_of,
    is_affine,
    is_null,
    sample,
    sizes_of,
    whole_patches,
)
from symbolic_cost.models.vision.maps_families import ratio_of
from symbolic_cost.ops.declare import Model, Op, Part, Place, conv, einsum, pointwise, scope, view
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass

_ACROSS = "rms_norm_across_heads"


def sana(fields: Fields, shape: Shape) -> Model:
    """Declare a Sana.

    Raises:
        InputError: every problem of the fields.
    """
    channels, patch = fields.size("in_channels", 32), fields.size("patch_size", 1)
    image = sample(fields, shape, 32, patch, channels)
    whole_patches(fields, image)
    numbers = heads_of(fields, 70, 32) | {"n_layers": fields.size("num_layers", 20)}
    e = numbers["e"]
    alike = fields.size("cross_attention_dim", 2240) == e
    problem = f"the prompt is projected to the width {e} of the heads together"
    fields.require(holds=alike, problem=problem, name="cross_attention_dim")
    own = {"h_x": fields.size("num_cross_attention_heads", 20), "e_s": e}
    own |= {"d_x": fields.size("cross_attention_head_dim", 112), "d_o": e // numbers["h"] + 1}
    own |= {"e_x": fields.size("caption_channels", 2304), "two": 2, "k_y": 3, "k_x": 3}
    own["f"] = int(ratio_of(fields, "mlp_ratio", 5 / 2) * e)
    own["pixels"] = fields.size("out_channels", channels if is_null(fields) else 32) * patch**2
    placed = fields.has("interpolation_scale")
    fields.ignore("interpolation_scale")
    guided = fields.flag("guidance_embeds", default=False)
    biased = fields.flag("attention_bias", default=False)
    norm = None
    if fields.has("qk_norm"):
        fields.text("qk_norm", _ACROSS, (_ACROSS,))
        norm = Norm.RMS
    fields.ignore("qk_norm")
    norms = Norm.LAYER_BARE, Norm.LAYER if is_affine(fields) else Norm.LAYER_BARE
    fields.refuse()
    own |= {
        f"{letter}_{n}": side // patch
        for letter, side in zip("yx", image.sides, strict=True)
        for n in "mn"
    }
    cross = retitled(prompted(Bias.BOTH, norm), {"h": "h_x", "d": "d_x"})
    ops = block(
        _Linear(Bias.BOTH if biased else Bias.OUTPUT, norm), _Around(), tabled_six(), norms, cross
    )
    takes = {"x": "embedding", "shared": "modulation", "prompt": "prompt"}
    places = Places.COMPUTED if placed else Places.NONE
    parts = (
        Part("time", conditioned((TIME, *((GUIDANCE,) if guided else ())))),
        Part("modulation", SHARED, takes={"cond": "time"}),
        Part("prompt", _PROMPT),
        Part("embedding", Patches(Piece.BIAS, places).ops()),
        Part("block", ops, symbols.n_layers, takes, Place.BLOCK),
        Part("head", ending(LAST_TABLE), takes={"x": "block", "cond": "time"}),
    )
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


_PROMPT = (
    *scope("", CAPTION, prompt="plain"),
    Norm.RMS.op("norm", "plain[b r_x e_s]", "prompt[b r_x e_s]", row="e_s"),
)


@dataclass(frozen=True)
class _Linear:
    """Attention whose keys and values are summed before queries see them; one more value counts."""

    bias: Bias
    norm: Norm | None

    def ops(self) -> tuple[Op, ...]:
        ops: list[Op] = [view("gather", "x_image[b r e] -> full[b l e]")]
        for name in "qkv":
            bias = " + *bias[h d]" if Bias.INNER in self.bias else ""
            made = f"plain_{name}[b l h d]"
            ops.append(einsum(name, f"full[b l e], *w[e h d]{bias} -> {made}"))
            if self.norm is not None and name != "v":
                before, made = made, f"fine_{name}[b l h d]"
                ops.append(self.norm.op(f"norm_{name}", before, made, row="h d"))
            if name != "v":
                ops.append(pointwise(f"act_{name}", f"{made} -> {name}[b l h d]", "relu"))
        return (
            *ops,
            view("keys", "k[b l h d] -> keys[b t h d]"),
            view("values", "plain_v[b l h d] -> values[b t h d]"),
            pointwise("count", "values[b t h d] -> counted[b t h d_o]", "copy", laid="d"),
            einsum("sum", "counted[b t h d_o], keys[b t h d] -> state[b h d_o d]"),
            einsum("see", "state[b h d_o d], q[b l h d] -> seen[b l h d_o]"),
            pointwise("divide", "seen[b l h d_o] -> context[b l h d]", "copy", laid="d_o"),
            *scope(
                "", output(Positions("r", "l"), "h", bias=self.bias), context="context", y="y_image"
            ),
        )


@dataclass(frozen=True)
class _Around:
    """A gated perceptron, whose inner features see the positions around before the gate."""

    def ops(self) -> tuple[Op, ...]:
        wide, far = "[b two f y_m x_m]", "[b two f y_n x_n]"
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("up", "full[b l e], *w[e two f] + *bias[two f] -> u[b l two f]"),
            pointwise("act", "u[b l two f] -> a[b l two f]", "silu"),
            pointwise("map", f"a[b l two f] -> map{wide}", "copy", laid="l"),
            conv("deep", f"map{wide}, *w[two f k_y k_x] + *bias[two f] -> deep{far}"),
            pointwise("gate", f"deep{far} -> opened[b f y_n x_n]", "mul", laid="two"),
            pointwise("back", "opened[b f y_n x_n] -> g[b l f]", "copy", laid="y_n x_n"),
            einsum("down", "g[b l f], *w[f e] -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )
