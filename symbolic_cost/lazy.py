"""What is made when it is first asked for, and not again: entries of tables, recent results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

EntryT = TypeVar("EntryT")
ResultT = TypeVar("ResultT")


class Lazy(Mapping[str, EntryT]):
    """Entries by name, made once.

    >>> squares = Lazy({"two": lambda: print("made") or 4})
    >>> list(squares)
    ['two']
    >>> squares["two"], squares["two"]
    made
    (4, 4)
    """

    def __init__(self, makers: Mapping[str, Callable[[], EntryT]]) -> None:
        self._makers = makers
        self._entries: dict[str, EntryT] = {}

    def __getitem__(self, name: str) -> EntryT:
        if name not in self._entries:
            self._entries[name] = self._makers[name]()
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        """Tell whether there is an entry, without making it."""
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def lazily(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package that loads names at first use."""
    home = {name: module for module, names in homes.items() for name in names}

    def loaded(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{home[name]}"), name)

    return loaded, lambda: list(home), list(home)


class Recent(Generic[ResultT]):
    """The results of the last few questions, by key; the oldest goes first.

    Args:
        size: how many.
        passing: whether they are of no use once what they were derived for is done; see `forget`.

    >>> recent = Recent[int](1)
    >>> recent.of("a", lambda: 1), recent.of("a", lambda: 2), recent.of("b", lambda: 3)
    (1, 1, 3)
    >>> recent.of("a", lambda: 4)
    4
    """

    def __init__(self, size: int, *, passing: bool = False) -> None:
        self._size = size
        self._results: dict[Hashable, ResultT] = {}
        if passing:
            _PASSING.append(self._results)

    def of(self, key: Hashable, make: Callable[[], ResultT]) -> ResultT:
        """Return the result of a key."""
        try:
            return self._results[key]
        except KeyError:
            pass
        result = make()
        while len(self._results) >= self._size:
            del self._results[next(iter(self._results))]
        self._results[key] = result
        return result


_PASSING: list[dict[Hashable, Any]] = []


def forget() -> None:
    """Drop the results that are passing."""
    for results in _PASSING:
        results.clear()
