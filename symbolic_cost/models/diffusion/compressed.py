"""The deep compression autoencoder of Sana, by `_class_name`."""

from __future__ import annotations

from itertools import pairwise

from sympy import S

from symbolic_cost.layers.conv import Activation, BatchNorm, Chain, Conv, Layer
from symbolic_cost.layers.map_attention import MultiscaleAttention, gated_around
from symbolic_cost.layers.maps import Normed, Residual
from symbolic_cost.layers.unet import Repeated, same
from symbolic_cost.layers.video import Relaid
from symbolic_cost.models.diffusion.transformers import sample
from symbolic_cost.models.diffusion.unet import ACTIVATIONS, modelled, trail_of
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass

_WIDTHS = (128, 256, 512, 512, 1024, 1024)
_SCALES = ((), (), (), (5,), (5,), (5,))
_RMS = Normed("rms_norm")
_NORMS: dict[str, Layer] = {"rms_norm": _RMS, "batch_norm": BatchNorm()}
_KINDS = ("ResBlock", "EfficientViTBlock")


@dataclass(frozen=True)
class _Stage:
    """Blocks of one width.

    Args:
        depth: how many.
        kind: of the blocks: they attend or convolve.
        kernels: of the sums around that attention sees besides.
        norm: of a block.
        function: its activation function.
        head: width of a head.
    """

    width: int
    depth: int
    kind: str
    kernels: tuple[int, ...]
    norm: str
    function: str
    head: int

    def blocks(self) -> dict[str, Layer]:
        """Return the blocks."""
        norm = _NORMS[self.norm]
        if self.kind == _KINDS[1]:
            own = MultiscaleAttention(self.head, self.kernels)
            seen = Residual(Chain({"own": own, "norm": norm}))
            block = Chain({"attention": seen, "around": gated_around(self.width, _RMS)})
        else:
            convs: dict[str, Layer] = {
                "conv1": same(self.width, 3),
                "act": Activation(self.function),
            }
            last = Conv(self.width, 3, 1, 1, bias=False)
            block = Chain({"conv": Residual(Chain({**convs, "conv2": last, "norm": norm}))})
        return {"block": Repeated(block, self.depth)} if self.depth else {}


def deep_compression(fields: Fields, shape: Shape) -> Model:
    """Declare the autoencoder: an image is encoded and decoded, without a distribution."""
    channels, latent = fields.size("in_channels", 3), fields.size("latent_channels", 32)
    if not fields.has("sample_size"):
        fields.assume("sample_size", "1024, an image of so many pixels a side")
    image = sample(fields, shape, 1024, 1, channels)
    head = fields.size("attention_head_dim", 32)
    encoder, decoder = (_stages(fields, name, head) for name in ("encoder", "decoder"))
    folded = fields.text("downsample_block_type", _FOLDED, (_FOLDED, "conv", "Conv")) == _FOLDED
    laid = fields.text("upsample_block_type", _LAID, (_LAID, "interpolate")) == _LAID
    out, entry = (
        fields.flag(name, default=True) for name in ("encoder_out_shortcut", "decoder_in_shortcut")
    )
    act = ACTIVATIONS[fields.text("decoder_conv_act_fn", "relu", tuple(ACTIVATIONS))]
    for coder, stages in (("encoder", encoder), ("decoder", decoder)):
        _whole(fields, coder, stages, latent, image.sides)
    fields.refuse()
    trail = trail_of(image, shape)
    first, widths = _first(encoder), [stage.width for stage in encoder]
    layers: dict[str, Layer] = {"conv_in": same(first.width, 3)}
    if first is not encoder[0]:
        layers = {"conv_in": _shrunk(first.width, folded=folded)}
    for i, stage in enumerate(encoder):
        behind = widths[i + 1] if stage.depth and i + 1 < len(widths) else 0
        shrink = {"shrink": _summed(behind, folded=folded)} if behind else {}
        layers[f"stage{i}"] = Chain({**stage.blocks(), **shrink})
    conv = Chain({"conv": same(latent, 3)})
    mean = Chain({"mean": Relaid((1, 1), latent, "sum")})
    layers["conv_out"] = Residual(conv, mean) if out else conv
    copies = Chain({"copies": Relaid((1, 1), decoder[-1].width)})
    conv = Chain({"conv": same(decoder[-1].width, 3)})
    later: dict[str, Layer] = {"conv_in": Residual(conv, copies) if entry else conv}
    for i, stage in reversed(list(enumerate(decoder))):
        grown = stage.depth and i + 1 < len(decoder)
        grow = {"grow": _copied(stage.width, laid=laid)} if grown else {}
        later[f"stage{i}"] = Chain({**grow, **stage.blocks()})
    later |= {"norm": _RMS, "act": Activation(act)}
    last = _first(decoder) is decoder[0]
    later["conv_out"] = same(channels, 3) if last else _grown(channels, laid=laid)
    Chain({"encoder": Chain(layers), "decoder": Chain(later)}).declare("", trail)
    return modelled(fields, trail)


_FOLDED, _LAID = "pixel_unshuffle", "pixel_shuffle"


def _first(stages: list[_Stage]) -> _Stage:
    """Return the stage whose maps are as large as the image, or half where it has no blocks."""
    return stages[0] if stages[0].depth else stages[1]


def _stages(fields: Fields, coder: str, head: int) -> list[_Stage]:
    """Read the stages of what encodes or of what decodes."""
    usual = (2, 2, 2, 3, 3, 3) if coder == "encoder" else (3,) * 6
    widths = fields.items(f"{coder}_block_out_channels", _WIDTHS)
    stages = len(widths)
    fine = stages > 1 and all(map(is_size, widths))
    name = f"{coder}_block_out_channels"
    fields.require(holds=fine, problem="a list of two sizes or more is accepted", name=name)
    depths = fields.items(f"{coder}_layers_per_block", usual)
    fine = len(depths) == stages and all(n == 0 or is_size(n) for n in depths)
    fine = fine and 0 not in depths[1:]
    problem = f"as many sizes as {name} has, {stages}, are accepted, the first perhaps 0"
    fields.require(holds=fine, problem=problem, name=f"{coder}_layers_per_block")
    kinds = _each(fields, f"{coder}_block_types", "ResBlock", _KINDS, stages)
    scales = fields.items(f"{coder}_qkv_multiscales", _SCALES)
    fine = len(scales) >= stages and all(
        isinstance(one, list | tuple) and all(is_size(k) and k % 2 for k in one) for one in scales
    )
    problem = f"{stages} lists of odd sizes are accepted"
    fields.require(holds=fine, problem=problem, name=f"{coder}_qkv_multiscales")
    norms, functions = ("rms_norm",) * stages, ("silu",) * stages
    if coder == "decoder":
        norms = _each(fields, "decoder_norm_types", "rms_norm", tuple(_NORMS), stages)
        functions = _each(fields, "decoder_act_fns", "silu", tuple(ACTIVATIONS), stages)
    every = zip(widths, depths, kinds, scales, norms, functions, strict=False)
    if fields.problems:
        return []
    return [
        _Stage(width, depth, kind, tuple(own), norm, ACTIVATIONS[function], head)
        for width, depth, kind, own, norm, function in every
    ]


def _each(
    fields: Fields, name: str, usual: str, known: tuple[str, ...], stages: int
) -> tuple[str, ...]:
    """Read a word for all stages, or one for each."""
    value = fields.source.values.get(name, usual)
    if isinstance(value, str):
        return (fields.text(name, usual, known),) * stages
    words = fields.items(name, (usual,) * stages)
    fine = len(words) >= stages and all(isinstance(one, str) and one in known for one in words)
    problem = f"{' or '.join(known)}, or {stages} of them, are accepted"
    fields.require(holds=fine, problem=problem, name=name)
    return words if fine else (usual,) * stages


def _whole(
    fields: Fields, coder: str, stages: list[_Stage], latent: int, sides: tuple[int, int]
) -> None:
    """Note widths that a short cut cannot sum or copy, heads and sides that leave a rest."""
    if not stages:
        return
    name = f"{coder}_block_out_channels"
    pairs = [(a.width, b.width) for a, b in pairwise(stages) if a.depth]
    fine = all(4 * a % b == 0 and b % 4 == 0 for a, b in pairs) and stages[-1].width % latent == 0
    problem = (
        "multiples of 4 that divide four times the width before are accepted, the last one a "
        f"multiple of latent_channels, {latent}"
    )
    fields.require(holds=fine, problem=problem, name=name)
    head = stages[0].head
    odd = [one.width for one in stages if one.kind == _KINDS[1] and one.width % head]
    problem = f"heads of {head} channels do not divide {odd[:4]}"
    fields.require(holds=not odd, problem=problem, name="attention_head_dim")
    factor = 2 ** (len(stages) - 1)
    problem = f"sides that {factor} divides are accepted"
    fits = not any(side % factor for side in sides)
    fields.require(holds=fits, problem=problem, name="sample_size")
    few = [
        i
        for i, one in enumerate(stages)
        if one.kind == _KINDS[1] and sides[0] * sides[1] // 4**i <= head
    ]
    problem = f"stages {few[:4]} see no more than {head} positions, as many as a head has channels"
    fields.require(holds=not few, problem=problem, name="sample_size")


def _shrunk(width: int, *, folded: bool) -> Chain:
    """Return what halves the sides."""
    if not folded:
        return Chain({"conv": Conv(width, 3, 2, 1)})
    return Chain({"conv": same(width // 4, 3), "fold": Relaid((S.Half, S.Half), width)})


def _summed(width: int, *, folded: bool) -> Residual:
    """Return what halves the sides, beside sums of what is there."""
    sums = Relaid((S.Half, S.Half), width, "sum")
    return Residual(_shrunk(width, folded=folded), Chain({"sums": sums}))


def _grown(width: int, *, laid: bool) -> Chain:
    """Return what doubles the sides."""
    if laid:
        return Chain({"conv": same(4 * width, 3), "lay": Relaid((2, 2), width)})
    return Chain({"grow": Relaid((2, 2), function="interpolate"), "conv": same(width, 3)})


def _copied(width: int, *, laid: bool) -> Residual:
    """Return what doubles the sides, beside copies of what is there."""
    return Residual(_grown(width, laid=laid), Chain({"copies": Relaid((2, 2), width)}))
