"""Greatest and least of costs, which drop an argument only where that is certain.

SymPy 1.14 decides some comparisons of positive integers wrongly: `Max(1/(p*q), 1)` is `1/(p*q)`
there, and the derivative of a Max loses the step. Comparisons here wait for numbers. Max and Min
are SymPy's in every other respect.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from sympy import Add, Expr, Function, Integer, Mul, expand
from sympy import Max as _Max
from sympy import Min as _Min

from symbolic_cost.algebra import OnTerms


class _Certain:
    """Decides between two arguments by their quotient, and not at all where it does not tell."""

    @classmethod
    def _collapse_arguments(cls, args: frozenset[Expr], **_: Any) -> frozenset[Expr]:  # noqa: ANN401 - SymPy's signature
        return args

    @classmethod
    def _new_args_filter(cls, args: Iterable[Any]) -> Iterator[Expr]:
        """Join nested ones; that costs are real is not asked, which takes longer than the rest."""
        for arg in args:
            if isinstance(arg, Expr) and not arg.is_number and arg.func is not cls:
                yield arg
            else:
                yield from super()._new_args_filter((arg,))  # type: ignore[misc]

    @classmethod
    def _is_connected(cls, x: Expr, y: Expr) -> Any:  # noqa: ANN401 - SymPy's protocol: a class or False
        if x == y:
            return True
        if at_least(x, y):
            return Max
        return Min if at_least(y, x) else False


class AtLeast(OnTerms, Function):
    """Iverson bracket [x >= y]: one or zero, and decided between numbers alone.

    >>> from symbolic_cost.symbols import b, m1
    >>> AtLeast(3, 2), AtLeast(1, 2), AtLeast(8 / (b * m1), 1)
    (1, 0, [8/(b*m1) >= 1])
    """

    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, greater: Expr, less: Expr) -> Expr | None:
        """Evaluate for two numbers."""
        if greater.is_number and less.is_number:
            return Integer(int(bool(greater >= less)))
        return Integer(1) if greater == less else None

    def fdiff(self, argindex: int = 1) -> Expr:  # noqa: ARG002 - the signature is SymPy's
        """Differentiate: a step is flat wherever it does not jump."""
        return Integer(0)

    def _latex(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        one, two = map(printer._print, self.args)  # noqa: SLF001 - SymPy's protocol
        left, right = getattr(printer, "brackets", (r"\left[", r"\right]"))
        return rf"{left}{one} \ge {two}{right}"

    def _sympystr(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        one, two = map(printer._print, self.args)  # noqa: SLF001 - SymPy's protocol
        left, right = getattr(printer, "brackets", ("[", "]"))
        return f"{left}{one} >= {two}{right}"

    def _numpycode(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        one, two = map(printer._print, self.args)  # noqa: SLF001 - SymPy's protocol
        # Times one, since NumPy's truth values neither subtract nor add up.
        return f"(1*(({one}) >= ({two})))"

    _pythoncode = _numpycode
    _lambdacode = _numpycode


class Choice(OnTerms, Function):
    """One of two values: `Choice(bracket, value, other)` is the value where the bracket is one.

    The value that is not chosen may be anything, a division by zero included.
    """

    @classmethod
    def eval(cls, bracket: Expr, value: Expr, other: Expr) -> Expr | None:
        """Evaluate for a number."""
        if bracket.is_number:
            return value if bracket == 1 else other
        return value if value == other else None

    def fdiff(self, argindex: int = 1) -> Expr:
        """Differentiate: the slope of the value that is chosen."""
        bracket = self.args[0]
        return (Integer(0), bracket, 1 - bracket)[argindex - 1]

    def _eval_is_nonnegative(self) -> bool | None:
        return True if all(value.is_nonnegative for value in self.args[1:]) else None

    def _latex(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        bracket, value, other = map(printer._print, self.args)  # noqa: SLF001 - SymPy's protocol
        if hasattr(printer, "brackets"):  # of a narrow column, where nothing may be tall
            return rf"({value} \text{{ if }} {bracket} \text{{ else }} {other})"
        rows = rf"{value} & \text{{if}}\: {bracket} \\ {other} & \text{{otherwise}}"
        return rf"\begin{{cases}} {rows} \end{{cases}}"

    def _sympystr(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        bracket, value, other = map(printer._print, self.args)  # noqa: SLF001 - SymPy's protocol
        return f"({value} if {bracket} else {other})"

    def _numpycode(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        bracket, value, other = map(printer._print, self.args)  # noqa: SLF001 - SymPy's protocol
        name = printer._module_format("numpy.where")  # noqa: SLF001 - SymPy's protocol
        return f"{name}(({bracket}) == 1, {value}, {other})"


class Max(OnTerms, _Certain, _Max):
    """The greatest of its arguments.

    >>> from symbolic_cost.symbols import b, m1
    >>> Max(2 * b, 3 * b), Max(b, b / m1), Max(1 / (b * m1), 1), Max(b, m1)
    (3*b, b, 1, Max(b, m1))
    """

    def fdiff(self, argindex: int = 1) -> Expr:
        """Differentiate: one for the first of the greatest arguments, else zero."""
        return _chosen(self.args, argindex - 1, AtLeast)


class Min(OnTerms, _Certain, _Min):
    """The least of its arguments.

    >>> from symbolic_cost.symbols import W, b, m1
    >>> Min(b, b / m1), Min(b, m1), Min(W - 1, 0)
    (b/m1, Min(b, m1), 0)
    """

    def fdiff(self, argindex: int = 1) -> Expr:
        """Differentiate: one for the first of the least arguments, else zero."""
        return _chosen(self.args, argindex - 1, lambda one, other: AtLeast(other, one))


def _chosen(args: Sequence[Expr], place: int, beats: Callable[[Expr, Expr], Expr]) -> Expr:
    """Return one if an argument beats those after it, and those before it do not beat it."""
    own = args[place]
    before = (1 - beats(other, own) for other in args[:place])
    return Mul(*before, *(beats(own, other) for other in args[place + 1 :]))


@lru_cache(1 << 16)  # tables of one model ask it of the same costs again and again
def at_least(greater: Expr, less: Expr) -> bool:
    """Tell whether one cost is certainly at least another, whatever its symbols stand for."""
    if greater.is_number and less.is_number:
        return bool(greater >= less)
    if isinstance(greater, Add) or isinstance(less, Add):
        return _never_less(greater - less)
    if less == 0 or greater == 0:
        return bool(less == 0 and _is_product_of_positive(greater))
    if not (_is_product_of_positive(greater) and _is_product_of_positive(less)):
        return False
    coefficient, powers = (greater / less).as_coeff_Mul()
    return bool(coefficient >= 1) and all(
        base.is_integer and exponent.is_nonnegative
        for base, exponent in powers.as_powers_dict().items()
    )


def _never_less(difference: Expr) -> bool:
    """Tell whether a short polynomial is certainly not negative, its symbols being at least one.

    Written in what they have more than one, no coefficient is negative: W - 1 is w.
    """
    symbols = difference.free_symbols
    if len(Add.make_args(difference)) > _LONGEST or not all(
        one.is_integer and one.is_positive for one in symbols
    ):
        return False
    factors = (f for term in Add.make_args(difference) for f in Mul.make_args(term))
    if not all(_is_small_power(factor) for factor in factors):
        return False
    shifted = expand(difference.xreplace({one: one + 1 for one in symbols}))
    return all(term.as_coeff_Mul()[0] >= 0 for term in Add.make_args(shifted))


def _is_small_power(factor: Expr) -> bool:
    base, exponent = factor.as_base_exp()
    if factor.is_Rational:
        return True
    return bool(base.is_Symbol and exponent.is_Integer and 0 < exponent <= _LONGEST)


_LONGEST = 4
"""Terms, and powers, of the sums of which it is asked whether they can be negative."""


def _is_product_of_positive(expr: Expr) -> bool:
    coefficient, powers = expr.as_coeff_Mul()
    return bool(coefficient > 0) and all(
        base.is_positive and not base.is_Add and exponent.is_Rational
        for base, exponent in powers.as_powers_dict().items()
    )
