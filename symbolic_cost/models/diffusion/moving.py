"""The UNet of Stable Video Diffusion, whose stages see frames alone, then together."""

from functools import partial

from symbolic_cost.layers.conv import Chain, Layer, Maps
from symbolic_cost.layers.moving import Transformer, unit
from symbolic_cost.layers.unet import Timed
from symbolic_cost.layers.video import framed
from symbolic_cost.models.build import Fields, Shape
from symbolic_cost.models.diffusion.conditions import embed
from symbolic_cost.models.diffusion.transformers import sample
from symbolic_cost.models.diffusion.unet import (
    Net,
    grouped,
    kinds_of,
    modelled,
    nothing,
    of_stages,
    trail_of,
    widths_of,
)
from symbolic_cost.ops.declare import Model, pointwise
from symbolic_cost.records import replace

_DOWN = {"CrossAttnDownBlockSpatioTemporal": True, "DownBlockSpatioTemporal": False}
_UP = {"CrossAttnUpBlockSpatioTemporal": True, "UpBlockSpatioTemporal": False}


def spatio_temporal(fields: Fields, shape: Shape) -> Model:
    """Declare the UNet of Stable Video Diffusion."""
    image = sample(fields, shape, 96, 1, fields.size("in_channels", 8))
    image = replace(image, frames=(fields.size("num_frames", 25), 1))
    widths, stages = widths_of(fields, (320, 640, 1280, 1280))
    depths = of_stages(fields, "layers_per_block", 2, stages)
    named = fields.has("num_attention_heads")
    heads = of_stages(fields, "num_attention_heads", 5, stages) if named else (5, 10, 20, 20)
    layers = of_stages(fields, "transformer_layers_per_block", 1, stages)
    prompt = of_stages(fields, "cross_attention_dim", 1024, stages)
    if len(set(prompt)) != 1:
        fields.note("cross_attention_dim", "one width of the prompt is declared")
    down = kinds_of(fields, "down_block_types", stages, _DOWN, (0, 0, 0, 1))
    up = kinds_of(fields, "up_block_types", stages, _UP, (1, 0, 0, 0))
    odd = [f"{w} by {n}" for w, n in zip(widths, heads, strict=False) if w % n]
    problem = f"channels are not divided by heads: {', '.join(odd)}"
    fine = not odd and len(heads) == stages
    fields.require(holds=fine, problem=problem, name="num_attention_heads")
    added = fields.size("projection_class_embeddings_input_dim", 768)
    fields.ignore("addition_time_embed_dim")
    out = fields.size("out_channels", 4)
    grouped(fields, widths, stages)
    fields.refuse()
    trail = trail_of(image, shape, moving=True)
    embed(trail, 4 * widths[0], [("step", widths[0], "two"), ("added", added, "two")], "silu", 0)
    time, frames = trail.aside["time"], trail.at.axes[2]
    every = Maps("time.of_frames", (*time.axes, frames))
    trail.ops.append(pointwise(every.tensor, f"{time} -> {every}", "copy"))
    trail.aside["time"] = every
    tokens = trail.new_axis("l", image.text)

    def seeing(h: int, count: int) -> Layer:
        return Transformer(h, count, prompt[0], tokens)

    seen = [seeing(n, count) for n, count in zip(heads, layers, strict=True)]
    beside = (
        tuple((lambda _, s=s: s) if kind else nothing for kind, s in zip(down, seen, strict=True)),
        lambda _: seen[-1],
        tuple(
            (lambda _, s=s: s) if kind else nothing
            for kind, s in zip(up, reversed(seen), strict=True)
        ),
    )
    net = Net(widths, depths, beside, "silu", 1, partial(unit, time=Timed()), framed)
    Chain(net.layers(3, 3, out)).declare("", trail)
    return modelled(fields, trail)
