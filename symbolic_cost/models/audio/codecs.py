"""Builders of codecs of recordings: EnCodec, DAC, and the autoencoder of Stable Audio.

A recording of l tokens is one of l frames of codes: as many samples as the steps of the
convolutions, multiplied, make of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import floor, log2, prod

from sympy import Integer

from symbolic_cost.axes import Axis, Role
from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer, Maps, Trail
from symbolic_cost.layers.maps import Residual
from symbolic_cost.layers.unet import First, Repeated
from symbolic_cost.layers.upsampling import Spread
from symbolic_cost.layers.video import Unlearned
from symbolic_cost.layers.waves import Coded, Memory, Snake, Weighted, Wrap, heard, snaking
from symbolic_cost.models.audio.recordings import tokens_of
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.trails import parts
from symbolic_cost.ops.graph import Model

_APART = (1, 3, 9)
"""How far positions of windows are in the units of DAC."""


def samples(shape: Shape, channels: int, steps: tuple[int, ...]) -> Trail:
    """Return a trail at a recording."""
    length = tokens_of(shape) * prod(steps)
    sizes = {"b": shape.b, "c0": Integer(channels), "x0": length}
    return Trail(Maps("wave", tuple(sizes), constant=True), sizes)


def _modelled(fields: Fields, trail: Trail, source: str) -> Model:
    """Return the model of a trail."""
    known = {**trail.glossary, "b": Axis("b", Role.BATCH)}
    return Model(fields.family, parts(trail, fields.family), trail.sizes, source=source, axes=known)


def steps_of(fields: Fields, name: str, usual: tuple[int, ...]) -> tuple[int, ...]:
    """Read the steps of the convolutions that thin samples out."""
    steps = fields.items(name, usual)
    fine = bool(steps) and all(map(is_size, steps)) and min(steps, default=0) > 1
    fields.require(holds=fine, problem="a list of sizes above one is accepted", name=name)
    return steps if fine else usual


def _halves(step: int) -> int:
    """Return the padding of a convolution that steps."""
    return -(-step // 2)


def _thinning(widths: list[int], steps: tuple[int, ...], snake: Snake, conv: Wrap) -> Chain:
    """Return the stages that thin samples out, each three units and a convolution."""
    layers: dict[str, Layer] = {"conv_in": conv(heard(widths[0], 7))}
    for i, ((width, wider), step) in enumerate(zip(pairwise(widths), steps, strict=True)):
        units = {f"unit{j}": snaking(width, apart, snake, conv) for j, apart in enumerate(_APART)}
        thin = conv(Conv(wider, 2 * step, step, _halves(step)))
        layers[f"stage{i}"] = Chain({**units, "snake": snake, "thin": thin})
    return Chain(layers | {"snake": snake})


def _filling(widths: list[int], steps: tuple[int, ...], snake: Snake, conv: Wrap) -> Chain:
    """Return the stages that make samples of frames."""
    layers: dict[str, Layer] = {"conv_in": conv(heard(widths[0], 7))}
    for i, (width, step) in enumerate(zip(widths[1:], steps, strict=True)):
        units = {f"unit{j}": snaking(width, apart, snake, conv) for j, apart in enumerate(_APART)}
        fill = conv(Spread(width, 2 * step, step, cut=2 * _halves(step)))
        layers[f"stage{i}"] = Chain({"snake": snake, "fill": fill, **units})
    return Chain(layers | {"snake": snake})


def oobleck(fields: Fields, shape: Shape) -> Model:
    """Declare the autoencoder of Stable Audio, whose kernels have learned lengths."""
    steps = steps_of(fields, "downsampling_ratios", (2, 4, 4, 8, 8))
    factors = fields.items("channel_multiples", (1, 2, 4, 8, 16))
    fine = len(factors) == len(steps) and all(map(is_size, factors))
    problem = f"as many sizes as downsampling_ratios has, {len(steps)}, are accepted"
    fields.require(holds=fine, problem=problem, name="channel_multiples")
    hidden, later = fields.size("encoder_hidden_size", 128), fields.size("decoder_channels", 128)
    latent, channels = fields.size("decoder_input_channels", 64), fields.size("audio_channels", 2)
    problem = f"half of encoder_hidden_size = {hidden} are means, which is decoded"
    fields.require(holds=hidden == 2 * latent, problem=problem, name="decoder_input_channels")
    fields.refuse()
    trail, snake = samples(shape, channels, steps), Snake(("alpha", "beta"))
    wide = (1, *factors)
    down = _thinning([hidden * factor for factor in wide], steps, snake, Weighted)
    up = _filling([later * factor for factor in wide[::-1]], steps[::-1], snake, Weighted)
    end = Weighted(heard(channels, 7, bias=False))
    whole: dict[str, Layer] = {
        "encoder": down,
        "latents": Weighted(heard(hidden, 3)),
        "mean": First(latent),
    }
    Chain({**whole, "decoder": up, "conv_out": end}).declare("", trail)
    return _modelled(fields, trail, "evans-2024")


def dac(fields: Fields, shape: Shape) -> Model:
    """Declare a DAC: what one codebook leaves, the next one codes."""
    steps = steps_of(fields, "downsampling_ratios", (2, 4, 8, 8))
    hidden, later = (
        fields.size("encoder_hidden_size", 64),
        fields.size("decoder_hidden_size", 1536),
    )
    problem = f"{len(steps)} stages halve a width that {2 ** len(steps)} divides"
    fits = later % 2 ** len(steps) == 0
    fields.require(holds=fits, problem=problem, name="decoder_hidden_size")
    books, size = fields.size("n_codebooks", 9), fields.size("codebook_size", 1024)
    width = fields.size("codebook_dim", 8)
    wide = hidden * 2 ** len(steps)
    # Transformers derives both, but builds what a configuration says.
    for name, derived in {"hidden_size": wide, "upsampling_ratios": [*steps[::-1]]}.items():
        same = fields.source.values.get(name) in (None, derived)
        fields.require(holds=same, problem=f"only {derived} follows from others", name=name)
    fields.ignore("hidden_size", "hop_length", "upsampling_ratios", "sampling_rate")
    fields.refuse()
    trail, snake = samples(shape, 1, steps), Snake()
    layers: dict[str, Layer] = {
        "encoder": _thinning([hidden * 2**i for i in range(len(steps) + 1)], steps, snake, plain),
        "latents": heard(wide, 3),
        "codes": Residual(Chain({"book": Repeated(Coded(size, width), books)})),
        "decoder": _filling(
            [later // 2**i for i in range(len(steps) + 1)], steps[::-1], snake, plain
        ),
        "conv_out": heard(1, 7),
        "act": Activation("tanh"),
    }
    Chain(layers).declare("", trail)
    return _modelled(fields, trail, "kumar-2023")


def plain(conv: Conv | Spread) -> Layer:
    """Return a convolution as it is."""
    return conv


def encodec(fields: Fields, shape: Shape) -> Model:
    """Declare an EnCodec, whose codes are no weights, so that nothing flows through them."""
    steps = steps_of(fields, "upsampling_ratios", (8, 5, 4, 2))
    memory = Memory(fields.size("num_lstm_layers", 2))
    channels = fields.size("audio_channels", 1)
    short = fields.flag("use_conv_shortcut", default=True)
    last = fields.size("last_kernel_size", 7)
    encoder, decoder = stages(
        fields, steps, channels, last, conv=Weighted, memory=memory, short=short
    )
    books, size = _books(fields, prod(steps)), fields.size("codebook_size", 1024)
    fields.refuse()
    trail = samples(shape, channels, steps)
    coded = Unlearned(Chain({**encoder, "codes": Repeated(Coded(size), books)}))
    Chain({"encoder": coded, "decoder": Chain(decoder)}).declare("", trail)
    return _modelled(fields, trail, "defossez-2022")


def stages(
    fields: Fields,
    steps: tuple[int, ...],
    channels: int,
    last: int,
    *,
    conv: Wrap,
    memory: Memory | None = None,
    short: bool,
) -> tuple[dict[str, Layer], dict[str, Layer]]:
    """Return the layers of EnCodec that thin samples out to its width, and those that fill them.

    Args:
        fields: of the codec.
        steps: of the convolutions.
        channels: of the samples.
        last: kernel of the last convolution.
        conv: what it makes of its convolutions.
        memory: behind the stages and before them, or None.
        short: whether a convolution stands beside every unit.
    """
    filters, hidden = fields.size("num_filters", 32), fields.size("hidden_size", 128)
    kernel, elu = fields.size("kernel_size", 7), Activation("elu")
    units = _units(fields, filters, conv, short=short)
    encoder: dict[str, Layer] = {"conv_in": conv(heard(filters, kernel))}
    decoder: dict[str, Layer] = {}
    for i, step in enumerate(reversed(steps)):
        width = filters * 2**i
        thin = conv(heard(2 * width, 2 * step, step))
        encoder[f"stage{i}"] = Chain({**units(width), "act": elu, "thin": thin})
        fill = conv(Spread(width, 2 * step, step))
        decoder = {f"stage{i}": Chain({"act": elu, "fill": fill, **units(width)}), **decoder}
    widest = filters * 2 ** len(steps)
    remembered: dict[str, Layer] = {"memory": memory} if memory else {}
    encoder |= {**remembered, "act": elu, "conv_out": conv(heard(hidden, last))}
    start: dict[str, Layer] = {"conv_in": conv(heard(widest, kernel)), **remembered}
    return encoder, {**start, **decoder, "act": elu, "conv_out": conv(heard(channels, last))}


def _units(
    fields: Fields, filters: int, conv: Wrap, *, short: bool
) -> Callable[[int], dict[str, Layer]]:
    """Return what makes the residual units of a stage, by its width."""
    depth, growth = fields.size("num_residual_layers", 1), fields.size("dilation_growth_rate", 2)
    inner, squeezed = fields.size("residual_kernel_size", 3), fields.size("compress", 2)
    problem = f"{squeezed} does not divide num_filters = {filters}"
    fields.require(holds=filters % squeezed == 0, problem=problem, name="compress")
    elu = Activation("elu")

    def unit(width: int, apart: int) -> Layer:
        inside: dict[str, Layer] = {
            "act1": elu,
            "conv1": conv(heard(width // squeezed, inner, 1, apart)),
            "act2": elu,
            "conv2": conv(heard(width, 1)),
        }
        beside = Chain({"conv": conv(heard(width, 1))}) if short else None
        return Residual(Chain(inside), beside)

    return lambda width: {f"unit{j}": unit(width, growth**j) for j in range(depth)}


def _books(fields: Fields, hop: int) -> int:
    """Read how many codebooks the first of the bandwidths has, which is the one that runs."""
    name = "target_bandwidths"
    rates = fields.items(name)
    fine = bool(rates) and all(isinstance(r, int | float) and r > 0 for r in rates)
    fields.require(holds=fine, problem="a list of positive numbers is accepted", name=name)
    rate, size = fields.size("sampling_rate", 24000), fields.size("codebook_size", 1024)
    fields.require(
        holds=size > 1 and size & (size - 1) == 0,
        problem="a power of two is accepted",
        name="codebook_size",
    )
    wide = fields.size("hidden_size", 128)
    fields.require(
        holds=fields.size("codebook_dim", wide) == wide,
        problem=f"codes are as wide as hidden_size, {wide}",
        name="codebook_dim",
    )
    if fields.problems:
        return 1
    each = log2(size) * -(-rate // hop)
    return min(max(1, floor(rates[0] * 1000 / each)), int(rates[-1] * 1000 // each))
