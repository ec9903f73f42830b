"""Arguments checked against annotations, at the door of the library and at its public classes.

`checked` wraps a function, or the constructor and the public methods of a class: an argument that
its annotation does not accept is refused with the parameter's name, what was passed and what is
accepted. Types are looked at, values are not: whether -1 is a size, the function says itself.
The library's own calls pass: mypy has checked them, and a derivation makes tens of thousands.

>>> @checked
... def square(side: int) -> int:
...     return side * side
>>> square(3)
9
>>> square("3")
Traceback (most recent call last):
symbolic_cost.errors.InputError: square: side = '3': an integer is accepted
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass, replace
from enum import EnumType, StrEnum
from functools import cache, cached_property, wraps
from inspect import Parameter, isclass, isfunction, signature, unwrap
from itertools import starmap
from math import isfinite
from numbers import Integral
from types import FrameType, NoneType, SimpleNamespace, UnionType
from typing import (
    Any,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from symbolic_cost.errors import InputError, UnknownNameError, quote, refuse, unknown

CheckedT = TypeVar("CheckedT", bound=Callable[..., Any])

_HERE, _REPLACES = __file__.removesuffix("checking.py"), replace.__code__.co_filename
_NUMBERS: Mapping[object, tuple[type, ...]] = {int: (int,), float: (int, float)}
_WORDS: Mapping[object, str] = {
    str: "text",
    int: "an integer",
    float: "a finite number",
    bool: "True or False",
    NoneType: "None",
    Mapping: "a mapping",
    Iterable: "a list or tuple",
    tuple: "a tuple",
    frozenset: "a frozenset",
}
_GENERAL = frozenset({"Expr", "Symbol", "Number"})


def is_count(number: object) -> bool:
    """Tell whether something is a positive integer."""
    return isinstance(number, int) and not isinstance(number, bool) and number > 0


def checked(item: CheckedT) -> CheckedT:
    """Return a function that checks its arguments, or a class whose methods do.

    Raises:
        InputError: by what is returned, for every argument that its annotation does not accept.
    """
    if not isclass(item):
        return item if hasattr(item, _MARK) else _function(item)
    is_dataclass(item)  # which writes the methods of a record
    for name, member in list(vars(item).items()):
        if isfunction(member) and (name == "__init__" or not name.startswith("_")):
            setattr(item, name, _function(member))
    return cast("CheckedT", item)


def _function(function: Any) -> Any:  # noqa: ANN401 - as it is wrapped
    """Wrap a function; that arguments are missing or too many is a refusal as well."""
    rules = _Rules(function)

    @wraps(function)
    def checked_function(*args: object, **named: object) -> object:
        if _is_ours(sys._getframe(1)):  # noqa: SLF001 - the caller
            return function(*args, **named)
        rules.check(args, named)
        args, named = rules.checked_later(args, named)
        try:
            return function(*args, **named)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # from inside the function
            raise InputError(str(error)) from None

    setattr(checked_function, _MARK, True)
    return checked_function


_MARK = "_checks_arguments"


def _is_ours(caller: FrameType | None) -> bool:
    """Tell whether the library calls, be it through `dataclasses.replace`."""
    while caller is not None and caller.f_code.co_filename == _REPLACES:
        caller = caller.f_back
    return caller is not None and _inside(caller.f_code.co_filename)


@cache
def _inside(file: str) -> bool:
    """Tell whether a file is one of the library."""
    return file.startswith(_HERE)


class _Rules:
    """What a function accepts, read from its annotations when it is first called."""

    def __init__(self, function: Any) -> None:  # noqa: ANN401 - any function
        self._function = function

    @cached_property
    def _hints(self) -> tuple[list[str], dict[str, Any], str, str]:
        """Return names by position, hints by name, and the names of *args and **kwargs."""
        parameters = signature(self._function).parameters.values()
        named = [p.name for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
        rest = [p.name for p in parameters if p.kind is Parameter.VAR_POSITIONAL]
        options = [p.name for p in parameters if p.kind is Parameter.VAR_KEYWORD]
        annotations = {p.name: p.annotation for p in parameters if p.annotation is not p.empty}
        plain = unwrap(self._function)  # a cached function has no names of its own
        place = SimpleNamespace(__annotations__=annotations, __globals__=plain.__globals__)
        hints = get_type_hints(place)
        for name in options:
            if get_origin(hints.get(name)) is Unpack:
                hints |= get_type_hints(get_args(hints.pop(name))[0])
        return named, hints, "".join(rest), "".join(options)

    @cached_property
    def _known(self) -> dict[str, set[type]]:
        """Return types of arguments that were accepted before, by name."""
        return {name: set() for name in self._hints[1]}

    def check(self, args: tuple[object, ...], named: Mapping[str, object]) -> None:
        names, _, rest, options = self._hints
        problems = [self._problem(name, value) for name, value in zip(names, args, strict=False)]
        problems += [self._problem(rest, value) for value in args[len(names) :]]
        problems += [self._problem(name, value, options) for name, value in named.items()]
        refuse(text for text in problems if text)

    def checked_later(
        self, args: tuple[object, ...], named: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return arguments of which iterators, which are read once, check each item as it comes."""
        names, _, rest, options = self._hints
        places = [*names, *[rest] * len(args)]
        return (
            tuple(self._guarded(name, one) for name, one in zip(places, args, strict=False)),
            {name: self._guarded(name, one, options) for name, one in named.items()},
        )

    def _guarded(self, name: str, value: object, general: str = "") -> object:
        if not isinstance(value, Iterator | range | Mapping):
            return value
        hint = self._hints[1].get(name if name in self._known else general)
        title = self._function.__qualname__.removesuffix(".__init__")
        return _guarded(f"{title}: {name}", value, hint)

    def _problem(self, name: str, value: object, general: str = "") -> str:
        """Say why an argument is refused; nothing if it is not."""
        key = name if name in self._known else general
        known = self._known.get(key)
        if known is None or type(value) in known:
            return ""
        hint = self._hints[1][key]
        if not accepts(hint, value):
            title = self._function.__qualname__.removesuffix(".__init__")
            foreign = isinstance(value, Integral) and not isinstance(value, int)  # as of NumPy
            whole = int(value) if foreign else None  # type: ignore[call-overload]  # an Integral
            own = f": int({name}) is one" if foreign and accepts(hint, whole) else ""
            return f"{title}: {name} = {quote(value)}: {described(hint)} is accepted{own}"
        if _by_type(hint, value):
            known.add(type(value))
        return ""


MOST_ITEMS = 1_000_000
"""Items of an argument; more of them are taken for a mistake, as an iterator without end."""


def _guarded(name: str, value: object, hint: Any) -> object:  # noqa: ANN401 - any annotation
    """Return what has no end, or may have none, as an iterator that refuses it."""
    hints = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = {get_origin(one): get_args(one) for one in hints}
    if isinstance(value, Mapping):
        inner = kinds.get(Mapping, (Any, Any))[1]
        guarded = {key: _guarded(name, one, inner) for key, one in value.items()}
        return value if all(guarded[key] is one for key, one in value.items()) else guarded
    if not isinstance(value, Iterator | range) or Iterable not in kinds:
        return value
    if isinstance(value, range) and not value[MOST_ITEMS : MOST_ITEMS + 1]:
        return value
    return _items(name, iter(value), kinds[Iterable][0])


def _items(name: str, items: Iterator[object], hint: Any) -> Iterator[object]:  # noqa: ANN401
    """Yield items, each of which an annotation accepts, and not more than anybody means."""
    known = set[type]()
    for place, item in enumerate(items):
        if type(item) not in known:
            if not accepts(hint, item):
                raise InputError(f"{name} yields {quote(item)}: {described(hint)} is accepted")
            known |= {type(item)} if _by_type(hint, item) else set()
        if place > MOST_ITEMS:
            raise InputError(f"{name} has more than {MOST_ITEMS:,} items")
        yield item


def few(name: str, items: Iterable[object]) -> tuple[Any, ...]:
    """Return items as a tuple.

    Raises:
        InputError: more of them than anybody means.
    """
    return tuple(_items(name, iter(items), object))


class _Named(EnumType):
    """What looks a value up by its text: comparing may be what a foreign type refuses to do."""

    def __call__(cls, value: Any, *more: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        if isinstance(value, str) and not more:
            return super().__call__(value)
        raise UnknownNameError(unknown(cls.__name__.lower(), value, cls))


class Names(StrEnum, metaclass=_Named):
    """Names of which a value is one; another is refused with the closest."""

    @classmethod
    def _missing_(cls, value: object) -> None:
        """Refuse a value that is none of the names."""
        raise UnknownNameError(unknown(cls.__name__.lower(), value, cls))


def accepts(hint: Any, value: object) -> bool:  # noqa: ANN401 - any annotation
    """Tell whether an annotation accepts a value.

    A truth value is no integer, a number that is not finite is none, and text is no list.

    >>> accepts(int | None, True), accepts(tuple[str, ...], ("e", "f")), accepts(float, 2)
    (False, True, True)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(accepts(one, value) for one in inner)
    if origin is not None and isclass(origin):
        return _accepts_all(origin, inner, value)
    if hint in _NUMBERS:
        number = isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool)
        return number and (isinstance(value, int) or isfinite(cast("float", value)))
    if isclass(hint) and hint not in (Any, object) and not is_typeddict(hint):
        return isinstance(value, hint)
    return True


def _accepts_all(origin: Any, inner: tuple[Any, ...], value: object) -> bool:  # noqa: ANN401
    """Tell whether a container is of its type, and each of its items of theirs."""
    if origin is Callable:
        return callable(value)
    foreign = (str, bytes) if issubclass(origin, Mapping) else (str, bytes, Mapping)
    if not isinstance(value, origin) or isinstance(value, foreign):
        return False
    if isinstance(value, Mapping):
        return all(accepts(inner[0], k) and accepts(inner[1], v) for k, v in value.items())
    if isinstance(value, tuple) and inner[-1] is not Ellipsis and origin is tuple:
        return len(value) == len(inner) and all(starmap(accepts, zip(inner, value, strict=True)))
    try:
        once = iter(value) is value
    except TypeError:  # an array without axes
        return False
    # A generator is read once, by the function; of items whose type decides, one of each will do.
    items = () if once else value
    if isinstance(items, range):  # of integers, and maybe of very many
        items = items[:1]
    alike = {type(item): item for item in items if _by_type(inner[0], item)}
    others = (item for item in items if type(item) not in alike)
    return all(accepts(inner[0], item) for item in (*alike.values(), *others))


def _by_type(hint: Any, value: object) -> bool:  # noqa: ANN401 - any annotation
    """Tell whether what decides over a value is its type alone."""
    general = get_origin(hint) in (None, Union, UnionType)
    return general and (isinstance(value, str) or not isinstance(value, float | Iterable))


def described(hint: Any) -> str:  # noqa: ANN401 - any annotation
    """Say what an annotation accepts.

    >>> described(str | None), described(tuple[int, ...])
    ('text or None', 'a tuple of an integer')
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(described(one) for one in inner))
    key = hint if origin is None else origin
    if key is Callable:
        return "a function"
    if key in _WORDS:
        items = [described(one) for one in inner if one is not Ellipsis]
        words = _WORDS[key]
        if origin is Mapping:
            return f"{words} of {items[0]} to {items[1]}" if inner[1] is not Any else words
        return f"{words} of {items[0]}" if inner else words
    name = getattr(hint, "__name__", str(hint))
    return f"a SymPy {name}" if name in _GENERAL else name
