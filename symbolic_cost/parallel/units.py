"""Units of FSDP: weights that are gathered in one message, and whose gradients are reduced in one.

Every block is a unit. What stands around the blocks is one part by part, or all of it together as
the root's; parts that share a weight are one unit in any case. A unit of several parts stays whole
from its first use to its last.

Backward gathers a unit while that behind it computes. When a unit has computed, its weights go,
and its gradients stand beside the copy that is sent until the unit before has computed, too. For
example in the middle of 8 blocks of W bytes, in one type: W of the block, W of the one before, its
own gradients W, and W of gradients that the block behind sends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from sympy import Expr, Integer

from symbolic_cost.algebra import mul
from symbolic_cost.ledger import Quantity
from symbolic_cost.ops.derive import PartCosts
from symbolic_cost.ops.part import Part
from symbolic_cost.parallel.amounts import Amount, amount, times, total
from symbolic_cost.parallel.liveness import Backward, is_shared
from symbolic_cost.parallel.software import tied_names
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active


@dataclass(frozen=True, slots=True)
class Standing:
    """A part where it stands on a stage.

    Args:
        costs: as often as it occurs there; those of `backward` may occur elsewhere.
        together: instances that run again at once.
        gathered: weights of an instance that are whole for its passes, by name.
    """

    costs: PartCosts
    backward: Backward
    together: Expr
    gathered: Mapping[str, Amount]

    @property
    def part(self) -> Part:
        """The part, as often as it occurs there."""
        return self.costs.part

    @property
    def there(self) -> Expr:
        """One, or zero where a stage may have none of such blocks, and has none."""
        repeat = self.part.repeat
        if not self.part.is_block or (isinstance(repeat, Expr) and repeat.is_positive):
            return Integer(1)
        return Active(1 + repeat)

    def all(self, quantity: Quantity) -> Amount:
        """Return what all instances together have, of one microbatch."""
        rows = (row for row in self.costs.once if row.quantity is quantity)
        return amount(*(mul(self.costs.times(row.count), row.expr) for row in rows))


class Whole(Enum):
    """How long a gathered weight stays whole: for its use, a microbatch or all of a step."""

    USE = "use"
    MICROBATCH = "microbatch"
    STEP = "step"


class Moment(NamedTuple):
    """Where backward is among the instances of a part, and what is there for the sake of units.

    Args:
        behind: instances that are done.
        beside: whole weights, and gradients that wait or are on their way.
        lacking: gradients of parts behind that are not reduced yet, as they stay.
        at: "gathered", and not copied yet; "computing", or of it the "weights" of the instance
            and the "loss" behind them; or "done": its gradients are copied to be sent.
    """

    behind: Expr | int
    beside: Amount
    lacking: Amount
    at: str = "computing"


@dataclass(frozen=True)
class Units:
    """The units of a stage.

    Args:
        standing: parts in order.
        ends: units of what is no block: "apart", part by part, or one, the "root".
        stays: how long weights are whole; what stays beyond its use is `held`, and what backward
            is done with is gone of it.
    """

    standing: Sequence[Standing]
    ends: str
    stays: Whole

    @cached_property
    def parts(self) -> Sequence[Standing]:
        """Those that have a backward pass."""
        return [one for one in self.standing if one.backward.runs]

    @cached_property
    def held(self) -> Amount:
        """All weights that stay whole."""
        every = {} if self.stays is Whole.USE else self.standing
        whole = {
            key: times(1 if key in one.gathered else one.costs.times(one.costs.each), size)
            for place, one in enumerate(every)
            for key, size in _by_weight(place, one.gathered)
        }
        return total(*whole.values())

    def gone(self, place: int, behind: Expr | int, *, done: bool = False) -> Amount:
        """Return the weights held that backward is done with.

        Args:
            place: of the part that it is in.
            behind: instances of it that are done.
            done: whether the instance that it is in is.
        """
        one = self.parts[place]
        if self.stays is not Whole.MICROBATCH:
            return {}
        turns = one.part.stands if one.part.is_block else None
        gone = [times(behind + int(done), self._own(place))] if one.part.is_block else []
        for unit in dict.fromkeys(self._units):
            first = self.parts[unit[0]].part
            if unit[0] > place and first.stands is not turns:
                gone.append(times(first.repeat, self._own(*unit)))
            elif unit[0] == place and done and not first.is_block:
                gone.append(self._own(*unit))
        return total(*gone)

    def messages(self, place: int) -> Amount:
        """Return the messages in which forward gathers a part's unit and the one before.

        They are there until the next unit is gathered.
        """
        unit = self._units[place]
        if unit[0] < place:
            return {}
        own, before = (total(*self._by_name(one).values()) for one in (unit, self._last(place)))
        return total(own, _either(Active(self.parts[place].part.repeat), own, before))

    def gathered(self, place: int) -> Amount:
        """Return the weights that are gathered for a part in backward."""
        return self._weights((place,))

    def _own(self, *unit: int) -> Amount:
        """Return the weights of a unit that no other has: blocks may all share one."""
        blocks = any(self.parts[place].part.is_block for place in unit)
        every = self._by_name(unit).items()
        return total(*(size for key, size in every if not (blocks and isinstance(key, str))))

    def moments(self, place: int) -> Iterator[Moment]:
        """Yield the moments of a part at which most may be there: of its first and last instances.

        One that there are too few instances for is that of the last.
        """
        repeat, unit = self.parts[place].part.repeat, self._units[place]
        own, before, sent = self._weights(unit), self._before(place), self._sent(unit)
        if self.parts[place].part.is_block and any(map(is_shared, self.parts[place].gathered)):
            own, sent = {}, self._made(unit, -1)  # gathered when used; one sum waits for the first
        several, many = Active(repeat), Active(repeat - 1)
        last = _either(several, own, before), self._behind(place)
        yield from self._of_instance(place, 0, *last)
        for behind, ahead, enough in (
            (1, own, many),
            (repeat - 2, own, many),
            (repeat - 1, before, several),
        ):
            if enough != 0:
                others = _either(enough, ahead, last[0]), _either(enough, sent, last[1])
                yield from self._of_instance(place, enough * behind, *others)

    def _of_instance(
        self, place: int, behind: Expr | int, ahead: Amount, sending: Amount
    ) -> Iterator[Moment]:
        """Yield an instance while it computes, and when its unit is done.

        A block's weights are copied out of their message before the next one is gathered. Where a
        part is no block, the unit before is gathered when backward comes to its weights, not while
        it is in the loss behind them; and PyTorch's engine holds its gradients until their shards
        are there.
        """
        part, unit = self.parts[place], self._units[place]
        others = total(self.held, *(self._standing(two, place) for two in self._open(place)))
        around, left = (
            total(others, times(-1, self.gone(place, behind, done=done))) for done in (False, True)
        )
        weights, made = self._weights(unit), self._made(unit, place)
        computing = Moment(
            behind, total(around, weights, made, ahead, sending), self._lacking(place)
        )
        if part.part.is_block and weights:
            message = total(around, times(2, weights), made, sending)
            yield computing._replace(at="gathered", beside=message)
        if part.part.is_block or self.ends == "root" or len(unit) > 1:
            yield computing
        else:
            whole = weights if place == len(self.parts) - 1 else {}
            yield computing._replace(at="weights")
            yield computing._replace(at="loss", beside=total(around, whole, sending))
        if place == unit[0]:
            sent = total(left, ahead, self._sent(unit))
            yield computing._replace(at="done", beside=total(sent, self._made(unit, -1)))
            if not part.part.is_block:
                shards = (self.parts[two].backward.gradient for two in unit)
                held = part.backward.gradients.values()
                yield computing._replace(at="done", beside=total(sent, *held, *shards))

    def _lacking(self, place: int) -> Amount:
        """Return the gradients that parts behind have made and nobody has reduced, as they stay."""
        later = range(place + 1, len(self.parts))
        waiting = (two for two in later if self._units[two][0] <= place)
        return total(*(self.parts[two].backward.gradient for two in waiting))

    @cached_property
    def _units(self) -> Sequence[tuple[int, ...]]:
        """The places of the parts of each part's unit."""
        ends = [place for place, one in enumerate(self.parts) if not one.part.is_block]
        shared = {place: tied_names(self.parts[place].part) for place in ends}

        def together(one: int, two: int) -> bool:
            return one == two or self.ends == "root" or bool(shared[one] & shared[two])

        return [
            tuple(two for two in ends if together(place, two)) if place in shared else (place,)
            for place in range(len(self.parts))
        ]

    def _open(self, place: int) -> Iterator[tuple[int, ...]]:
        """Yield other units of several parts that backward has not left yet."""
        for unit in dict.fromkeys(self._units):
            if len(unit) > 1 and unit[0] < place and place not in unit:
                yield unit

    def _standing(self, unit: tuple[int, ...], place: int) -> Amount:
        return total(self._weights(unit), self._made(unit, place))

    def _weights(self, unit: tuple[int, ...]) -> Amount:
        """Return the weights that are gathered for a unit in backward."""
        return total(*self._by_name(unit).values()) if self.stays is Whole.USE else {}

    def _by_name(self, unit: tuple[int, ...]) -> Mapping[object, Amount]:
        return dict(item for p in unit for item in _by_weight(p, self.parts[p].gathered))

    def _made(self, unit: tuple[int, ...], place: int) -> Amount:
        """Return the gradients of a unit's weights that parts behind a place have made.

        Where a second one of a weight comes to the first, their sum is a third.
        """
        made = [(p, self.parts[p].backward.gradients) for p in unit if p >= place]
        waiting = dict(item for p, own in made if p > place for item in _by_weight(p, own))
        own = {name for p, own in made if p == place for name, _ in _by_weight(p, own)}
        return total(*(times(2 if name in own else 1, size) for name, size in waiting.items()))

    def _sent(self, unit: tuple[int, ...]) -> Amount:
        """Return the gradients of a unit in the type in which ranks reduce them."""
        return times(self.parts[unit[0]].backward.wider, self._made(unit, -1))

    def _before(self, place: int) -> Amount:
        """Return the weights of the unit that backward comes to next, if it is gathered for it."""
        unit = self._last(place)
        return self._weights(unit) if len(unit) == 1 and unit[0] < place else {}

    def _last(self, place: int) -> tuple[int, ...]:
        """Return the unit before a part that is gathered, or its own."""
        closed = (two for two in reversed(range(place)) if self.parts[two].gathered)
        return self._units[next(closed, place)]

    def _behind(self, place: int) -> Amount:
        """Return the gradients of the unit that was done last."""
        done = (two for two in range(place + 1, len(self.parts)) if self._units[two][0] == two)
        return next((self._sent(self._units[two]) for two in done), {})


def _by_weight(place: int, sizes: Mapping[str, Amount]) -> Iterator[tuple[object, Amount]]:
    """Yield sizes by what tells a weight of the stage from others."""
    return ((name if is_shared(name) else (place, name), size) for name, size in sizes.items())


def _either(condition: Expr, one: Amount, other: Amount) -> Amount:
    """Return one amount where a condition is 1, another one where it is 0."""
    return total(times(condition, one), times(1 - condition, other))
