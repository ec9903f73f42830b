"""Derivatives by branch, elasticities, optima, dominance: against numbers and published forms."""

from fractions import Fraction

import pytest
from sympy import Piecewise, Rational, cbrt, ceiling, sqrt, symbols

import symbolic_cost as sc
from symbolic_cost.analysis.dominance import dominance, dominance_map
from symbolic_cost.analysis.inverse import (
    LARGEST,
    first_change,
    last_within,
    least_integer,
    optimum,
)
from symbolic_cost.analysis.sensitivity import branches, sensitivity
from symbolic_cost.costs import COSTS
from symbolic_cost.extrema import Max, Min
from symbolic_cost.symbols import V, b, e, h, l, m1

positive = {"positive": True}


@pytest.mark.parametrize(
    "expr",
    [
        Max(b * l, e),
        Max(b * l, e, l**2) * l,
        Min(b * l, e) + Max(l, b),
        Max(l, Min(e, 3 * l)) * b,
        b * l * ceiling(V / m1) + Max(l, 2 * b),
        Piecewise((l**2, l > e), (e * l, True)),
    ],
)
def test_each_branch_has_the_slope_where_it_holds(expr):
    found = branches(expr, l)
    assert len(found) > 1
    for point in ((2, 3, 40), (2, 30, 40), (5, 7, 8), (1, 50, 3)):
        numbers = dict(zip((b, l, e), point, strict=True)) | {V: 100, m1: 7}
        holding = [
            one
            for one in found
            if all(bool(w.xreplace(numbers)) and w.xreplace(numbers) != 0 for w in one.where)
        ]
        assert holding
        step = Rational(1, 1000)
        here, there = (expr.xreplace({**numbers, l: numbers[l] + move}) for move in (-step, step))
        slope = (there - here) / (2 * step)
        values = [one.slope.xreplace(numbers) for one in holding]
        assert any(abs(value - slope) < Rational(1, 10) for value in values)
        assert any(one.value.xreplace(numbers) == expr.xreplace(numbers) for one in holding)


def test_jumps_are_named():
    (one,) = branches(e * ceiling(l / m1) + l, "l")
    assert one.slope == 1
    assert one.flat == (ceiling(l / m1),)


def test_too_many_branches_are_refused():
    many = sum((Max(l, n) for n in range(2, 10)), b)
    with pytest.raises(sc.errors.InputError, match="more than 64 branches"):
        branches(many, l)


def test_elasticities_are_those_of_the_formulas():
    job = sc.job("gpt3-175b", "tp=8,sp,dp=4", {"b": 1})
    totals = {name: cost.total(job.rows) for name, cost in COSTS.items()}
    totals = {name: expr for name, expr in totals.items() if expr != 0}
    found = sensitivity(totals, job.values)
    for name in ("flops", "saved", "params"):
        exact = job.value(sc.elasticity(totals[name].replace(ceiling, lambda x: x), e))
        assert found.elasticities[name]["e"] == pytest.approx(float(exact), rel=1e-3)
    assert found.elasticities["saved"]["b"] == pytest.approx(1, abs=1e-4)
    assert found.elasticities["comm"]["l"] == 1
    assert "m1" in found.jumping["flops"]


def test_what_is_rounded_has_the_elasticity_of_what_it_rounds():
    """Weights of a table of V rows over m1 ranks: one per cent per per cent, at a jump as well."""
    found = sensitivity({"rows": e * ceiling(V / m1)}, {"e": 8, "V": 128256, "m1": 8})
    assert found.elasticities["rows"] == {"e": 1.0, "V": 1.0, "m1": -1.0}
    assert found.jumping["rows"] == ("V", "m1")


def test_optima_of_published_trade_offs():
    """Narayanan's microbatch, sqrt(n) recomputation, spacing of unequal checkpoints."""
    B, t0, c, p, size, n, k, a = symbols("B_ t_0 c_ p_ size n_ k_ a_", **positive)
    (micro,) = optimum((B / size + p - 1) * (t0 + c * size), size)
    assert sc.equal(micro.at**2, B * t0 / (c * (p - 1)))
    assert micro.least
    wanted = B * c + (p - 1) * t0 + 2 * sqrt(B * c * (p - 1) * t0)
    assert (micro.value - wanted).subs({B: 64, t0: 3, c: 2, p: 8}).evalf() == pytest.approx(0)
    (layers,) = optimum(n / k + k, k)
    assert (layers.at, layers.value) == (sqrt(n), 2 * sqrt(n))
    (spacing,) = optimum(n * c / k + a * k, k)
    assert sc.equal(spacing.at**2, n * c / a)


def test_layouts_of_matrix_products():
    """2.5D with one copy is 2D, with P^(1/3) copies 3D; Pope's sides of a 2D layout."""
    n, P, c, x, E_, F_ = symbols("n_ P_ c_ x_ E_ F_", **positive)
    words = n**2 / sqrt(c * P)
    assert sc.equal(words.subs(c, 1), n**2 / sqrt(P))
    assert (words.subs(c, cbrt(P)) / (n**2 / P ** Rational(2, 3))).subs(
        P, 64
    ).evalf() == pytest.approx(1)
    (side,) = optimum(E_ / x + F_ * x / n, x)
    assert sc.equal(side.at**2, E_ * n / F_)


def test_crossings_of_published_conditions():
    """All-gather or all-to-all of context parallelism, and data-parallel communication."""
    N_, H, K_ = symbols("ranks H_ K_", **positive)
    gather, exchange = 2 * K_ * (N_ - 1) / N_, 2 * (H + K_) * (N_ - 1) / N_**2
    assert sc.equal((gather / exchange), N_ * K_ / (H + K_))
    tokens = sc.crossover(4 * e * h * l / b, 4 * e * h / m1, l)
    assert sc.equal(tokens[0], b / m1)


@pytest.mark.parametrize(
    ("expr", "told"),
    [
        (Max(b, l), "branches"),
        (e * V, "does not depend on l"),
        (l - l + e, "does not depend"),
        (l**5 + b * l**3 + e / l, "numbers"),
    ],
)
def test_refused_optima(expr, told):
    with pytest.raises(sc.errors.InputError, match=told):
        optimum(expr, l)


def test_integers_by_search():
    assert last_within(lambda n: n**3, 10**30) == 10**10
    assert last_within(lambda n: n, 0) is None
    assert last_within(lambda _: 0, 1) == LARGEST
    assert first_change(lambda n: 1000 - n) == 1001
    assert first_change(lambda _: 1) is None
    assert least_integer(lambda n: abs(n - 7), range(1, 64)) == (7, 0)
    with pytest.raises(sc.errors.InputError):
        least_integer(lambda n: n, range(0))


def test_dominance_by_inequalities_and_by_map():
    parts = {"scores": 4 * b * e * l**2, "weights": 24 * b * e**2 * l, "head": 6 * b * e * l * V}
    regions = {one.part: one.inequalities for one in dominance(parts)}
    assert regions["scores"] == {"weights": (l, 6 * e), "head": (2 * l, 3 * V)}
    found = dominance_map(parts, {"b": 1, "V": 100}, ("l", (1, 10**5)), ("e", (1, 10**4)), 20)
    for i, e_here in enumerate(found.up[1]):
        for j, l_here in enumerate(found.across[1]):
            point = {b: 1, V: 100, e: e_here, l: l_here}
            sizes = [float(expr.xreplace(point)) for expr in parts.values()]
            assert sizes[found.winner[i, j]] == pytest.approx(max(sizes))
    with pytest.raises(sc.errors.InputError, match="two or more"):
        dominance({"one": b})
    with pytest.raises(sc.errors.InputError, match="no number for V"):
        dominance_map(parts, {"b": 1}, ("l", (1, 9)), ("e", (1, 9)), 4)


def test_a_step_has_a_slope_without_brackets_of_signs():
    job = sc.job("gpt3-175b", "tp=8,sp", {"b": 1}, system="a100-80gb", global_batch=8)
    timed = job.time().timed
    slope = timed.step.chain.derivative("step", "l")
    values = {one.name: timed.numbers[one.name] for one in slope.symbols}
    number = slope.evaluate(values)["d step/d l"]
    assert number > 0
    assert Fraction(int(number.p), int(number.q)) > 0
