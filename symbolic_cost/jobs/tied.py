"""Sizes that are said by others, as f = 4 e and k = h, so that formulas are of one design."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce

from sympy import Expr, Integer, Symbol

from symbolic_cost.emit.formulas import plain
from symbolic_cost.errors import quote, refuse
from symbolic_cost.jobs.build import Modelled, modelled
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import replace
from symbolic_cost.symbols import GLOSSARY, in_glossary_order, symbol

_SIZE = r"(?:[A-Za-z]\w*|[1-9]\d{0,8})"
_TIE = re.compile(rf"\s*([A-Za-z]\w*)\s*=\s*({_SIZE}(?:\s*[*/]\s*{_SIZE})*)\s*", re.ASCII)
_FACTOR = re.compile(r"([*/]?)\s*(\w+)", re.ASCII)


def split_ties(settings: Iterable[str]) -> tuple[dict[str, Expr], tuple[str, ...]]:
    """Return products of sizes by symbol name, and the other settings.

    A product names every factor, as in f=4*e: 8k is refused, which may be 8192 or 8 k. So is 0*e,
    which is no size.

    Raises:
        InputError: every text that gives a symbol a second size.

    >>> split_ties(["f=8*e/3,l=8192", "k=h", "l=8k"])
    ({'f': 8*e/3, 'k': h}, ('l=8192', 'l=8k'))
    """
    ties: dict[str, Expr] = {}
    others = []
    for text in (piece for whole in settings for piece in whole.split(",")):
        read = _TIE.fullmatch(text)
        factors = _FACTOR.findall(read[2]) if read else []
        names = [factor for _, factor in factors if not factor.isdigit()]
        if read is None or not names or not {read[1], *names} <= GLOSSARY.keys():
            others.append(text)
            continue
        if read[1] in ties:
            others.append(text)
        ties.setdefault(read[1], reduce(_times, factors, Integer(1)))
    named = ((text, text.partition("=")[0].strip()) for text in others)
    refuse(
        f"{quote(text)} gives {name} a second size: one is accepted"
        for text, name in named
        if name in ties
    )
    return ties, tuple(others)


def _times(product: Expr, factor: tuple[str, str]) -> Expr:
    sign, text = factor
    size = Integer(text) if text.isdigit() else symbol(text)
    return product / size if sign == "/" else product * size


def size_symbols(model: Model) -> set[Symbol]:
    """Return the symbols of the axes and of the repetitions that occur."""
    lengths = (model.sizes[axis] for axis in model.axis_names if axis in model.sizes)
    sizes = (*lengths, *(part.repeat for part in model.parts))
    return set().union(*(size.free_symbols for size in sizes))


def tied(model: Modelled, ties: Mapping[str, Expr]) -> Model:
    """Return a model in which some sizes are others times numbers.

    Raises:
        InputError: every size that the model lacks, that has a number, or that follows from itself.
    """
    own = modelled(model)
    meant = {symbol(name): size for name, size in ties.items()}
    known = size_symbols(own)
    problems = []
    for one, size in meant.items():
        said = f"{one} = {plain(size)}"
        if one.name in own.bindings:
            number = own.bindings[one.name]
            problems.append(f"{said}: {own.name} has {one} = {number}; a family is open, as gpt")
        lacking = in_glossary_order({one, *size.free_symbols} - known)
        problems += [f"{said}: {own.name} has no size {each}" for each in lacking]
        if size.free_symbols & meant.keys():
            problems.append(f"{said}: a size is said by sizes that stay")
    refuse(problems)
    return replace(
        own,
        sizes={axis: size.xreplace(meant) for axis, size in own.sizes.items()},
        parts=tuple(replace(part, repeat=part.repeat.xreplace(meant)) for part in own.parts),
        notes=(*own.notes, ", ".join(f"{plain(s)} = {plain(size)}" for s, size in meant.items())),
    )
