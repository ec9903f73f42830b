"""A job priced once for all its numbers: step, memory and legality as nodes of a program.

What changes which rows exist is structure, and has nodes of its own; degrees, microbatches and
sizes are numbers of them.

For example the step of tp=8,dp=4 and that of tp=2,dp=64 are one program in m1 and dp; that of
dp=64 alone is another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from typing import Any

from sympy import Basic

from symbolic_cost.algebra import add, mul
from symbolic_cost.conditions import Condition, Split, check
from symbolic_cost.errors import InputError
from symbolic_cost.explore.choices import OPENED
from symbolic_cost.explore.objectives import HELD, LEGAL, MEMORY, NEEDED, SHARE
from symbolic_cost.extrema import Max
from symbolic_cost.jobs.fit import surroundings
from symbolic_cost.jobs.model_terms import ModelTerms
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.lazy import Recent
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.moments import at_moments
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.program.graph import Graph
from symbolic_cost.records import replace
from symbolic_cost.symbols import GLOSSARY, exact
from symbolic_cost.systems.definitions import Reckoned
from symbolic_cost.systems.results import RESULTS, STEP_PARTS
from symbolic_cost.systems.step import defined_step

TIMES = tuple(dict.fromkeys((*RESULTS, *STEP_PARTS)))
"""Outputs of a step: parts [s], rates, and shares."""


def structure_of(setup: Setup) -> Setup:
    """Return a setup with a symbol for every degree and count whose number is no structure."""
    degrees = {
        s.name for d in setup.placed.degrees.values() for e in d for s in exact(e).free_symbols
    }
    numbers = {
        name: number for name, number in setup.numbers.items() if name not in {*degrees, "M", "B"}
    }
    training = replace(setup.trained, microbatches=exact(GLOSSARY["M"].symbol))
    return replace(
        setup,
        strategy=_sharing(setup),
        numbers=numbers,
        training=training,
        global_batch=None,
        precise=True,
    )


def _sharing(setup: Setup) -> Strategy:
    """Return the strategy of the structure; ranks that share a head are those for each head.

    Heads of one query head alone cannot be shared, by two ranks or more: that is refused at once.
    """
    strategy, sizes = setup.placed, setup.model.sizes
    shares = strategy.copies != 1 and setup.strategy.degrees["tp"][0].is_Integer
    if not shares or any(setup.value(sizes[own]) == 1 for own in setup.model.grouped.values()):
        return strategy
    heads = setup.strategy.mesh["tp"]
    return replace(strategy, copies=strategy.degrees["tp"][0] / heads)


def bound_numbers(setup: Setup, free: Collection[str]) -> dict[str, int | Fraction]:
    """Return the numbers of a setup, but for those that stay symbols."""
    return {name: number for name, number in setup.values.items() if name not in free}


_MODELS: Recent[tuple[Model, str | None]] = Recent(8)


def about_setup(setup: Setup, numbers: Mapping[str, int | Fraction]) -> str | None:
    """Describe everything that a program rests on; none where a user's function does."""
    model = setup.model
    make = partial(described, (model.parts, model.axes))
    _, declared = _MODELS.of(id(model), lambda: (model, _digest(make())))
    held = described(
        (
            model.sizes,
            model.padded,
            model.means,
            setup.strategy,
            numbers,
            setup.training,
            setup.machine,
            setup.methods,
            setup.conventions,
            setup.attention,
        )
    )
    return None if declared is None or held is None else declared + held


def _digest(text: str | None) -> str | None:
    return None if text is None else blake2b(text.encode(), digest_size=16).hexdigest()


class Costs(ModelTerms):
    """The space in which structures are derived; what is alike in them is derived once."""

    def __init__(self, numbers: Mapping[str, int | Fraction]) -> None:
        symbols = {name: entry.integer for name, entry in GLOSSARY.items()}
        super().__init__(Graph({**symbols, **OPENED}), numbers)


def outputs_of(space: Costs, setup: Setup) -> dict[str, int]:
    """Derive a structure and return the nodes of its outputs.

    Raises:
        InputError: the strategy does not go with the model.
    """
    to = Reckoned(space)
    if setup.machine is None:
        memory = setup.stages_memory
        whole = memory.divided
        memory = replace(memory, divided=replace(whole, model=space.model(whole.model)))
    else:
        timed = Timed(setup)
        setting = replace(timed.setting, model=space.model(timed.setting.model))
        memory = timed.memory_of(setting.divided)
        defined_step(setting, to)
    stages, divided = setup.structure.stages, memory.divided
    conditions = dict.fromkeys(
        c for s in stages for c in divided.costs(s, setup.training.recompute).conditions
    )
    held = {stage: memory.device_bytes(stage) for stage in stages}
    moments = {stage: at_moments(sums) for stage, sums in held.items()}
    outputs = {name: space.node(to[name]) for name in TIMES if name in to.definitions}
    most = Max(*(size for at in moments.values() for size in at.values()))
    outputs[MEMORY] = space.node(most)
    outputs[NEEDED] = space.node(add(most, surroundings(setup)))
    for stage, sums in held.items():
        for name, size in moments[stage].items():
            outputs[f"{HELD}{stage}: {name}"] = space.node(size)
        for quantity in dict.fromkeys(quantity for quantity, _ in sums):
            sizes = (one for (own, _), listed in sums.items() if own is quantity for one in listed)
            outputs[f"{SHARE}{stage}: {quantity.value}"] = space.node(add(*sizes))
    for label, node in _legal(space, conditions):
        outputs[LEGAL + label] = node
    if space.lowering.refused:
        raise InputError([f"{text} has no place in a program" for text in space.lowering.refused])
    return outputs


def _legal(space: ModelTerms, conditions: Collection[Condition]) -> Iterator[tuple[str, int]]:
    """Yield what numbers must meet, in words, and the node that is one where they do."""
    graph = space.graph
    for one in conditions:
        if isinstance(one, Split):
            quotient = graph.over(
                space.node(one.size), space.node(mul(*(by for _, by in one.degrees)))
            )
            node = graph.at_least(graph.floor(quotient), quotient)
            by = " and ".join(mesh for mesh, _ in one.degrees)
            label = f"{one.path}: {one.axis} is divisible by {by}" if by else f"{one.axis} is whole"
        else:
            node = graph.at_least(space.node(one.size), space.node(one.least))
            label = f"{one.what}: {one.because}"
        if graph.value(node) == 0:
            check([replace(one, size=exact(space.number(space.node(one.size))))], {})
        if graph.value(node) != 1:
            yield label, node


def described(value: object) -> str | None:
    """Return a text that tells a value from others; none where a user's own function decides.

    A function of the library is known by its name, and changes with the library.

    >>> described({"b": (1, None), "a": frozenset({"y", "x"})})
    "{'a':{'x','y'},'b':('1',None)}"
    """
    try:
        return _text(value)
    except _OwnFunctionError:
        return None


class _OwnFunctionError(Exception):
    """A function whose text nobody knows."""


def _text(value: object) -> str:
    if value is None or isinstance(value, str | Basic | Enum | int | float):
        return repr(None if value is None else str(value))
    if isinstance(value, Mapping):
        items = sorted((_text(key), _text(one)) for key, one in value.items())
        return "{" + ",".join(f"{key}:{one}" for key, one in items) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ",".join(sorted(map(_text, value))) + "}"
    if isinstance(value, tuple | list):
        return "(" + ",".join(map(_text, value)) + ")"
    if is_dataclass(value) and not isinstance(value, type):
        inner = (f"{f.name}={_text(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({','.join(inner)})"
    return _of_function(value)


def _of_function(value: Any) -> str:  # noqa: ANN401 - whatever is left
    module = getattr(value, "__module__", None) or type(value).__module__
    if not module.startswith("symbolic_cost."):
        raise _OwnFunctionError
    name = getattr(value, "__qualname__", None)
    if name is not None:
        return f"{module}.{name}"
    held = {key: one for key, one in vars(value).items() if not key.startswith("_")}
    return f"{module}.{type(value).__name__}{_text(held)}"
