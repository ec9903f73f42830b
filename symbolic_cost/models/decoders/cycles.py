"""Decoders of two stacks that run in cycles: a fast one several times for each turn of a slow one.

What a layer does in all cycles stands in one part, with one weight: the order of layers changes no
count, and no stage of a pipeline holds such a model. Of the turns of the fast stack some run
without gradients: they are read as constants.

Source: wang-2025 (Hierarchical Reasoning Model), as Transformers runs HRM-Text.
"""

from collections.abc import Iterable
from dataclasses import replace

from sympy import Integer

from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.decoders.config import declared, decoder_of
from symbolic_cost.ops.declare import Op, Operand, Part, Place, pointwise, scope, stored, unread
from symbolic_cost.ops.op import OperandMap

_MOST = 64
"""Turns of a stack, beyond any model."""


def hrm_text(fields: Fields, shape: Shape) -> Model:
    """Declare an HRM-Text."""
    high, low = _cycles(fields, "H_cycles", 2), _cycles(fields, "L_cycles", 3)
    live = _live(fields, high, low)
    layers = _layers(fields, high * (low + 1))
    values = {**fields.source.values, "num_hidden_layers": layers}
    fields.source = replace(fields.source, values=values)
    heads = fields.size("num_attention_heads", 12)
    fields.ignore("num_key_value_heads")
    width = fields.size("hidden_size")
    problem = f"{heads} heads do not divide a hidden_size of {width}"
    fields.require(holds=width % heads == 0, problem=problem, name="num_attention_heads")
    model = declared(fields, shape, decoder_of(fields), heads)
    place = next(place for place, part in enumerate(model.parts) if part.path == "block")
    (embedding, *before), block, rest = (
        model.parts[:place],
        model.parts[place],
        model.parts[place + 1 :],
    )
    start = stored("start", w="e")
    parts = (
        replace(embedding, ops=(*embedding.ops, start)),
        *before,
        *_stack("low", block, live, high * low - live, before="embedding"),
        *_stack("high", block, high, 0, before="low.norm" if live else "low.block"),
    )
    ends = (replace(part, takes={"x": "high.norm"}) for part in rest)
    return replace(model, parts=(*parts, *ends), source="wang-2025")


def _stack(name: str, block: Part, live: int, quiet: int, before: str) -> Iterable[Part]:
    """Return the layers of a stack, and the norm behind each of its turns."""
    path = f"{name}.block"
    norm = Norm.RMS_BARE.op("norm", "x[b r e]", "y[b r e]", row="e")
    ops = _turns(block.ops, live, quiet)
    yield replace(block, path=path, ops=ops, takes={"x": before}, place=Place.END)
    if live:
        count = Integer(live)
        yield Part(f"{name}.norm", (norm,), count, {"x": path}, place=Place.END)


def _turns(layer: tuple[Op, ...], live: int, quiet: int) -> tuple[Op, ...]:
    """Return what a layer does in all turns, from x[b r e] to y[b r e]."""
    ops: list[Op] = []
    at, quiets = "x", [f"quiet{turn}" for turn in range(quiet)]
    for turn in range(live):
        last = turn == live - 1 and not quiet
        to = "y" if last else f"turn{turn}.y"
        ops += _shared(scope(f"turn{turn}", layer, x=at, y=to), f"turn{turn}.")
        at = to
    for name in quiets:
        own = _shared(scope(name, layer, x="x", y=f"{name}.y"), f"{name}.")
        ops += unread(own)
    if quiet:
        known = "".join(f", !{name}.y[b r e]" for name in quiets)
        ops.append(pointwise("join", f"{at}[b r e]{known} -> y[b r e]", "add"))
    return tuple(ops)


def _shared(ops: Iterable[Op], prefix: str) -> tuple[Op, ...]:
    """Return the ops of a turn with the weights that all turns have."""

    def own(operand: Operand) -> Operand:
        name = operand.tensor.removeprefix(prefix)
        return operand.renamed(f"layer.{name}") if operand.is_weight else operand

    mapped: OperandMap = own
    return tuple(op.mapped(mapped) for op in ops)


def _cycles(fields: Fields, name: str, usual: int) -> int:
    turns = fields.size(name, usual)
    fields.require(holds=turns <= _MOST, problem=f"up to {_MOST} are accepted", name=name)
    return min(turns, _MOST)


def _live(fields: Fields, high: int, low: int) -> int:
    """Read how many turns of the fast stack have gradients: of each slow turn so many, the last."""
    listed = fields.items("L_bp_cycles", (2,))
    fine = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in listed)
    problem = "a list of integers from zero is accepted"
    fields.require(holds=fine, problem=problem, name="L_bp_cycles")
    padded = [1] * max(high - len(listed), 0) + [n if fine else 1 for n in listed]
    return sum(min(low, n) for n in padded[:high])


def _layers(fields: Fields, turns: int) -> int:
    """Read the layers of a stack; files that say them hold those of all turns beside them."""
    stated = fields.optional_width("num_layers_per_stack")
    total = fields.size("num_hidden_layers", 16)
    if stated is None:
        return total
    told = f"{turns} turns (H_cycles, L_cycles) of num_layers_per_stack"
    problem = f"only {stated * turns}, {told}, is declared"
    fields.require(holds=total == stated * turns, problem=problem, name="num_hidden_layers")
    return stated
