"""What varies beside a strategy: sizes of the model, and rates of the machine, as symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sympy import Expr

from symbolic_cost.axes import At, Role
from symbolic_cost.errors import InputError, quote, refuse, unknown
from symbolic_cost.explore.ranges import Given, values
from symbolic_cost.jobs.numbers import RATES
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.numeric.binding import check_values
from symbolic_cost.parallel.stages import block_count
from symbolic_cost.symbols import GLOSSARY, exact
from symbolic_cost.systems.machines import SYMBOLIC, Figure, Machine

Numbers = Mapping[str, tuple[int | Fraction, ...]]


def checked(base: Setup, vary: Mapping[str, Given]) -> Numbers:
    """Return the values of what varies, ascending.

    Raises:
        InputError: every name that is no size or rate or that decides structure, and every value
            that its symbol refuses.
    """
    sizes, fixed = _sizes(base)
    accepted = [name for name in (*sorted(sizes), *_rates(base.machine)) if name not in fixed]
    problems: list[str] = []
    numbers: dict[str, tuple[int | Fraction, ...]] = {}
    for name, listed in vary.items():
        if name in fixed:
            problems.append(f"vary {name}: it decides which structures there are; bind it (--set)")
        elif name not in accepted:
            problems.append(unknown("size or rate to vary", name, accepted))
        else:
            try:
                taken = [one for one in values(name, listed) if not isinstance(one, str)]
                for end in (min(taken), max(taken)) if taken else ():
                    check_values({name: end})
                whole = not any(isinstance(one, Fraction) for one in taken)
                if not taken or not (whole or not GLOSSARY[name].integer):
                    kind = "integers" if GLOSSARY[name].integer else "numbers"
                    problems.append(f"vary {name}={quote(listed)}: {kind} are accepted")
                numbers[name] = tuple(sorted(taken))
            except InputError as error:
                problems += error.problems
    refuse(problems)
    return numbers


def _sizes(base: Setup) -> tuple[set[str], set[str]]:
    """Return the symbols of a model's sizes, and those that decide over structure."""
    model = base.model
    used = {s.name for axis in model.axis_names for s in exact(model.sizes[axis]).free_symbols}
    deciding = [block_count(model)]
    for role in (Role.HEAD, Role.GROUP, Role.EXPERT):
        deciding += [model.sizes[axis.name] for axis in model.placed(At(role))]
    fixed = {symbol.name for expr in deciding for symbol in exact(expr).free_symbols}
    fixed |= {s.name for part in model.parts for s in exact(part.repeat).free_symbols}
    return used - {"b"}, fixed


def freed(base: Setup, numbers: Numbers) -> Setup:
    """Return the job in which what varies is a symbol."""
    model = base.model
    bindings = {name: one for name, one in model.bindings.items() if name not in numbers}
    rest = {name: one for name, one in base.numbers.items() if name not in numbers}
    rates = {name: GLOSSARY[name].symbol for name in numbers if name in RATES}
    return replace(
        base,
        model=replace(model, bindings=bindings),
        numbers=rest,
        machine=_with_rates(base.machine, rates),
    )


def with_numbers(base: Setup, at: Mapping[str, int | Fraction]) -> Setup:
    """Return a job with numbers for sizes and rates."""
    symbolic = base.machine is not None and base.machine.name == SYMBOLIC.name
    sizes = {name: one for name, one in at.items() if symbolic or name not in RATES}
    rates = {name: exact(one) for name, one in at.items() if name not in sizes}
    model = base.model
    bindings = {name: one for name, one in model.bindings.items() if name not in sizes}
    return replace(
        base,
        model=replace(model, bindings=bindings),
        numbers={**base.numbers, **sizes},
        machine=_with_rates(base.machine, rates),
    )


_PLACES: Mapping[str, Callable[[Machine, Figure], dict[str, Any]]] = {
    "F_m": lambda m, rate: {"matrix": dict.fromkeys(m.matrix, rate)},
    "F_v": lambda m, rate: {"vector": dict.fromkeys(m.vector, rate)},
    "beta_m": lambda _, rate: {"bandwidth": rate},
    "alpha_m": lambda _, rate: {"latency": rate},
    "beta": lambda m, rate: {"links": (*m.links[:-1], replace(m.links[-1], bandwidth=rate))},
    "alpha": lambda m, rate: {"links": (*m.links[:-1], replace(m.links[-1], latency=rate))},
    "beta_d": lambda m, rate: {"links": (replace(m.links[0], bandwidth=rate), *m.links[1:])},
    "alpha_d": lambda m, rate: {"links": (replace(m.links[0], latency=rate), *m.links[1:])},
    "n_d": lambda m, rate: {"links": (replace(m.links[0], ranks=rate), *m.links[1:])},
    "t_k": lambda m, rate: {"efficiencies": replace(m.efficiencies, launch=rate)},
    "t_h": lambda m, rate: {"efficiencies": replace(m.efficiencies, host=rate)},
    "n_half": lambda m, rate: {"efficiencies": replace(m.efficiencies, half=rate)},
}
"""What of a machine a rate stands for: d is of the innermost links, beta of the outermost."""


def _rates(machine: Machine | None) -> list[str]:
    """Return the rates of a machine that may vary."""
    if machine is None:
        return []
    one_link = len(machine.links) == 1
    table = bool(machine.efficiencies.products)
    gone = {"beta_d", "alpha_d", "n_d"} if one_link else set()
    return [name for name in RATES if name not in gone and not (table and name == "n_half")]


def _with_rates(machine: Machine | None, rates: Mapping[str, Expr]) -> Machine | None:
    for name, rate in rates.items():
        if machine is not None:
            figure = Figure(rate, includes="as it varies")
            machine = replace(machine, **_PLACES[name](machine, figure))
    return machine
