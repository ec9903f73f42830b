"""A family of models along one rule of widths and depths: its parameters and exact FLOP per token.

`Family("gpt", {"e": "64*n_layers", "f": "4*e", "h": "n_layers"}, {"V": 50257, "l": 2048})` has
one free size, n_layers. Parameters and FLOP are those of the declared model, by its rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.errors import InputError, quote
from symbolic_cost.ledger import CostTable, Quantity
from symbolic_cost.models.catalog import CATALOG, model
from symbolic_cost.ops.derive import cost
from symbolic_cost.program.evaluator import Evaluator
from symbolic_cost.program.lowering import lowered
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import b, exact, in_glossary_order, l, symbol
from symbolic_cost.typed import Formula

RULES: Mapping[str, Mapping[str, str]] = {
    "gpt": {"e": "128*n_layers", "f": "4*e", "h": "n_layers"},
    "llama": {"e": "128*n_layers", "f": "8*e/3", "h": "n_layers", "k": "n_layers", "q": "128"},
}
"""Width by depth, where no rule is given: 128 features and one head of them per block."""

_SIZES: Mapping[str, Mapping[str, int]] = {
    "gpt": {"V": 50257, "l": 2048},
    "llama": {"V": 128256, "l": 8192},
}
_SMALLEST, _LARGEST = 1.0, 1e4
_WIDTHS, _TILE = ("e", "f", "f_m", "f_s"), 128
_ROUNDING, _NEWTON, _BESIDE = 1e-9, 40, 1.0001


@dataclass(frozen=True, eq=False)
class Family:
    """Models of one family, by one free size.

    Args:
        rule: sizes as formulas of the free one and of each other, in order.
        sizes: numbers of the others.
        counts: parameters that a law counts: "all" or "non-embedding".

    Raises:
        InputError: the rule leaves none or several sizes free.
    """

    name: str
    rule: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    counts: str = "all"

    def __post_init__(self) -> None:
        """Refuse what leaves no size, or several, free."""
        self.free  # noqa: B018 - refuses

    @cached_property
    def _table(self) -> CostTable:
        if self.name not in CATALOG:
            model(self.name)  # refuses, with the closest
        if CATALOG[self.name].bindings:
            raise InputError(
                f"model {quote(self.name)} has sizes: a family such as gpt is accepted"
            )
        return cost(model(self.name), MODEL_FLOP)

    @cached_property
    def _rules(self) -> dict[Expr, Expr]:
        """The size of every ruled symbol, in the free one."""
        known = {name: exact(size) for name, size in self._numbers.items()}
        for name, text in (self.rule or RULES.get(self.name, {})).items():
            formula = Formula(text)
            symbols = {one: known.get(one, symbol(one)) for one in formula.names}
            known[symbol(name).name] = formula.expr(symbols)
        return {symbol(name): size for name, size in known.items()}

    @property
    def _numbers(self) -> Mapping[str, int]:
        return {**_SIZES.get(self.name, {}), **self.sizes}

    def _total(self, table: CostTable, quantity: Quantity) -> Expr:
        return table.total(quantity).xreplace({b: Integer(1)}).xreplace(self._rules)

    @cached_property
    def parameters(self) -> Expr:
        """Parameters that the law counts, in the free size."""
        table = self._table
        if self.counts == "non-embedding":
            tables = {
                row.tensor
                for row in table.select(Quantity.PARAMETER).rows
                if row.kind == "embedding"
            }
            table = table.select(where=lambda row: row.tensor not in tables)
        return self._total(table, Quantity.PARAMETER)

    @cached_property
    def flop_per_token(self) -> Expr:
        """FLOP of training per token, in the free size."""
        return (self._total(self._table, Quantity.FLOP) / self._rules.get(l, l)).expand()

    @cached_property
    def free(self) -> Expr:
        """The symbol of the free size."""
        open_ = in_glossary_order(self.parameters.free_symbols | self.flop_per_token.free_symbols)
        if len(open_) != 1:
            names = ", ".join(one.name for one in open_) or "none"
            raise InputError(
                f"family {self.name}: free sizes are {names}: a rule that leaves one is accepted, "
                "such as e=128*n_layers"
            )
        return open_[0]

    @cached_property
    def _program(self) -> Evaluator:
        wanted = {"parameters": self.parameters, "flop": self.flop_per_token}
        return Evaluator(lowered(wanted))

    def at(self, size: float) -> tuple[float, float]:
        """Return parameters and FLOP of training per token at a size, which need not be whole."""
        totals = self._program({str(self.free): size})
        return float(totals["parameters"]), float(totals["flop"])

    @property
    def range(self) -> tuple[float, float]:
        """Parameters of the smallest and of the largest member."""
        return self.at(_SMALLEST)[0], self.at(_LARGEST)[0]

    def size_of(self, parameters: float) -> float:
        """Return the size at which a member has so many parameters; it need not be whole.

        Raises:
            InputError: no member is so small or so large.
        """
        low, high = _SMALLEST, _LARGEST
        least, most = self.range
        if not least * (1 - _ROUNDING) <= parameters <= most * (1 + _ROUNDING):
            raise InputError(
                f"family {self.name} has no member of {parameters:.3g} parameters ({self.counts})"
            )
        size = math.sqrt(low * high)
        for _ in range(_NEWTON):  # on logarithms, on which a polynomial is nearly a line
            here, beside = (math.log(self.at(one)[0]) for one in (size, size * _BESIDE))
            slope = (beside - here) / math.log(_BESIDE)
            step = (math.log(parameters) - here) / slope
            size = min(max(size * math.exp(step), low), high)
            if abs(step) < _ROUNDING:
                break
        return size

    def member(self, size: int) -> dict[str, int]:
        """Return the sizes of a member; widths that are not whole are rounded up to 128s.

        >>> Family("llama").member(32)["e"]
        4096

        Raises:
            InputError: another size is not whole.
        """
        sizes: dict[str, Any] = {str(self.free): size}
        for name, value in self._rules.items():
            number = value.xreplace({self.free: Integer(size)})
            if not number.is_Integer and str(name) not in _WIDTHS:
                raise InputError(
                    f"family {self.name}: {name} = {number} at {self.free} = {size} is not whole"
                )
            rounded = number if number.is_Integer else _TILE * math.ceil(number / _TILE)
            sizes[str(name)] = int(rounded)
        return sizes
