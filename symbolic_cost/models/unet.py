"""UNets that denoise latents, and autoencoders that make them, by `_class_name`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from sympy import Integer

from symbolic_cost.axes import Axis, Role
from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer, Maps, Padding, Trail
from symbolic_cost.layers.maps import Kept
from symbolic_cost.layers.unet import (
    GROUPS,
    Enlarged,
    First,
    Rejoined,
    attention,
    block,
    transformer,
)
from symbolic_cost.models.diffusion import Sample, sample
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.trails import parts
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.records import dataclass

_ACTIVATIONS = {**FUNCTIONS, "swish": "silu"}

Vector = tuple[str, int, str]
"""A vector of a sample: its name, its width, and how it is embedded."""

Beside = Callable[[int], Layer | None]
"""What stands behind a block of so many channels."""


@dataclass(frozen=True)
class Net:
    """A UNet of maps.

    Args:
        widths: channels of every stage.
        depths: blocks of every stage.
        beside: of every stage on the way down, in the middle, and of every stage on the way up.
        function: the activation function.
        padding: of the convolutions that halve the sides.
    """

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    beside: tuple[tuple[Beside, ...], Beside, tuple[Beside, ...]]
    function: str
    padding: Padding

    def layers(self, start: int, end: int, channels: int) -> dict[str, Layer]:
        """Return the layers, with kernels of so many positions at the start and at the end."""
        widths = self.widths
        layers: dict[str, Layer] = {
            "conv_in": Conv(widths[0], start, 1, start // 2),
            "kept": Kept(),
        }
        layers |= dict(self._down())
        layers |= self._stage("mid.0", widths[-1], widths[-1], self.beside[1])
        layers["mid.1"] = block(widths[-1], widths[-1], self.function, timed=True)
        layers |= dict(self._up())
        layers |= {"norm": GROUPS, "act": Activation(self.function)}
        return layers | {"conv_out": Conv(channels, end, 1, end // 2)}

    def _stage(self, name: str, inside: int, width: int, beside: Beside) -> dict[str, Layer]:
        layers: dict[str, Layer] = {name: block(width, inside, self.function, timed=True)}
        layer = beside(width)
        return layers if layer is None else {**layers, f"{name}.beside": layer}

    def _down(self) -> Iterator[tuple[str, Layer]]:
        inside = self.widths[0]
        for i, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            for j in range(depth):
                yield from self._stage(f"down{i}.{j}", inside, width, self.beside[0][i]).items()
                yield f"down{i}.{j}.kept", Kept()
                inside = width
            if i < len(self.widths) - 1:
                yield f"down{i}.shrink", Conv(width, 3, 2, self.padding)
                yield f"down{i}.kept", Kept()

    def _up(self) -> Iterator[tuple[str, Layer]]:
        skips = [self.widths[0]]
        for i, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            skips += [width] * (depth + (i < len(self.widths) - 1))
        inside, last = self.widths[-1], len(self.widths) - 1
        for i in range(last, -1, -1):
            width, name = self.widths[i], f"up{last - i}"
            for j in range(self.depths[i] + 1):
                yield f"{name}.{j}.join", Rejoined()
                both = inside + skips.pop()
                yield from self._stage(f"{name}.{j}", both, width, self.beside[2][last - i]).items()
                inside = width
            if i:
                yield f"{name}.enlarge", Enlarged()
                yield f"{name}.conv", Conv(width, 3, 1, 1)


@dataclass(frozen=True)
class Read:
    """What configurations say of a UNet that a prompt and a time step condition.

    Args:
        kernels: of the first and the last convolution.
        time: width of the time step's embedding.
        vectors: embedded with it.
        text: width of what the prompt is projected from.
        prompt: its width.
    """

    net: Net
    image: Sample
    kernels: tuple[int, int]
    time: int
    vectors: list[Vector]
    text: int
    prompt: int

    def trail(self, shape: Shape) -> Trail:
        """Return a trail on which time step and prompt are declared."""
        trail = _trail(self.image, shape)
        _embed(trail, self.time, self.vectors, self.net.function)
        if self.prompt:
            _read_prompt(trail, self.image, self.text, self.prompt)
        return trail


def unet(fields: Fields, shape: Shape) -> Model:
    """Declare the UNet of Stable Diffusion: blocks, transformers that see the prompt, a time step.

    Raises:
        InputError: every problem of the fields.
    """
    read = _conditional(fields, shape)
    out = fields.size("out_channels", 4)
    fields.refuse()
    trail = read.trail(shape)
    Chain(read.net.layers(*read.kernels, out)).declare("", trail)
    return _model(fields, trail)


def _conditional(fields: Fields, shape: Shape) -> Read:
    """Read a UNet whose stages may see a prompt."""
    if not fields.given("sample_size"):
        fields.assume("sample_size", "64, latents of an image of 512 pixels a side")
    image = sample(fields, shape, 64, 1, fields.size("in_channels", 4))
    widths, stages = _widths(fields, (320, 640, 1280, 1280))
    depths = _each(fields, "layers_per_block", 2, stages)
    heads = _each(fields, "attention_head_dim", 8, stages)
    layers = _each(fields, "transformer_layers_per_block", 1, stages)
    prompt = _each(fields, "cross_attention_dim", 1280, stages)
    fields.require(
        holds=len(set(prompt)) == 1,
        problem="one width of the prompt is declared",
        name="cross_attention_dim",
    )
    down = _kinds(fields, "down_block_types", stages, _DOWN)
    up = _kinds(fields, "up_block_types", stages, _UP)
    middle = fields.text("mid_block_type", "UNetMidBlock2DCrossAttn", tuple(_MIDDLE))
    odd = [f"{w} by {n}" for w, n in zip(widths, heads, strict=True) if w % n]
    problem = f"channels are not divided by heads: {', '.join(odd)}"
    fields.require(holds=not odd, problem=problem, name="attention_head_dim")
    seen = [_seeing(n, count) for n, count in zip(heads, layers, strict=True)]
    beside = (
        tuple(see if kind else _nothing for kind, see in zip(down, seen, strict=True)),
        seen[-1] if _MIDDLE[middle] else _nothing,
        tuple(see if kind else _nothing for kind, see in zip(up, reversed(seen), strict=True)),
    )
    net = Net(widths, depths, beside, _function(fields), _padding(fields))
    kernels = _odd(fields, "conv_in_kernel"), _odd(fields, "conv_out_kernel")
    time, vectors = _time(fields, widths[0])
    text = _text(fields, prompt[0])
    _grouped(fields, widths, stages)
    return Read(net, image, kernels, time, vectors, text, prompt[0])


def _padding(fields: Fields) -> Padding:
    padding = fields.source.values.get("downsample_padding", 1)
    fields.ignore("downsample_padding")
    fields.require(holds=padding in (0, 1), problem="0 or 1 is accepted", name="downsample_padding")
    return 1 if padding else (0, 1)


def plain(fields: Fields, shape: Shape) -> Model:
    """Declare a UNet without a prompt, whose stages may attend to themselves.

    Raises:
        InputError: every problem of the fields.
    """
    if not fields.given("sample_size"):
        fields.assume("sample_size", "32, an image of so many pixels a side")
    channels = fields.size("in_channels", 3)
    image = sample(fields, shape, 32, 1, channels)
    widths, stages = _widths(fields, (224, 448, 672, 896))
    halved = 2 ** (stages - 1)
    problem = f"{stages} stages halve sides that {halved} divides"
    fits = all(side % halved == 0 for side in image.sides)
    fields.require(holds=fits, problem=problem, name="sample_size")
    depths = (fields.size("layers_per_block", 2),) * stages
    own = {True: _attending(fields, widths), False: _nothing}
    down, up = (
        tuple(own[kind] for kind in _kinds(fields, f"{way}_block_types", stages, known, usual))
        for way, known, usual in (("down", _OWN_DOWN, (0, 1, 1, 1)), ("up", _OWN_UP, (1, 1, 1, 0)))
    )
    middle = own[fields.flag("add_attention", default=True)]
    net = Net(widths, depths, (down, middle, up), _function(fields), _padding(fields))
    time, vectors = _time(fields, widths[0])
    _grouped(fields, widths, stages)
    out = fields.size("out_channels", 3)
    fields.refuse()
    trail = Read(net, image, (3, 3), time, vectors, 0, 0).trail(shape)
    Chain(net.layers(3, 3, out)).declare("", trail)
    return _model(fields, trail)


def _attending(fields: Fields, widths: tuple[int, ...]) -> Beside:
    """Read the width of a head; null makes all channels one."""
    wide = fields.source.values.get("attention_head_dim", 8)
    width = None if wide is None else fields.size("attention_head_dim", 8)
    fields.ignore("attention_head_dim")
    problem = f"{width} channels of a head do not divide those of every stage"
    fields.require(
        holds=width is None or not any(one % width for one in widths),
        problem=problem,
        name="attention_head_dim",
    )
    return lambda channels: attention(max(channels // (width or channels), 1))


_OWN_DOWN: Mapping[str, bool] = {"DownBlock2D": False, "AttnDownBlock2D": True}
_OWN_UP: Mapping[str, bool] = {"UpBlock2D": False, "AttnUpBlock2D": True}


@dataclass(frozen=True)
class Handed:
    """A convolution of single positions, whose result leaves the network."""

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer; what is at hand stays."""
        at = trail.at
        Conv(trail.length(at.axes[1]), 1).declare(name, trail)
        trail.at = at


@dataclass(frozen=True)
class Shown:
    """An image that conditions, embedded by convolutions and added.

    Args:
        channels: of the image.
        widths: of the convolutions; all but the first two halve the sides.
    """

    channels: int
    widths: tuple[int, ...]

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer."""
        at = trail.at
        batch, channel, *sides = at.axes
        larger = 2 ** (len(self.widths) - 1)
        lengths = (larger * trail.length(axis) for axis in sides)
        axes = [trail.new_axis("c", self.channels), *map(trail.new_axis, "yx", lengths)]
        trail.at = Maps(f"{name}.image", (batch, *axes), constant=True)
        layers: dict[str, Layer] = {"in": Conv(self.widths[0], 3, 1, 1)}
        for i, (width, wider) in enumerate(pairwise(self.widths)):
            layers |= {f"act{i}": Activation("silu"), f"same{i}": Conv(width, 3, 1, 1)}
            layers |= {f"more{i}": Activation("silu"), f"half{i}": Conv(wider, 3, 2, 1)}
        layers |= {"act": Activation("silu"), "out": Conv(trail.length(channel), 3, 1, 1)}
        Chain(layers).declare(name, trail)
        same, result = Maps(f"{name}.same", at.axes), Maps(name, at.axes)
        laid = " ".join(trail.at.axes[1:])
        trail.ops.append(pointwise(same.tensor, f"{trail.at} -> {same}", "copy", laid=laid))
        trail.add(pointwise(f"{name}.add", f"{at}, {same} -> {result}", "add"), result)


def controlnet(fields: Fields, shape: Shape) -> Model:
    """Declare a ControlNet: the way down of a UNet, which hands on every map that it would keep.

    Raises:
        InputError: every problem of the fields.
    """
    down = fields.items("down_block_types", ("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",))
    values = {**fields.source.values, "up_block_types": ["UpBlock2D"] * len(down)}
    fields.source = replace(fields.source, values=values)
    read = _conditional(fields, shape)
    widths = fields.items("conditioning_embedding_out_channels", (16, 32, 96, 256))
    fields.require(
        holds=bool(widths) and all(map(is_size, widths)),
        problem="a list of sizes is accepted",
        name="conditioning_embedding_out_channels",
    )
    shown = Shown(fields.size("conditioning_channels", 3), widths)
    fields.refuse()
    trail = read.trail(shape)
    layers: dict[str, Layer] = {}
    for name, layer in read.net.layers(3, 3, 1).items():
        if name.startswith("up"):
            break
        layers[name] = Handed() if isinstance(layer, Kept) else layer
        layers |= {"shown": shown} if name == "conv_in" else {}
    Chain(layers | {"mid.kept": Handed()}).declare("", trail)
    return _model(fields, trail)


def _seeing(heads: int, layers: int) -> Beside:
    return lambda width: transformer(width, heads, layers)


def _nothing(_: int) -> None:
    """Return nothing, for a stage without attention."""


_DOWN: Mapping[str, bool] = {"CrossAttnDownBlock2D": True, "DownBlock2D": False}
_UP: Mapping[str, bool] = {"CrossAttnUpBlock2D": True, "UpBlock2D": False}
_MIDDLE: Mapping[str, bool] = {"UNetMidBlock2DCrossAttn": True}
"""Whether stages see the prompt, by their kinds."""


def _widths(fields: Fields, default: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Read the channels of every stage, and how many stages there are."""
    stated = fields.items("block_out_channels", default)
    fine = bool(stated) and all(map(is_size, stated))
    fields.require(holds=fine, problem="a list of sizes is accepted", name="block_out_channels")
    widths = stated if fine else default
    return widths, len(widths)


def _each(fields: Fields, name: str, default: int, stages: int) -> tuple[int, ...]:
    """Read a size for all stages, or one for each."""
    value = fields.source.values.get(name)
    if not isinstance(value, list | tuple):
        return (fields.size(name, default),) * stages
    sizes = fields.items(name)
    fine = len(sizes) == stages and all(map(is_size, sizes))
    problem = f"a size, or one for each of the {stages} stages, is accepted"
    fields.require(holds=fine, problem=problem, name=name)
    return sizes if fine else (default,) * stages


def _kinds(
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


def _function(fields: Fields) -> str:
    return _ACTIVATIONS[fields.text("act_fn", "silu", tuple(_ACTIVATIONS))]


def _grouped(fields: Fields, widths: tuple[int, ...], stages: int) -> None:
    """Note channels that groups of a norm do not divide."""
    groups = fields.size("norm_num_groups", 32)
    odd = [width for width in widths[:stages] if width % groups]
    problem = f"{groups} groups do not divide {odd[:4]} channels"
    fields.require(holds=not odd, problem=problem, name="norm_num_groups")


def _time(fields: Fields, first: int) -> tuple[int, list[Vector]]:
    """Read the width of the time step's embedding, and the vectors that are embedded with it."""
    fields.text("time_embedding_type", "positional", ("positional",))
    width = fields.optional_size("time_embedding_dim") or 4 * first
    vectors: list[Vector] = [("step", first, "two")]
    value = fields.source.values.get
    wide = "projection_class_embeddings_input_dim"
    kind = value("class_embed_type")
    if kind is not None:
        kind = fields.text("class_embed_type", "projection", tuple(_VECTORS))
        fields.ignore("num_class_embeds")
        size = first if kind == "timestep" else fields.size(wide)
        vectors.append(("label", size, _VECTORS[kind]))
    elif value("num_class_embeds") is not None:
        vectors.append(("label", fields.size("num_class_embeds"), "table"))
    if value("addition_embed_type") is not None:
        fields.text("addition_embed_type", "text_time", ("text_time",))
        fields.size("addition_time_embed_dim")
        vectors.append(("added", fields.size(wide), "two"))
    fields.ignore("addition_time_embed_dim", "addition_embed_type_num_heads", wide)
    return width, vectors


_VECTORS: Mapping[str, str] = {"projection": "two", "timestep": "two", "simple_projection": "one"}


def _text(fields: Fields, width: int) -> int:
    """Read the width of what the prompt is projected from; its own if it is not."""
    wide = fields.optional_size("encoder_hid_dim")
    if fields.source.values.get("encoder_hid_dim_type") is not None:
        fields.text("encoder_hid_dim_type", "text_proj", ("text_proj",))
        fields.require(holds=wide is not None, problem="a width is needed", name="encoder_hid_dim")
    return wide or -width


def _trail(image: Sample, shape: Shape) -> Trail:
    sides = {f"{letter}0": Integer(side) for letter, side in zip("yx", image.sides, strict=True)}
    sizes = {"b": shape.b, "c0": Integer(image.channels), **sides}
    return Trail(Maps("sample", ("b", "c0", "y0", "x0"), constant=True), sizes)


def _embed(trail: Trail, width: int, vectors: list[Vector], function: str) -> None:
    """Declare the embedding of a time step and of other vectors, aside."""
    before = Maps("", ())
    for name, size, how in vectors:
        first, last = trail.new_axis("c", size), trail.new_axis("c", width, Role.HIDDEN)
        embedded = Maps(f"{name}.embedded", ("b", last))
        if how == "table":
            pattern = f"!{name}[b]:index, *table[{first} {last}] -> {embedded}"
            trail.ops.append(lookup(f"{name}.embed", pattern))
        else:
            bias = f"*w[{first} {last}] + *bias[{last}]"
            result = embedded if how == "one" else Maps(f"{name}.u", ("b", last))
            trail.ops.append(einsum(f"{name}.linear_1", f"!{name}[b {first}], {bias} -> {result}"))
        if how == "two":
            wide = trail.new_axis("c", width, Role.HIDDEN)
            act, embedded = Maps(f"{name}.a", ("b", last)), Maps(f"{name}.embedded", ("b", wide))
            weight = f"*w[{last} {wide}] + *bias[{wide}]"
            trail.ops += [
                pointwise(f"{name}.act", f"{result} -> {act}", function),
                einsum(f"{name}.linear_2", f"{act}, {weight} -> {embedded}"),
            ]
        if before.axes:
            total = Maps(f"{name}.sum", before.axes)
            other = Maps(f"{name}.same", before.axes)
            pattern = f"{before}, {other} -> {total}"
            same = pointwise(other.tensor, f"{embedded} -> {other}", "copy", laid=embedded.axes[1])
            trail.ops += [same, pointwise(total.tensor, pattern, "add")]
            embedded = total
        before = embedded
    trail.aside["time"] = before


def _read_prompt(trail: Trail, image: Sample, wide: int, width: int) -> None:
    """Declare the prompt aside, projected if it is as wide as something else."""
    axis = trail.new_axis("l", image.text)
    own = trail.new_axis("c", width)
    if wide < 0:
        trail.aside["prompt"] = Maps("prompt", ("b", own, axis), constant=True)
        return
    old, result = trail.new_axis("c", wide), Maps("prompt", ("b", own, axis))
    weight = f"*w[{old} {own}] + *bias[{own}]"
    trail.ops.append(einsum("text_proj", f"!states[b {old} {axis}], {weight} -> {result}"))
    trail.aside["prompt"] = result


def _model(fields: Fields, trail: Trail) -> Model:
    known = {**trail.glossary, "b": Axis("b", Role.BATCH)}
    declared = parts(trail, fields.family)
    return Model(fields.family, declared, trail.sizes, source="rombach-2021", axes=known)


def autoencoder(fields: Fields, shape: Shape) -> Model:
    """Declare the autoencoder of latents: an image is encoded, its means are decoded.

    Raises:
        InputError: every problem of the fields.
    """
    channels, latent = fields.size("in_channels", 3), fields.size("latent_channels", 4)
    image = sample(fields, shape, 32, 1, channels)
    widths, stages = _widths(fields, (64,))
    depth, out = fields.size("layers_per_block", 1), fields.size("out_channels", 3)
    function = _function(fields)
    for name, kind in (("down_block_types", "DownEncoderBlock2D"), ("up_block_types", _DECODER)):
        stated = fields.items(name, (kind,))
        fine = stated == (kind,) * stages
        fields.require(holds=fine, problem=f"{stages} times {kind} is accepted", name=name)
    seen = fields.flag("mid_block_add_attention", default=True)
    before, after = (
        fields.flag(name, default=True) for name in ("use_quant_conv", "use_post_quant_conv")
    )
    _grouped(fields, widths, stages)
    fields.refuse()
    trail = _trail(image, shape)
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
    return _model(fields, trail)


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
