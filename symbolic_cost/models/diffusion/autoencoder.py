"""Autoencoders of latents, by `_class_name`."""

from collections.abc import Callable, Iterator

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.maps import Residual
from symbolic_cost.layers.unet import GROUPS, Block, Enlarged, First, Repeated, attention, same
from symbolic_cost.layers.video import Relaid, Unlearned
from symbolic_cost.models.build import Fields, Model, Shape, is_size
from symbolic_cost.models.diffusion.transformers import sample
from symbolic_cost.models.diffusion.unet import function_of, grouped, modelled, trail_of, widths_of
from symbolic_cost.records import dataclass, field

Layers = Iterator[tuple[str, Layer]]


@dataclass(frozen=True)
class Coder:
    """Stages of blocks between two convolutions: what encodes, or what decodes.

    Args:
        widths: channels of the stages, in the order in which they run.
        depths: blocks of every stage.
        between: what stands behind a stage of so many channels, by its number.
        middle: what stands before the stages of what decodes, and behind those of what encodes.
        unit: a block to so many channels.
        conv: a convolution to some channels, with a kernel of some size.
        ended: norm and activation at the end.
        around: what a stage is, by its number and its layers.
        start: channels of the first convolution, if not those of the first stage.
    """

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    between: Callable[[int, int], dict[str, Layer]]
    middle: dict[str, Layer] = field(default_factory=dict)
    unit: Callable[[int], Layer] = Block
    conv: Callable[[int, int], Layer] = same
    ended: tuple[Layer, Layer] = (GROUPS, Activation("silu"))
    around: Callable[[int, Chain], Layer] = lambda _, layers: layers
    start: int = 0

    def encoder(self, channels: int) -> Chain:
        """Return what encodes, its result of so many channels."""
        return Chain(self._begin() | dict(self._stages()) | self.middle | self._end(channels))

    def decoder(self, channels: int) -> Chain:
        """Return what decodes, its result of so many channels."""
        return Chain(self._begin() | self.middle | dict(self._stages()) | self._end(channels))

    def _begin(self) -> dict[str, Layer]:
        return {"conv_in": self.conv(self.start or self.widths[0], 3)}

    def _end(self, channels: int) -> dict[str, Layer]:
        norm, act = self.ended
        return {"norm": norm, "act": act, "conv_out": self.conv(channels, 3)}

    def _stages(self) -> Layers:
        for i, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            # All blocks but the first take the channels that they make.
            later = {"later": Repeated(self.unit(width), depth - 1)} if depth > 1 else {}
            stage = {"first": self.unit(width), **later, **self.between(i, width)}
            yield f"stage{i}", self.around(i, Chain(stage))


def shrunk(last: int) -> Callable[[int, int], dict[str, Layer]]:
    """Return what halves the sides behind all stages but the last."""
    return lambda i, width: {"shrink": Conv(width, 3, 2, (0, 1))} if i < last else {}


def enlarged(last: int) -> Callable[[int, int], dict[str, Layer]]:
    """Return what doubles the sides behind all stages but the last."""
    return lambda i, width: {"grow": Enlarged(), "conv": same(width, 3)} if i < last else {}


def middle(unit: Callable[[int], Layer], width: int, seen: Layer | None) -> dict[str, Layer]:
    """Return two blocks, around attention if there is any."""
    own = {"mid.attention": seen} if seen else {}
    return {"mid.0": unit(width), **own, "mid.1": unit(width)}


def coded(
    encoder: Chain, decoder: Chain, latent: int, quants: tuple[Layer | None, Layer | None]
) -> Chain:
    """Return what encodes, takes the means of latents, and decodes them."""
    before, after = quants
    layers: dict[str, Layer] = {
        "encoder": encoder,
        **({"quant": before} if before else {}),
        "mean": First(latent),
        **({"post_quant": after} if after else {}),
        "decoder": decoder,
    }
    return Chain(layers)


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
    later = fields.items("decoder_block_out_channels", widths) if _other(fields) else widths
    fine = len(later) == stages and all(map(is_size, later))
    problem = f"as many sizes as block_out_channels has, {stages}, are accepted"
    fields.require(holds=fine, problem=problem, name="decoder_block_out_channels")
    grouped(fields, later, stages)
    fields.refuse()
    trail = trail_of(image, shape)

    def unit(width: int) -> Block:
        return Block(width, function)

    first, last = (middle(unit, w[-1], attention(1) if seen else None) for w in (widths, later))
    down = Coder(widths, (depth,) * stages, shrunk(stages - 1), first, unit)
    up = Coder(later[::-1], (depth + 1,) * stages, enlarged(stages - 1), last, unit)
    quants = Conv(2 * latent, 1) if before else None, Conv(latent, 1) if after else None
    coded(down.encoder(2 * latent), up.decoder(out), latent, quants).declare("", trail)
    return modelled(fields, trail)


_DECODER = "UpDecoderBlock2D"


def _other(fields: Fields) -> bool:
    own = fields.family == "AutoencoderKLFlux2"
    return own and fields.has("decoder_block_out_channels")


_SIDES = (
    ("encoder_block_out_channels", "num_encoder_blocks", (1, 3, 3, 3)),
    ("decoder_block_out_channels", "num_decoder_blocks", (3, 3, 3, 1)),
)


def _stages_of(
    fields: Fields, name: str, count: str, usual: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Read the width and the number of blocks of every stage; all are as wide as the first."""
    widths, numbers = fields.items(name, (64,) * 4), fields.items(count, usual)
    fine = bool(widths) and len(set(widths)) == 1 and all(map(is_size, widths))
    fields.require(holds=fine, problem="a list of one size is accepted", name=name)
    fine = len(numbers) == len(widths) and all(map(is_size, numbers))
    problem = f"as many sizes as {name} has are accepted"
    fields.require(holds=fine, problem=problem, name=count)
    return list(zip(widths, numbers, strict=False))


def tiny(fields: Fields, shape: Shape) -> Model:
    """Declare a tiny autoencoder, whose latents are rounded, so that nothing flows through them."""
    channels, latent = fields.size("in_channels", 3), fields.size("latent_channels", 4)
    fields.assume("sample_size", "512, an image of so many pixels a side")
    image = sample(fields, shape, 512, 1, channels)
    out, factor = fields.size("out_channels", 3), fields.size("upsampling_scaling_factor", 2)
    function = function_of(fields, "relu")
    sides = [_stages_of(fields, *one) for one in _SIDES]
    fields.refuse()
    trail = trail_of(image, shape)
    act = Activation(function)

    def blocks(width: int, number: int) -> dict[str, Layer]:
        inner = {f"{i}": act if i % 2 else same(width, 3) for i in range(5)}
        block = Residual(Chain(inner), function="relu")
        return {"blocks": Repeated(block, number)} if number else {}

    encoder: dict[str, Layer] = {}
    for i, (width, number) in enumerate(sides[0]):
        conv = Conv(width, 3, 2, 1, bias=False) if i else same(width, 3)
        encoder[f"stage{i}"] = Chain({"conv": conv, **blocks(width, number)})
    decoder: dict[str, Layer] = {"conv_in": same(sides[1][0][0], 3), "act": act}
    for i, (width, number) in enumerate(sides[1]):
        last = i == len(sides[1]) - 1
        grown = {} if last else {"grow": Relaid((factor, factor), function="interpolate")}
        conv = Conv(out if last else width, 3, 1, 1, bias=last)
        decoder[f"stage{i}"] = Chain({**blocks(width, number), **grown, "conv": conv})
    whole = {"encoder": Unlearned(Chain({**encoder, "conv_out": same(latent, 3)}))}
    Chain({**whole, "decoder": Chain(decoder)}).declare("", trail)
    return modelled(fields, trail)
