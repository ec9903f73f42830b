"""One printer per output, LaTeX and plain text, on one declared order: see `order`."""

# ruff: noqa: N802 - SymPy calls a printer's methods by the names of its classes

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from sympy import Add, Expr, Function, Integer, Mul, Piecewise, Pow, S, Symbol
from sympy.core.relational import Relational
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from symbolic_cost.emit import naming
from symbolic_cost.emit.order import flat, ordered, parts
from symbolic_cost.symbols import GLOSSARY


class _Ordered:
    """Sums, products and powers in the declared order; a subclass says how they look.

    Attributes:
        shapes: of brackets, roots and functions, %s for what they hold.
    """

    _print: Callable[[Any], str]
    power: Callable[[str, str], str]
    shapes: Mapping[str, str]

    def group(self, text: str) -> str:
        return self.shapes["group"] % text

    def quotient(self, top: list[Expr], bottom: list[Expr]) -> str:
        below = self.product(bottom)
        return f"{self.product(top)}/{below if len(bottom) == 1 else self.group(below)}"

    def terms(self, expr: Expr) -> list[str]:
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

    def _print_Integer(self, expr: Expr) -> str:
        return str(expr)

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


class LaTeX(_Ordered, LatexPrinter):
    """Prints LaTeX for math mode."""

    shapes = MappingProxyType(
        {
            "group": r"\left(%s\right)",
            "root": r"\sqrt{%s}",
            "max": r"\max\left(%s\right)",
            "min": r"\min\left(%s\right)",
            "exp": r"\exp\left(%s\right)",  # SymPy's power of e reads as the embedding width's
            "ceiling": r"\left\lceil{%s}\right\rceil",
            "floor": r"\left\lfloor{%s}\right\rfloor",
        }
    )

    def power(self, base: str, exponent: str) -> str:
        """Return a power."""
        return f"{base}^{{{exponent}}}"

    def quotient(self, top: list[Expr], bottom: list[Expr]) -> str:
        """Return a fraction; its bar replaces brackets."""
        above, below = (
            self.alone(side[0]) if len(side) == 1 else self.product(side) for side in (top, bottom)
        )
        return rf"\frac{{{above}}}{{{below}}}"

    def space(self, before: str, after: str) -> str:
        """Return a wide space beside a name of several letters."""
        wide = after.startswith(_WORDS) or re.search(r"\\math(it|tt)\{[\w\\]+\}$", before)
        return r" \, " if wide else " "

    def _print_Symbol(self, expr: Symbol) -> str:
        typeset = naming.latex_of(expr.name)
        if typeset:
            return typeset
        if _DEFINED.fullmatch(expr.name):  # the name of a definition, as first.forward.busy
            words = re.sub(r"([_%&#$])", r"\\\1", expr.name).replace(" ", r"\ ")
            return rf"\mathit{{{words}}}"
        # A bare name of several letters would read as a product.
        return re.sub(r"^[A-Za-z]{2,}", r"\\mathit{\g<0>}", super()._print_Symbol(expr))

    def _print_exp(self, expr: Expr) -> str:
        return self.shapes["exp"] % self._arguments(expr)


class BreakableLaTeX(LaTeX):
    """Prints LaTeX that TeX can break into lines, in the columns of a table: no part of it is tall.

    Brackets are plain, quotients have a slash, and a line may end between factors.
    """

    brackets = ("[", "]")
    shapes = MappingProxyType(
        {
            "group": "(%s)",  # inside which a line may end
            "root": r"\sqrt{%s}",
            "max": r"\max(%s)",
            "min": r"\min(%s)",
            "exp": r"\exp(%s)",
            "ceiling": r"\lceil %s \rceil",
            "floor": r"\lfloor %s \rfloor",
        }
    )
    quotient = _Ordered.quotient

    def space(self, before: str, after: str) -> str:
        """Return what stands between two factors; a line may end beside all but single letters."""
        plain = super().space(before, after)
        wide = self.typeset(after).startswith(_WIDE) or self.typeset(before).endswith((")", "]"))
        return plain + r"\allowbreak " * (wide or plain != " ")

    def typeset(self, factor: str) -> str:
        """Return a factor as TeX sees it."""
        return factor

    def _print_log(self, expr: Expr) -> str:
        return rf"\log({self._print(expr.args[0])})"

    def _arguments(self, expr: Expr) -> str:
        return r", \allowbreak ".join(self._print(argument) for argument in ordered(expr.args))

    def _print_Piecewise(self, expr: Expr) -> str:
        cases = [
            self._print(value) + ("" if test == S.true else rf" \text{{ if }} {self._print(test)}")
            for value, test in expr.args
        ]
        return r" \text{ else } \allowbreak ".join(cases)


class MacroLaTeX(BreakableLaTeX):
    """Prints a macro for every symbol of the glossary, so that a name changes in one place."""

    def __init__(self) -> None:
        super().__init__()
        self._macros: dict[str, str] = {}

    def typeset(self, factor: str) -> str:
        """Return a factor as TeX sees it."""
        words = factor.split()
        for place in (0, -1):
            words[place] = self._macros.get(words[place], words[place])
        return " ".join(words)

    def space(self, before: str, after: str) -> str:
        """Return what stands between two factors; a macro takes the blank behind it."""
        shown = super().space(self.typeset(before), self.typeset(after))
        return shown.lstrip() if before.endswith(" ") else shown

    def _print_Symbol(self, expr: Symbol) -> str:
        if expr.name not in GLOSSARY:
            return super()._print_Symbol(expr)
        self._macros[naming.macro(expr.name)] = naming.latex_of(expr.name)
        return f"{naming.macro(expr.name)} "


class Plain(_Ordered, StrPrinter):
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


_DEFINED = re.compile(r"[A-Za-z][\w.+ -]*[. ][\w.+ -]*")
_WORDS = (r"\mathit", r"\mathtt")
_WIDE = ("(", "[", r"\l", r"\max", r"\min", r"\exp", r"\sqrt")

_LOOSE = (Add, Mul, Piecewise, Relational)
"""What needs brackets among factors."""
