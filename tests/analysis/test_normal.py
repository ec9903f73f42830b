"""The form for people: structure is kept, no order matters, the form of a form is itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Add, Mul, ceiling

import symbolic_cost as sc
from symbolic_cost.analysis.forms import equal
from symbolic_cost.analysis.normal import human
from symbolic_cost.analysis.views import abbreviated, formed, leading_terms
from symbolic_cost.costs import COSTS
from symbolic_cost.emit.formulas import plain
from symbolic_cost.extrema import Max, Min
from symbolic_cost.symbols import E, M, V, W, b, dp, e, f, f_m, h, l, m1, n_dense, n_layers

FORMS = [
    (
        2 * M * b * e * l * (m1 - 1) / m1 * (2 * n_layers + 1),
        "2 M b l e (2 n_layers + 1) (m1 - 1)/m1",
    ),
    (b * e * l * m1 - b * e * l, "b l e (m1 - 1)"),
    (e * (1 - m1) / m1, "-e (m1 - 1)/m1"),
    (e * (m1 - 1) * (dp - 1) + f * (m1 - 1) * (dp - 1), "(e + f) (m1 - 1) (dp - 1)"),
    (ceiling(V / m1) * e * 2 + 4 * e, "2 e (ceiling(V/m1) + 2)"),
    (e * (m1 - 1) + e, "e m1"),
    (e * m1 - e * (m1 - 1) - e, "0"),
    (l * (2 * e - 1) + l, "2 l e"),
    (
        (n_layers - n_dense) * E * e * f_m + n_dense * e * f,
        "e (E f_m (n_layers - n_dense) + f n_dense)",
    ),
    ((n_layers - n_dense) * e + n_dense * e, "n_layers e"),
    (Max(e, f) * l + 3 * l, "l (max(e, f) + 3)"),
    (l + Min(W - 1, 0), "l"),
    ((e + f) ** 2 - 2 * e * f, "e^2 + f^2"),
    (1 / (e + f) + 2 / (e + f), "3/(e + f)"),
]


@pytest.mark.parametrize(("expr", "text"), FORMS)
def test_structure_is_kept(expr, text):
    assert plain(human(expr)) == text


def test_deepseek_keeps_its_dense_blocks():
    total = sc.cost("deepseek-v3").total("parameter")
    form = human(total)
    assert form.has(n_layers - n_dense)
    assert equal(form, total)
    terms = Add.make_args(form)
    assert len(terms) == 4


@pytest.mark.parametrize("strategy", ["", "tp,sp", "tp,sp,pp,dp,zero=3"])
def test_totals(strategy):
    table = sc.job("gpt", strategy).rows
    for cost in COSTS.values():
        total = cost.total(table)
        form = human(total)
        assert equal(form, total)
        assert human(form) == form


ATOMS = st.sampled_from([b, e, h, l, m1, n_layers, n_dense, ceiling(V / m1), Max(e, f)])
FACTORS = st.one_of(
    ATOMS,
    st.sampled_from([m1 - 1, dp - 1, n_layers - n_dense, 2 * e - 1, e + f, 1 / m1, 1 / (e + f)]),
)
PRODUCTS = st.builds(
    lambda number, factors: Mul(number, *factors),
    st.integers(-6, 6).filter(bool),
    st.lists(FACTORS, min_size=1, max_size=4),
)


@settings(max_examples=40)
@given(st.lists(PRODUCTS, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_equal_stable_and_idempotent(terms, order):
    total = Add(*terms)
    form = human(total)
    assert equal(form, total)
    assert human(form) == form
    order.shuffle(terms)
    assert human(Add(*terms)) == form


def test_order_of_building():
    parts = [b * e * (m1 - 1), 3 * l * e, n_layers * e * h, e * f, e**2, (m1 - 1) * f, l * h, h * f]
    forms = set()
    for turn in range(len(parts)):
        parts = [*parts[turn:], *reversed(parts[:turn])]
        forms.add(plain(human(Add(*parts))))
    assert len(forms) == 1


def test_leading_terms_and_what_they_leave_out():
    saved = 5 * b * h * l**2 + 34 * b * e * l + 8 * b * l + e
    one, two, all_of_it = (leading_terms(saved, "l", orders) for orders in (1, 2, 3))
    assert (one.terms, one.remainder) == (5 * b * h * l**2, 1)
    assert equal(two.terms, saved - e)
    assert two.remainder == 0
    assert (all_of_it.remainder, equal(all_of_it.terms, saved)) == (None, True)
    with pytest.raises(sc.errors.InputError, match="sums of powers"):
        leading_terms(ceiling(V / m1) * e, "V")


def test_forms_by_name():
    total = n_layers * (b * l * (e + f) + e * l**2)
    assert formed(total, "as-derived")[0] == total
    assert formed(total, "expanded")[0] == total.expand()
    assert plain(formed(total, "by:l")[0]) == "n_layers b l (e + f) + n_layers l^2 e"
    assert formed(total, "leading:l") == (
        e * l**2 * n_layers,
        "terms that grow as l^1 or slower are left out",
    )
    for wrong in ("by", "leading:", "by:zz", "short"):
        with pytest.raises(sc.errors.InputError):
            formed(total, wrong)


def test_repeats_get_a_name():
    large = Max(e, f) + l + 1
    names, (short,) = abbreviated([b * large + V / large])
    assert list(names.values()) == [large]
    assert short.xreplace(names) == b * large + V / large
