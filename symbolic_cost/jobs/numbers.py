"""Numbers of a job: names that are read, degrees under the strategy's names, no contradictions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import sympy

from symbolic_cost.errors import InputError, quote, refuse, unknown
from symbolic_cost.lazy import Recent
from symbolic_cost.numeric.binding import LARGEST_COUNT, bind, check_values
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.symbols import B
from symbolic_cost.symbols import b as microbatch

RUN = ("M", "v")
"""Symbols of a run: microbatches, chunks per stage."""


RATES = (
    *("F_m", "F_v", "beta_m", "beta", "alpha", "alpha_m", "beta_d", "alpha_d", "n_d"),
    *("t_k", "t_h", "n_half", "beta_h"),
)
"""Symbols of a machine whose rates are symbols."""


def degree_names() -> dict[str, str]:
    """Return the symbol of the degree by the name of a strategy: tp binds m1."""
    return {
        name: next(iter(entry.meshes.values())).name
        for name, entry in STRATEGIES.items()
        if len(entry.meshes) == 1
    }


def check_count(what: str, number: int) -> None:
    """Refuse a number of sequences or microbatches that no run has.

    Raises:
        InputError: it is not from 1 to LARGEST_COUNT.
    """
    if not 0 < number <= LARGEST_COUNT:
        raise InputError(
            f"{what} {quote(number)}: a positive integer up to {LARGEST_COUNT:.0e} is accepted"
        )


def twice(what: str, names: Sequence[str]) -> list[str]:
    """Say which names of a list are given more than once."""
    return [
        f"{what}: {quote(name)} is given more than once"
        for name, times in Counter(names).items()
        if times > 1
    ]


def checked_numbers(
    model: Model,
    strategy: Strategy,
    assigned: Mapping[str, int | Fraction],
    more: tuple[str, ...] = (),
) -> dict[str, int | Fraction]:
    """Return numbers by symbol name.

    A degree may be given by the name of its strategy ("tp") or of its symbol ("m1"); names of
    `more`, such as RATES, are accepted beside those of the model and the strategy.

    Raises:
        InputError: names that neither the model nor the strategy has, numbers that their symbols
            refuse, and degrees that the strategy gives otherwise.
    """
    problems: list[str] = []
    numbers: dict[str, int | Fraction] = {}
    # The symbols of the degrees by the names under which they may be given.
    degrees = degree_names()
    named = {name: degrees[name] for name in strategy.degrees if name in degrees}
    names = named | {name: name for name in strategy.symbols()}
    accepted = {*sizes_of(model), *names, *names.values(), *RUN, *more}
    for name, number in assigned.items():
        symbol = names.get(name, name)
        if symbol not in accepted:
            problems.append(_unread(name, model, accepted))
        elif numbers.setdefault(symbol, number) != number:
            problems.append(f"{name}={number} and {symbol}={numbers[symbol]}: give one")
    for symbol, degree in strategy.bindings().items():
        if numbers.get(symbol, degree) != degree:
            problems.append(
                f"{symbol}={numbers[symbol]} contradicts the strategy {strategy}, "
                f"where it is {degree}: give one"
            )
    try:
        check_values({name: n for name, n in numbers.items() if name in accepted})
    except InputError as error:
        problems += error.problems
    refuse(problems or _empty(model, numbers))
    return numbers


def _empty(model: Model, numbers: Mapping[str, int | Fraction]) -> list[str]:
    """Say which lengths come to no token, as half of one does."""
    known = {**model.bindings, **numbers}
    rounded = {s for axis in model.axis_names if (s := model.sizes[axis]).has(sympy.floor)}
    empty = (size for size in rounded if bind(size, known) == 0)
    return [f"{size} = 0: at least one token is accepted" for size in empty]


_SIZES: Recent[tuple[Model, set[str]]] = Recent(8)
"""By the id of the model, which lives as long."""


def _symbols(model: Model) -> set[str]:
    return {symbol.name for symbol in model.read_symbols} | set(model.bindings)


def refuse_absent(model: Model, strategy: Strategy, name: str) -> None:
    """Refuse to vary what neither the model nor the strategy has: no cost can depend on it.

    Raises:
        InputError: for example tp, or its symbol m1, of a strategy without tp.
    """
    accepted = {microbatch.name, *sizes_of(model), *strategy.symbols()}
    if name not in accepted:
        degrees = {symbol: degree for degree, symbol in degree_names().items()}
        if name in degrees:
            degree = degrees[name]
            raise InputError(f"{degree}: the strategy has no {degree} that could grow")
        kind = f"symbol of model {model.name!r} and its strategy"
        raise InputError(unknown(kind, name, accepted))


def sizes_of(model: Model) -> set[str]:
    """Return the names of the symbols that a model's sizes and repetitions have."""
    return _SIZES.of(id(model), lambda: (model, _symbols(model)))[1]


def _unread(name: str, model: Model, accepted: set[str]) -> str:
    if name == B.name:
        return (
            f"{name} is not read: a global batch (--global-batch, global_batch=) gives microbatches"
        )
    if name in degree_names():
        return f"{name}: the strategy has no {name} whose degree could be given"
    return unknown(f"symbol of model {model.name!r} and its strategy", name, accepted)
