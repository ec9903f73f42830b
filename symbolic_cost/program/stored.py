"""Programs and tapes as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction

from symbolic_cost.errors import InputError
from symbolic_cost.program.arithmetic import KINDS, Node, arguments
from symbolic_cost.program.exact import UNDEFINED, Number, undefined
from symbolic_cost.program.program import Program
from symbolic_cost.program.tape import Tape

FORMAT = "symbolic_cost program 1"
_OF_NODES = {"ceil": 1, "floor": 1, "sqrt": 1, "log2": 1, "exp2": 1, "ge": 2, "gt": 2, "div": 2}
_OF_NODES |= {"select": 3}


# ---------------------------------------------------------------------- JSON


def written(program: Program) -> str:
    """Return a program as JSON."""
    return json.dumps(
        {
            "format": FORMAT,
            "symbols": dict(program.symbols),
            "nodes": [_plain(node) for node in program.nodes],
            "outputs": dict(program.outputs),
        },
        separators=(",", ":"),
    )


def read(text: str) -> Program:
    """Return the program that JSON holds.

    Raises:
        InputError: it is no JSON of a program.
    """
    try:
        held = json.loads(text)
        if held["format"] != FORMAT:
            raise InputError(f"format {held['format']!r} of a program: {FORMAT!r} is accepted")
        symbols = {str(name): bool(counts) for name, counts in held["symbols"].items()}
        nodes = tuple(_node(node, place, symbols) for place, node in enumerate(held["nodes"]))
        outputs = {str(name): range(len(nodes))[place] for name, place in held["outputs"].items()}
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise InputError(f"not a program: {error}") from None
    return Program(symbols, nodes, outputs)


def _plain(node: Node) -> list[object]:
    kind = node[0]
    if kind == "num":
        return [kind, number_text(node[1])]
    if kind in ("add", "mul"):
        return [kind, number_text(node[1]), [[one, number_text(by)] for one, by in node[2]]]
    return [kind, *(list(part) if isinstance(part, tuple) else part for part in node[1:])]


def number_text(value: Number) -> int | str | None:
    """Return an exact number as JSON has it; none for what is undefined."""
    if undefined(value):
        return None
    return value if isinstance(value, int) else str(value)


def _node(plain: list[object], place: int, symbols: Mapping[str, bool]) -> Node:
    """Return a node, or refuse what is none.

    Raises:
        ValueError: it is no node, or rests on one that is not before it.
    """
    match plain:
        case ["num", value]:
            node: Node = ("num", number_of(value))
        case ["sym", str(name)] | ["sym", str(name), bool()] if name in symbols:
            node = ("sym", name, symbols[name])
        case ["add", value, list(terms)]:
            node = ("add", number_of(value), tuple((one, number_of(by)) for one, by in terms))
        case ["mul", value, list(terms)]:
            node = ("mul", number_of(value), tuple((one, _exponent(by)) for one, by in terms))
        case ["max" | "min" as kind, list(args)] if args:
            node = (kind, tuple(args))
        case [str(kind), *args] if len(args) == _OF_NODES.get(kind) and kind in KINDS:
            node = (kind, *args)
        case _:
            raise ValueError(f"node {place} is {str(plain)[:60]}")
    if not all(type(one) is int and 0 <= one < place for one in arguments(node)):
        raise ValueError(f"node {place} rests on a later one")
    return node


def number_of(value: object) -> Number:
    """Return the exact number that JSON has."""
    if value is None:
        return UNDEFINED
    if type(value) is int:
        return value
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no exact number")
    return Fraction(value)


def _exponent(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no exponent")
    return value


def written_tape(tape: Tape) -> str:
    """Return a tape as JSON."""
    held: dict[str, object] = {name: getattr(tape, name) for name in ("inputs", "counts", "masks")}
    held |= {"kinds": " ".join([kind for kind, _ in tape.steps])}
    held |= {"taken": [taken for _, taken in tape.steps], "outputs": dict(tape.outputs)}
    held |= {"constants": [number_text(one) for one in tape.constants]}
    return json.dumps(held, separators=(",", ":"))
