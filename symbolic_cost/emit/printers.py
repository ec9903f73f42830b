"""Formulas as text, and what every printer shares: one declared order, see `order`."""

# ruff: noqa: N802 - SymPy calls a printer's methods by the names of its classes

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from sympy import Add, Expr, Function, Integer, Mul, Piecewise, Pow, S, Symbol
from sympy.core.relational import Relational
from sympy.printing.str import StrPrinter

from symbolic_cost.emit import naming
from symbolic_cost.emit.order import flat, ordered, parts
from symbolic_cost.errors import InputError, quote


class Ordered:
    """Sums, products and powers in the declared order; a subclass says how they look.

    Attributes:
        shapes: of brackets, roots and functions, %s for what they hold.
    """

    _print: Callable[[Any], str]
    power: Callable[[str, str], str]
    shapes: Mapping[str, str]

    def group(self, text: str) -> str:
        """Return a text in brackets."""
        return self.shapes["group"] % text

    def quotient(self, top: list[Expr], bottom: list[Expr]) -> str:
        """Return a fraction."""
        below = self.product(bottom)
        return f"{self.product(top)}/{below if len(bottom) == 1 else self.group(below)}"

    def terms(self, expr: Expr) -> list[str]:
        """Return the terms of a sum with their signs."""
        texts: list[str] = []
        for term in ordered(flat(Add, expr)):
            negative, top, bottom = parts(term)
            text = self.quotient(top, bottom) if bottom else self.product(top)
            sign = "-" if negative else "+" if texts else ""
            texts.append(f"{sign} {text}" if texts else sign + text)
        return texts

    def product(self, factors: list[Expr]) -> str:
        """Return factors side by side, bracketed where they would be misread."""
        text = ""
        for factor in factors:
            piece = self.factor(factor)
            if text[-1:].isdigit() and piece[0].isdigit():
                piece = self.group(piece)
            text += self.space(text, piece) + piece if text else piece
        return text

    def space(self, before: str, after: str) -> str:  # noqa: ARG002 - LaTeX looks at them
        """Return what stands between two factors."""
        return " "

    def factor(self, expr: Expr) -> str:
        """Return a factor, in brackets where it needs them."""
        text = self.alone(expr)
        return self.group(text) if isinstance(expr, _LOOSE) else text

    def alone(self, expr: Expr) -> str:
        """Return one factor where nothing stands beside it."""
        if not isinstance(expr, Pow):
            return self._print(expr)
        if expr.exp == S.Half:
            return self.shapes["root"] % self._print(expr.base)
        base = self._print(expr.base)
        bare = isinstance(expr.base, Symbol | Function) or str(expr.base).isdigit()
        return self.power(base if bare else self.group(base), self._print(expr.exp))

    def _print_Add(self, expr: Expr) -> str:
        return " ".join(self.terms(expr))

    _print_Mul = _print_Pow = _print_Rational = _print_Add

    def _print_Integer(self, expr: Integer) -> str:
        try:
            return str(expr)
        except ValueError:
            refused = f"{quote(expr.p)}: as many digits are not printed"
            raise InputError(refused) from None

    def _print_Max(self, expr: Expr) -> str:
        return self.shapes["max"] % self._arguments(expr)

    def _print_Min(self, expr: Expr) -> str:
        return self.shapes["min"] % self._arguments(expr)

    def _print_ceiling(self, expr: Expr) -> str:
        return self.shapes["ceiling"] % self.rounded(expr)

    def _print_floor(self, expr: Expr) -> str:
        return self.shapes["floor"] % self.rounded(expr)

    def _arguments(self, expr: Expr) -> str:
        return ", ".join(self._print(argument) for argument in ordered(expr.args))

    def rounded(self, expr: Expr) -> str:
        """Return what a ceiling or floor rounds: (a - b)/2, which SymPy holds as a/2 - b/2."""
        content, rest = expr.args[0].as_content_primitive()
        if not isinstance(rest, Add) or content.q == 1:
            return str(self._print(expr.args[0]))
        return self.quotient([content.p * rest if content.p != 1 else rest], [Integer(content.q)])


class Plain(Ordered, StrPrinter):
    """Prints text: a space multiplies, `^` is a power, `/` divides a whole product."""

    raised = "^"
    shapes = MappingProxyType(
        {"group": "(%s)", "root": "sqrt(%s)"}
        | {name: f"{name}(%s)" for name in ("max", "min", "ceiling", "floor")}
    )

    def _print_Symbol(self, expr: Symbol) -> str:
        return naming.text_of(expr.name)

    def power(self, base: str, exponent: str) -> str:
        """Return a power."""
        return f"{base}{self.raised}{exponent if exponent.isalnum() else self.group(exponent)}"

    def _print_Piecewise(self, expr: Expr) -> str:
        *cases, (last, condition) = expr.args
        texts = [f"{self._print(value)} if {self._print(test)}" for value, test in cases]
        if condition == S.true:
            return " else ".join([*texts, self._print(last)])
        return " else ".join(
            [*texts, f"{self._print(last)} if {self._print(condition)}", "undefined"]
        )

    def _print_Relational(self, expr: Relational) -> str:
        sign = "=" if expr.rel_op == "==" else expr.rel_op
        return f"{self._print(expr.lhs)} {sign} {self._print(expr.rhs)}"


class Code(Plain):
    """Prints the operators of Python: `*`, `**` and conditions in brackets that are 1 or 0."""

    brackets = ("(", ")")
    raised = "**"
    shapes = MappingProxyType({**Plain.shapes, "ceiling": "ceil(%s)"})

    def space(self, before: str, after: str) -> str:  # noqa: ARG002 - always the same
        """Return the sign of a product."""
        return "*"

    def _print_Piecewise(self, expr: Expr) -> str:
        return self.group(super()._print_Piecewise(expr).replace("undefined", "nan"))

    def _print_Relational(self, expr: Relational) -> str:
        return f"{self._print(expr.lhs)} {expr.rel_op} {self._print(expr.rhs)}"


_LOOSE = (Add, Mul, Piecewise, Relational)
"""What needs brackets among factors."""
