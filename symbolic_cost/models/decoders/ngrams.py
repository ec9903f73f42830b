"""Decoders on copies of the residual stream, to which some layers add features of n-grams."""

from __future__ import annotations

from sympy import Expr, Integer, floor, nextprime

from symbolic_cost.models.build import Fields, Model, Shape, is_size
from symbolic_cost.models.decoders.blocks import GRAMS
from symbolic_cost.models.decoders.config import declared, decoder_of
from symbolic_cost.models.decoders.kinds import EXPERTS, FULL
from symbolic_cost.models.decoders.layouts import LINEAR, Layout
from symbolic_cost.records import replace

_NAMES = {"linear_attention": LINEAR, "indexed_attention": FULL, "full_attention": FULL}

_MOST_TABLES = 4096
"""More than any model has; the number of rows of each is searched for."""


def qwen4(fields: Fields, shape: Shape) -> Model:
    """Declare a Qwen4-Exp: linear layers and ones that choose blocks, and features of n-grams."""
    decoder = decoder_of(fields)
    gate = fields.text("output_gate_type", fields.text("hidden_act", "silu"))
    if gate not in ("silu", "sigmoid"):
        fields.note(
            "output_gate_type", "silu or sigmoid is accepted; it is hidden_act unless given"
        )
    copies = fields.size("hc_count", 4)
    fields.require(holds=copies > 1, problem="2 or more are accepted", name="hc_count")
    numbers: dict[str, int] = {}
    lengths: dict[str, Expr] = {
        "n_o": Integer(copies),
        "n_t": Integer(copies),
        "r_c": Integer(fields.size("hc_lowrank", 320)),
    }

    def kinds(fields: Fields, layers: int) -> Layout:
        mixers, places = _mixers(fields, layers), _places(fields, layers)
        if FULL in mixers:
            rate, own = _indexer(fields)
            numbers.update(own)
            lengths.update(n_b=_blocks_before(shape, rate), n_a=Integer(3))
        else:
            fields.absent(_indexer)
        for place in places:
            fields.require(
                holds=mixers[place - 1] == LINEAR,
                problem=f"layer {place} is none of linear_attention",
                name="ple_layer_ids",
                other="layer_types",
            )
            mixers[place - 1] = GRAMS
        if places:
            lengths.update(_tables(fields, len(places)))
        else:
            fields.absent(lambda fields: _tables(fields, 1))
        return mixers, [EXPERTS] * layers

    mixers = {**decoder.mixers, GRAMS: decoder.mixers[LINEAR]}
    reads = replace(decoder.reads, kinds=kinds)
    changed = replace(decoder, mixers=mixers, reads=reads, lengths=lengths)
    model = declared(fields, shape, changed)
    bindings, means = {**model.bindings, **numbers}, (*model.means, "n_b")
    return replace(model, bindings=bindings, means=means)


def _mixers(fields: Fields, layers: int) -> list[str]:
    step, listed = fields.size("full_attention_interval", 4), fields.items("layer_types")
    rule = [LINEAR if (n + 1) % step else FULL for n in range(layers)]
    if listed and not (len(listed) == layers and all(one in _NAMES for one in listed)):
        fields.note("layer_types", f"{layers} of {', '.join(_NAMES)} are accepted")
        return rule
    return [_NAMES[one] for one in listed] or rule


def _places(fields: Fields, layers: int) -> list[int]:
    """Read the layers, counted from one, that add features of n-grams."""
    places = fields.items("ple_layer_ids")
    if not all(is_size(place) and place <= layers for place in places):
        fields.note("ple_layer_ids", f"numbers of layers, from 1 to {layers}, are accepted")
        return []
    if places and fields.source.values.get("eos_token_id") in (None, []):
        fields.note("eos_token_id", "a token is needed beside ple_layer_ids")
    return sorted(set(places))


def _indexer(fields: Fields) -> tuple[int, dict[str, int]]:
    """Read how many positions make a block, and the heads that choose blocks."""
    rate, budget = fields.size("indexer_compress_ratio"), fields.size("indexer_budget")
    fields.require(
        holds=budget % rate == 0,
        problem=f"{budget} positions are no blocks of {rate}",
        name="indexer_budget",
        other="indexer_compress_ratio",
    )
    one = fields.size("indexer_kv_heads") == 1
    fields.require(holds=one, problem="only 1 is accepted", name="indexer_kv_heads")
    width = fields.size("indexer_head_dim")
    rotated = int(fields.size("head_dim", 256) * fields.share("partial_rotary_factor", 1))
    problem = f"{rotated} elements are rotated, of {width}"
    fields.require(holds=width >= rotated, problem=problem, name="indexer_head_dim")
    return rate, {"h_x": fields.size("indexer_n_heads"), "d_x": width}


def _blocks_before(shape: Shape, rate: int) -> Expr:
    """Return how many complete blocks of so many positions a query has before it, in the mean."""

    def all_of(n: Expr) -> Expr:  # the sum of floor(i / rate) over i from 1 to n
        whole = floor(n / rate)
        return whole * (n + 1) - rate * whole * (whole + 1) / 2

    return (all_of(shape.c + shape.l) - all_of(shape.c)) / shape.l


def _tables(fields: Fields, layers: int) -> dict[str, Expr]:
    """Read the tables of n-grams of so many layers.

    Tables have as many rows as the next primes say, one after the other; those of a layer stand
    in one, whose rows are a multiple.
    """
    size, heads = fields.size("ngram_size", 3), fields.size("heads_per_ngram", 8)
    width = fields.size("ple_embed_dim", fields.size("hidden_size"))
    kernel, multiple = (
        fields.size("ple_conv_kernel_size", 4),
        fields.size("make_ngram_vocab_size_divisible_by", 128),
    )
    prime = fields.size("ngram_vocab_size_base", 20_000_000) - 1
    hashes = max(size - 1, 1) * heads
    fields.require(holds=size > 1, problem="2 or more are accepted", name="ngram_size")
    fields.require(holds=kernel > 1, problem="1 is no window", name="ple_conv_kernel_size")
    fields.require(
        holds=width % hashes == 0,
        problem=f"{hashes} n-gram heads do not divide {width}",
        name="ple_embed_dim",
        other="heads_per_ngram",
    )
    few = layers * hashes <= _MOST_TABLES
    problem = f"{layers * hashes} tables are more than any model has"
    fields.require(holds=few, problem=problem, name="heads_per_ngram", other="ple_layer_ids")
    rows = 0
    for _ in range(layers if few else 0):
        own = 0
        for _ in range(hashes):
            prime = int(nextprime(prime))
            own += prime
        rows += -(-own // multiple) * multiple
    sizes = {"n_v": rows or 1, "n_y": layers, "n_g": hashes, "d_y": max(width // hashes, 1)}
    sizes |= {"k_n": kernel, "n_w": (kernel - 1) * size, "i_n": layers * (size - 1)}
    return {axis: Integer(number) for axis, number in sizes.items()}
