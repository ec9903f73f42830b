"""Tables whose entries are made when they are first looked up: loading a module makes none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

EntryT = TypeVar("EntryT")


class Lazy(Mapping[str, EntryT]):
    """Entries by name, made once.

    >>> squares = Lazy({"two": lambda: print("made") or 4})
    >>> list(squares)
    ['two']
    >>> squares["two"], squares["two"]
    made
    (4, 4)

    Args:
        makers: make an entry, by name.
    """

    def __init__(self, makers: Mapping[str, Callable[[], EntryT]]) -> None:
        self._makers = makers
        self._entries: dict[str, EntryT] = {}

    def __getitem__(self, name: str) -> EntryT:
        """Return an entry."""
        if name not in self._entries:
            self._entries[name] = self._makers[name]()
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        """Tell whether there is an entry, without making it."""
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._makers)

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._makers)
