"""A proven optimum as a table for people, with what the proof covers below it."""

from __future__ import annotations

from collections.abc import Iterator

from symbolic_cost.emit.sheet import Sheet, headed
from symbolic_cost.explore.best import search as searched
from symbolic_cost.explore.objectives import MEMORY, OBJECTIVES
from symbolic_cost.explore.proven import Proof
from symbolic_cost.explore.search_table import nothing, options_text, title
from symbolic_cost.jobs.fit import fit
from symbolic_cost.jobs.header import beyond
from symbolic_cost.units import Unit, human


def proof_sheet(done: Proof) -> Sheet:
    """Tabulate the best combination; notes say what is certain of all others."""
    varied = "".join(f", {name}>" for name in ("b", "M", "v", *done.vary))
    found = "step> [s], MFU> [%], memory> [byte], throughput> [1/s]"
    columns = headed(f"strategy, options{varied}, {found}")
    one = done.candidate
    if one is None:
        return Sheet(title(done), columns, (), tuple(_notes(done)))
    at = one.outputs
    row = (
        one.strategy or "none",
        options_text(one),
        one.numbers.b,
        one.numbers.M,
        one.numbers.v,
        *done.at.values(),
        at["step"],
        100 * at["mfu"],
        at[MEMORY],
        OBJECTIVES["throughput"].read(at),
    )
    return Sheet(title(done), columns, (row,), tuple(_notes(done)))


def _notes(done: Proof) -> Iterator[str]:
    own = done.least
    looked = f"{own.combinations:,} combinations, {own.boxes:,} boxes, {own.points:,} priced"
    room, (run, *rest) = done.facts.capacity, done.facts.notes
    side = "below" if done.objective.is_small else "above"
    if done.candidate is None:
        word = "proven" if done.proven else "not proven, the search gave up"
        yield f"{word}: no candidate is legal and fits; {looked}"
        if not done.vary:
            yield from nothing(searched(done.subject, done.space, "memory", 1))
    elif done.proven:
        yield f"proven: no candidate is {side} {_limit(done)}; {looked}"
    else:
        yield f"not proven, the search gave up: none is {side} {_limit(done)}; {looked}"
        yield "fewer values, or choices, are proven sooner"
    for name, numbers in done.vary.items():
        low, high = (f"{float(one):.6g}" for one in (numbers[0], numbers[-1]))
        yield f"{name}: {len(numbers)} values from {low} to {high}"
    if own.doubtful:
        yield f"{own.doubtful} combinations are ruled out by rounding alone"
    yield f"{run}; {'no bound of memory' if room is None else f'{human(room, Unit.BYTE)} per rank'}"
    yield from rest
    for reasons, word in ((done.left_out, "ruled out"), (done.refused, "not derived")):
        for reason, count in sorted(reasons.items(), key=lambda item: -item[1])[:4]:
            yield f"{word}: {count} candidates, {reason}"
    if done.job is not None:
        yield from beyond(done.job) if done.vary else ()
        yield f"memory of the best: {fit(done.job)}"


def _limit(done: Proof) -> str:
    """Return the bound with the value, where digits tell them apart."""
    value = done.value
    if value is None:
        return f"{done.bound:.15g}"
    return f"{done.bound:.15g} (the best: {value:.15g})"
