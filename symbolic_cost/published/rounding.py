"""Comparison of a printed number with one computed from other printed, hence rounded, numbers."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from sympy import Expr, Integer

from symbolic_cost.errors import InputError
from symbolic_cost.numeric.binding import value
from symbolic_cost.published.contract import Comparison, last_digit, rounded_like
from symbolic_cost.symbols import exact


def interval(printed: str) -> tuple[Fraction, Fraction]:
    """Return the ends of what rounds to a printed number.

    >>> [str(end) for end in interval("1.10")]
    ['219/200', '221/200']
    """
    unit = Fraction(last_digit(printed))
    return Fraction(printed) - unit / 2, Fraction(printed) + unit / 2


def number(expr: Expr) -> float | int:
    """Return a computed number as an integer if it is one, else as the nearest float.

    Raises:
        InputError: it is too large for a float.
    """
    exact = value(expr)
    return exact if isinstance(exact, int) else nearest(exact)


def nearest(exact: Fraction) -> float:
    """Return the nearest float.

    Raises:
        InputError: the number is too large for one.
    """
    try:
        return float(exact)
    except OverflowError:
        raise InputError(
            "the inputs give a number above 10**308, too large for a float: check rates and times"
        ) from None


def compared_within(
    key: str, published: str, rule: Callable[..., Fraction | int], rounded: Sequence[str]
) -> Comparison:
    """Compare a number with its rule, for all that the printed inputs of the rule may stand for.

    They match if the numbers that round to what is published and the numbers that the rule gives
    for inputs inside their rounding have one in common. The rule is monotone in every input.
    """
    low, high = interval(published)
    reached = [rule(*ends) for ends in product(*map(interval, rounded))]
    computed = rounded_like(published, rule(*map(Fraction, rounded)))
    match = min(reached) <= high and low <= max(reached)
    inside = f"equal inside the rounding of {' and '.join(rounded)}"
    return Comparison(
        key, published, computed, match, inside if match and computed != published else ""
    )


class Cell(NamedTuple):
    """One printed number and its rule.

    Args:
        expr: the rule, with numbers for symbols but for the one of a printed input.
        given: the printed input that it rests on, if any.
        symbol: of that input, over its unit.
    """

    key: str
    name: str
    printed: str
    expr: Expr
    given: tuple[str, ...] = ()
    symbol: Expr = Integer(1)

    def compared(self) -> Comparison:
        """Compare the number with its rule inside the rounding of the printed input."""
        unit, name = self.symbol.as_coeff_Mul()

        def rule(*values: Fraction) -> Fraction | int:
            return value(self.expr.xreplace({name: exact(values[0]) / unit} if values else {}))

        return compared_within(self.key, self.printed, rule, self.given)
