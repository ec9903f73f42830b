"""Workspace: what is there for a while, so that the most of it counts and not the sum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sympy import Expr, Integer

from symbolic_cost.algebra import mul
from symbolic_cost.extrema import Max
from symbolic_cost.ledger import Origin, Phase, Quantity, Row
from symbolic_cost.parallel.amounts import Amount, greatest, times, total
from symbolic_cost.parallel.units import Moment, Standing, Units, Whole
from symbolic_cost.symbols import Active
from symbolic_cost.units import Unit


def workspace_row(name: str, phase: Phase, size: Expr) -> Row:
    """Return the row of a workspace [byte]."""
    return Row(
        path=name,
        kind="workspace",
        origin=Origin.WORKSPACE,
        phase=phase,
        quantity=Quantity.WORKSPACE,
        unit=Unit.BYTE,
        expr=size,
    )


def in_backward(
    units: Units,
    here: Mapping[Quantity, Expr],
    microbatches: Expr,
    *,
    deferred: bool,
) -> Expr:
    """Return the most that a backward pass holds beyond what is kept for it [byte].

    While it is in the last block nothing is left of the head, and of that block nothing behind the
    op that it has come to. Where the first microbatch makes the gradients of weights, those before
    that op are not there yet, and the first block may be where most is.

    Args:
        units: of a stage.
        here: share on the device of what is kept, and of gradients of weights, by quantity.
        microbatches: of a step.
        deferred: whether products of weight gradients wait, so that what they need stays.
    """
    live = units.parts
    kept: dict[Expr, list[Amount]] = {}
    growing: dict[Expr, list[Amount]] = {}
    every = total(*(one.all(Quantity.WEIGHT_GRADIENT) for one in live))
    here_saved, here_made = here[Quantity.SAVED], here[Quantity.WEIGHT_GRADIENT]
    for place, one, moment in _moments(units):
        own = one.backward
        saved, made = _done(one, live[place + 1 :], moment.behind)
        freed = own.saved if deferred else total(own.saved, saved)
        left = total(moment.beside, times(-1, times(here_saved, freed)))
        still = {"gathered": own.beginning, "done": own.entering}.get(moment.at)
        most = own.most(one.together, at=moment.at) if still is None else [still]
        if moment.behind == 0 or own.by_unit:
            kept.setdefault(one.there, []).extend(total(some, left) for some in most)
        if own.software.gradients != "kept":
            grown = own.most(one.together, here_made, moment.at) if still is None else most
            missing = total(every, moment.lacking, times(-1, made))
            rest = total(left, times(-1, times(here_made, missing)))
            growing.setdefault(one.there, []).extend(total(some, rest) for some in grown)
    many = Active(microbatches) if growing else Integer(1)
    if many.is_number:  # SymPy asks at length whether what is multiplied by zero is finite
        return _most(kept if many == 1 else growing)
    return many * _most(kept) + (1 - many) * _most(growing)


def in_forward(units: Units, here: Mapping[Quantity, Expr], microbatches: Expr) -> Expr:
    """Return the most that a forward pass holds beyond all that is kept for backward [byte].

    That is nothing where weights are whole for their use alone: then backward always holds more.
    """
    if units.stays is Whole.USE:
        return Integer(0)
    live = units.parts
    made = any(one.backward.software.gradients != "kept" for one in live)
    kept = total(*(one.all(Quantity.WEIGHT_GRADIENT) for one in live)) if made else {}
    before = times(mul(Active(microbatches), here[Quantity.WEIGHT_GRADIENT]), kept)
    most = [total(units.held, before)]
    for place, one in enumerate(live):
        if one.backward.by_unit:
            saved, _ = _done(one, live[place + 1 :], 1)
            later = total(units.gone(place, 0), times(here[Quantity.SAVED], saved))
            most.append(total(most[0], units.messages(place), times(-1, later)))
    return greatest(most)


def _most(amounts: Mapping[Expr, Iterable[Amount]]) -> Expr:
    """Return the maximum of amounts, by whether the parts are there that have them."""
    listed = [mul(there, greatest(own)) for there, own in amounts.items()]
    return Max(*listed, evaluate=False) if len(listed) > 1 else next(iter(listed), Integer(0))


def _moments(units: Units) -> Iterator[tuple[int, Standing, Moment]]:
    """Yield places of parts, the parts, and where backward is among their instances.

    Where gradients are not reduced by unit, what a part has grows evenly from its last instance to
    its first, and no weights beside its own are gathered.
    """
    for place, one in enumerate(units.parts):
        if one.backward.by_unit:
            yield from ((place, one, moment) for moment in units.moments(place))
            continue
        waiting = _waiting(units.parts, place)
        for behind in (0, one.part.repeat - 1) if one.part.repeat != 1 else (0,):
            gone = times(-1, units.gone(place, behind))
            beside = total(units.held, units.gathered(place), gone, waiting)
            yield place, one, Moment(behind, beside, {})


def _done(one: Standing, later: Sequence[Standing], behind: Expr | int) -> tuple[Amount, Amount]:
    """Return what was freed, and what gradients of weights were made, by parts and instances.

    Blocks that take turns with a part are not behind it.
    """
    turns = one.part.stands if one.part.is_block else None
    done = [two for two in later if two.part.stands is not turns]
    saved, made = (
        total(*(two.all(quantity) for two in done))
        for quantity in (Quantity.SAVED, Quantity.WEIGHT_GRADIENT)
    )
    own = one.backward
    return total(saved, times(behind, own.saved)), total(made, times(behind, own.grown))


def _waiting(parts: Sequence[Standing], place: int) -> Amount:
    """Return the gradients of tied weights that wait for a part before, to be one with its own.

    Where they meet their sum is a third.
    """
    names = {name for one in parts[: place + 1] for name in one.backward.tied}
    own = parts[place].backward.tied
    found = (
        times(2 if name in own else 1, size)
        for one in parts[place + 1 :]
        for name, size in one.backward.tied.items()
        if name in names
    )
    return total(*found)
