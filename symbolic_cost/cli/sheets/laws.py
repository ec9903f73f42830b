"""Scaling laws as tables and bands: what there is, optima, fits, allocations, prices, errata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp

from symbolic_cost.emit.charts import Curve, Curves
from symbolic_cost.emit.sheet import Column, Sheet, headed, stacked
from symbolic_cost.errors import InputError, quote, refuse, unknown
from symbolic_cost.published.results import errata
from symbolic_cost.reading import in_digits
from symbolic_cost.scaling import laws
from symbolic_cost.scaling.allocate import Allocation
from symbolic_cost.scaling.closed import closed
from symbolic_cost.scaling.fits import Fit, PowerLaw
from symbolic_cost.scaling.law import FLOP, Law
from symbolic_cost.scaling.optimum import Optimum
from symbolic_cost.systems.prices import facts


def laws_sheet() -> Sheet:
    """List every law with its formula, sets of constants and sources."""
    rows = tuple(
        (name, law.meaning, law.value.text, set_.name, set_.source)
        for name in laws.names()
        for law in [laws.law(name)]
        for set_ in law.sets.values()
    )
    notes = ("symbolic-cost laws NAME shows one; a TOML file of the same form is a law, too",)
    return Sheet("Scaling laws", headed("law, meaning, formula, constants, source"), rows, notes)


def law_sheet(law: Law, chosen: Sequence[str]) -> Sheet:
    """Tabulate the constants of a law by set, with what is fixed and what follows."""
    sets = chosen or tuple(law.sets)
    rows = [
        (name, *(float(law.constants(one).values[name]) for one in sets)) for name in law.parameters
    ]
    columns = (Column("constant"), *(Column(one, "right") for one in sets))
    notes = [f"{law.gives} = {law.value.text} [{law.unit}]"]
    notes += [f"where {name} = {formula.text}" for name, formula in law.where.items()]
    notes += [f"then {name} = {formula.text}" for name, formula in law.then.items()]
    notes += [f"{name}: {meaning}" for name, meaning in law.variables.items()]
    if law.compute is not None:
        notes.append(f"C = {law.compute.text} [FLOP]")
        notes += _closed_notes(law)
    notes += [
        f"{one}: {law.constants(one).source}; {law.constants(one).note}".rstrip("; ")
        for one in sets
    ]
    notes += [
        f"{one}: fitted to {name} from {float(low):.3g} to {float(high):.3g}"
        for one in sets
        for name, (low, high) in law.constants(one).ranges.items()
    ]
    return Sheet(f"{law.name}: {law.meaning}", columns, tuple(rows), tuple(notes))


def _closed_notes(law: Law) -> list[str]:
    try:
        optimum = closed(law)
    except InputError as error:
        return [f"the optimum is searched for: {error}"]
    return [f"best {name} = {expr}" for name, expr in optimum.best.items()] + [
        f"loss - limit falls as C**({optimum.excess})"
    ]


def optima_sheet(law: Law, optima: Sequence[Optimum], loss: float | None = None) -> Sheet:
    """Tabulate optima, one per set of constants and compute, or of the compute for a loss."""
    names = law.chosen
    members = sorted({name for one in optima for name in one.member})
    headings = (
        *(Column("constants"), Column(FLOP, "right", "FLOP")),
        *(Column(name, "right") for name in names),
        *(Column(f"{names[1]}/{names[0]}", "right"), Column(law.gives, "right", law.unit)),
        *(Column(f"exponent of {name}", "right") for name in names),
        *(Column("price", "right", f"{law.unit} per FLOP"), Column("how")),
        *(Column(name, "right") for name in members),
    )
    rows = tuple(
        (
            one.constants,
            one.values[FLOP],
            *(one.values[name] for name in names),
            one.values[names[1]] / one.values[names[0]],
            one.values[law.gives],
            *(one.exponents[name] for name in names),
            one.price,
            one.how,
            *(one.member.get(name) for name in members),
        )
        for one in optima
    )
    notes = _held_notes(law, optima[0].values)
    notes += _together(text for one in optima for text in one.warnings)
    notes += _constant_notes(law, (one.constants for one in optima))
    least = law.gives if loss is None else f"compute for a {law.gives} of {loss:g}"
    return Sheet(f"Least {least} of {law.name}", headings, rows, notes)


def _held_notes(law: Law, values: Mapping[str, float]) -> tuple[str, ...]:
    """Return the numbers of variables that a law takes as usual, and those that were given."""
    return tuple(
        f"{name} = {values.get(name, usual):g}: {law.variables[name]}"
        + ("" if values.get(name, usual) != usual else f"; --set {name}=NUMBER says another")
        for name, usual in law.fixed.items()
    )


def _constant_notes(law: Law, sets: Iterable[str]) -> tuple[str, ...]:
    """Return what to know of sets of constants before they are used."""
    notes = {name: law.constants(name).note for name in sets}
    return tuple(f"constants {name}: {note}" for name, note in notes.items() if note)


def _together(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return warnings with the numbers of one variable and range in one line.

    "N = 4e10 is outside of ..." and "N = 5e10 is outside of ..." are "N = 4e10, 5e10 are ...".
    """
    numbers: dict[tuple[str, str], dict[str, None]] = {}
    for text in warnings:
        point, _, range_ = text.partition(" is outside of ")
        name, _, value = point.partition(" = ")
        numbers.setdefault((name, range_), {})[value] = None
    return tuple(
        f"{name} = {', '.join(values)} {'is' if len(values) == 1 else 'are'} outside of {range_}"
        if range_
        else name
        for (name, range_), values in numbers.items()
    )


def point_sheet(law: Law, values: Mapping[str, float], sets: Sequence[str]) -> Sheet:
    """Tabulate what a law gives at a point, one column per set."""
    points = {one: laws.at(law, one, **values) for one in sets}
    units = {law.gives: f" [{law.unit}]"}
    rows = tuple(
        (f"{name}{units.get(name, '')}", *(points[one][name] for one in sets))
        for name in points[sets[0]]
    )
    notes = _held_notes(law, values)
    notes += _together(text for one in sets for text in law.warnings(values, one))
    notes += _constant_notes(law, sets)
    columns = (Column("quantity"), *(Column(one, "right") for one in sets))
    at = ", ".join(f"{name} = {value:g}" for name, value in values.items())
    return Sheet(f"{law.name} at {at}", columns, rows, notes)


def points_sheet(
    name: str, law: Law, values: Mapping[str, float], flops: Sequence[float], sets: Sequence[str]
) -> Sheet:
    """Tabulate what a law, as it was named, gives for every compute.

    Raises:
        InputError: the compute is among the values, too.
    """
    if FLOP in values:
        raise InputError(f"--flops and --set {FLOP}= both say the compute")
    points = {f"{flop:g}": point_sheet(law, {**values, FLOP: flop}, sets) for flop in flops}
    if len(points) == 1:
        return next(iter(points.values()))
    return replace(stacked("C [FLOP]", points), title=f"{name} by compute")


def variables(settings: Sequence[str], law: Law) -> dict[str, float]:
    """Return numbers of variables, typed as NAME=NUMBER, several with commas between them.

    Raises:
        InputError: every text that is none, name that is no variable, and second number.
    """
    numbers: dict[str, float] = {}
    problems = []
    for text in (piece.strip() for whole in settings for piece in whole.split(",")):
        name, _, number = text.partition("=")
        try:
            value = in_digits(number)
        except ValueError:
            problems.append(f"{quote(text)} is not an assignment: NAME=NUMBER is accepted: N=7e9")
            continue
        if name in numbers:
            problems.append(f"{quote(text)}: {name} has a number already")
        if name not in law.variables:
            problems.append(unknown(f"variable of {law.name}", name, law.variables))
        numbers[name] = value
    refuse(problems)
    return numbers


def fit_sheet(fit: Fit, flops: Sequence[float]) -> Sheet:
    """Tabulate fitted constants with errors, and the bands of optima."""
    samples = fit.samples
    spread = samples.std(axis=0) if len(samples) else None
    rows: list[tuple[str | float | None, ...]] = [
        (name, value, fit.errors[name], None if spread is None else float(spread[place]))
        for place, (name, value) in enumerate(fit.values.items())
    ]
    for flop in flops:
        rows += [
            (f"{name} at {flop:g} FLOP", value, error, None)
            for name, (value, error) in fit.band(flop).items()
        ]
    rows += [
        (f"error without group {name}", error, None, None) for name, error in fit.left_out.items()
    ]
    columns = headed("constant, value>, standard error>, bootstrap error>")
    notes = (
        f"mean of Huber's loss on logarithms: {fit.objective:.6g}",
        f"condition number of the scaled Jacobian: {fit.condition:.3g}",
        *fit.warnings,
    )
    return Sheet(f"{fit.law.name} fitted to {len(fit.runs)} runs", columns, tuple(rows), notes)


def power_sheet(lines: Mapping[str, PowerLaw], law: str, number: int) -> Sheet:
    """Tabulate the power laws of approach 1 or 2."""
    rows = tuple(
        (
            name,
            one.coefficient,
            one.exponent,
            None if one.errors is None else one.errors[1],
            len(one.points),
        )
        for name, one in lines.items()
    )
    columns = headed("best, A>, exponent>, standard error>, budgets>")
    return Sheet(f"A C**p of {law} by approach {number}", columns, rows)


def allocation_sheet(allocation: Allocation, law: str, system: str) -> Sheet:
    """Tabulate an allocation."""
    rows: list[tuple[str | float | int | None, ...]] = [
        ("constants", allocation.constants),
        ("parameters", allocation.parameters),
        *((name, size) for name, size in allocation.sizes.items()),
        ("tokens", allocation.tokens),
        ("loss [nat/token]", allocation.loss),
        ("GPUs", allocation.gpus),
        ("days", allocation.days),
        ("strategy", allocation.strategy or "none: a share of the peak is assumed"),
        ("step [s]", allocation.step),
        ("MFU", allocation.mfu),
        ("cost [USD]", allocation.costs.usd),
        ("energy [kWh]", allocation.costs.kwh),
        ("carbon [kg CO2e]", allocation.costs.kg_co2e),
        ("binds", allocation.binds),
    ]
    title = f"Least loss of {law} on {system} for the budget"
    return Sheet(title, headed("quantity, value>"), tuple(rows), allocation.warnings)


def prices_sheet() -> Sheet:
    """List prices, power, PUE and carbon, with the source and date of each."""
    known = facts()
    rows = [
        (name, kind, fact) for name, own in known["machines"].items() for kind, fact in own.items()
    ]
    rows += [(name, kind, fact) for kind in ("pue", "grid") for name, fact in known[kind].items()]
    cells = tuple(
        (name, kind, one.value, one.includes, one.source, one.date) for name, kind, one in rows
    )
    columns = headed("name, what, value>, includes, source, date")
    notes = ("prices move: laws allocate takes --price, --power, --pue and --grid instead",)
    return Sheet("Prices, power, PUE and carbon", columns, cells, notes)


def errata_sheet() -> Sheet:
    """List the slips of publications with the proof of each."""
    rows = tuple(
        (one.publication, one.place, one.printed, one.computed, one.proof) for one in errata()
    )
    columns = headed("publication, place, printed, follows, proof")
    notes = ("each contradicts the inputs that are printed beside it",)
    return Sheet("Errata", columns, rows, notes)


_POINTS = 17
_BEYOND = 10
"""The curves go on to ten times the compute of the largest run."""


def band_curves(fit: Fit) -> Curves:
    """Return the best of each variable over compute, with one standard error on both sides.

    Raises:
        InputError: the law is not about compute.
    """
    if fit.law.compute is None:
        raise InputError(f"law {fit.law.name} has no compute: there is nothing to draw")
    runs = [float(flop) for flop in fit.law.compute.array(fit.runs.columns)]
    least, most = min(runs), _BEYOND * max(runs)
    across = [least * (most / least) ** (n / (_POINTS - 1)) for n in range(_POINTS)]
    bands = [fit.band(flop) for flop in across]
    curves = []
    for name in [key for key in bands[0] if key.startswith("ln ")]:
        plain = name.removeprefix("ln ")
        values = [band[name] for band in bands]
        middle = [exp(value) for value, _ in values]
        power = bands[-1][f"exponent of {plain}"]
        spread = "" if power[1] is None else f" \N{PLUS-MINUS SIGN} {power[1]:.2g}"
        label = f"best {plain}: {fit.law.variables[plain]}; exponent {power[0]:.3g}{spread}"
        known = all(error is not None for _, error in values)
        sides = tuple(
            [exp(value + sign * (error or 0.0)) for value, error in values] for sign in (-1, 1)
        )
        curves.append(Curve(label, across, middle, (sides[0], sides[1]) if known else ()))
    title = f"{fit.law.name}, fitted to {len(runs)} runs"
    return Curves(
        title, "compute C [FLOP]", f"least {fit.law.gives}: {' and '.join(fit.law.chosen)}", curves
    )
