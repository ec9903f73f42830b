"""Records are dataclasses of the standard library in every way but when they are made."""

import dataclasses
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field
from functools import cached_property
from typing import ClassVar, get_type_hints

import pytest

from symbolic_cost.records import dataclass

BOTH = (dataclasses.dataclass, dataclass)


def declared(decorate):
    """The same three classes by either decorator."""

    @decorate(frozen=True)
    class Base:
        KIND: ClassVar[str] = "base"
        x: int
        names: tuple[str, ...] = ()
        known: dict[str, int] = field(default_factory=dict, compare=False)
        told: str = field(default="", repr=False, hash=False, kw_only=True)

        @cached_property
        def twice(self):
            return 2 * self.x

    @decorate(frozen=True)
    class Own(Base):  # noqa: PLW1641 - the decorator gives it one
        names: tuple[str, ...] = ("own",)
        y: float = 1.5

        def __post_init__(self):
            if self.y < 0:
                raise ValueError(self.y)

        def __eq__(self, other):
            return isinstance(other, Base) and self.x == other.x

    @decorate
    class Loose:
        listed: list[int] = field(default_factory=list)
        count: int = field(default=3, init=False)
        known: dict[str, int] = field(default_factory=dict, init=False)

    @decorate(frozen=True, kw_only=True)
    class Named:
        a: int
        b: int = 2

    return Base, Own, Loose, Named


@pytest.mark.parametrize("place", range(4))
def test_a_record_is_a_dataclass(place):
    theirs, ours = (declared(one)[place] for one in BOTH)
    assert str(inspect.signature(theirs)) == str(inspect.signature(ours))
    assert get_type_hints(theirs.__init__) == get_type_hints(ours.__init__)
    assert theirs.__match_args__ == ours.__match_args__
    assert [str(one) for one in dataclasses.fields(theirs)] == [
        str(one) for one in dataclasses.fields(ours)
    ]
    assert repr(theirs.__dataclass_params__) == repr(ours.__dataclass_params__)
    assert (theirs.__hash__ is None) == (ours.__hash__ is None)


def said(decorate):
    """What instances answer."""
    base, own, loose, named = declared(decorate)
    one = base(1, ("a",), told="b")
    yield [repr(one), one == base(1, ("a",), {"z": 1}, told="b"), one == 1, one.twice, one.known]
    yield [hash(one) == hash(base(1, ("a",))), one == base(1, ("a",)), hash(own(1)) == hash(own(2))]
    yield [repr(own(2, y=0.5)), own(1) == base(1), own(1) == own(1, y=2), own.KIND, own(1).names]
    yield [repr(dataclasses.replace(one, x=7)), dataclasses.asdict(one), repr(named(a=1))]
    first, second = loose(), loose()
    first.listed.append(1)
    yield [repr(first), second.listed, first == second, second == loose(), second.known]
    for wrong in (base, lambda: named(1), lambda: own(1, y=-1), lambda: hash(second)):
        with pytest.raises((TypeError, ValueError)) as error:
            wrong()
        yield str(error.value)
    for wrong in (lambda: setattr(one, "x", 1), lambda: delattr(one, "x")):
        with pytest.raises(FrozenInstanceError) as refused:
            wrong()
        yield str(refused.value)


def test_instances_answer_alike():
    theirs, ours = (list(said(one)) for one in BOTH)
    assert theirs == ours


@dataclass(frozen=True, slots=True)
class Sent:
    """What goes to another process."""

    x: int


def test_a_record_that_nobody_made_yet_is_read():
    data = pickle.dumps(Sent(3))
    fresh = declared(dataclass)[0]
    one = fresh.__new__(fresh)
    one.__dict__.update(x=1, names=(), known={}, told="")
    assert one == fresh(1)
    assert pickle.loads(data) == Sent(3)  # noqa: S301 - made above


def test_threads_may_make_the_first_at_once():
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            own = declared(dataclass)[1]
            assert len({repr(one) for one in pool.map(own, [5] * 16)}) == 1


def test_a_plain_dataclass_may_extend_a_record():
    base = declared(dataclass)[0]

    @dataclasses.dataclass(frozen=True)
    class More(base):
        z: int = 4

    assert repr(More(1, z=5)).endswith("More(x=1, names=(), known={}, z=5)")
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        dataclasses.dataclass(type("Loose", (base,), {}))


@pytest.mark.parametrize("decorate", BOTH)
def test_a_plain_subclass_extends_what_makes_a_record(decorate):
    @decorate(frozen=True)
    class Base:
        x: int

    class Doubled(Base):
        def __init__(self, x, times):
            super().__init__(x * times)

    assert Doubled(3, 2).x == 6
    assert Doubled(1, 2) == Doubled(2, 1)
