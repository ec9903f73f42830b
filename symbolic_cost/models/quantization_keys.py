"""The keys of a `quantization_config`, read one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symbolic_cost.errors import quote

_LARGEST = 10**9


class Keys:
    """The keys of an object, read one by one.

    Args:
        config: the object.
        where: its place.
        width: of an element of weights that are not in few bits [byte].
    """

    def __init__(self, config: Mapping[str, Any], where: str, width: int) -> None:
        self.config, self.where, self.width = config, where, width
        self.problems: list[str] = []
        self.left: list[str] = []
        self._seen = {"quant_method", "_load_in_4bit", "_load_in_8bit", "dequantize"}
        self.stays_off("dequantize")

    def _read(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - whatever a file holds
        """Return what a key holds; where that is nothing, something else."""
        self._seen.add(name)
        value = self.config.get(name)
        return default if value is None else value

    def _refuse(self, name: str, accepted: str) -> None:
        place = f"{self.where}.{name}: {quote(self.config.get(name))}"
        self.problems.append(f"{place}: {accepted} is accepted")

    def one_of(self, name: str, default: Any, accepted: Sequence[Any]) -> Any:  # noqa: ANN401 - of accepted
        """Return a value that is one of some."""
        value = self._read(name, default)
        if any(value == one and type(value) is type(one) for one in accepted):
            return value
        self._refuse(name, ", ".join(map(str, accepted)))
        return default

    def among(self, name: str, default: Any, accepted: Sequence[Any]) -> Any:  # noqa: ANN401 - of accepted
        """Return a value that is one of some; another is right, but not understood."""
        value = self._read(name, default)
        if value in accepted:
            return value
        self.leave(f"{name} {quote(value)}")
        return default

    def leave(self, text: str) -> None:
        """Note what is not understood, so that no bytes are counted."""
        self.left.append(text)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a truth value."""
        return bool(self.one_of(name, default, (False, True)))

    def stays_off(self, name: str) -> None:
        """Accept a truth value that is false."""
        self.one_of(name, default=False, accepted=(False,))

    def group(self, name: str, default: int) -> int:
        """Return a positive number of elements, or -1 for all."""
        self._seen.add(name)
        value = self.config.get(name, default)
        if type(value) is int and (value == -1 or 0 < value <= _LARGEST):
            return value
        self._refuse(name, "a size or -1")
        return default

    def sizes(self, name: str) -> tuple[int, int] | None:
        """Return two positive sizes, or none."""
        value = self._read(name)
        if value is None:
            return None
        fine = isinstance(value, list | tuple) and len(value) == 2  # noqa: PLR2004 - rows and columns
        if fine and all(type(n) is int and 0 < n <= _LARGEST for n in value):
            return value[0], value[1]
        self.problems.append(f"{self.where}.{name}: {quote(value)}: two sizes are accepted")
        return None

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return names, or none where nothing is said."""
        value = self._read(name)
        if value is None:
            return None
        if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
            return tuple(value)
        self._refuse(name, "a list of names")
        return None

    def inside(self, name: str) -> Keys | None:
        """Return the keys of an object inside, or none where nothing is said."""
        value = self._read(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self._refuse(name, "an object")
            return None
        own = Keys(value, f"{self.where}.{name}", self.width)
        own.problems, own.left = self.problems, self.left
        return own

    def every(self) -> Iterator[Keys]:
        """Yield the keys of every object inside."""
        for name in self.config:
            own = self.inside(name)
            if own is not None:
                yield own

    def costless(self, *names: str) -> None:
        """Declare keys that say nothing of bytes."""
        self._seen.update(names)

    def close(self) -> None:
        """Leave the keys that were not read; what is null, false or empty says nothing."""
        self.left += [key for key, value in self.config.items() if key not in self._seen and value]
