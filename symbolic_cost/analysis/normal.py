"""Normal forms for people: the structure of a formula is kept, not multiplied out.

A difference of two products, (m1 - 1) or (n_layers - n_dense), says where a term comes from: it
is a factor like a symbol, as ceilings and Max are. Other sums are multiplied out and collected.
What all terms share stands first; parts of the model that occur alike form a group:

    2 M b l e (m1 - 1) (2 n_layers + 1)/m1          not  2 M b l e (2 n_layers m1 + m1 - ...)/m1

No form depends on the order in which a cost was built, and the form of a form is itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from sympy import Add, Expr, Integer, Mul, Pow, Symbol

from symbolic_cost.analysis.powers import (
    ATOMS,
    ONE,
    Number,
    Powers,
    Terms,
    content,
    merged,
    multiplied,
    number_of,
    powered,
    rank,
    rational,
    summed,
)
from symbolic_cost.symbols import n_dec, n_dense, n_layers

_MANY = 6
"""Terms beyond which those of equal parts stand in groups."""
_MOST_ROUNDS, _LARGEST_POWER = 6, 4
_COUNTS = frozenset({n_layers, n_dense, n_dec})


@lru_cache(1 << 14)
def human(expr: Expr) -> Expr:
    """Return the form for people.

    >>> from symbolic_cost.symbols import M, b, e, l, m1, n_layers
    >>> human(2*M*b*e*l*(m1 - 1)/m1 + 4*M*b*e*l*n_layers*(m1 - 1)/m1)
    2*M*b*e*l*(m1 - 1)*(2*n_layers + 1)/m1
    >>> human(b*e*l*m1 - b*e*l)
    b*e*l*(m1 - 1)
    """
    form, again = _round(expr)
    for _ in range(_MOST_ROUNDS):
        if not again:
            break
        before = form
        form, again = _round(form)
        if form == before:
            break
    return form


def coefficients_kept(expr: Expr) -> dict[Expr, Expr]:
    """Return the coefficient of every product of powers, differences being factors.

    >>> from symbolic_cost.symbols import b, m1
    >>> found = coefficients_kept(4 * b * (m1 - 1) / m1 + 2 * b)
    >>> found[b], found[b * (m1 - 1) / m1]
    (2, 4)
    """
    return {_monomial(one): rational(c) for one, c in _terms(expr)}


def _round(expr: Expr) -> tuple[Expr, bool]:
    """Return a form, and whether it has differences that were not there before."""
    terms = dict(_terms(expr))
    if any(place in ATOMS.sums for one in terms for place, _ in one):
        terms = _joined(terms)
        flat = _multiplied_out(terms)
        if len(flat) < len(terms):
            terms = flat
    if len(terms) > 1:
        terms = _divided_out(terms)
    return _written(terms)


# ---------------------------------------------------------------------- terms


@lru_cache(1 << 16)
def _terms(expr: Expr) -> tuple[tuple[Powers, Number], ...]:
    """Return the terms of an expression; differences are atoms."""
    terms: Terms = {}
    if isinstance(expr, Add):
        terms = summed(map(_terms, expr.args))
    elif expr.is_Rational:
        terms = {ONE: number_of(expr)} if expr != 0 else {}
    elif isinstance(expr, Mul):
        terms = _of_product(expr)
    elif isinstance(expr, Pow) and expr.exp.is_Integer:
        terms = _factor(expr.base, int(expr.exp))
    elif isinstance(expr, Pow) and expr.exp.is_Rational and isinstance(expr.base, Symbol):
        terms = {((ATOMS.place(expr.base), number_of(expr.exp)),): 1}
    else:
        terms = {((ATOMS.place(expr), 1),): 1}
    return tuple(terms.items())


def _of_product(expr: Mul) -> Terms:
    """Return the terms of a product: numbers and powers of symbols first, as most factors are."""
    number: Number = 1
    powers: dict[int, Number] = {}
    others = []
    for argument in expr.args:
        base, exponent = argument.as_base_exp() if isinstance(argument, Pow) else (argument, None)
        if isinstance(base, Symbol) and (exponent is None or exponent.is_Integer):
            powers[ATOMS.place(base)] = 1 if exponent is None else int(exponent)
        elif argument.is_Rational:
            number = number_of(argument)
        else:
            others.append(argument)
    terms: Terms = {tuple(sorted(powers.items())): number}
    for argument in others:
        terms = multiplied(terms, _factor(argument, 1))
    return terms


def _factor(expr: Expr, power: int) -> Terms:
    if isinstance(expr, Pow) and expr.exp.is_Integer:
        return _factor(expr.base, int(expr.exp) * power)
    terms = dict(_terms(expr))
    if len(terms) == 1:
        ((one, number),) = terms.items()
        return {tuple((a, p * power) for a, p in one): powered(number, power)}
    if not terms:
        return {}
    if 0 < power <= _LARGEST_POWER and not _is_difference(terms):
        product: Terms = {ONE: 1}
        for _ in range(power):
            product = multiplied(product, terms)
        return product
    number, common, rest = content(terms)
    # The coefficient of the term of highest degree, the first of several by name.
    if rest[min(rest, key=_place_of_term)] < 0:
        number, rest = -number, {one: -c for one, c in rest.items()}
    place = ATOMS.place(_expression(rest))
    outside = tuple((a, p * power) for a, p in common)
    return {merged(outside, ((place, power),)): powered(number, power)}


def _is_difference(terms: Terms) -> bool:
    """Tell whether terms are a product less another: m1 - 1, and not 5 l - 2."""
    numbers = [*terms.values()]
    return len(numbers) == 2 and numbers[0] == -numbers[1]  # noqa: PLR2004 - of two


def _multiplied_out(terms: Terms) -> Terms:
    """Return terms without differences, but for those that divide."""
    total: Terms = {}
    for one, number in terms.items():
        product: Terms = {ONE: number}
        bare = []
        for place, power in one:
            if place in ATOMS.sums and isinstance(power, int) and 0 < power <= _LARGEST_POWER:
                inner = _multiplied_out(_of_sum(place))
                for _ in range(power):
                    product = multiplied(product, inner)
            else:
                bare.append((place, power))
        for other, c in multiplied(product, {tuple(bare): 1}).items():
            total[other] = total.get(other, 0) + c
    return {one: c for one, c in total.items() if c}


def _joined(terms: Terms) -> Terms:
    """Return terms with q x + (p - q) x as p x: dense blocks and all others are all blocks."""
    for place in sorted({a for one in terms for a, _ in one if a in ATOMS.sums}, key=rank):
        sides = _of_sum(place)
        if not _is_difference(sides):  # it divides
            continue
        p, q = sorted(sides, key=sides.__getitem__, reverse=True)
        for one in [*terms]:
            if (place, 1) not in one:
                continue
            bare = tuple(pair for pair in one if pair[0] != place)
            other = merged(bare, q)
            if one in terms and terms.get(other) == terms[one]:
                number = terms.pop(one)
                del terms[other]
                whole = merged(bare, p)
                terms[whole] = terms.get(whole, 0) + number
                if not terms[whole]:
                    del terms[whole]
    return terms


def _of_sum(place: int) -> Terms:
    """Return the terms of an atom that is a sum."""
    return summed(map(_terms, ATOMS.all[place].args))


def _divided_out(terms: Terms) -> Terms:
    """Return terms with the factors (s - 1) that all share as atoms, for symbols s.

    Where s is 1 the sum is zero, as m1 x - x is.
    """
    if sum(terms.values()) != 0:  # where all symbols are 1, such a sum is zero
        return terms
    number, common, rest = content(terms)
    if _is_difference(rest):
        return terms
    factors: Powers = ()
    places = {place for one in rest for place, _ in one}
    for place in sorted(places - ATOMS.sums, key=rank):
        quotient = _by_one(rest, place) if isinstance(ATOMS.all[place], Symbol) else None
        if quotient is not None:
            rest = quotient
            factors = merged(factors, ((ATOMS.place(ATOMS.all[place] - 1), 1),))
    outside = merged(common, factors)
    return {merged(outside, one): c * number for one, c in rest.items()} if factors else terms


def _by_one(terms: Terms, place: int) -> Terms | None:
    """Divide a polynomial by (s - 1) if it is zero at s = 1, by Horner's rule."""
    at_one: Terms = {}
    by_degree: dict[int, Terms] = {}
    for one, c in terms.items():
        power = next((p for a, p in one if a == place), 0)
        if not isinstance(power, int) or power < 0:
            return None
        bare = tuple(pair for pair in one if pair[0] != place)
        at_one[bare] = at_one.get(bare, 0) + c
        by_degree.setdefault(power, {})[bare] = c
    if any(at_one.values()) or len(by_degree) == 1:
        return None
    quotient: Terms = {}
    carried: Terms = {}
    for degree in range(max(by_degree), 0, -1):
        carried = summed([carried.items(), by_degree.get(degree, {}).items()])
        power_left: Powers = ((place, degree - 1),) if degree > 1 else ()
        quotient |= {merged(bare, power_left): c for bare, c in carried.items()}
    return quotient


# ---------------------------------------------------------------------- writing


def _written(terms: Terms) -> tuple[Expr, bool]:
    """Write the content first, then the rest, in groups where it is long."""
    if not terms:
        return Integer(0), False
    number, common, rest = content(terms)
    if any(map(_is_alone, rest)):  # SymPy joins it with the other terms
        spread = summed(_spread(one, c) for one, c in rest.items())
        return _written({merged(common, one): c * number for one, c in spread.items()})
    if all(c < 0 for c in rest.values()):
        number, rest = -number, {one: -c for one, c in rest.items()}
    if len(rest) > _MANY:
        inner, again = _grouped(rest)
    else:
        inner, again = _expression(rest), _is_difference(rest)
    again = again or any(_is_loose(one) for one in rest)
    return _times_sum(number, common, inner), again


@lru_cache(1 << 14)
def _is_loose(one: Powers) -> bool:
    """Tell whether a term has a sum that came out of a denominator."""
    places = (place for place, _ in one if place in ATOMS.sums)
    return any(not _is_difference(_of_sum(place)) for place in places)


def _is_alone(one: Powers) -> bool:
    """Tell whether a term is a sum and nothing else."""
    return len(one) == 1 and one[0][0] in ATOMS.sums and one[0][1] == 1


def _spread(one: Powers, number: Number) -> Iterable[tuple[Powers, Number]]:
    """Return the terms of a sum that stands alone, or the one term."""
    if not _is_alone(one):
        return [(one, number)]
    return [(inner, c * number) for inner, c in _of_sum(one[0][0]).items()]


def _grouped(terms: Terms) -> tuple[Expr, bool]:
    """Collect terms by their differences, and by how often the part of the model occurs."""
    groups: dict[Powers, Terms] = {}
    for one, c in terms.items():
        groups.setdefault(tuple(pair for pair in one if _tells(pair[0])), {})[one] = c
    if len(groups) == 1 or len(groups) == len(terms):
        return _expression(terms), False
    parts = [content(group) for group in groups.values()]
    again = any(_is_difference(rest) for _, _, rest in parts)
    return Add(*(_times_sum(n, common, _expression(rest)) for n, common, rest in parts)), again


@lru_cache(1 << 14)
def _tells(place: int) -> bool:
    """Tell whether an atom is a difference or counts occurrences."""
    atom = ATOMS.all[place]
    return place in ATOMS.sums or bool(atom.free_symbols and atom.free_symbols <= _COUNTS)


def _times_sum(number: Number, common: Powers, inner: Expr) -> Expr:
    shared = Mul(rational(number), _monomial(common))
    # A product of a number and a sum is multiplied out by SymPy unless it is told not to.
    if shared.is_Number and shared != 1 and isinstance(inner, Add):
        return Mul(shared, inner, evaluate=False)
    return Mul(shared, inner)


def _expression(terms: Terms) -> Expr:
    return Add(*(_scaled(c, _monomial(one)) for one, c in terms.items()))


def _scaled(number: Number, monomial: Expr) -> Expr:
    """Return a number of times a product, as SymPy orders them: the number first."""
    if number == 1:
        return monomial
    if not isinstance(monomial, Mul | Symbol | Pow):
        return Mul(rational(number), monomial)
    factors = monomial.args if isinstance(monomial, Mul) else (monomial,)
    return Mul(rational(number), *factors, evaluate=False)


@lru_cache(1 << 16)
def _monomial(one: Powers) -> Expr:
    return Mul(*(Pow(ATOMS.all[place], rational(power)) for place, power in one))


def _place_of_term(one: Powers) -> tuple[Number, list[tuple[tuple[int, str], Number]]]:
    return -sum(power for _, power in one), sorted((rank(place), -power) for place, power in one)
