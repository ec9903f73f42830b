"""Dataclasses whose methods are written when they are first used.

`dataclass` is that of the standard library to whoever reads, checks or extends a class: fields,
methods and refusals are the same. That one compiles six methods of every class when a module is
loaded, which takes half of the library's import; of its hundreds of records a command uses some.

>>> @dataclass(frozen=True)
... class Point:
...     x: int
...     y: int = 2
>>> Point(1), Point(1) == Point(1, 2), hash(Point(1)) == hash(Point(1, 3))
(Point(x=1, y=2), True, False)
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from functools import cache, cached_property, partial
from inspect import get_annotations
from operator import attrgetter
from threading import RLock
from types import CellType, CodeType, FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any

_Class = type[Any]
_FIELDS = "__dataclass_fields__"
_LOCK = RLock()


def _dataclass(
    cls: _Class | None = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    kw_only: bool = False,
    slots: bool = False,
) -> Any:  # noqa: ANN401 - a class, or what decorates one
    """Return a class as a dataclass; whether it has slots is for those who check types alone."""
    if cls is None:
        return partial(_dataclass, frozen=frozen, eq=eq, kw_only=kw_only, slots=slots)
    compared = ("__eq__", *(["__hash__"] if frozen else [])) if eq else ()
    for name in ("__init__", "__repr__", "__match_args__", *compared):
        if cls.__dict__.get(name) is None:
            setattr(cls, name, _Pending(cls, name, kw_only=kw_only))
    if eq and not frozen and "__hash__" not in cls.__dict__:
        cls.__hash__ = None  # type: ignore[assignment]  # Python's own way to say so
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refusals(cls)
    cls.__dataclass_params__ = _params(frozen=frozen, eq=eq, kw_only=kw_only)
    setattr(cls, _FIELDS, _Pending(cls, _FIELDS, kw_only=kw_only))
    if "__getstate__" not in cls.__dict__:
        cls.__getstate__ = _sent  # type: ignore[assignment]  # as a method
    return cls


def _sent(record: object) -> dict[str, object]:
    """Return what of a record goes to another process: what it holds, and nothing worked out."""
    cls = type(record)
    return {
        name: _ReadOnly(value) if isinstance(value, MappingProxyType) else value
        for name, value in vars(record).items()
        if not isinstance(getattr(cls, name, None), cached_property)
    }


class _ReadOnly:
    """A read-only mapping on its way, which Python sends as no other value."""

    def __init__(self, mapping: MappingProxyType[Any, Any]) -> None:
        self._mapping = mapping

    def __reduce__(self) -> tuple[Any, ...]:
        return read_only, (dict(self._mapping),)


def read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """Return a mapping that nobody changes."""
    return MappingProxyType(mapping)


def _replace(record: Any, /, **changes: object) -> Any:  # noqa: ANN401 - any record
    """Return a record with other values for some fields; what nothing checks is copied as it is."""
    cls: Any = type(record)
    names = _copied(cls)
    if not changes.keys() <= names.keys():
        return dataclasses.replace(record, **changes)
    made = object.__new__(cls)
    values, own = vars(record), vars(made)
    for name in names:
        own[name] = values[name]
    own.update(changes)
    return made


@cache
def _copied(cls: _Class) -> dict[str, None]:
    """Return the fields of a class whose instances are what was passed; none of another."""
    listed = fields(cls)
    plain = not hasattr(cls, "__post_init__") and all(one.init for one in listed)
    return dict.fromkeys(one.name for one in listed) if plain else {}


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - which others import from here
    from dataclasses import field as field  # noqa: PLC0414 - as above
    from dataclasses import replace as replace  # noqa: PLC0414 - as above
else:
    dataclass, field, replace = _dataclass, dataclasses.field, _replace


class _Pending:
    """What stands for a method or the fields of a class until any of them is asked for."""

    def __init__(self, cls: _Class, name: str, *, kw_only: bool) -> None:
        self._cls, self._name, self._kw_only = cls, name, kw_only

    def __get__(self, instance: object, owner: _Class) -> Any:  # noqa: ANN401 - a member of the class
        with _LOCK:
            if isinstance(self._cls.__dict__[_FIELDS], _Pending):
                _complete(self._cls, kw_only=self._kw_only)
        # That of this class: a subclass may ask for it by super().
        member = self._cls.__dict__[self._name]
        bind = getattr(type(member), "__get__", None)
        return bind(member, instance, owner) if bind else member


def _complete(cls: _Class, *, kw_only: bool) -> None:
    """Put fields and methods in place of what stands for them."""
    names = {"__module__", "__annotations__", *get_annotations(cls)}
    said = {n: one for n, one in cls.__dict__.items() if n in names}
    # Without a docstring the standard library would write one, from a signature that it works out.
    own = type(cls.__name__, (), {**said, "__doc__": cls.__name__})
    bare = dataclasses.dataclass(
        init=False, repr=False, eq=False, match_args=False, kw_only=kw_only
    )
    known: dict[str, Field[Any]] = {}
    for base in cls.__mro__[:0:-1]:
        known |= getattr(base, _FIELDS, {})
    known |= getattr(bare(own), _FIELDS)
    for name in names & {*known}:
        if isinstance(cls.__dict__.get(name), Field):
            if known[name].default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, known[name].default)
    setattr(cls, _FIELDS, known)
    for name, member in _members(cls):
        if isinstance(cls.__dict__.get(name), _Pending):
            setattr(cls, name, member)


def _members(cls: _Class) -> Iterator[tuple[str, object]]:
    listed = fields(cls)
    shown = [one.name for one in listed if one.repr]
    compared = _values([one.name for one in listed if one.compare])
    told = [one for one in listed if (one.compare if one.hash is None else one.hash)]
    hashed = _values([one.name for one in told])

    def text(self: object) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({inner})"

    def equal(self: object, other: object) -> bool:
        same = other.__class__ is self.__class__
        return compared(self) == compared(other) if same else NotImplemented

    yield "__repr__", text
    yield "__eq__", equal
    yield "__hash__", lambda self: hash(hashed(self))
    yield "__match_args__", tuple(one.name for one in listed if one.init and not one.kw_only)
    yield "__init__", _initializer(cls, listed)


def _values(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    """Return what reads some attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple([getattr(one, name) for name in names])


def _initializer(cls: _Class, listed: tuple[Field[Any], ...]) -> FunctionType:
    """Return the method that takes the fields."""
    kinds = tuple((o.default_factory is not MISSING, o.init, bool(o.kw_only)) for o in listed)
    frozen, checks = cls.__dataclass_params__.frozen, hasattr(cls, "__post_init__")
    alike = _initializing(kinds, frozen=frozen, checks=checks)
    names = {f"_{place}": one.name for place, one in enumerate(listed)}
    code = alike.replace(
        co_varnames=tuple(names.get(one, one) for one in alike.co_varnames),
        co_names=tuple(names.get(one, one) for one in alike.co_names),
        co_consts=tuple(names.get(one, one) for one in alike.co_consts),
    )
    held: dict[str, object] = {"_missing": _MADE, "_set": object.__setattr__}
    held |= {f"_made_{place}": one.default_factory for place, one in enumerate(listed)}
    cells = tuple(CellType(held[name]) for name in code.co_freevars)
    space = sys.modules[cls.__module__].__dict__
    taken = [one for one in listed if one.init and not one.kw_only]
    named = [one for one in listed if one.init and one.kw_only]
    defaults = tuple(one for field in taken for one in _default(field))
    made = FunctionType(code, space, "__init__", defaults, cells)
    made.__kwdefaults__ = {field.name: one for field in named for one in _default(field)}
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {one.name: one.type for one in listed if one.init} | {"return": None}
    return made


@cache
def _initializing(
    kinds: tuple[tuple[bool, bool, bool], ...], *, frozen: bool, checks: bool
) -> CodeType:
    """Write the method of classes with fields of these kinds, by place: each compiled text counts.

    Args:
        kinds: of every field, whether it has a factory, is passed, and is passed by name alone.
        frozen: whether fields are set past the refusals.
        checks: whether the class checks itself.
    """
    taken, made = ["self"], ["_missing", "_set"]
    named: list[str] = []
    lines: list[str] = []
    for place, (has_factory, passed, by_name) in enumerate(kinds):
        name = value = f"_{place}"
        if passed:
            (named if by_name else taken).append(name)
        if has_factory:
            made.append(f"_made{name}")
            given = f" if {name} is _missing else {name}" if passed else ""
            value = f"_made{name}(){given}"
        if passed or has_factory:
            lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    lines += ["self.__post_init__()"] if checks else []
    head = ", ".join([*taken, *["*"] * bool(named), *named])
    body = "\n  ".join(lines or ["pass"])
    text = f"def make({', '.join(made)}):\n def __init__({head}):\n  {body}"
    outer = compile(text, "<fields>", "exec").co_consts[0]
    return next(one for one in outer.co_consts if isinstance(one, CodeType))


def _default(one: Field[Any]) -> list[object]:
    """Return what a field is if nothing is said, as a list; empty if it must be said."""
    if one.default_factory is not MISSING:
        return [_MADE]
    return [] if one.default is MISSING else [one.default]


class _DefaultFactory:
    """What an argument is that is made where nothing is said."""

    def __repr__(self) -> str:
        """Return what signatures say."""
        return "<factory>"


_MADE = _DefaultFactory()


def _refusals(cls: _Class) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return what refuses to set and to delete the fields of a frozen class."""

    def set_no_field(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in getattr(cls, _FIELDS):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_no_field(self: object, name: str) -> None:
        if type(self) is cls or name in getattr(cls, _FIELDS):
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return set_no_field, delete_no_field


@cache
def _params(*, frozen: bool, eq: bool, kw_only: bool) -> object:
    """Return the standard library's record of what a class is."""
    empty = type("Empty", (), {})
    return dataclasses.dataclass(frozen=frozen, eq=eq, kw_only=kw_only)(empty).__dataclass_params__  # type: ignore[attr-defined]
