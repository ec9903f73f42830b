"""Formulas and the meaning of their symbols, as LaTeX and as plain text."""

from collections.abc import Iterable

from sympy import Expr, Symbol

from symbolic_cost.emit.printers import Code, Plain
from symbolic_cost.symbols import GLOSSARY, in_glossary_order


def macros(expr: Expr) -> str:
    """Return a formula for the column of a table: breakable, with a macro for every symbol."""
    from symbolic_cost.emit.latex_printers import MacroLaTeX

    text: str = MacroLaTeX().doprint(expr)
    return text


def latex(expr: Expr, *, breakable: bool = False) -> str:
    r"""Return a formula as LaTeX for math mode.

    Args:
        expr: the formula.
        breakable: whether TeX may break it into lines, in narrow columns and long displays.

    >>> from symbolic_cost.symbols import b, e, l, m1
    >>> latex(24 * e**2 * b * l / m1 - b)
    '\\frac{24 b l e^{2}}{m_1} - b'
    """
    from symbolic_cost.emit.latex_printers import BreakableLaTeX, LaTeX

    printer = BreakableLaTeX() if breakable else LaTeX()
    text: str = printer.doprint(expr)
    return text


def plain(expr: Expr) -> str:
    """Return a formula as text.

    A space multiplies, `^` is a power, and `/` divides the product before it by the one factor
    or bracket behind it.

    >>> from symbolic_cost.symbols import Active, b, e, l, m1
    >>> plain(b * e * l * (m1 - 1) / (2 * m1) + 4 * l**2 * Active(m1))
    'b l e (m1 - 1)/(2 m1) + 4 l^2 [m1 > 1]'
    """
    text: str = Plain().doprint(expr)
    return text


def code(expr: Expr) -> str:
    """Return a formula in the operators of Python, for programs to read back.

    >>> from symbolic_cost.symbols import Active, b, e, l, m1
    >>> code(b * e * l * (m1 - 1) / (2 * m1) + 4 * l**2 * Active(m1))
    'b*l*e*(m1 - 1)/(2*m1) + 4*l**2*(m1 > 1)'
    """
    text: str = Code().doprint(expr)
    return text


def symbols_of(exprs: Iterable[Expr]) -> list[Symbol]:
    """Return the symbols of formulas as the glossary lists them."""
    return in_glossary_order({symbol for expr in exprs for symbol in expr.free_symbols})


def where_plain(exprs: Iterable[Expr]) -> str:
    """Return what the symbols of formulas mean, as text; empty if they have none.

    Symbols that the glossary lacks are left out.

    >>> from symbolic_cost.symbols import b, e
    >>> where_plain([e * b])
    'where b: microbatch size [sequences]; e: embedding (hidden) width'
    """
    known = (symbol for symbol in symbols_of(exprs) if symbol.name in GLOSSARY)
    text = "; ".join(f"{plain(symbol)}: {GLOSSARY[symbol.name].meaning}" for symbol in known)
    return f"where {text}" if text else ""


_SPECIAL = {
    **{character: rf"\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "µ": r"\textmu{}",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "→": r"$\to$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "\N{MINUS SIGN}": "$-$",
    "\n": " ",
}


def latex_text(text: str) -> str:
    r"""Escape plain text for LaTeX.

    >>> latex_text("50% of m_1")
    '50\\% of m\\_1'
    """
    return "".join(_SPECIAL.get(character, character) for character in text)
