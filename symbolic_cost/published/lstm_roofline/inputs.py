"""Inputs under the names of the run's configuration, in its groups or alone.

A number may be text, "37e-6" or "4*2^30", and may have a remark behind it in parentheses, as may a
name.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from enum import Flag, auto
from functools import reduce
from operator import or_
from typing import Any, Literal, NamedTuple

from pydantic import Field, create_model
from sympy import Expr, Symbol, floor

from symbolic_cost import symbols
from symbolic_cost.errors import refuse, unknown
from symbolic_cost.published.contract import printed_data
from symbolic_cost.published.inputs import Count, Index, Inputs, Latency, Rate
from symbolic_cost.symbols import exact, named

NONE, CR, RC = -1, 1, 2
"""Kernel parallelism of a part: none, column-row, row-column."""

PARTS = ("hidden", "softmax", "embedding", "projection")
SLIPS: Mapping[str, str] = printed_data("lstm_inputs.toml")["slips"]
"""What the log does instead of what its model means, by the slip's name."""


class Counted(Flag):
    """What a model counts."""

    NONE = 0
    LINKS = auto()
    """Degrees get links of their own."""
    PROJECTION = auto()
    """The projection counts in the total time."""
    ALGORITHMIC = auto()
    """Products move their matrices once and have no epilogue."""


class Structure(NamedTuple):
    """What decides which definitions a model has; everything else is a number in them.

    Args:
        kinds: of the kernel parallelism by part.
        counts: what it counts.
        slips: those that are kept.
    """

    kinds: tuple[tuple[str, int], ...]
    counts: Counted
    slips: frozenset[str]

    def kind(self, part: str) -> int:
        """Return the kind of a part's kernel parallelism."""
        return dict(self.kinds)[part]


class Configured(Inputs):
    """One run; `Run` has the groups of data/lstm_inputs.toml as well.

    "as printed" keeps the slips, "corrected" repairs them; `slips` are kept instead of all or none.
    """

    mode: Literal["as printed", "corrected"] = "as printed"
    slips: list[str] | None = None

    def of(self, group: str, name: str) -> Any:  # noqa: ANN401 - of the kind that the data say
        """Return an input of a group."""
        return getattr(getattr(self, group), name)

    def contradictions(self) -> list[str]:
        """Say what has no links, which slips there are not, and that a day is too short."""
        problems = [unknown("slip", name, SLIPS) for name in self.slips or () if name not in SLIPS]
        kinds = [f"kp_{part}_type" for part in PARTS if part != "embedding"]
        alone = {"dp": 1, "lp": 1} | dict.fromkeys(kinds, NONE)
        degrees = {name: self.of("schedule", name) for name in alone}
        apart = [f"{name} = {degree}" for name, degree in degrees.items() if degree != alone[name]]
        if apart and not self._linked:
            problems.append(
                f"{', '.join(apart)}: devices exchange data, but have no links: topology "
                "'mesh' gives links to dp, lp and kernel-parallel dimensions above 1"
            )
        names = ("data_scale", "tokens_per_unit_data_scale", "batch_size", "seq_len")
        data, tokens, batch, length = (exact(self.of("time_limit", name)) for name in names)
        if floor(data * tokens / (batch * length)) < 1:
            problems.append("time_limit: the data are less than one batch")
        return problems

    @property
    def _linked(self) -> bool:
        dims = [f"kp_{part}_dim{place}" for part in PARTS for place in (1, 2)]
        largest = max(self.of("schedule", name) for name in ("dp", "lp", *dims))
        mesh = self.of("schedule", "topology") == "mesh"
        return bool(mesh and largest > 1 and self.of("power", "IB") > 0)

    @property
    def structure(self) -> Structure:
        """What decides which definitions the model has."""
        slips = SLIPS if self.mode == "as printed" else ()
        chosen = {
            Counted.LINKS: self.of("schedule", "topology") == "mesh",
            Counted.PROJECTION: self.of("code_constants", "include_projection_in_time"),
            Counted.ALGORITHMIC: self.of("code_constants", "algorithmic_bytes_only"),
        }
        return Structure(
            kinds=tuple((part, self.of("schedule", f"kp_{part}_type")) for part in PARTS),
            counts=reduce(or_, (counted for counted, on in chosen.items() if on), Counted.NONE),
            slips=frozenset(slips if self.slips is None else self.slips),
        )

    def numbers(self, *, glossary: bool | None = None) -> dict[str, Expr]:
        """Return the number of every input by the name of its symbol.

        Args:
            glossary: those whose symbols the glossary has, or those that it lacks; all if None.
        """
        sizes = {
            term(group, name).name: exact(number)
            for group, numbers in self
            if isinstance(numbers, Inputs)
            for name, number in numbers
            if not isinstance(number, str | bool)
        }
        return {
            name: number
            for name, number in sizes.items()
            if glossary is None or glossary == (name in symbols.GLOSSARY)
        }


_KINDS: Mapping[str, Any] = {
    "count": Count,
    "index": Index,
    "latency": Latency,
    "rate": Rate,
    "flag": bool,
    "kind": Literal[-1, 1, 2],
    "topology": Literal["ring", "mesh"],
}
_FIELDS = printed_data("lstm_inputs.toml")["groups"]


def _group(name: str) -> Any:  # noqa: ANN401 - a field as pydantic takes it
    fields: Any = {field: (_KINDS[kind], value) for field, (kind, value) in _FIELDS[name].items()}
    model = create_model(name.title().replace("_", ""), __base__=Inputs, **fields)
    return model, Field(default_factory=model)


Run: type[Configured] = create_model(
    "Run", __base__=Configured, **{name: _group(name) for name in _FIELDS}
)
"""One run, with the groups of the configuration; what is not given is as in the log."""

_SYMBOLS = {
    "batch_size": symbols.B,
    "vocab_size": symbols.V,
    "num_layers": symbols.n_layers,
    "layer_size": symbols.e,
    "seq_len": symbols.l,
    "kernel_launch_overhead_s": symbols.t_k,
    "precision_bytes": symbols.s,
    "line_latency_s": symbols.alpha,
    "mem_latency_s": symbols.alpha_m,
    "dp": symbols.dp,
}


def term(group: str, name: str) -> Symbol:
    """Return the symbol of an input: of the glossary, or a name."""
    if name in _SYMBOLS and group != "time_limit":
        return _SYMBOLS[name]
    return named(f"{group}.{name}")


_NUMBER = re.compile(r"([-+]?[0-9.]+(?:[eE][-+]?\d{1,2})?)(?:\*(\d+)\^(\d{1,2}))?")
_EPILOGUE = re.compile(r"(\d+) \+ (\d+)\*ceil\(k/X2\)")
_REMARK = re.compile(r"\s*\(.*\)\s*$")
_GROUP = {name: group for group in reversed(_FIELDS) for name in _FIELDS[group]}
"""Group of an input that is given alone; one that two groups have belongs to the first."""


def accepted(inputs: Mapping[str, Any]) -> Configured:
    """Check inputs, given in the configuration's groups or without them.

    Raises:
        InputError: every problem of the inputs.
    """
    groups: dict[str, Any] = {}
    problems: list[str] = []
    for name, entry in inputs.items():
        if name in Run.model_fields:
            group, value = name, _numbered(entry)
        elif name in _GROUP:
            group, value = _GROUP[name], {name: _plain(entry)}
        else:
            if name != "_note":
                problems.append(unknown("input", name, [*Run.model_fields, *_GROUP]))
            continue
        before = groups.setdefault(group, value)
        if before is value or not isinstance(before, dict) or not isinstance(value, dict):
            groups[group] = value
            continue
        twice = [key for key in value if key in before and before[key] != value[key]]
        problems += [f"input {key!r} is given twice, with different values" for key in twice]
        before.update(value)
    refuse(problems)
    return Run.accepted(groups)


def _numbered(entry: Any) -> Any:  # noqa: ANN401 - unchecked input
    """Return a group with numbers for their text and names without remarks."""
    if not isinstance(entry, Mapping):
        return entry
    numbers: dict[str, Any] = {}
    for key, text in entry.items():
        numbers |= _spelled(_REMARK.sub("", str(key)), _plain(text))
    return numbers


def _spelled(name: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 - unchecked input
    """Return the fields that one entry of the configuration stands for."""
    if name in {"all kp_*_dim", "all kp_*_type"}:
        ends = ("type",) if name.endswith("type") else ("dim1", "dim2")
        return {f"kp_{part}_{end}": value for part in PARTS for end in ends}
    epilogue = _EPILOGUE.fullmatch(str(value)) if name == "gemm_epilogue_flop_per_output" else None
    if epilogue:
        once, per_tile = epilogue.groups()
        return {"epilogue_flop": int(once), "epilogue_flop_per_tile": int(per_tile)}
    return {name: value}


def _plain(entry: Any) -> Any:  # noqa: ANN401 - unchecked input
    """Return the number or truth value that a text stands for, else what was given."""
    if not isinstance(entry, str):
        return entry
    text = _REMARK.sub("", entry).strip()
    if text in {"True", "False"}:
        return text == "True"
    match = _NUMBER.fullmatch(text)
    if match is None or match[1].count(".") > 1:
        return entry
    mantissa, base, power = match.groups()
    number = Decimal(mantissa) * (Decimal(base) ** int(power) if base else 1)
    return int(number) if number == number.to_integral_value() else float(number)
