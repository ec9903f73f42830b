"""What a SAM 2 of videos holds for earlier frames: weights, which an image alone does not use."""

from collections.abc import Iterator

from symbolic_cost.layers.skips import Held
from symbolic_cost.models.fields import Fields

_Weights = Iterator[tuple[int, ...]]

_MEMORY = 64
"""Channels of a memory that attention takes, whatever the encoder makes."""


def memory(fields: Fields, channels: int) -> Held:
    """Return the weights of memories of frames, of a network of so many channels."""
    made, kept = fields.size("memory_encoder_output_channels", 64), fields.size("num_maskmem", 7)
    weights = [*_attention(fields), *_encoder(fields, made), (kept, made), (channels,), (channels,)]
    weights += [(4, 4), (1,), (3, channels, channels), (3, channels)]
    if fields.flag("enable_temporal_pos_encoding_for_object_pointers", default=True):
        weights += [(channels, made), (made,)]
    if fields.flag("enable_occlusion_spatial_embedding", default=True):
        weights.append((made,))
    fields.assume("frames", "images alone: memories of earlier frames have weights and no work")
    return Held({f"w{place}": sizes for place, sizes in enumerate(weights)})


def _attention(fields: Fields) -> _Weights:
    """Yield the weights of layers that attend to a frame and to memories."""
    width, depth = _own(fields, "attention_hidden_size"), _own(fields, "attention_num_layers", 4)
    wide = _own(fields, "attention_feed_forward_hidden_size", 2048)
    inner = width // _own(fields, "attention_downsample_rate", 1)
    heads = _own(fields, "attention_num_attention_heads", 1)
    fits = inner > 0 and inner % heads == 0
    name, problem = "memory_attention_num_attention_heads", f"{heads} do not divide {inner}"
    fields.require(holds=fits, problem=problem, name=name)
    for taken in (width, _MEMORY):
        yield from ((depth, 2, width, inner), (depth, 2, taken, inner), (depth, 3, inner))
        yield (depth, width)
    yield from ((depth, 2, width, wide), (depth, wide), (depth, width), (3 * depth + 1, 2, width))


def _own(fields: Fields, name: str, default: int = 256) -> int:
    return fields.size(f"memory_{name}", default)


def _encoder(fields: Fields, made: int) -> _Weights:
    width, wide = _own(fields, "encoder_hidden_size"), _own(fields, "fuser_embed_dim")
    kernel, step = (
        fields.size(f"mask_downsampler_{n}", d) for n, d in (("kernel_size", 3), ("stride", 2))
    )
    last, old = fields.size("mask_downsampler_embed_dim", 256), 1
    total = fields.size("mask_downsampler_total_stride", 16)
    for name, size in (("memory_fuser_embed_dim", wide), ("mask_downsampler_embed_dim", last)):
        fields.require(holds=size == width, problem=f"only {width} is declared", name=name)
    fields.require(holds=step > 1, problem="2 and more", name="mask_downsampler_stride")
    while step > 1 and total >= step:
        total, new = total // step, old * step**2
        yield from ((old, new, kernel, kernel), (3, new))
        old = new
    yield from ((old, last), (last,), (width, width), (width,), (width, made), (made,))
    depth, inner = _own(fields, "fuser_num_layers", 2), _own(fields, "fuser_intermediate_dim", 1024)
    side = _own(fields, "fuser_kernel_size", 7)
    yield from (
        (depth, wide, side, side),
        (depth, 5, wide),
        (depth, 2, wide, inner),
        (depth, inner),
    )
