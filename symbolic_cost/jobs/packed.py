"""The program of a calculator as packed text: nodes, names, outputs and ops of every structure.

A node names its arguments by how far they stand before it; what is alike in several structures
stands once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import groupby

from symbolic_cost.errors import visible
from symbolic_cost.jobs.structures import Structures
from symbolic_cost.program.arithmetic import Node, needed
from symbolic_cost.program.exact import Number
from symbolic_cost.records import dataclass

DEGREES = ("m1", "pp", "dp")
"""Degrees that the page has."""

_LETTERS = {
    "max": "X",
    "min": "I",
    "ceil": "C",
    "floor": "F",
    "ge": "G",
    "gt": "T",
    "select": "?",
    "sqrt": "Q",
    "log2": "L",
    "exp2": "E",
    "div": "/",
}


@dataclass(frozen=True)
class Packed:
    """The program of some structures."""

    structures: Structures

    @cached_property
    def _places(self) -> Mapping[int, int]:
        """Place on the page of every node of the graph that it holds."""
        wanted = set(self.structures.outputs.values())
        wanted |= {node for ops in self.structures.ops.values() for op in ops for node in op[2:]}
        return {
            node: place for place, node in enumerate(needed(self.structures.space.graph, wanted))
        }

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """Names of the symbols that it reads, and of those that a page always has."""
        graph = self.structures.space.graph
        used = {graph.nodes[node][1] for node in self._places if graph.nodes[node][0] == "sym"}
        used |= {"b", "M", *DEGREES}
        return tuple(name for name in graph.symbols if name in used)

    @property
    def nodes(self) -> str:
        """Every node, the arguments of each before it."""
        graph = self.structures.space.graph
        return ";".join(self._node(graph.nodes[node], at) for node, at in self._places.items())

    def _node(self, node: Node, place: int) -> str:
        def back(one: int) -> str:
            return _base36(place - self._places[one])

        kind = node[0]
        if kind == "num":
            return f"n{_number(node[1])}"
        if kind == "sym":
            return f"s{self.symbols.index(node[1])}"
        if kind in ("add", "mul"):
            neutral = 0 if kind == "add" else 1
            parts = ["" if node[1] == neutral else _number(node[1])]
            parts += [back(one) if by == 1 else f"{back(one)}^{_number(by)}" for one, by in node[2]]
            return ("+" if kind == "add" else "*") + ",".join(parts)
        items = node[1] if kind in ("max", "min") else node[1:]
        return _LETTERS[kind] + ",".join(map(back, items))

    def names(self) -> tuple[str, list[str]]:
        """Return the names of nodes as words of a list: how far from the last, and which words."""
        words: dict[str, int] = {}
        listed, last = [], 0
        named = self.structures.space.names
        for node, place in self._places.items():
            if node in named:
                parts = (words.setdefault(w, len(words)) for w in visible(named[node]).split("."))
                listed.append(".".join([_base36(place - last), *map(_base36, parts)]))
                last = place
        return ";".join(listed), list(words)

    def outputs(self) -> Iterator[tuple[str, str]]:
        """Yield every output's name, and its node in every structure, where it changes."""
        columns: dict[str, dict[int, int]] = {}
        for place, workings in enumerate(self.structures.every.values()):
            said = {check.name: f"?{check.message}" for check in workings.checks}
            for name, node in workings.nodes.items():
                if self.structures.space.graph.value(node) is None or name not in said:
                    columns.setdefault(said.get(name, name), {})[place] = self._places[node]
        for name, nodes in columns.items():
            texts: list[str] = []
            last = -1
            for place in range(len(self.structures.every)):
                node = nodes.get(place, -2)
                texts.append("" if node == last else "-" if node < 0 else _base36(node))
                last = node
            yield visible(name), ",".join(texts)

    def ops(self) -> tuple[list[tuple[object, ...]], list[str]]:
        """Return every op that differs, and those of every structure as runs of these."""
        records: dict[tuple[str, str, int, int, int, int], int] = {}
        runs = []
        for ops in self.structures.ops.values():
            own = [records.setdefault(op, len(records)) for op in ops]
            texts = []
            for _, run in groupby(enumerate(own), key=lambda pair: pair[1] - pair[0]):
                listed = [record for _, record in run]
                count = f"*{_base36(len(listed))}" if len(listed) > 1 else ""
                texts.append(f"{_base36(listed[0])}{count}")
            runs.append(",".join(texts))
        places = self._places
        return [
            (visible(path), phase, *(places[node] for node in nodes))
            for path, phase, *nodes in records
        ], runs


def _base36(value: int) -> str:
    digits = ""
    while value or not digits:
        value, digit = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def _number(value: Number) -> str:
    above, below = value.as_integer_ratio()
    return f"{above}/{below}" if below != 1 else str(above)
