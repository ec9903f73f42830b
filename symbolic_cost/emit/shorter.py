"""Shorter formulas for people: names of long parts, and sums of two symbols as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sympy import Add, Basic, Dummy, Expr, Max, Min, Symbol, expand, preorder_traversal

from symbolic_cost.emit.formulas import plain
from symbolic_cost.symbols import named

_LONG = 24
"""Symbols and numbers of a part of a formula that a name is better for, where it is repeated."""
_PAGE = 1000
"""Characters of a maximum that nobody reads."""


def summed(formula: Expr, letter: Symbol, part: Expr) -> Expr:
    """Return a formula with a letter that stands for the sum of two others.

    With n_first for n_lead + n_rest, 3 e n_lead + 2 e n_rest becomes 2 e n_first + e n_lead.
    """
    both = part.args
    if len(both) != 2 or not all(one.is_Symbol and formula.has(one) for one in both):  # noqa: PLR2004 - of two
        return formula
    from symbolic_cost.analysis.forms import factored

    # Extrema would compare all of their arguments anew.
    extrema = {one: Dummy() for one in formula.atoms(Max, Min)}
    expanded = expand(formula.xreplace(extrema))
    terms = dict(term.as_coeff_Mul()[::-1] for term in Add.make_args(expanded))
    for term, count in tuple(terms.items()):
        other = term.xreplace({both[0]: both[1]})
        if other != term and other in terms:
            alike = min(count, terms[other])
            terms[term.xreplace({both[0]: letter})] = alike
            terms[term], terms[other] = count - alike, terms[other] - alike
    total = factored(Add(*(count * term for term, count in terms.items())))
    return total.xreplace({dummy: one for one, dummy in extrema.items()})


def abbreviated(listed: Sequence[Expr]) -> tuple[dict[Symbol, Expr], dict[Expr, Expr]]:
    """Return names of long parts that formulas repeat, and every formula in these."""
    if not any(one.count_ops() > _LONG for one in listed):
        return {}, {}
    from symbolic_cost.analysis import views

    names, written = views.abbreviated(listed, _LONG)
    for part in dict.fromkeys(_unreadable(written)):
        name = named(f"u_{len(names) + 1}")
        written = tuple(one.xreplace({part: name}) for one in written)
        names = {**names, name: part}
    return names, dict(zip(listed, written, strict=True))


def brief(part: Expr) -> str:
    """Return what a name stands for as text; of a maximum that fills pages, of how many sums."""
    if part not in _unreadable([part]):
        return plain(part)
    return f"the greatest of {_sums(part)} sums, which --format json gives in full"


def _unreadable(parts: Iterable[Basic]) -> Iterator[Expr]:
    """Yield the outermost maxima of so many sums that nobody reads them."""
    for part in parts:
        if isinstance(part, Max) and _fills_a_page(part):
            yield part
        elif part.has(Max):
            yield from _unreadable(part.args)


def _fills_a_page(part: Expr) -> bool:
    """Tell whether the text of a maximum is long: every symbol and number takes a character."""
    first = islice(preorder_traversal(part), 4 * _PAGE)
    return sum(not one.args for one in first) > _PAGE or len(plain(part)) > _PAGE


def _sums(part: Basic) -> int:
    """Count what a maximum is of, that of the maxima in it as well."""
    inner = part.args if isinstance(part, Max) else [one for one in part.args if one.has(Max)]
    return sum(map(_sums, inner)) if inner else 1
