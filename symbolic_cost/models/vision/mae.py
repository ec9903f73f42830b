"""Masked autoencoder: a vision transformer on some patches, a narrower one that restores all.

Axes: as in a vision transformer; those of the decoder end in _dec, pixels those of a patch.
"""

from dataclasses import replace

from sympy import Integer

from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.build import Fields, Shape, bound
from symbolic_cost.models.vision.config import read
from symbolic_cost.models.vision.transformer import VIT
from symbolic_cost.ops.declare import Model, Op, Part, Place, axes, einsum, pointwise, view
from symbolic_cost.ops.part import retitled

_NAME = "dec"
_OWN = axes("pixels whole")


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields and declare the encoder, and the decoder if the head has it."""
    family, sizes, numbers, _ = read(fields, shape)
    share = fields.share("mask_ratio", 3 / 4)
    whole = numbers["N_p"] ** 2 if "N_p" in numbers else int(sizes.patches)
    # As PyTorch rounds: 49 of 196 patches are left of three quarters masked.
    left = int(whole * (1 - share))
    fields.require(holds=left > 0, problem="no patch is left", name="mask_ratio")
    inner = {
        "e": fields.size("decoder_hidden_size", 512),
        "f": fields.size("decoder_intermediate_size", 2048),
        "h": fields.size("decoder_num_attention_heads", 16),
        "n_layers": fields.size("decoder_num_hidden_layers", 8),
    }
    fields.require(
        holds=inner["e"] % inner["h"] == 0,
        problem=f"{inner['h']} heads do not divide the width {inner['e']}",
        name="decoder_num_attention_heads",
    )
    fields.refuse()
    sizes = replace(sizes, positions=left + 1)
    model = bound(replace(family.declare("vit_mae", shape, sizes), bindings=numbers))
    if not fields.head.endswith("ForPreTraining"):
        return model
    plain = VIT.attended(bias=family.attention.bias)
    narrow = plain.declare("decoder", shape, replace(sizes, positions=whole + 1))
    decoder = bound(replace(narrow, bindings={**numbers, **inner}))
    pixels = numbers["n_ch"] * fields.size("patch_size", 16) ** 2
    return _joined(model, decoder, pixels)


def _joined(encoder: Model, decoder: Model, pixels: int) -> Model:
    """Declare what restores the pixels of all patches from those that were left."""
    names = {axis: f"{axis}_{_NAME}" for axis in decoder.sizes if axis != "b"}
    block = next(part for part in decoder.parts if part.is_block)
    entry: tuple[Op, ...] = (
        einsum("embed", "x[b r e], *w[e e_dec] + *bias[e_dec] -> left[b r e_dec]"),
        view("gather", "left[b r e_dec] -> seen[b t e_dec]"),
        pointwise("fill", "seen[b t e_dec], *mask[e_dec] -> all[b r_dec e_dec]", "copy", laid="t"),
        pointwise("position", "all[b r_dec e_dec], *table[r_dec e_dec] -> x[b r_dec e_dec]", "add"),
    )
    entry = tuple(op.renamed("entry", {"x": "x" if op.path == "embed" else "y"}) for op in entry)
    norm = Norm.LAYER.op("norm", "x[b r e]", "y[b r e]")
    pattern = "y[b r_dec e_dec], *w[e_dec pixels] + *bias[pixels] -> restored[b r_dec pixels]"
    parts = (
        Part("decoder.embedding", entry, takes={"x": encoder.parts[-1].path}),
        Part("decoder.block", retitled(block.ops, names), block.repeat, place=Place.BLOCK),
        Part("head", (*retitled((norm,), names), einsum("restore", pattern))),
    )
    sizes = {names[axis]: size for axis, size in decoder.sizes.items() if axis in names}
    known = {
        names[axis]: replace(decoder.axes[axis], name=names[axis])
        for axis in names
        if axis in decoder.axes
    }
    return replace(
        encoder,
        parts=(*encoder.parts, *parts),
        sizes={**encoder.sizes, **sizes, "pixels": Integer(pixels)},
        axes={**encoder.axes, **known, **_OWN},
    )
