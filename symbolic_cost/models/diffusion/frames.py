"""Autoencoders of videos by `_class_name` whose frames are made fewer with their sides.

HunyuanVideo, CogVideoX, and that of Stable Video Diffusion, whose frames only what decodes sees
together.
"""

from functools import partial
from math import log2

from sympy import S

from symbolic_cost import symbols
from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.moving import in_time, unit
from symbolic_cost.layers.skips import Idle, SetAside
from symbolic_cost.layers.unet import GROUPS, Block, attention
from symbolic_cost.layers.video import NormedBy, Relaid, causal, framed
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.diffusion.autoencoder import Coder, coded, middle
from symbolic_cost.models.diffusion.transformers import Sample, video
from symbolic_cost.models.diffusion.unet import function_of, grouped, modelled, trail_of, widths_of

_WIDTHS = (128, 256, 512, 512)
_WHOLE = 16
"""Of HunyuanVideo: frames that its code sees at once."""


def _alike(fields: Fields, kinds: tuple[str, str], stages: int, usual: int) -> None:
    for name, kind in zip(("down_block_types", "up_block_types"), kinds, strict=True):
        if kind:
            fine = fields.items(name, (kind,) * usual) == (kind,) * stages
            problem = f"{stages} times {kind} is accepted"
            fields.require(holds=fine, problem=problem, name=name)


def hunyuan_video(fields: Fields, shape: Shape) -> Model:
    """Declare the autoencoder of HunyuanVideo: convolutions that see no later frame."""
    usual = Sample((720, 1280), 1, fields.size("in_channels", 3), symbols.l, (13, 1))
    image, latent = video(fields, shape, usual), fields.size("latent_channels", 16)
    widths, stages = widths_of(fields, _WIDTHS)
    depth, out = fields.size("layers_per_block", 2), fields.size("out_channels", 3)
    function = function_of(fields)
    _alike(fields, ("HunyuanVideoDownBlock3D", "HunyuanVideoUpBlock3D"), stages, len(_WIDTHS))
    seen = fields.flag("mid_block_add_attention", default=True)
    halved = int(log2(fields.size("spatial_compression_ratio", 8)))
    grouped(fields, widths, stages)
    timed = range(max(stages - 3, 0), stages - 1)
    latents = -(-image.frames[0] // 2 ** len(timed))
    whole = image.frames[0] <= _WHOLE and latents <= _WHOLE // 4
    problem = f"more than {_WHOLE} frames, or {_WHOLE // 4} of latents, run in pieces that overlap"
    fields.require(holds=whole, problem=problem, name="sample_frames")
    fields.refuse()
    trail = trail_of(image, shape, moving=True)
    own_block = partial(Block, function=function, conv=causal)

    def between(i: int, width: int, *, down: bool) -> dict[str, Layer]:
        by = (2 if i in timed else 1, *((2, 2) if i < halved else (1, 1)))
        if max(by) == 1:
            return {}
        if down:
            return {"shrink": causal(width, 3, by)}
        return {"grow": Relaid(by, function="interpolate", still=1), "conv": causal(width, 3)}

    mid = middle(own_block, widths[-1], attention(1) if seen else None)
    own = (mid, own_block, causal)
    down = Coder(widths, (depth,) * stages, partial(between, down=True), *own)
    up = Coder(widths[::-1], (depth + 1,) * stages, partial(between, down=False), *own)
    quants = Conv(2 * latent, 1), Conv(latent, 1)
    coded(down.encoder(2 * latent), up.decoder(out), latent, quants).declare("", trail)
    return modelled(fields, trail)


def cogvideox(fields: Fields, shape: Shape) -> Model:
    """Declare the autoencoder of CogVideoX, in which latents scale what decodes them."""
    named = {"sample_height": 480, "sample_width": 720}
    sides = [fields.size(name, usual) for name, usual in named.items()]
    latent, channels = fields.size("latent_channels", 16), fields.size("in_channels", 3)
    widths, stages = widths_of(fields, (128, 256, 256, 512))
    depth, out = fields.size("layers_per_block", 3), fields.size("out_channels", 3)
    function = function_of(fields)
    _alike(fields, ("CogVideoXDownBlock3D", "CogVideoXUpBlock3D"), stages, len(_WIDTHS))
    grouped(fields, widths, stages)
    halved = 2 ** (stages - 1)
    for name, side in zip(named, sides, strict=True):
        problem = f"sides that {halved} divides are accepted"
        fields.require(holds=side % halved == 0, problem=problem, name=name)
    if not fields.has("sample_frames"):
        fields.assume("sample_frames", "49, frames of a video")
    frames = fields.size("sample_frames", 49)
    problem = f"one frame, and {_CHUNK} at a time behind it, are accepted"
    fields.require(holds=frames % _CHUNK == 1, problem=problem, name="sample_frames")
    fields.refuse()
    image = Sample((sides[0], sides[1]), 1, channels, symbols.l, (frames, 1))
    trail = trail_of(image, shape, moving=True)

    def shrunk(i: int, width: int) -> dict[str, Layer]:
        fewer: dict[str, Layer] = (
            {"time": Relaid((S.Half, 1, 1), function="sum")} if i < _TIMED else {}
        )
        return {**fewer, "shrink": framed(width, 3, 2, (0, 1))} if i < stages - 1 else {}

    def grown(i: int, width: int) -> dict[str, Layer]:
        by = (2 if i < _TIMED else 1, 2, 2)
        larger = Relaid(by, function="interpolate", still=1)
        more: dict[str, Layer] = {"grow": larger, "conv": framed(width, 3)}
        return more if i < stages - 1 else {}

    own = partial(Block, function=function, conv=causal)
    scaled, act = NormedBy(GROUPS, "latents"), Activation("silu")
    told = partial(own, norm=scaled)
    mid, later = (middle(unit, widths[-1], None) for unit in (own, told))
    down = Coder(widths, (depth,) * stages, shrunk, mid, own, causal, (GROUPS, act))
    depths = (depth + 1,) * stages
    up = Coder(widths[::-1], depths, grown, later, told, causal, (scaled, act))
    decoder = Chain({"latents": SetAside("latents"), **up.decoder(out).layers})
    coded(down.encoder(2 * latent), decoder, latent, (None, None)).declare("", trail)
    return modelled(fields, trail)


_CHUNK, _TIMED = 8, 2
"""Of CogVideoX: frames that its code sees at a time, and how many stages halve them."""


def temporal(fields: Fields, shape: Shape) -> Model:
    """Declare the autoencoder of Stable Video Diffusion."""
    usual = Sample((32, 32), 1, fields.size("in_channels", 3), symbols.l, (14, 1))
    image, latent = video(fields, shape, usual), fields.size("latent_channels", 4)
    widths, stages = widths_of(fields, (64,))
    depth, out = fields.size("layers_per_block", 1), fields.size("out_channels", 3)
    _alike(fields, ("DownEncoderBlock2D", ""), stages, 1)
    grouped(fields, widths, stages)
    fields.refuse()
    trail = trail_of(image, shape, moving=True)
    alone = partial(Block, conv=framed)
    seen = attention(1, apart=True)

    def grown(i: int, width: int) -> dict[str, Layer]:
        doubled = Relaid((1, 2, 2), function="interpolate")
        return {"grow": doubled, "conv": framed(width, 3)} if i < stages - 1 else {}

    def shrunk(i: int, width: int) -> dict[str, Layer]:
        return {"shrink": framed(width, 3, 2, (0, 1))} if i < stages - 1 else {}

    # Its code stops behind the second block of the middle.
    more = {f"mid.{i}": Idle(unit(widths[-1])) for i in range(2, depth)}
    mid = middle(unit, widths[-1], seen) if depth > 1 else _one(unit(widths[-1]), seen)
    down = Coder(widths, (depth,) * stages, shrunk, middle(alone, widths[-1], seen), alone, framed)
    up = Coder(widths[::-1], (depth + 1,) * stages, grown, mid | more, unit, framed)
    decoder = Chain({**up.decoder(out).layers, "time": in_time(out, 3)})
    coded(down.encoder(2 * latent), decoder, latent, (Conv(2 * latent, 1), None)).declare("", trail)
    return modelled(fields, trail)


def _one(block: Layer, seen: Layer) -> dict[str, Layer]:
    return {"mid.0": block, "mid.attention": Idle(seen)}
