"""Formulas in LaTeX: in lines, in columns of tables, and with macros."""

# ruff: noqa: N802 - SymPy calls a printer's methods by the names of its classes

import re
from types import MappingProxyType

from sympy import Expr, S, Symbol
from sympy.printing.latex import LatexPrinter

from symbolic_cost.emit import naming
from symbolic_cost.emit.order import ordered
from symbolic_cost.emit.printers import Ordered
from symbolic_cost.symbols import GLOSSARY


class LaTeX(Ordered, LatexPrinter):
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
    quotient = Ordered.quotient

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


_DEFINED = re.compile(r"[A-Za-z][\w.+ -]*[. ][\w.+ -]*")
_WORDS = (r"\mathit", r"\mathtt")
_WIDE = ("(", "[", r"\l", r"\max", r"\min", r"\exp", r"\sqrt")
