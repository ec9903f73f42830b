"""The printed numbers of a profile, and their comparison with computed ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from symbolic_cost.errors import InputError
from symbolic_cost.published.contract import Comparison
from symbolic_cost.published.module_profile.figures import Figure
from symbolic_cost.published.module_profile.numbers import printed
from symbolic_cost.published.printed import printed_data

_BARS = 3
_PASSES = {"fwd latency": "fwd", "bwd latency": "bwd", "step latency": "step"}
_NOTES = {"measured": "a measured latency, an input", "given": "a fact of the run, an input"}


@dataclass(frozen=True)
class Printed:
    """What was printed.

    Args:
        inputs: sizes and facts of the run.
        numbers: text by key; "section|place|class|field".
        checks: by key: "closed" follows from the shape, "derived" from latencies as well,
            "measured" and "given" are inputs.
    """

    inputs: Mapping[str, int]
    numbers: Mapping[str, str]
    checks: Mapping[str, str]

    def latencies(self) -> dict[str, str]:
        """Return the measured latencies by key."""
        return {key: text for key, text in self.numbers.items() if self.checks[key] == "measured"}

    def compared(self, found: Iterable[Figure]) -> list[Comparison]:
        """Compare every printed number: to the letter, or the spans of what was measured."""
        computed = {figure.key: figure for figure in found}
        return [
            _compared(key, text, self.checks[key], computed[key])
            for key, text in self.numbers.items()
        ]


def _compared(key: str, text: str, check: str, figure: Figure) -> Comparison:
    if check in _NOTES:
        return Comparison(key, text, figure.text, None, _NOTES[check])
    if figure.span is None:
        return Comparison(key, text, figure.text, figure.text == text)
    return Comparison(
        key,
        text,
        figure.text,
        figure.span.meets(printed(text)),
        "within the rounding of the printed latencies",
    )


def read_printed(name: str) -> Printed:
    """Read the printed numbers of a profile."""
    data = printed_data(f"{name}_profile")
    numbers = {key: text for key, text, _ in data["numbers"]}
    checks = {key: check for key, _, check in data["numbers"]}
    return Printed(data["inputs"], numbers, checks)


def grouped(latencies: Mapping[str, str | float]) -> dict[str, Any]:
    """Group latencies by "section|place|class|field" as a profile takes them.

    Raises:
        InputError: every key that is not of that form.
    """
    wrong = [
        f"latency {key!r}: write for example 'detailed|encoder|BertEncoder|latency'"
        for key in latencies
        if key.count("|") != _BARS
    ]
    if wrong:
        raise InputError(wrong)
    groups: dict[str, Any] = {"modules": {}, "classes": {}, "run": {}}
    for key, text in latencies.items():
        section, place, cls, field = key.split("|")
        if section == "summary":
            groups["run"][_PASSES.get(field, field)] = text
        elif section == "aggregated":
            groups["classes"].setdefault(place.removeprefix("depth "), {})[cls] = text
        else:
            groups["modules"][place] = text
    return groups
