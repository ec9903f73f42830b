"""The fields of a configuration: read by name or alias, checked, each with its provenance.

A builder asks for what its family needs; every problem is collected and told at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeGuard, TypeVar

from symbolic_cost.errors import refuse, unknown
from symbolic_cost.models.configfile import Document
from symbolic_cost.models.families import Family
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass, field, replace

_KEYS = package_data("models/keys.toml")

ALIASES: Mapping[str, tuple[str, ...]] = {
    name: tuple(others) for name, others in _KEYS["aliases"].items()
}
"""Other names of a field, as families write them."""

_COSTLESS = re.compile("|".join(name for names in _KEYS["costless"].values() for name in names))

_ASSUMED: Mapping[str, str] = _KEYS["assumed"]
"""Keys that are ignored, and what is assumed then."""

LARGEST_SIZE = 10**12
"""Largest size that is accepted: beyond every model, so more is a slip."""

ValueT = TypeVar("ValueT")
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from.

    Args:
        key: in the file; empty where the family decides.
        how: "file", "alias", "family default" or "derived".
    """

    value: Any
    key: str
    how: str


@dataclass
class Fields:
    """Reads the fields of one configuration.

    Args:
        family: its name.
        record: what the family accepts.
        head: the architecture's name.

    Attributes:
        origins: provenance by field, for everything that was read.
        problems: what is wrong so far.
        ignored: keys that count for nothing, are missing or null, with what is assumed.
    """

    source: Document
    family: str
    record: Family
    head: str = ""
    origins: dict[str, Origin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Take one value of a list that has it for every layer."""
        for name in self.record.alike:
            entries = self.source.values.get(name)
            if isinstance(entries, list | tuple):
                if not (entries and all(one == entries[0] for one in entries)):
                    self.note(name, "one value for all layers is declared")
                values = {**self.source.values, name: entries[0] if entries else None}
                self.source = replace(self.source, values=values)

    def size(self, name: str, default: int = _MISSING) -> int:
        """Return a positive integer; a default replaces a missing or null one."""
        return self._read(name, default, is_size, "a positive integer", 1)

    def optional_size(self, name: str, default: int | None = None) -> int | None:
        """Return a positive integer, or None where it is missing, null, zero or false."""
        value: int | None = self._read(name, default, _is_count, "a positive integer or null", None)
        return value or None

    def optional_width(self, name: str, default: int | None = None) -> int | None:
        """Return a positive integer, or None where it is missing or null; 0 is no width."""
        accepts, said = (lambda v: v is None or is_size(v)), "a positive integer or null"
        width: int | None = self._read(name, default, accepts, said, None)
        return width

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a truth value; null is false, as Python takes it."""
        if not self.has(name) and self._null(name):
            default = False
            self.ignore(*self.names(name))
        return self._read(name, default, lambda v: isinstance(v, bool), "true or false", default)

    def drops(self, name: str, *, default: bool) -> bool:
        """Return whether a dropout rate, from 0 to 1, is above zero."""
        rate = self._read(name, default, _is_rate, _RATE, default)
        return bool(rate > 0)

    def number(self, name: str, default: float = _MISSING) -> Fraction:
        """Return a positive number, exact; a default replaces a missing or null one."""
        value = self._read(name, default, _is_number, "a positive number", 1)
        return Fraction(value)

    def share(self, name: str, default: float) -> float:
        """Return a number from 0 to 1, also where "rope_parameters" holds it."""
        nested = self.source.values.get("rope_parameters")
        held = nested.get(name) if isinstance(nested, Mapping) else None
        value = self._read(name, default if held is None else held, _is_rate, _RATE, default)
        problem = f"{shortened(value)} is not accepted: it must be {_RATE}"
        self.require(holds=_is_rate(value), problem=problem, name="rope_parameters")
        return value if _is_rate(value) else default

    def text(self, name: str, default: str, accepted: Sequence[str] = ()) -> str:
        """Return text, one of `accepted` if that is given."""
        value = self._read(name, default, lambda v: isinstance(v, str), "text", default)
        if accepted and value not in accepted:
            key = self.origins[name].key
            self.problems.append(f"{self.source.where(key)}: {unknown('value', value, accepted)}")
            return default
        return value

    def items(self, name: str, default: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Return the items of a list."""
        return tuple(self._read(name, default, lambda v: isinstance(v, list | tuple), "a list", ()))

    def stands(self, name: str) -> bool:
        """Return whether a field has a value: of the configuration, or of the family without it."""
        return self.has(name) or self._null(name) or name in self.record.defaults

    def _null(self, name: str) -> bool:
        """Return whether a field is there, and null."""
        return any(key in self.source.values for key in self.names(name))

    def part(self, name: str) -> Fields | None:
        """Return the fields of an object inside the configuration, or None without it.

        Its problems are told with the others.
        """
        inner = self.source.values.get(name)
        self._seen.add(name)
        if not isinstance(inner, Mapping):
            self.require(holds=inner is None, problem="an object is accepted", name=name)
            return None
        return self.holding(inner)

    def holding(self, values: Mapping[str, Any]) -> Fields:
        """Return the fields of other values, whose problems are told with these."""
        source = replace(self.source, values=values)
        return Fields(source, self.family, self.record, self.head, problems=self.problems)

    def has(self, name: str) -> bool:
        """Return whether the configuration gives a field, under any of its names."""
        return any(self.source.values.get(key) is not None for key in self.names(name))

    def ignore(self, *names: str) -> None:
        """Declare keys that do not change the counts of this family."""
        self._seen.update(names)

    def absent(self, read: Callable[[Fields], object]) -> None:
        """Declare that what a part would read costs nothing, where no layer has that part."""
        other = Fields(self.source, self.family, self.record, self.head)
        read(other)
        self.ignore(*other._seen)

    def assume(self, name: str, what: str) -> None:
        """Note what is assumed of a field that the configuration does not give."""
        self.ignored[name] = what

    def derived(self, name: str, value: ValueT) -> ValueT:
        """Record a value that follows from others, and return it."""
        self.origins[name] = Origin(value, "", "derived")
        return value

    def need(self, name: str) -> None:
        """Note that a field is null, for which no default stands; it may be left out."""
        left = self.has(name) or not self._null(name)
        self.require(holds=left, problem=f"null, but {self.family} needs it", name=name)

    def note(self, name: str, problem: str, other: str = "") -> None:
        """Note a contradiction at the key of a field.

        Nothing is noted if the field, or the `other` that it contradicts, could not be read.
        """
        if not {name, other} & self._refused:
            origin = self.origins.get(name)
            key = origin.key if origin and origin.key else name
            self.problems.append(f"{self.source.where(key)}: {problem}")

    def require(self, *, holds: bool, problem: str, name: str, other: str = "") -> None:
        """Note a contradiction at the key of a field unless a condition holds."""
        if not holds:
            self.note(name, problem, other)

    def refuse(self) -> None:
        """Raise if anything is wrong, keys that were not understood included.

        A key is understood if it was read; if it is costless, for the family or for all; if it
        stands at the value that is declared (`fixed`), or at one that adds nothing to any model:
        null, false, zero or nothing. Those of `assumed` are ignored, which the answer says.
        For example Llama reads `attention_bias`, `rope_theta` is costless, `num_mtp: 0` adds
        nothing, `auto_map` is ignored, and `extra_mixer: 4` is refused.

        Raises:
            InputError: every problem, with file, line and key.
        """
        problems = [*self.problems, *self.not_understood().values()]
        refuse(dict.fromkeys(problems))

    def names(self, name: str) -> tuple[str, ...]:
        """Return every name of a field, the usual one first; the family's own names hold."""
        others = (other for other in ALIASES.get(name, ()) if other not in self.record.costless)
        return (name, *self.record.aliases.get(name, ()), *others)

    def _read(self, name: str, default: Any, accepts: Any, accepted: str, instead: Any) -> Any:  # noqa: ANN401
        keys = self.names(name)
        self._seen.update(keys)
        stated = [key for key in keys if self.source.values.get(key) is not None]
        if not stated:
            return self._default(name, default, instead)
        values = [self.source.values[key] for key in stated]
        if any(value != values[0] for value in values):
            shown = ", ".join(f"{k} = {v!r}" for k, v in zip(stated, values, strict=True))
            self.problems.append(f"{self.source.where(stated[-1])}: contradicts: {shown}")
        if not accepts(values[0]):
            text = f"{shortened(values[0])} is not accepted: it must be {accepted}"
            self.problems.append(f"{self.source.where(stated[0])}: {text}")
            self._refused.add(name)
            return instead
        how = "file" if stated[0] == name else "alias"
        self.origins[name] = Origin(values[0], stated[0], how)
        return values[0]

    def _default(self, name: str, default: Any, instead: Any) -> Any:  # noqa: ANN401
        if not self._null(name):
            default = self.record.defaults.get(name, default)
        elif isinstance(default, int | float | str) and default not in {False, ""}:
            self.assume(name, f"null, taken as {default}")
        if default is not _MISSING:
            self.origins[name] = Origin(default, "", "family default")
            return default
        self._refused.add(name)
        keys = self.names(name)
        null = [key for key in keys if key in self.source.values]
        others = f" (or {', '.join(keys[1:])})" if keys[1:] else ""
        if null:
            self.problems.append(f"{self.source.where(null[0])}: null, but {self.family} needs it")
        else:
            self.problems.append(
                f"{self.source.name}: key {name!r}{others} is missing: {self.family} needs it"
            )
        return instead

    def not_understood(self) -> dict[str, str]:
        """Return a problem for every key that was neither read nor may be ignored."""
        own = re.compile("|".join(self.record.costless) or "(?!)")
        problems: dict[str, str] = {}
        for key in self.record.fixed.keys() & self.record.defaults.keys():  # left out, it is that
            if self.source.values.get(key) is None:
                problems |= self._not_fixed(key, self.record.defaults[key])
        for key, value in self.source.values.items():
            if value is None:
                continue
            if key in self.record.fixed:
                problems |= self._not_fixed(key, value)
            elif key in self._seen:
                continue
            elif key in _ASSUMED and value:
                self.assume(key, _ASSUMED[key])
            elif value and not _COSTLESS.fullmatch(key) and not own.fullmatch(key):
                problems[key] = (
                    f"{self.source.where(key)}: not understood for {self.family} and may change "
                    "the cost: remove it, or set it to null"
                )
        return problems

    def _not_fixed(self, key: str, value: object) -> dict[str, str]:
        """Return a problem if a key does not stand at the one value that is declared."""
        fixed = self.record.fixed[key]
        accepted = fixed if isinstance(fixed, list) else [fixed]
        if value in accepted:
            return {}
        shown = " or ".join(json.dumps(one) for one in accepted)
        where = self.source.where(key)
        return {key: f"{where}: {shortened(value)}: only {shown} is declared for {self.family}"}


def shortened(value: object) -> str:
    """Show a refused value on at most 40 characters."""
    text = repr(value) if not isinstance(value, int) or abs(value) < LARGEST_SIZE**2 else "a number"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


_LONGEST_SHOWN = 40
_RATE = "a rate from 0 to 1"


def is_size(value: object) -> TypeGuard[int]:
    """Return whether a value is a positive integer that a size may be."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_SIZE


def _is_rate(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= LARGEST_SIZE


def _is_count(value: object) -> bool:
    return is_size(value) or value is False or (value == 0 and not isinstance(value, float | bool))
