"""Builder of CLAP: a Swin transformer of spectrograms and an encoder of texts, compared.

A text has l tokens; one sound is heard for each, its spectrogram laid out as a square. Axes: those
of the tower of sounds end in _sound; w_p common width, w_q the same behind a product; b_all texts
or sounds that one is compared to, those of the batch.

Source: wu-2022.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.axes import Axis, Role, axes
from symbolic_cost.layers.conv import BatchNorm, Chain, Maps, Trail
from symbolic_cost.models.bound import bound
from symbolic_cost.models.encoders import config as encoder_config
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.nested.parts import section
from symbolic_cost.models.nested.towers import tower
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.vision.maps_families import swin
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import cross_entropy, pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part, Place
from symbolic_cost.ops.unread import stored
from symbolic_cost.ops.view import view
from symbolic_cost.symbols import exact

AXES = axes("w_p hidden, w_q hidden, b_all batch all, n_s whole")


def clap(fields: Fields, shape: Shape) -> Model:
    """Declare a CLAP."""
    words = section(fields, "text_config", "clap_text_model")
    width = fields.size("projection_dim", 512)
    function = FUNCTIONS[fields.text("projection_hidden_act", "relu", tuple(FUNCTIONS))]
    heard = tower(_heard(fields, shape), "sound")
    words.ignore("projection_dim", "projection_hidden_act")  # the whole's hold
    text = bound(encoder_config.build(words, shape))
    words.refuse()
    fields.refuse()
    batch, channel = (axis for axis in heard.parts[-1].results[0].axes)
    taken = {heard.parts[-1].results[0].tensor: heard.last}
    sound = Part(
        "sound.projection",
        _projected("sound", f"{next(iter(taken))}[{batch} {channel}]", function),
        takes=taken,
        place=Place.END,
    )
    takes = {"pooled": text.parts[-1].path, "sound": sound.path}
    texts = _projected("text", "pooled[b one w]", function)
    compared = Part("logits", (*texts, *_compared(batch)), takes=takes)
    own = {"w_p": width, "w_q": width, "b_all": text.sizes["b"], "n_s": 2}
    return replace(
        text,
        name=fields.family,
        parts=(*heard.parts, sound, *text.parts, compared),
        sizes={**text.sizes, **heard.sizes, **{a: exact(size) for a, size in own.items()}},
        axes={**text.axes, **heard.axes, **AXES},
    )


def _projected(name: str, taken: str, function: str) -> tuple[Op, ...]:
    """Declare the two products that bring a tensor to the common width."""
    *rows, width = taken.partition("[")[2].removesuffix("]").split()
    at = " ".join(rows)
    return (
        einsum(f"{name}1", f"{taken}, *w[{width} w_p] + *bias[w_p] -> {name}.u[{at} w_p]"),
        pointwise(f"{name}.act", f"{name}.u[{at} w_p] -> {name}.a[{at} w_p]", function),
        einsum(f"{name}2", f"{name}.a[{at} w_p], *w[w_p w_q] + *bias[w_q] -> {name}[{at} w_q]"),
    )


def _compared(batch: str) -> tuple[Op, ...]:
    """Declare what texts and sounds are to each other, both ways, and the loss."""
    loss = "logits[b one b_all], !targets[b one]:index -> loss[b one]"
    other = f"other[{batch} one b_all], !their[{batch} one]:index -> their_loss[{batch} one]"
    return (
        view("sounds", f"sound[{batch} w_q] -> sounds[b_all w_q]"),
        view("texts", "text[b one w_q] -> texts[b_all one w_q]"),
        view("each", f"sound[{batch} w_q] -> each[{batch} w_q]"),
        einsum("logits", "text[b one w_q], sounds[b_all w_q] -> logits[b one b_all]"),
        einsum("other", f"each[{batch} w_q], texts[b_all one w_q] -> other[{batch} one b_all]"),
        stored("scalars", w="n_s"),
        cross_entropy("loss", loss, row="b_all"),
        cross_entropy("their_loss", other, row="b_all"),
    )


def _heard(fields: Fields, shape: Shape) -> Model:
    """Read the tower of sounds, whose spectrogram is folded into a square."""
    own = fields.part("audio_config") or fields.holding({})
    own.record = replace(fields.record, costless=(*fields.record.costless, *_COSTLESS))
    own.text("model_type", "clap_audio_model", ("clap_audio_model",))
    side, mels = own.size("spec_size", 256), own.size("num_mel_bins", 64)
    problem = f"num_mel_bins = {mels} does not divide it"
    own.require(holds=side % mels == 0, problem=problem, name="spec_size")
    inner = _as_swin(own, side)
    layers = swin(inner)
    own.problems += [*own.not_understood().values(), *inner.not_understood().values()]
    fields.refuse()
    sizes: dict[str, Expr] = {"b": shape.b, "m0": Integer(mels), "x0": Integer(side * side // mels)}
    trail = Trail(Maps("wave", tuple(sizes), constant=True), sizes)
    trail.roles["x0"] = Axis("x0", Role.TOKEN, "patch")
    BatchNorm().declare("spectrogram", trail)
    square = ("b", trail.new_axis("c", 1), trail.new_axis("y", side), trail.new_axis("x", side))
    trail.pointwise("square", "copy", axes=square, laid=("m0", "x0"))
    Chain(layers).declare("", trail)
    return Model("clap", (Part("maps", tuple(trail.ops)),), trail.sizes, axes=trail.glossary)


def _as_swin(own: Fields, side: int) -> Fields:
    """Return the fields of the tower of sounds as a Swin transformer calls them."""
    patch, width = own.size("patch_size", 4), own.size("patch_embeds_hidden_size", 96)
    depths = own.items("depths", (2, 2, 6, 2))
    heads = own.items("num_attention_heads", (4, 8, 16, 32))
    many = f"{len(depths)} of depths, not {len(heads)}, are accepted"
    own.require(holds=len(heads) == len(depths), problem=many, name="num_attention_heads")
    stride = own.source.values.get("patch_stride", 4)
    alike = stride in (patch, [patch, patch], (patch, patch))
    problem = f"steps of patch_size, {patch}, are declared"
    own.require(holds=alike, problem=problem, name="patch_stride")
    wide = width << max(len(depths) - 1, 0)
    problem = f"the {wide} features of the last of depths, twice as many as before, are projected"
    holds = own.size("hidden_size", 768) == wide
    own.require(holds=holds, problem=problem, name="hidden_size", other="depths")
    kept = ("mlp_ratio", "qkv_bias", "hidden_act", "hidden_dropout_prob", "drop_path_rate")
    values: dict[str, Any] = {key: own.source.values[key] for key in kept if own.has(key)}
    own.ignore(*kept, "attention_probs_dropout_prob", "patch_stride", "num_hidden_layers")
    own.ignore("projection_dim", "projection_hidden_act")
    values |= {"embed_dim": width, "patch_size": patch, "image_size": side}
    values |= {"window_size": own.size("window_size", 8), "depths": list(depths)}
    values |= {"num_heads": list(heads)}
    source = replace(own.source, values=values)
    return Fields(source, "swin", FAMILIES["swin"], problems=own.problems)


_COSTLESS = ("num_classes", "aff_block_r", "fusion_type")
