"""What every published module offers, what was printed, and the comparison of the two.

A number may be compared with one that follows from other printed, hence rounded, numbers.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import Any, NamedTuple, Protocol, cast

from sympy import Expr, Integer

from symbolic_cost.errors import InputError, UnknownNameError, quote, unknown
from symbolic_cost.numeric.binding import value
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact

MODULES = {
    name: name.replace("-", "_")
    for name in (
        *("transformer-tables", "korthikanti-2022", "narayanan-2021", "megatron-report"),
        *("ulysses-prefill", "ulysses-prefill-later", "ulysses-prefill-earlier", "module-profile"),
        *("gpipe-2019", "zero-2019", "ring-2023", "ulysses-2023", "zero-bubble-2024"),
        *("llama3-2024", "lstm-roofline", "vtrain-2024", "nersc-2024"),
        *("how-to-scale-your-model", "closed-forms", "more-laws", "kaplan-2020", "chinchilla-2022"),
        *("besiroglu-2024", "muennighoff-2023", "sardana-2024", "krajewski-2024"),
        *("ludziejewski-2025", "deepseek-2024", "llm-viewer-2024", "pope-2022", "usp-2024"),
        *("ultra-scale-playbook", "transformer-math", "megatron-memory", "patterson-2021"),
        *("llama-carbon", "deepseek-serving"),
    )
} | {f"ulysses-prefill-{log}": f"ulysses_prefill:{log}" for log in ("later", "earlier")}
"""Module by the name of the publication; "module:name" is one of several in it."""


_FLOAT_DIGITS = 17
"""Digits that tell all float64 numbers apart."""

_DIGITS = 60


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number: as printed and as computed; both as text.

    Args:
        key: its place in the publication.
        published: as printed; None where nothing was printed for these inputs.
        computed: to the printed precision, or in full.
        match: whether they agree; None where nothing was printed, or nothing can be computed.
        note: why they are not compared, or how; empty where there is nothing to say.
    """

    key: str
    published: str | None
    computed: str
    match: bool | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """All numbers of one publication."""

    name: str
    rows: tuple[Comparison, ...]

    @property
    def matched(self) -> int:
        """How many agree."""
        return sum(row.match is True for row in self.rows)

    @property
    def total(self) -> int:
        """How many printed numbers are compared."""
        return sum(row.match is not None for row in self.rows)

    @property
    def uncompared(self) -> int:
        """How many printed numbers are listed without being compared."""
        return sum(row.match is None and row.published is not None for row in self.rows)


class Publication(Protocol):
    """What a published module offers."""

    PUBLISHED_INPUTS: Mapping[str, Any]

    def evaluate(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Compute every output for any inputs.

        Raises:
            InputError: every problem of the inputs.
        """

    def reproduce(self) -> Sequence[Comparison]:
        """Compare every printed number with its computed value at the published inputs."""


def _home(name: str) -> tuple[ModuleType, str]:
    """Return the module of a publication, and the name that it has there; empty for all of it."""
    if name not in MODULES:
        raise UnknownNameError(unknown("publication", name, MODULES))
    module, _, attribute = MODULES[name].partition(":")
    return import_module(f"symbolic_cost.published.{module}"), attribute


def publication(name: str) -> Publication:
    """Return a published module by its name ("transformer-tables"), or its cases.

    Raises:
        UnknownNameError: no such publication; the closest are offered.
    """
    module, attribute = _home(name)
    return cast("Publication", getattr(module, attribute or "work", module))


def meaning(name: str) -> str:
    """Return one line on a publication."""
    module, attribute = _home(name)
    return (getattr(module, attribute, module).__doc__ or "").split("\n")[0]


def reproduce(name: str, inputs: Mapping[str, Any] | None = None) -> Reproduction:
    """Compare a publication with what it printed, or evaluate it for other inputs."""
    module = publication(name)
    if inputs is None:
        return Reproduction(name, tuple(module.reproduce()))
    values = flattened(module.evaluate(inputs))
    rows = (
        Comparison(key, None, "" if value is None else _text(value), None)
        for key, value in values.items()
    )
    return Reproduction(name, tuple(rows))


def _text(value: object) -> str:
    """Write a computed value; fractions as decimals."""
    if not isinstance(value, Fraction):
        return str(value)
    return str(_decimal(value, _FLOAT_DIGITS))


def _decimal(value: Fraction, digits: int) -> Decimal:
    with localcontext() as context:
        context.prec = digits
        return Decimal(value.numerator) / Decimal(value.denominator)


def formulas(name: str) -> Mapping[str, Expr]:
    """Return the formula of each number by key, of publications that offer `formulas()`."""
    offered = getattr(publication(name), "formulas", dict)
    offered_formulas: Mapping[str, Expr] = offered()
    return offered_formulas


def compared(key: str, published: str, value: float | Fraction) -> Comparison:
    """Compare a value with a printed number at the number's own precision.

    The value is rounded half-even to the printed decimals (of the mantissa, if it has an
    exponent), from its exact value.

    >>> compared("t", "0.0199", Fraction(199, 10**4)).match, compared("t", "2.5e-05", 2.46e-5).match
    (True, True)
    """
    computed = rounded_like(published, value)
    return Comparison(key, published, computed, Decimal(computed) == Decimal(published))


def equal(printed: Mapping[str, object], computed: Mapping[str, object]) -> list[Comparison]:
    """Compare values that were printed to the letter, by key; what is no text is JSON."""
    return [
        Comparison(key, _json(value), _json(computed[key]), value == computed[key])
        for key, value in printed.items()
    ]


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def rounded_like(printed: str, value: float | Fraction, rounding: str = ROUND_HALF_EVEN) -> str:
    """Round a value to the last digit of a printed number, by a rule of `decimal`."""
    with localcontext() as context:
        context.prec = _DIGITS
        quotient = _decimal(Fraction(value), _DIGITS)
        return str(quotient.quantize(last_digit(printed), rounding=rounding))


def last_digit(printed: str) -> Decimal:
    """Return one unit of the last digit of a printed number.

    >>> str(last_digit("1.10")), str(last_digit("2.5e-05"))
    ('0.01', '0.000001')
    """
    return Decimal((0, (1,), cast("int", Decimal(printed).as_tuple().exponent)))


def flattened(value: Any, key: str = "") -> dict[str, Any]:  # noqa: ANN401 - nested plain data
    """Give every leaf of nested mappings and sequences a dotted key.

    A record of a sequence is keyed by its "layer", "row" or "name" field, else by its place; a
    name that comes again is numbered.
    """
    if isinstance(value, Mapping):
        items = [(str(name), item) for name, item in value.items()]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        labels = [_label(place, item) for place, item in enumerate(value)]
        items = [(_numbered(labels, place), item) for place, item in enumerate(value)]
    else:
        return {key: value}
    leaves: dict[str, Any] = {}
    for name, item in items:
        leaves |= flattened(item, f"{key}.{name}" if key else name)
    return leaves


def _label(place: int, item: Any) -> str:  # noqa: ANN401 - nested plain data
    names = [
        item[name]
        for name in ("layer", "row", "name")
        if isinstance(item, Mapping) and name in item
    ]
    return str(names[0]) if names else str(place)


def _numbered(labels: list[str], place: int) -> str:
    earlier = labels[:place].count(labels[place])
    return f"{labels[place]}#{earlier + 1}" if earlier else labels[place]


def printed_data(name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Read published/data/NAME, a JSON file unless the name has another suffix.

    Raises:
        InputError: there is no such file.
    """
    file = name if "." in name else f"{name}.json"
    try:
        return package_data(f"published/data/{file}")
    except (OSError, ValueError):
        raise InputError(f"{quote(name)}: nothing printed is kept under this name") from None


def printed_rows(name: str) -> Iterator[dict[str, str]]:
    """Return the rows of data/NAME.json by their columns, numbers as text."""
    return records(printed_data(name))


def records(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a printed table by its columns."""
    for row in table["rows"]:
        yield dict(zip(table["columns"], row, strict=True))


def not_recomputed(key: str, published: str, note: str, computed: str = "") -> Comparison:
    """List a printed number that is not compared, with the reason."""
    return Comparison(key, published, computed, None, note)


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
