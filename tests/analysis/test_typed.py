"""Formulas as people type them: what they mean, and what is refused with one clear error."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Add, Integer, Mul, Rational, ceiling, sqrt

import symbolic_cost as sc
from symbolic_cost.analysis.notations import notation, notation_names
from symbolic_cost.analysis.verdict import Answer, compared
from symbolic_cost.extrema import Max, Min
from symbolic_cost.symbols import V, b, e, f, h, l, m1, n_layers, q
from symbolic_cost.typed import formula, own_names

MEGATRON = notation("megatron").names

READ = [
    ("s*b*h*(34 + 5*a*s/h)", l * b * e * (34 + 5 * h * l / e)),
    ("sbh(34 + 5as/h)", l * b * e * (34 + 5 * h * l / e)),
    ("sbh/t*(10 + 24/t)", l * b * e / m1 * (10 + 24 / m1)),
    ("2sbh^2", 2 * l * b * e**2),
    ("-s**2 + 0.5b", Rational(1, 2) * b - l**2),
    (
        "12 L h^2 (1 + 13/(12h) + (v + s)/(12 L h))",
        12 * n_layers * e**2 + 13 * n_layers * e + (V + l) * e,
    ),
    ("max(s, 4, b)", Max(l, 4, b)),
    ("min(s, b)/ceil(v/t)", Min(l, b) / ceiling(V / m1)),
    ("sqrt(h)^3", sqrt(e) ** 3),
    ("h^(1/2)", sqrt(e)),
    ("1e3 s", 1000 * l),
    ("((((s))))", l),
]


@pytest.mark.parametrize(("text", "meant"), READ)
def test_read(text, meant):
    assert sc.equal(formula(text, MEGATRON), meant)


REFUSED = [
    ("", "the end: a number, a name or"),
    ("s b +", "the end"),
    ("(s + b", "the end: ) is accepted"),
    ("s + b)", "')' at 6"),
    ("s ** 17", "a number up to 16 is accepted"),
    ("s^999999999999", "power 1e+12 is above 200"),
    ("(((((9^16)^16)^16)^16)^16)^16", "too many digits"),
    ("s^b", "exponent"),
    ("2^2^2", "a power of a power"),
    ("5as/ht", "* or a bracket"),
    ("s/0", "a division by zero"),
    ("0^(-1)", "a division by zero"),
    ("x + yy*s", "2 problems"),
    ("__import__('os')", "is no part"),
    ("s.diff(b)", "'.diff(b)'"),
    ("lambda: s", "':"),
    ("max(s)", "two or more"),
    ("ceil(s, b)", "one argument"),
    ("max s", "( after a function"),
    ("9" * 50, "40 digits"),
    ("(" * 60 + "s" + ")" * 60, "40 levels deep"),
    ("s+" * 600, "at most 1000 names"),
    ("s+" * 1200, "2000 characters"),
    ("s;b", "';b'"),
    ("s\x1b[2J", "\\x1b"),
]


@pytest.mark.parametrize(("text", "told"), REFUSED, ids=lambda text: text[:12])
def test_refused(text, told):
    with pytest.raises(sc.errors.InputError) as refused:
        formula(text, MEGATRON)
    assert told in str(refused.value)


def test_every_notation_is_read():
    for name in notation_names():
        assert notation(name).names
    assert notation("jax-book").names["H"] == q
    assert notation("kaplan").names["d_attn"] == h * q
    assert own_names()["d_model"] == e
    with pytest.raises(sc.errors.UnknownNameError, match="megatron"):
        notation("megatrn")


_ATOMS = st.sampled_from([b, e, f, h, l, m1, V])
_POWERS = st.integers(-3, 4).filter(bool)
_MONOMIALS = st.dictionaries(_ATOMS, _POWERS, min_size=0, max_size=3)
_TERMS = st.tuples(st.integers(-50, 50).filter(bool), _MONOMIALS)


def _sum(terms):
    return Add(*(Mul(n, *(atom**power for atom, power in one.items())) for n, one in terms))


@settings(max_examples=25)
@given(st.lists(_TERMS, min_size=1, max_size=4), st.lists(_TERMS, min_size=1, max_size=3))
def test_what_is_printed_is_read_back(left, right):
    for expr in (_sum(left), _sum(left) * _sum(right)):
        assert sc.equal(formula(str(expr)), expr)


def test_verdicts():
    paper = 34 * b * e * l
    assert compared(paper, 2 * b * e * l * 17).answer is Answer.EQUAL
    assert compared(paper, paper + 8 * b * l).answer is Answer.LEADING
    assert compared(paper, paper + 2 * b * e * l).answer is Answer.FACTOR
    assert compared(paper + l, 2 * paper + 2 * l).factor == 2
    assert compared(paper, paper + b * l**2).answer is Answer.DIFFERS
    assert compared(paper, Integer(0)).answer is Answer.DIFFERS
    assert compared(paper, 8 * b * l * f).answer is not Answer.EQUAL
