"""Forms of formulas."""

from sympy import cancel

from symbolic_cost.analysis.views import relative
from symbolic_cost.symbols import e, f, symbol


def test_what_other_terms_are_of_a_leading_sum_has_no_common_factors():
    """N_p^2 + 1 stands in both: 12 e (N_p^2 + 1) is 1/(2 e) of 24 e^2 (N_p^2 + 1)."""
    every = symbol("N_p") ** 2 + 1
    cost = 24 * e**2 * every + 12 * e * every
    found = relative(cost, e)
    assert 1 + 1 / (2 * e) in found.args
    assert cancel(relative(cost + 6 * f, e) - cost - 6 * f) == 0
