"""Programs as JSON, and a folder of what took time to make: programs and machine code.

A file begins with the hash of what follows, so that one cut off or changed is not believed: it is
removed and made again. It appears as a whole or not at all, whoever else writes it.

The folder is $SYMBOLIC_COST_CACHE, else symbolic_cost in $XDG_CACHE_HOME or ~/.cache; where it
cannot be written, nothing is kept. SYMBOLIC_COST_CACHE= (empty) keeps nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

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
        return [kind, _number_text(node[1])]
    if kind in ("add", "mul"):
        return [kind, _number_text(node[1]), [[one, _number_text(by)] for one, by in node[2]]]
    return [kind, *(list(part) if isinstance(part, tuple) else part for part in node[1:])]


def _number_text(value: Number) -> int | str | None:
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
            node: Node = ("num", _number(value))
        case ["sym", str(name)] | ["sym", str(name), bool()] if name in symbols:
            node = ("sym", name, symbols[name])
        case ["add", value, list(terms)]:
            node = ("add", _number(value), tuple((one, _number(by)) for one, by in terms))
        case ["mul", value, list(terms)]:
            node = ("mul", _number(value), tuple((one, _exponent(by)) for one, by in terms))
        case ["max" | "min" as kind, list(args)] if args:
            node = (kind, tuple(args))
        case [str(kind), *args] if len(args) == _OF_NODES.get(kind) and kind in KINDS:
            node = (kind, *args)
        case _:
            raise ValueError(f"node {place} is {str(plain)[:60]}")
    if not all(type(one) is int and 0 <= one < place for one in arguments(node)):
        raise ValueError(f"node {place} rests on a later one")
    return node


def _number(value: object) -> Number:
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


# ---------------------------------------------------------------------- the folder


def kept(about: object, make: Callable[[], Program]) -> Program:
    """Return the program of what is described: from the folder, else made and put there.

    Args:
        about: everything that decides what the program is, as its JSON or repr tells it; the
            library's own version is added.
        make: the program.
    """
    key = _key(about)
    found = read_bytes(f"{key}.json")
    if found is not None:
        with suppress(InputError, ValueError):
            text, tape = found.decode().split("\n")
            return replace(read(text), recorded_tape=_tape(json.loads(tape)))
    return _made(key, make)


def kept_tape(about: object, make: Callable[[], Program]) -> Tape:
    """Return the tape of a program that is `kept`; its nodes are not read."""
    key = _key(about)
    found = read_bytes(f"{key}.json")
    if found is not None:
        with suppress(InputError, ValueError):
            return _tape(json.loads(found[found.index(b"\n") :]))
    return _made(key, make).tape


def _key(about: object) -> str:
    text = f"{FORMAT}\n{fingerprint()}\n{about!r}"
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _made(key: str, make: Callable[[], Program]) -> Program:
    program = make()
    body = f"{written(program)}\n{json.dumps(_plain_tape(program.tape))}"
    write_bytes(f"{key}.json", body.encode())
    return program


def _plain_tape(tape: Tape) -> dict[str, object]:
    plain = {name: getattr(tape, name) for name in ("inputs", "counts", "steps", "masks")}
    constants = [_number_text(one) for one in tape.constants]
    return plain | {"outputs": dict(tape.outputs), "constants": constants}


def _tape(plain: dict[str, Any]) -> Tape:
    steps = tuple((kind, tuple(taken)) for kind, taken in plain["steps"])
    constants = tuple(_number(one) for one in plain["constants"])
    rest = {name: tuple(plain[name]) for name in ("inputs", "counts", "masks")}
    return Tape(**rest, constants=constants, steps=steps, outputs=plain["outputs"])


def folder() -> Path | None:
    """Return the folder; none if nothing is to be kept."""
    own = os.environ.get("SYMBOLIC_COST_CACHE")
    if own is not None:
        return Path(own) if own else None
    base = os.environ.get("XDG_CACHE_HOME")
    with suppress(RuntimeError):  # nobody's home
        return (Path(base) if base else Path.home() / ".cache") / "symbolic_cost"
    return None


def read_bytes(name: str) -> bytes | None:
    """Return what a file of the folder holds; none if there is none that can be believed."""
    place = folder()
    if place is None:
        return None
    with suppress(OSError):
        head, _, body = (place / name).read_bytes().partition(b"\n")
        if head == _digest(body):
            return body
        (place / name).unlink()
    return None


def write_bytes(name: str, body: bytes) -> None:
    """Put a file into the folder, as a whole or not at all."""
    place = folder()
    if place is None:
        return
    with suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=place, prefix=".", delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(_digest(body) + b"\n" + body)
                file.close()
                temporary.replace(place / name)
            except OSError:
                temporary.unlink(missing_ok=True)


@cache
def fingerprint() -> str:
    """Return what changes with the library: the newest of its files and how many there are."""
    times = [entry.stat().st_mtime_ns for entry in _sources(str(Path(__file__).parents[1]))]
    return f"{len(times)} {max(times)}"


def _sources(path: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _sources(entry.path)
            elif entry.is_file():
                yield entry


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).hexdigest().encode()
