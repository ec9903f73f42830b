"""Table 2 and Eq 7 and 8 as printed formulas; the text and Table 5 as printed numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from symbolic_cost.numeric.binding import value
from symbolic_cost.published.korthikanti_2022.inputs import Training
from symbolic_cost.published.korthikanti_2022.rules import computed, throughput_increase
from symbolic_cost.published.printed import printed_data
from symbolic_cost.symbols import B, T_step, V, b, e, exact, h, l, m1, n_layers

TABLE_2 = {
    "none": l * b * e * (34 + 5 * h * l / e),
    "tensor": l * b * e * (10 + 24 / m1 + 5 * h * l / (e * m1)),
    "tensor + sequence": l * b * e / m1 * (34 + 5 * h * l / e),
    "tensor + selective recomputation": l * b * e * (10 + 24 / m1),
    "tensor + sequence + selective": 34 * l * b * e / m1,
    "full recomputation": 2 * l * b * e,
}
"""Table 2 as printed, to compare with [byte]; nothing is computed from it."""

EQUATIONS = {
    "model_flop": 72 * B * n_layers * l * e**2 * (1 + l / (6 * e) + V / (12 * e * n_layers)),
    "hardware_flop": 72 * B * n_layers * l * e**2 * (1 + l / (3 * e) + V / (12 * e * n_layers)),
}
"""Eq 7 and 8 as printed, to compare with [FLOP]; nothing is computed from them."""

_PRINTED = printed_data("korthikanti_2022")
INCREASE = "throughput_increase_percent"


class Cell(NamedTuple):
    """One printed number: place, name and text, and its rule as a function of printed times."""

    place: str
    name: str
    printed: str
    rule: Callable[..., Fraction | int]
    times: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Place in the publication."""
        return f"{self.place}.{self.name}"


def cells() -> Iterator[Cell]:
    """Yield every printed number."""
    for model, entries in _PRINTED["text"].items():
        for name, printed in entries.items():
            yield Cell(f"text.{model}", name, printed, _rule(name, model))
    for model, texts in _PRINTED["table5"]["rows"].items():
        row = dict(zip(_PRINTED["table5"]["columns"], texts, strict=True))
        place, times = f"table5.{model}", (row["iter_s_full_recompute"], row["iter_s_present"])
        yield Cell(place, INCREASE, row[INCREASE], throughput_increase, times)
        for name in ("mfu_percent", "hfu_percent"):
            yield Cell(place, name, row[name], _rule(name, model), times[1:])


def _rule(name: str, model: str) -> Callable[..., Fraction | int]:
    """Return a rule for a model of Table 3, as a function of the time of an iteration, if any."""
    given = _PRINTED["inputs"] | _PRINTED["table3"][model]
    numbers = Training.accepted(given).numbers()

    def rule(*times: Fraction) -> Fraction | int:
        return value(computed(name, numbers | ({T_step: exact(times[0])} if times else {})))

    return rule
