"""Inputs as the configuration writes them: in groups or alone, numbers as text with remarks.

A number may be text, "37e-6" or "4*2^30", and may have a remark behind it in parentheses, as may a
name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from symbolic_cost.errors import InputError, unknown
from symbolic_cost.published.inputs import Inputs
from symbolic_cost.published.lstm_roofline.inputs import PARTS, Run

_NUMBER = re.compile(r"([-+]?[0-9.]+(?:[eE][-+]?\d{1,2})?)(?:\*(\d+)\^(\d{1,2}))?")
_EPILOGUE = re.compile(r"(\d+) \+ (\d+)\*ceil\(k/X2\)")
_REMARK = re.compile(r"\s*\(.*\)\s*$")


def accepted(inputs: Mapping[str, Any]) -> Run:
    """Check inputs, given in the configuration's groups or without them.

    Raises:
        InputError: every problem of the inputs.
    """
    groups: dict[str, Any] = {}
    problems: list[str] = []
    for name, given in inputs.items():
        if name == "_note":
            continue
        group = _GROUP.get(name)
        if name in Run.model_fields:
            _merge(groups, name, _numbered(given), problems)
        elif group is None:
            problems.append(unknown("input", name, [*Run.model_fields, *_GROUP]))
        else:
            _merge(groups, group, {name: _plain(given)}, problems)
    if problems:
        raise InputError(problems)
    return Run.accepted(groups)


def _merge(groups: dict[str, Any], name: str, given: Any, problems: list[str]) -> None:  # noqa: ANN401 - unchecked input
    before = groups.get(name)
    if not isinstance(before, dict) or not isinstance(given, dict):
        groups[name] = given
        return
    twice = [key for key in given if key in before and before[key] != given[key]]
    problems += [f"input {key!r} is given twice, with different values" for key in twice]
    before.update(given)


def _numbered(given: Any) -> Any:  # noqa: ANN401 - unchecked input
    """Return a group with numbers for their text and names without remarks."""
    if not isinstance(given, Mapping):
        return given
    found: dict[str, Any] = {}
    for key, text in given.items():
        found |= _spelled(_REMARK.sub("", str(key)), _plain(text))
    return found


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


def _plain(given: Any) -> Any:  # noqa: ANN401 - unchecked input
    """Return the number or truth value that a text stands for, else what was given."""
    if not isinstance(given, str):
        return given
    text = _REMARK.sub("", given).strip()
    if text in {"True", "False"}:
        return text == "True"
    found = _NUMBER.fullmatch(text)
    if found is None or found[1].count(".") > 1:
        return given
    mantissa, base, power = found.groups()
    number = Decimal(mantissa) * (Decimal(base) ** int(power) if base else 1)
    return int(number) if number == number.to_integral_value() else float(number)


_GROUP = {
    name: group
    for group, field in reversed(Run.model_fields.items())
    if isinstance(field.annotation, type) and issubclass(field.annotation, Inputs)
    for name in field.annotation.model_fields
}
"""Group of an input that is given alone; one that two groups have belongs to the first."""
