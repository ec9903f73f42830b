"""Derivatives branch by branch: of a Max the slope of each argument, with where that one is chosen.

Nothing is decided: a formula with one Max of two arguments has two branches, and the numbers will
say which one holds. Ceilings, floors and brackets are flat between their jumps, which are named.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Basic, Expr, Integer, Piecewise, Symbol, ceiling, floor
from sympy import Max as _Max
from sympy import Min as _Min

from symbolic_cost.analysis.forms import factored
from symbolic_cost.errors import InputError
from symbolic_cost.extrema import AtLeast, Choice
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active, of_glossary
from symbolic_cost.symbols import symbol as glossary_symbol

MOST = 64
"""Branches beyond which numbers are needed."""

_JUMPS = (ceiling, floor, Active, AtLeast)


@dataclass(frozen=True)
class Branch:
    """One case of a formula.

    Args:
        where: inequalities between costs that hold in it, as text-free pairs (greater, less), or
            relations of a Piecewise.
        value: of the formula there, without Max, Min and Piecewise of the symbol.
        slope: its derivative.
        flat: ceilings, floors and brackets taken as constant, since they jump.
    """

    where: tuple[Basic, ...]
    value: Expr
    slope: Expr
    flat: tuple[Expr, ...]


def branches(expr: Expr, by: Symbol | str) -> tuple[Branch, ...]:
    """Return the derivative of a cost by a symbol, branch by branch.

    Args:
        expr: a cost.
        by: symbol of the glossary, or its name.

    Raises:
        InputError: more than MOST branches: numbers for other symbols leave fewer.

    >>> from symbolic_cost.extrema import Max
    >>> from symbolic_cost.symbols import b, e, l
    >>> [(str(one.slope), str(one.where[0])) for one in branches(Max(b*l, e), l)]
    [('b', '[b*l >= e]'), ('0', '[e >= b*l]')]
    """
    variable = by if isinstance(by, Symbol) else glossary_symbol(by)
    cases = []
    for where, value in _cases(of_glossary(expr), variable, ()):
        cases.append((where, value))
        if len(cases) > MOST:
            raise InputError(
                f"the derivative by {variable} has more than {MOST} branches: give numbers to "
                "other symbols, or ask for it at a point"
            )
    return tuple(_branch(where, value, variable) for where, value in cases)


def _branch(where: tuple[Basic, ...], value: Expr, by: Symbol) -> Branch:
    jumps = [node for node in value.atoms(*_JUMPS) if by in node.free_symbols]
    held = {node: Symbol(f"held_{place}", positive=True) for place, node in enumerate(jumps)}
    slope = value.xreplace(held).diff(by)
    back = {symbol: node for node, symbol in held.items()}
    flat = tuple(sorted((node for node in jumps), key=str))
    return Branch(where, value, factored(slope).xreplace(back), flat)


def _cases(
    expr: Expr, by: Symbol, where: tuple[Basic, ...]
) -> Iterator[tuple[tuple[Basic, ...], Expr]]:
    """Yield every choice of the arguments of extrema and cases that depend on a symbol."""
    # An innermost Max, Min, Choice or Piecewise that depends on a symbol.
    nodes = expr.atoms(_Max, _Min, Choice, Piecewise)
    moving = [node for node in nodes if by in node.free_symbols]
    inner = [n for n in moving if not any(o is not n and n.has(o) for o in moving)]
    node = min(inner, key=str) if inner else None
    if node is None:
        yield where, expr
        return
    for condition, value in _choices(node):
        if condition != 0:
            more = () if condition == 1 else (condition,)
            yield from _cases(expr.xreplace({node: value}), by, where + more)


def _choices(node: Expr) -> Iterator[tuple[Basic, Expr]]:
    """Yield condition and value of every argument; a condition that never holds is 0."""
    if isinstance(node, Choice):
        bracket, value, other = node.args
        yield bracket, value
        yield Integer(1) - bracket, other
    elif isinstance(node, Piecewise):
        for value, condition in node.args:
            yield condition, value
    else:
        for one in sorted(node.args, key=str):
            others = [other for other in node.args if other is not one]
            best = node.func(*others)
            greater = isinstance(node, _Max)
            yield (AtLeast(one, best) if greater else AtLeast(best, one)), one
