"""Sizes of towers that are kept and not declared, as their data say where they stand.

For example `["hidden_size", 768]` is a field and what it is without one, `"e // h"` follows from
others, and `["sizes.1 of 4", 2]` is the second of a list of four.
"""

import ast
import operator
from collections.abc import Mapping
from typing import Any, cast

from symbolic_cost.models.fields import Fields, is_size


def tower_sizes(part: Fields, table: Mapping[str, Any]) -> dict[str, int]:
    """Read the sizes of axes."""
    sizes: dict[str, int] = {}
    for axis, entry in table.items():
        if isinstance(entry, str):
            sizes[axis] = _following(entry, sizes)
            whole, _, by = entry.partition(" // ")
            divisor = int(by) if by.isdigit() else sizes.get(by, 0)
            if sizes.get(whole, divisor) < divisor:  # a patch that is larger than its image
                told = f"{divisor} is more than the {sizes[whole]} that it divides"
                part.require(holds=False, problem=told, name=table.get(by, table[whole])[0])
        elif isinstance(entry, Mapping):
            sizes[axis] = _counted(part, entry, sizes)
        else:
            (name, _, place), usual = entry[0].partition("."), entry[1]
            nothing = isinstance(usual, int) and name in part.source.values and not part.has(name)
            told = "null is not its default: a size, or no such key, is accepted"
            part.require(holds=not nothing, problem=told, name=name)
            usual = _following(usual, sizes) if isinstance(usual, str) else usual
            sizes[axis] = _item(part, name, place, usual) if place else part.size(name, usual)
    return sizes


def _following(formula: str, sizes: Mapping[str, int]) -> int:
    return max(_formula(formula, sizes), 1)


def _formula(formula: str, sizes: Mapping[str, int]) -> int:
    return _value(ast.parse(formula, mode="eval").body, sizes)


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    """Return what a sum, product or quotient of sizes is."""
    if isinstance(node, ast.BinOp):
        operation = _OPERATIONS[type(node.op)]
        return operation(_value(node.left, sizes), _value(node.right, sizes))
    return sizes[node.id] if isinstance(node, ast.Name) else cast("int", ast.literal_eval(node))


_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def _counted(part: Fields, entry: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    """Read how many entries a list has; of layers, those that there are, and not all."""
    name, layers = entry["count"], sizes.get(entry.get("below", ""))
    if entry.get("or_one") and any(is_layer(part.source.values.get(k)) for k in part.names(name)):
        part.ignore(*part.names(name))
        return 1
    if "of" in entry and layers is not None:
        return _kinds(part, entry, layers, _formula(entry["usual"], sizes))
    items = part.items(name, entry["usual"])
    if layers is None:
        part.require(holds=bool(items), problem="a list of some is accepted", name=name)
        return len(items) or 1
    there = {one for one in items if isinstance(one, int) and 0 <= one < layers}
    problem = f"some of the layers up to {layers - 1}, and not all, are accepted"
    part.require(holds=0 < len(there) < layers, problem=problem, name=name)
    return len(there) or 1


def is_layer(value: object) -> bool:
    """Return whether a field names one layer and no list of them."""
    return isinstance(value, int) and not isinstance(value, bool)


def _kinds(part: Fields, entry: Mapping[str, Any], layers: int, usual: int) -> int:
    """Read how many layers are of one of two kinds, both of which there are."""
    name, kinds = entry["count"], (entry["of"], entry["or"])
    items = part.items(name)
    number = items.count(kinds[0]) if items else usual
    fine = not items or (len(items) == layers and all(one in kinds for one in items))
    problem = f"{layers} kinds are accepted, some {kinds[0]} and some {kinds[1]}"
    part.require(holds=fine and 0 < number < layers, problem=problem, name=name)
    return number or 1


def _item(part: Fields, name: str, place: str, usual: int) -> int:
    """Read a size that a list of some length holds, at "1 of 4"."""
    items, (at, number) = part.items(name), map(int, place.split(" of "))
    fits = not items or (len(items) == number and all(map(is_size, items)))
    problem = f"a list of {number} positive integers is accepted"
    part.require(holds=fits and not (part.has(name) and not items), problem=problem, name=name)
    return int(items[at]) if items and fits else usual
