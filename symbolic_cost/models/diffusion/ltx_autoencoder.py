"""Autoencoders of LTX-Video and LTX 2, by `_class_name`: blocks between steps that fold maps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

from sympy import Rational

from symbolic_cost import symbols
from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer, Trail
from symbolic_cost.layers.maps import Normed, Residual
from symbolic_cost.layers.unet import Block, First, Repeated
from symbolic_cost.layers.video import Relaid, causal
from symbolic_cost.models.diffusion.transformers import Sample, video
from symbolic_cost.models.diffusion.unet import modelled, trail_of
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass

_BARE = Normed("rms_norm_bare", learned=())
_WIDTHS, _DEPTHS, _SCALED = (128, 256, 512, 512), (4, 3, 3, 3, 4), (True, True, True, False)
_PLAIN, _FOLDED = "LTXVideoDownBlock3D", "LTXVideo095DownBlock3D"
_SECOND = "LTX2VideoDownBlock3D"
_STEPS = {"spatial": (1, 2, 2), "temporal": (2, 1, 1), "spatiotemporal": (2, 2, 2)}


def _centred(channels: int, kernel: int, stride: int | tuple[int, ...] = 1) -> Conv:
    """Return a convolution that sees frames on both sides."""
    return Conv(channels, kernel, stride, kernel // 2)


@dataclass(frozen=True)
class _Extended:
    """The first frames once more, before all of them.

    Args:
        frames: how many.
    """

    frames: int

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer."""
        every = trail.length(trail.at.axes[2]) + self.frames
        Relaid((1, 1, 1), frames=every).declare(name, trail)


@dataclass(frozen=True)
class _Coder:
    """What encodes, or what decodes.

    Args:
        widths: channels of its stages, as they run.
        depths: blocks of every stage and of the middle, as they run.
        conv: a convolution to some channels, with a kernel of some size.
    """

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    conv: Callable[..., Conv]

    def blocks(self, width: int, number: int) -> dict[str, Layer]:
        """Return blocks that keep their channels."""
        return {"blocks": Repeated(self.block(width), number)} if number else {}

    def block(self, width: int) -> Block:
        """Return a block to so many channels."""
        return Block(width, "silu", norm=_BARE, conv=self.conv, short=Normed())

    def ended(self, layers: dict[str, Layer], channels: int) -> Chain:
        """Return layers behind the first convolution and before the last."""
        ends: dict[str, Layer] = {
            "norm": _BARE,
            "act": Activation("silu"),
            "conv_out": self.conv(channels, 3),
        }
        return Chain({"conv_in": self.conv(self.widths[0], 3), **layers, **ends})


def ltx(fields: Fields, shape: Shape) -> Model:
    """Declare the autoencoder: a video is encoded, its means are decoded."""
    patch, deep = fields.size("patch_size", 4), fields.size("patch_size_t", 1)
    channels, out = (fields.size(f"{name}_channels", 3) for name in ("in", "out"))
    usual = Sample((512, 704), patch, channels * patch**2 * deep, symbols.l, (121, deep))
    image, latent = video(fields, shape, usual), fields.size("latent_channels", 128)
    if deep != 1:
        fields.note("patch_size_t", "1 is accepted")
    encoder, shrinks = _encoder(fields)
    decoder, grows = _decoder(fields)
    factor = patch * prod(step[1] for step in shrinks)
    fits = not any(side % factor for side in image.sides)
    problem = f"sides that {factor} divides are accepted"
    fields.require(holds=fits, problem=problem, name="sample_size")
    timed = prod(step[0] for step in shrinks)
    problem = f"one frame, and {timed} at a time behind it, are accepted"
    fits = (image.frames[0] - 1) % timed == 0
    fields.require(holds=fits, problem=problem, name="sample_frames")
    fields.refuse()
    sides = image.sides[0] // patch, image.sides[1] // patch
    trail = trail_of(Sample(sides, 1, image.channels, image.text, image.frames), shape, moving=True)
    layers: dict[str, Layer] = {
        "encoder": encoder.ended(_down(fields, encoder, shrinks), latent + 1),
        "mean": First(latent),
        "decoder": decoder.ended(_up(fields, decoder, grows), out * patch**2),
    }
    Chain(layers).declare("", trail)
    return modelled(fields, trail)


_Steps = list[tuple[int, ...]]
_STILL = (1, 1, 1)


def _encoder(fields: Fields) -> tuple[_Coder, _Steps]:
    """Read what encodes, and by how much the step of every stage divides its maps."""
    widths = _sizes(fields, "block_out_channels", _WIDTHS)
    kinds = fields.items("down_block_types", (_PLAIN,) * 4)
    second = _is_second(fields)
    folded = second or kinds[-1:] == (_FOLDED,)
    widths = (fields.size("latent_channels", 128), *widths) if second else widths
    stages = len(widths) - folded
    kind = _SECOND if second else _FOLDED if folded else _PLAIN
    fine = kinds == (kind,) * stages
    fields.require(
        holds=fine, problem=f"{stages} times {kind} is accepted", name="down_block_types"
    )
    depths = _sizes(fields, "layers_per_block", _DEPTHS, stages + 1)
    scaled = _flags(fields, "spatio_temporal_scaling", _SCALED, stages)
    how = fields.items("downsample_type", ("conv",) * 4)
    known = {**_STEPS, "conv": (2, 2, 2)} if folded else {"conv": (2, 2, 2)}
    fine = len(how) >= stages and all(one in known for one in how[:stages])
    problem = f"{stages} of {' or '.join(known)} are accepted"
    fields.require(holds=fine or not folded, problem=problem, name="downsample_type")
    ways = how if folded and fine else ("conv",) * stages
    steps: _Steps = [known[way] if on else _STILL for way, on in zip(ways, scaled, strict=False)]
    kept = folded and any(
        a != b and (way == "conv" or not on)
        for a, b, way, on in zip(widths, widths[1:], ways, scaled, strict=False)
    )
    by = [prod(step) if way != "conv" else 1 for way, step in zip(ways, steps, strict=False)]
    odd = folded and any(
        b % step or a * step % b for a, b, step in zip(widths, widths[1:], by, strict=False)
    )
    problem = "channels change where positions are folded into them, by whole sums"
    fields.require(holds=not (kept or odd), problem=problem, name="block_out_channels")
    conv = causal if fields.flag("encoder_causal", default=True) else _centred
    return _Coder(widths, depths, conv), steps


def _decoder(fields: Fields) -> tuple[_Coder, _Steps]:
    """Read what decodes, and by how much the step of every stage multiplies its maps."""
    widths = _sizes(fields, "decoder_block_out_channels", _WIDTHS)
    stages = len(widths)
    depths = _sizes(fields, "decoder_layers_per_block", _DEPTHS, stages + 1)
    scaled = _flags(fields, "decoder_spatio_temporal_scaling", _SCALED, stages)
    noise = fields.items("decoder_inject_noise", (False,) * 5)
    fine = len(noise) == stages + 1 and not any(noise)
    problem = f"{stages + 1} times false is accepted"
    fields.require(holds=fine, problem=problem, name="decoder_inject_noise")
    _flags(fields, "upsample_residual", (False,) * 4, stages)
    factors = _sizes(fields, "upsample_factor", (1,) * 4, stages)
    before, odd = widths[-1], []
    for width, factor, on in zip(widths[::-1], factors[::-1], scaled[::-1], strict=False):
        odd += (
            [factor] if factor > 1 and not (on and before == width and width % factor == 0) else []
        )
        before = width // factor
    problem = f"{odd[:4]}: a factor of channels that are there where maps grow"
    fields.require(holds=not odd, problem=problem, name="upsample_factor")
    conv = causal if fields.flag("decoder_causal", default=False) else _centred
    ways = ("spatiotemporal",) * stages
    if _is_second(fields):
        stated = fields.items("upsample_type", ways)
        fine = len(stated) == stages and all(way in _STEPS for way in stated)
        problem = f"{stages} of {' or '.join(_STEPS)} are accepted"
        fields.require(holds=fine, problem=problem, name="upsample_type")
        ways = stated if fine else ways
    every = zip(ways, scaled[::-1], strict=False)  # its code reverses every list but this one
    steps: _Steps = [_STEPS[way] if on else _STILL for way, on in every]
    return _Coder(widths[::-1], depths[::-1], conv), steps


def _is_second(fields: Fields) -> bool:
    """Return whether it is that of LTX 2."""
    return fields.family == "AutoencoderKLLTX2Video"


def _sizes(fields: Fields, name: str, usual: tuple[int, ...], number: int = 0) -> tuple[int, ...]:
    """Read a list of sizes, so many if that is said."""
    sizes = fields.items(name, usual)
    fine = bool(sizes) and all(map(is_size, sizes)) and len(sizes) == (number or len(sizes))
    problem = f"{number or 'a list of'} sizes are accepted, by {_widths_of(name)}"
    fields.require(holds=fine, problem=problem, name=name)
    return sizes if fine else usual


def _widths_of(name: str) -> str:
    """Return the key of the stages to which another one belongs."""
    later = name.startswith(("decoder_", "upsample_"))
    return f"{'decoder_' if later else ''}block_out_channels"


def _flags(fields: Fields, name: str, usual: tuple[bool, ...], number: int) -> tuple[bool, ...]:
    """Read so many flags."""
    flags = fields.items(name, usual)
    fine = len(flags) == number and all(isinstance(one, bool) for one in flags)
    problem = f"{number} flags are accepted, by {_widths_of(name)}"
    fields.require(holds=fine, problem=problem, name=name)
    return flags if fine else (False,) * number


def _down(fields: Fields, coder: _Coder, steps: _Steps) -> dict[str, Layer]:
    """Return the stages of what encodes."""
    kinds = fields.items("downsample_type", ("conv",) * 4)
    folded = fields.items("down_block_types", (_PLAIN,))[-1] != _PLAIN
    layers: dict[str, Layer] = {}
    for i, (depth, step) in enumerate(zip(coder.depths, steps, strict=False)):
        width = coder.widths[i]
        behind = coder.widths[min(i + 1, len(coder.widths) - 1)]
        stage = coder.blocks(width, depth)
        if folded and step != _STILL and kinds[i] != "conv":
            stage["shrink"] = _folded(coder, behind, step)
        elif step != _STILL:
            stage["shrink"] = coder.conv(width, 3, step)
        if not folded and behind != width:
            stage["wider"] = coder.block(behind)
        layers[f"stage{i}"] = Chain(stage)
    return layers | {"mid": Chain(coder.blocks(coder.widths[-1], coder.depths[-1]))}


def _folded(coder: _Coder, behind: int, step: tuple[int, ...]) -> Chain:
    """Return what folds positions into channels, beside sums of what is there."""
    by = tuple(Rational(1, one) for one in step)
    conv = Chain({"conv": coder.conv(behind // prod(step), 3), "fold": Relaid(by, behind)})
    sums = Residual(conv, Chain({"sums": Relaid(by, behind, "sum")}))
    first: dict[str, Layer] = {"first": _Extended(step[0] - 1)} if step[0] > 1 else {}
    return Chain({**first, "fold": sums})


def _up(fields: Fields, coder: _Coder, steps: _Steps) -> dict[str, Layer]:
    """Return the middle and the stages of what decodes."""
    beside = fields.items("upsample_residual", (False,) * 4)[::-1]
    factors = fields.items("upsample_factor", (1,) * 4)[::-1]
    layers: dict[str, Layer] = {"mid": Chain(coder.blocks(coder.widths[0], coder.depths[0]))}
    before = coder.widths[0]
    for i, (width, step, factor) in enumerate(zip(coder.widths, steps, factors, strict=True)):
        inside = width // factor
        stage: dict[str, Layer] = {}
        if before // factor != inside:
            stage["narrower"] = coder.block(inside)
        if step != _STILL:
            wide = partial(Relaid, step, inside, still=1)
            laid = Chain({"conv": coder.conv(inside * prod(step), 3), "lay": wide()})
            copies = Chain({"copies": wide()})
            stage["grow"] = Residual(laid, copies) if beside[i] else laid
        layers[f"stage{i}"] = Chain({**stage, **coder.blocks(inside, coder.depths[i + 1])})
        before = inside
    return layers
