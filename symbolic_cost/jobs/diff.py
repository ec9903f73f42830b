"""The difference of two of anything: conventions, strategies, machines, models; term by term."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sympy import Add

from symbolic_cost.analysis.verdict import Side, differences
from symbolic_cost.conventions.per_token import TOKEN_PRESETS, token_conventions
from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.costs import NamedCost
from symbolic_cost.emit.formulas import plain
from symbolic_cost.errors import InputError, Problems, quote, refuse, unknown
from symbolic_cost.grouping import grouped
from symbolic_cost.jobs.differences import Diff, Pair, Section
from symbolic_cost.jobs.job import Job, job
from symbolic_cost.jobs.tables.per_op import named_costs
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.ledger import Row
from symbolic_cost.models.lengths import with_length
from symbolic_cost.models.token_flop.per_token import TokenFlop, flops_per_token
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.graph import ALL
from symbolic_cost.symbols import exact, symbol
from symbolic_cost.symbols import l as length
from symbolic_cost.systems.step import STEP_PARTS
from symbolic_cost.units import Unit


def diff(
    model: str,
    other: str | None = None,
    *,
    conventions: Pair | None = None,
    strategy: Pair | None = None,
    system: Pair | None = None,
    train: str | Pair = ALL,
    of: str | None = None,
    on: str = "",
    seq: int | None = None,
    numbers: Mapping[str, int | Fraction] | None = None,
    **options: object,
) -> Diff:
    """Subtract one count from another, term by term.

    Args:
        model: name or path of a config.json.
        other: a second model; or one of the pairs that follow.
        conventions: of FLOP per token, or presets of counting.
        strategy: two strategies.
        system: two machines, of which a step is timed.
        train: two sets of trained weights; or that of both, where something else differs.
        of: named costs with commas between them.
        on: strategy of both, where something else differs.
        seq: tokens of a sequence.
        numbers: by symbol name.
        **options: of `jobs.job.job`.

    Raises:
        InputError: not exactly one thing in two versions, or every problem of the two.

    >>> found = diff("llama-3-70b", conventions=("torchtitan", "verl"))
    >>> [one.name for one in found.sections[0].differing]
    ['table', 'norms', 'attention']
    """
    models = None if other is None else (model, other)
    trains = (train, train) if isinstance(train, str) else train
    pairs = {"conventions": conventions, "strategy": strategy, "system": system}
    two = trains if trains[0] != trains[1] else None
    what, names = _given_twice({"two models": models, **pairs, "train": two})
    if on and strategy is not None:
        raise InputError(f"on = {quote(on)} is the strategy of both: strategy names two")
    known = with_length(numbers, seq)
    per_token = conventions is not None and _per_token(conventions, of)
    _refuse_unread({"train": trains[0], "on": on, "of": of, **options}, system, per_token=per_token)
    if conventions is not None and per_token:
        return _of_tokens(model, conventions, known)
    options["train"] = trains[0]
    if system is not None:
        return _of_systems(model, system, known, {"strategy": on, **options})
    problems = Problems()
    base = {"model": model, "strategy": on, "numbers": known, **options}
    option = "model" if what == "two models" else what
    jobs = [problems.attempt(_job, {**base, option: one}) for one in names]
    costs = problems.attempt(named_costs, of or _USUAL[what])
    problems.refuse()
    first, second = (name or "one rank" for name in names)
    return _of_jobs((first, second), (jobs[0], jobs[1]), costs)


_USELESS = (None, "", ALL, "none")


def _refuse_unread(options: Mapping[str, object], system: Pair | None, *, per_token: bool) -> None:
    """Refuse options that change nothing of what is compared."""
    said = [name for name, option in options.items() if option not in _USELESS]
    batches = ("global_batch", "microbatches")
    refuse(
        f"{name} is not read: {why}"
        for names, unread, why in (
            (said, per_token, "FLOP per token are of weights that all learn, and of no run"),
            (("of",), system is not None, "two machines differ in the time of a step"),
            (batches, system is None and not per_token, "it is of a time, of two machines"),
        )
        for name in names
        if unread and name in said
    )


def _given_twice(pairs: Mapping[str, Pair | None]) -> tuple[str, Pair]:
    """Return the one thing of which there are two versions, and these."""
    asked = [(name, pair) for name, pair in pairs.items() if pair is not None]
    if len(asked) != 1:
        listed = " and ".join(f"{name} ({' against '.join(map(quote, p))})" for name, p in asked)
        problem = f"{listed} differ" if asked else "nothing is given in two versions"
        raise InputError(f"{problem}: one of {', '.join(pairs)} is accepted, with two values")
    return asked[0]


_USUAL = {
    "conventions": "flops",
    "strategy": "flops,params,saved,comm,comm_step",
    "train": "flops,params,weight_gradients,saved,comm_step",
    "two models": "flops,params,saved",
}


def _job(options: dict[str, object]) -> Job:
    run = job(**options)  # type: ignore[arg-type]  # job checks them
    run.bound  # noqa: B018 - refuses numbers that do not fit
    return run


def _per_token(pair: Pair, of: str | None) -> bool:
    """Tell whether both are conventions of FLOP per token."""
    tokens = [name.endswith(".toml") or name in TOKEN_PRESETS for name in pair]
    if all(tokens) and of is None:
        return True
    problems = [
        unknown("conventions", name, {**TOKEN_PRESETS, **PRESETS})
        for name, own in zip(pair, tokens, strict=True)
        if not own and name not in PRESETS
    ]
    if not problems and not all(name in PRESETS for name in pair):
        problems = [f"{pair[0]} and {pair[1]} do not answer the same questions: name two alike"]
    refuse(problems)
    return False


def _of_tokens(model: str, pair: Pair, numbers: Mapping[str, int | Fraction]) -> Diff:
    problems = Problems()
    rules = [problems.attempt(token_conventions, name) for name in pair]
    problems.refuse()
    counts = [flops_per_token(model, None, rule, numbers) for rule in rules]
    sides = [_token_sides(count) for count in counts]
    values = {s.name: value(n) for s, n in counts[0].numbers.items()}
    section = Section(
        "flop per token",
        Unit.FLOP,
        *differences(*sides),
        (counts[0].formula, counts[1].formula),
        values,
    )
    notes = tuple(f"{rule.name}: {rule.meaning}; {rule.source}" for rule in rules)
    return Diff((rules[0].name, rules[1].name), (section,), notes)


def _token_sides(count: TokenFlop) -> dict[str, Side]:
    return {
        term.name: Side(term.flop, f"{term.answer}: {', '.join(term.paths[:2])}")
        for term in count.terms
    }


def _of_jobs(names: Pair, jobs: tuple[Job, Job], costs: list[NamedCost]) -> Diff:
    """Compare rows by op; numbers that the two do not share stand in the formulas."""
    values = [dict(one.values) for one in jobs]
    own = {name for name, size in values[0].items() if values[1].get(name, size) != size}
    either = {**values[0], **values[1]}
    shared = {name: size for name, size in either.items() if name not in own}
    sections = []
    for cost in costs:
        sides = [_sides(one, cost, own) for one in jobs]
        wholes = [Add(*(side.expr for side in side_terms.values())) for side_terms in sides]
        section = Section(
            cost.name, cost.unit, *differences(*sides), (wholes[0], wholes[1]), shared
        )
        sections.append(section)
    notes = [f"{cost.name}: {cost.meaning}" for cost in costs]
    if length.name in own:
        lengths = (
            f"{name} at {length} = {of[length.name]}"
            for name, of in zip(names, values, strict=True)
        )
        notes.append(f"{', '.join(lengths)}, each its own: seq gives both one")
    return Diff(names, tuple(sections), tuple(notes))


def _sides(run: Job, cost: NamedCost, own: set[str]) -> dict[str, Side]:
    """Return the terms of a cost by op, and by collective."""

    def name_of(row: Row) -> str:
        return row.path if row.collective is None else f"{row.path}: {row.collective.kind}"

    rows = grouped((name_of(row), row) for row in cost.rows(run.rows))
    numbers = {symbol(name): exact(run.values[name]) for name in own}
    return {
        name: Side(Add(*(row.total for row in same_name)).xreplace(numbers), _source(same_name))
        for name, same_name in rows.items()
    }


def _source(rows: list[Row]) -> str:
    """Say what rows are of: ops, tensors, collectives, and where their formulas are from."""
    phases = dict.fromkeys(row.phase.value.replace("_", " ") for row in rows)
    tensors = tuple(dict.fromkeys(row.tensor for row in rows if row.tensor))
    few = (*tensors[:_MOST], *("..." for _ in tensors[_MOST : _MOST + 1]))
    groups = dict.fromkeys(f"over {r.collective.group}" for r in rows if r.collective is not None)
    sources = dict.fromkeys(row.source for row in rows if row.source != "definition")
    parts = (rows[0].kind, *few, *groups, *phases, *sources)
    return ", ".join(parts)


_MOST = 3


def _of_systems(
    model: str, pair: Pair, numbers: Mapping[str, int | Fraction], options: dict[str, object]
) -> Diff:
    """Compare the parts of a step on two machines, and the figures that differ."""
    problems = Problems()
    base = {"model": model, "numbers": numbers, **options}
    alone = not {"global_batch", "microbatches"} & set(options) and "M" not in numbers
    if alone:  # as short a step as there is
        base["microbatches"] = 1
    jobs = [problems.attempt(_job, {**base, "system": name}) for name in pair]
    problems.refuse()
    timed = [Timed(replace(one, precise=True)) for one in jobs]
    sides = []
    for one in timed:
        known, formulas = one.numbers, one.step.chain.definitions
        parts = [name for name in STEP_PARTS if name in formulas]
        sides.append({n: Side(exact(known[n]), plain(formulas[n])) for n in parts})
    wholes = [exact(one.numbers["step"]) for one in timed]
    section = Section("step", Unit.SECOND, *differences(*sides), (wholes[0], wholes[1]), {})
    said = ("a step of one microbatch: --set M=8 or --global-batch 64 says otherwise",) * alone
    return Diff(pair, (section,), (*said, *_figures(jobs[0], jobs[1])))


def _figures(first: Job, second: Job) -> list[str]:
    """Say which figures of two machines differ, with the source of each."""
    machines = [one.machine for one in (first, second) if one.machine is not None]
    shared = [name for name in machines[0].matrix if name in machines[1].matrix]
    figures = {
        **{name: [getattr(each, name) for each in machines] for name in _FIGURES},
        **{f"matrix units, {name}": [each.matrix[name] for each in machines] for name in shared},
    }
    return [
        f"{name}: {float(one.value):.6g} ({one.source}) and {float(two.value):.6g} ({two.source})"
        for name, (one, two) in figures.items()
        if one.value != two.value
    ]


_FIGURES = ("bandwidth", "capacity", "usable", "latency")
