"""Autoencoders of latents, by `_class_name`."""

from __future__ import annotations

from collections.abc import Iterator

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.unet import GROUPS, Enlarged, First, attention, block
from symbolic_cost.models.diffusion.transformers import sample
from symbolic_cost.models.diffusion.unet import function_of, grouped, modelled, trail_of, widths_of
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model


def autoencoder(fields: Fields, shape: Shape) -> Model:
    """Declare the autoencoder of latents: an image is encoded, its means are decoded."""
    channels, latent = fields.size("in_channels", 3), fields.size("latent_channels", 4)
    image = sample(fields, shape, 32, 1, channels)
    widths, stages = widths_of(fields, (64,))
    depth, out = fields.size("layers_per_block", 1), fields.size("out_channels", 3)
    function = function_of(fields)
    for name, kind in (("down_block_types", "DownEncoderBlock2D"), ("up_block_types", _DECODER)):
        stated = fields.items(name, (kind,))
        fine = stated == (kind,) * stages
        fields.require(holds=fine, problem=f"{stages} times {kind} is accepted", name=name)
    seen = fields.flag("mid_block_add_attention", default=True)
    before, after = (
        fields.flag(name, default=True) for name in ("use_quant_conv", "use_post_quant_conv")
    )
    grouped(fields, widths, stages)
    fields.refuse()
    trail = trail_of(image, shape)
    middle = _middle(widths[-1], function, seen=seen)
    encoder = dict(_encoder(widths, depth, function)) | middle
    encoder |= _ended(2 * latent)
    decoder: dict[str, Layer] = {"conv_in": Conv(widths[-1], 3, 1, 1), **middle}
    decoder |= dict(_decoder(widths, depth, function)) | _ended(out)
    layers: dict[str, Layer] = {
        "encoder": Chain(encoder),
        **({"quant": Conv(2 * latent, 1)} if before else {}),
        "mean": First(latent),
        **({"post_quant": Conv(latent, 1)} if after else {}),
        "decoder": Chain(decoder),
    }
    Chain(layers).declare("", trail)
    return modelled(fields, trail)


_DECODER = "UpDecoderBlock2D"


def _ended(channels: int) -> dict[str, Layer]:
    # The activation function of the end is silu, whatever that of the blocks is.
    return {"norm": GROUPS, "act": Activation("silu"), "conv_out": Conv(channels, 3, 1, 1)}


def _middle(width: int, function: str, *, seen: bool) -> dict[str, Layer]:
    own = {"mid.attention": attention(1)} if seen else {}
    first, last = (block(width, width, function, timed=False) for _ in range(2))
    return {"mid.0": first, **own, "mid.1": last}


def _encoder(widths: tuple[int, ...], depth: int, function: str) -> Iterator[tuple[str, Layer]]:
    yield "conv_in", Conv(widths[0], 3, 1, 1)
    inside = widths[0]
    for i, width in enumerate(widths):
        for j in range(depth):
            yield f"down{i}.{j}", block(width, inside, function, timed=False)
            inside = width
        if i < len(widths) - 1:
            yield f"down{i}.shrink", Conv(width, 3, 2, (0, 1))


def _decoder(widths: tuple[int, ...], depth: int, function: str) -> Iterator[tuple[str, Layer]]:
    inside = widths[-1]
    for i, width in enumerate(reversed(widths)):
        for j in range(depth + 1):
            yield f"up{i}.{j}", block(width, inside, function, timed=False)
            inside = width
        if i < len(widths) - 1:
            yield f"up{i}.enlarge", Enlarged()
            yield f"up{i}.conv", Conv(width, 3, 1, 1)
