"""UNets that denoise latents, by `_class_name`."""

from collections.abc import Callable, Iterator, Mapping

from sympy import Integer

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer, Maps, Padding, Trail
from symbolic_cost.layers.maps import KeepMap
from symbolic_cost.layers.unet import (
    GROUPS,
    Block,
    Enlarged,
    Rejoined,
    Timed,
    transformer,
)
from symbolic_cost.models.build import Fields, Shape, is_size
from symbolic_cost.models.diffusion.conditions import (
    Vector,
    embed,
    read_prompt,
    text_of,
    time_of,
)
from symbolic_cost.models.diffusion.transformers import Sample, sample
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.trails import parts
from symbolic_cost.ops.declare import Axis, Model, Role
from symbolic_cost.records import dataclass, replace

ACTIVATIONS = {**FUNCTIONS, "swish": "silu"}

Beside = Callable[[int], Layer | None]
"""What stands behind a block of so many channels."""


@dataclass(frozen=True)
class Net:
    """A UNet of maps.

    Args:
        widths: channels of every stage.
        depths: blocks of every stage.
        beside: of every stage on the way down, in the middle if there is one, and of every stage
            on the way up.
        function: the activation function.
        padding: of the convolutions that halve the sides.
        unit: a block to so many channels; that of `function` unless given.
        conv: a convolution to some channels, with a kernel, a step and a padding.
    """

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    beside: tuple[tuple[Beside, ...], Beside | None, tuple[Beside, ...]]
    function: str
    padding: Padding
    unit: Callable[[int], Layer] | None = None
    conv: Callable[..., Layer] = Conv

    def _block(self, width: int) -> Layer:
        return self.unit(width) if self.unit else Block(width, self.function, Timed(self.function))

    def layers(self, start: int, end: int, channels: int) -> dict[str, Layer]:
        """Return the layers, with kernels of so many positions at the start and at the end."""
        widths = self.widths
        layers: dict[str, Layer] = {
            "conv_in": self.conv(widths[0], start, 1, start // 2),
            "kept": KeepMap(),
        }
        layers |= dict(self._down())
        if self.beside[1] is not None:
            layers |= self._stage("mid.0", widths[-1], self.beside[1])
            layers["mid.1"] = self._block(widths[-1])
        layers |= dict(self._up())
        layers |= {"norm": GROUPS, "act": Activation(self.function)}
        return layers | {"conv_out": self.conv(channels, end, 1, end // 2)}

    def _stage(self, name: str, width: int, beside: Beside) -> dict[str, Layer]:
        layers: dict[str, Layer] = {name: self._block(width)}
        layer = beside(width)
        return layers if layer is None else {**layers, f"{name}.beside": layer}

    def _down(self) -> Iterator[tuple[str, Layer]]:
        for i, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            for j in range(depth):
                yield from self._stage(f"down{i}.{j}", width, self.beside[0][i]).items()
                yield f"down{i}.{j}.kept", KeepMap()
            if i < len(self.widths) - 1:
                yield f"down{i}.shrink", self.conv(width, 3, 2, self.padding)
                yield f"down{i}.kept", KeepMap()

    def _up(self) -> Iterator[tuple[str, Layer]]:
        last = len(self.widths) - 1
        for i in range(last, -1, -1):
            width, name = self.widths[i], f"up{last - i}"
            for j in range(self.depths[i] + 1):
                yield f"{name}.{j}.join", Rejoined()
                yield from self._stage(f"{name}.{j}", width, self.beside[2][last - i]).items()
            if i:
                yield f"{name}.enlarge", Enlarged()
                yield f"{name}.conv", self.conv(width, 3, 1, 1)


@dataclass(frozen=True)
class UNetFields:
    """What configurations say of a UNet that a prompt and a time step condition.

    Args:
        kernels: of the first and the last convolution.
        time: width of the time step's embedding.
        vectors: embedded with it.
        text: width of what the prompt is projected from.
        prompt: its width.
        guided: width of the strength of guidance, which is added to the time step; none if zero.
    """

    net: Net
    image: Sample
    kernels: tuple[int, int]
    time: int
    vectors: list[Vector]
    text: int
    prompt: int
    guided: int = 0

    def trail(self, shape: Shape) -> Trail:
        """Return a trail on which time step and prompt are declared."""
        trail = trail_of(self.image, shape)
        embed(trail, self.time, self.vectors, self.net.function, self.guided)
        if self.prompt:
            read_prompt(trail, self.image, self.text, self.prompt)
        return trail


def unet(fields: Fields, shape: Shape) -> Model:
    """Declare the UNet of Stable Diffusion: transformers see the prompt, blocks the time step."""
    read = conditional(fields, shape)
    out = fields.size("out_channels", 4)
    guided = fields.optional_size("time_cond_proj_dim") or 0
    fields.refuse()
    trail = replace(read, guided=guided).trail(shape)
    Chain(read.net.layers(*read.kernels, out)).declare("", trail)
    return modelled(fields, trail)


def conditional(fields: Fields, shape: Shape) -> UNetFields:
    """Read a UNet whose stages may see a prompt."""
    if not fields.has("sample_size"):
        fields.assume("sample_size", "64, latents of an image of 512 pixels a side")
    image = sample(fields, shape, 64, 1, fields.size("in_channels", 4))
    widths, stages = widths_of(fields, (320, 640, 1280, 1280))
    depths = of_stages(fields, "layers_per_block", 2, stages)
    heads = of_stages(fields, "attention_head_dim", 8, stages)
    layers = of_stages(fields, "transformer_layers_per_block", 1, stages)
    prompt = of_stages(fields, "cross_attention_dim", 1280, stages)
    if len(set(prompt)) != 1:
        fields.note("cross_attention_dim", "one width of the prompt is declared")
    down = kinds_of(fields, "down_block_types", stages, _DOWN)
    up = kinds_of(fields, "up_block_types", stages, _UP)
    odd = [f"{w} by {n}" for w, n in zip(widths, heads, strict=True) if w % n]
    problem = f"channels are not divided by heads: {', '.join(odd)}"
    fields.require(holds=not odd, problem=problem, name="attention_head_dim")
    seen = [_seeing(n, count) for n, count in zip(heads, layers, strict=True)]
    beside = (
        tuple(see if kind else nothing for kind, see in zip(down, seen, strict=True)),
        seen[-1] if has_middle(fields, "UNetMidBlock2DCrossAttn") else None,
        tuple(see if kind else nothing for kind, see in zip(up, reversed(seen), strict=True)),
    )
    net = Net(widths, depths, beside, function_of(fields), padding_of(fields))
    kernels = _odd(fields, "conv_in_kernel"), _odd(fields, "conv_out_kernel")
    time, vectors = time_of(fields, widths[0])
    text = text_of(fields, prompt[0])
    grouped(fields, widths, stages)
    return UNetFields(net, image, kernels, time, vectors, text, prompt[0])


def has_middle(fields: Fields, kind: str) -> bool:
    """Return whether there is a middle, of the one kind that is declared; null is none."""
    if not fields.has("mid_block_type") and "mid_block_type" in fields.source.values:
        fields.ignore("mid_block_type")
        return False
    return fields.text("mid_block_type", kind, (kind,)) == kind


def padding_of(fields: Fields) -> Padding:
    """Read the padding of the convolutions that halve the sides."""
    padding = fields.source.values.get("downsample_padding", 1)
    fields.ignore("downsample_padding")
    fields.require(holds=padding in (0, 1), problem="0 or 1 is accepted", name="downsample_padding")
    return 1 if padding else (0, 1)


def _seeing(heads: int, layers: int) -> Beside:
    return lambda width: transformer(width, heads, layers)


def nothing(_: int) -> None:
    """Return nothing, for a stage without attention."""


_DOWN: Mapping[str, bool] = {"CrossAttnDownBlock2D": True, "DownBlock2D": False}
_UP: Mapping[str, bool] = {"CrossAttnUpBlock2D": True, "UpBlock2D": False}
"""Whether stages see the prompt, by their kinds."""


def widths_of(fields: Fields, default: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Read the channels of every stage, and how many stages there are."""
    stated = fields.items("block_out_channels", default)
    fine = bool(stated) and all(map(is_size, stated))
    fields.require(holds=fine, problem="a list of sizes is accepted", name="block_out_channels")
    widths = stated if fine else default
    return widths, len(widths)


def of_stages(fields: Fields, name: str, default: int, stages: int) -> tuple[int, ...]:
    """Read a size for all stages, or one for each."""
    value = fields.source.values.get(name)
    if not isinstance(value, list | tuple):
        return (fields.size(name, default),) * stages
    sizes = fields.items(name)
    fine = len(sizes) == stages and all(map(is_size, sizes))
    problem = f"a size, or one for each of the {stages} stages, is accepted"
    fields.require(holds=fine, problem=problem, name=name)
    return sizes if fine else (default,) * stages


def kinds_of(
    fields: Fields,
    name: str,
    stages: int,
    known: Mapping[str, bool],
    usual: tuple[int, ...] = (),
) -> tuple[bool, ...]:
    """Read the kind of every stage; `usual` numbers those that stand where none are given."""
    places = usual or ((0, 0, 0, 1) if name == "down_block_types" else (1, 0, 0, 0))
    stated = fields.items(name, tuple(tuple(known)[place] for place in places))
    fine = len(stated) == stages and all(isinstance(k, str) and k in known for k in stated)
    problem = f"{stages} of {' or '.join(known)} are accepted"
    fields.require(holds=fine, problem=problem, name=name)
    return tuple(known[kind] for kind in stated) if fine else (False,) * stages


def _odd(fields: Fields, name: str) -> int:
    """Read a kernel that keeps the sides of maps."""
    kernel = fields.size(name, 3)
    fields.require(holds=kernel % 2 == 1, problem="an odd kernel is accepted", name=name)
    return kernel


def function_of(fields: Fields, usual: str = "silu") -> str:
    """Read the activation function."""
    return ACTIVATIONS[fields.text("act_fn", usual, tuple(ACTIVATIONS))]


def grouped(fields: Fields, widths: tuple[int, ...], stages: int) -> None:
    """Note channels that groups of a norm do not divide."""
    groups = fields.size("norm_num_groups", 32)
    odd = [width for width in widths[:stages] if width % groups]
    problem = f"{groups} groups do not divide {odd[:4]} channels"
    fields.require(holds=not odd, problem=problem, name="norm_num_groups")


def trail_of(image: Sample, shape: Shape, *, moving: bool = False) -> Trail:
    """Return a trail at the latents; those of a video have frames, were it a single one."""
    lengths = (*image.frames[:moving], *image.sides)
    letters = "zyx"[-len(lengths) :]
    sides = {f"{letter}0": Integer(n) for letter, n in zip(letters, lengths, strict=True)}
    sizes = {"b": shape.b, "c0": Integer(image.channels), **sides}
    return Trail(Maps("sample", tuple(sizes), constant=True), sizes)


def modelled(fields: Fields, trail: Trail) -> Model:
    """Return the model of a trail."""
    known = {**trail.glossary, "b": Axis("b", Role.BATCH)}
    declared = parts(trail, fields.family)
    return Model(fields.family, declared, trail.sizes, source="rombach-2021", axes=known)
