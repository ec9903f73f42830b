from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import (
    Add,
    Float,
    Integer,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    Rational,
    Symbol,
    ceiling,
    exp,
    log,
    sqrt,
    symbols,
)

from symbolic_cost.emit.formulas import (
    code,
    latex,
    latex_text,
    plain,
    symbols_of,
    where_plain,
)
from symbolic_cost.extrema import AtLeast, Choice
from symbolic_cost.symbols import Active, V, b, cp, dp, e, f, h, l, m1, mu, n_layers, p, s, t
from tests.emit.reading import value_of_latex, value_of_plain

GOLDEN = [
    (24 * e**2 * b * l / m1, "24 b l e^2/m1", r"\frac{24 b l e^{2}}{m_1}"),
    (h * s * b, "b h s", "b h s"),
    (V * b * e, "b e V", "b e V"),
    (n_layers * (e * b + l), "n_layers (b e + l)", r"n_{\mathrm{layers}} \left(b e + l\right)"),
    (cp * dp * b, "b cp dp", r"b \, \mathit{cp} \, \mathit{dp}"),
    (m1 - 1, "m1 - 1", "m_1 - 1"),
    (1 - b, "1 - b", "1 - b"),
    (-b - l, "-b - l", "-b - l"),
    (1 + 1 / m1 - b * l, "1 + 1/m1 - b l", r"1 + \frac{1}{m_1} - b l"),
    (
        12 * b * l**2 * e / m1 + 24 * b * l * e**2 / m1 + 4 * b * l * e + 7 * b * l * e / m1,
        "12 b l^2 e/m1 + 24 b l e^2/m1 + 4 b l e + 7 b l e/m1",
        r"\frac{12 b l^{2} e}{m_1} + \frac{24 b l e^{2}}{m_1} + 4 b l e + \frac{7 b l e}{m_1}",
    ),
    (
        b * l * (13 * e - 4) / (2 * m1 * dp),
        "b l (13 e - 4)/(2 m1 dp)",
        r"\frac{b l \left(13 e - 4\right)}{2 m_1 \, \mathit{dp}}",
    ),
    (Rational(3, 2) * b, "3 b/2", r"\frac{3 b}{2}"),
    (Rational(-3, 2), "-3/2", r"-\frac{3}{2}"),
    ((b + l) / (e + f), "(b + l)/(e + f)", r"\frac{b + l}{e + f}"),
    ((b + l) ** 2 / m1, "(b + l)^2/m1", r"\frac{\left(b + l\right)^{2}}{m_1}"),
    (Mul(-1, b + l, evaluate=False), "-(b + l)", r"-\left(b + l\right)"),
    (Mul(2, b - l, evaluate=False), "2 (b - l)", r"2 \left(b - l\right)"),
    (Add(b, Add(l, -e, evaluate=False), evaluate=False), "b + l - e", "b + l - e"),
    (2 * b * Active(m1), "2 b [m1 > 1]", r"2 b \left[m_1 > 1\right]"),
    (Active(m1) ** 2, "[m1 > 1]^2", r"\left[m_1 > 1\right]^{2}"),
    (
        Active(m1 * dp) * (m1 - 1),
        "(m1 - 1) [m1 dp > 1]",
        r"\left(m_1 - 1\right) \left[m_1 \, \mathit{dp} > 1\right]",
    ),
    (Max(e, l * b, 1 - f), "max(b l, e, 1 - f)", r"\max\left(b l, e, 1 - f\right)"),
    (Min(t, l), "min(l, t)", r"\min\left(l, t\right)"),
    (b * ceiling(e / m1), "b ceiling(e/m1)", r"b \left\lceil{\frac{e}{m_1}}\right\rceil"),
    (log(b) / 2, "log(b)/2", r"\frac{\log{\left(b \right)}}{2}"),
    (exp(-b), "exp(-b)", r"\exp\left(-b\right)"),
    (1 / sqrt(b), "1/sqrt(b)", r"\frac{1}{\sqrt{b}}"),
    (b ** Rational(3, 2), "b^(3/2)", r"b^{\frac{3}{2}}"),
    (3 * Integer(2) ** b, "3 (2^b)", r"3 \left(2^{b}\right)"),
    (Integer(-1) ** b, "(-1)^b", r"\left(-1\right)^{b}"),
    (b ** (l + 1), "b^(l + 1)", "b^{l + 1}"),
    (Pow(b * l, -1, evaluate=False), "1/(b l)", r"\frac{1}{b l}"),
    (Float("2.5") * b - l, "2.5 b - l", "2.5 b - l"),
    (mu * Symbol("alpha"), "mu alpha", r"\mu \alpha"),
    (b * Symbol("tiles_0"), "b tiles_0", r"b \, \mathit{tiles}_{0}"),
    (Integer(0), "0", "0"),
    (
        b + 2 * Piecewise((b, l > e), (e, True)),
        "b + 2 (b if e < l else e)",
        (
            r"b + 2 \left(\begin{cases} b & \text{for}\: e < l \\"
            r"e & \text{otherwise} \end{cases}\right)"
        ),
    ),
    (
        -Piecewise((b, b > e), (l, e < l)),
        "-(b if b > e else l if e < l else undefined)",
        r"-\left(\begin{cases} b & \text{for}\: b > e \\l & \text{for}\: e < l \end{cases}\right)",
    ),
]


@pytest.mark.parametrize(("expr", "text", "_"), GOLDEN, ids=[text for _, text, _ in GOLDEN])
def test_plain(expr, text, _):
    assert plain(expr) == text


@pytest.mark.parametrize(("expr", "_", "tex"), GOLDEN, ids=[text for _, text, _ in GOLDEN])
def test_latex(expr, _, tex):
    assert latex(expr) == tex


SYMBOLS = (b, l, e, h, m1, dp, n_layers, mu)
ATOMS = (
    st.sampled_from(SYMBOLS)
    | st.integers(-5, 5).map(Integer)
    | st.fractions(-3, 3, max_denominator=7).map(lambda x: Rational(x.numerator, x.denominator))
)


def left_as_given(parts):
    """Sums and products that SymPy does not tidy; it cannot take the ceiling of all of them."""
    pairs = st.tuples(parts, parts)
    return st.one_of(
        pairs.map(lambda xs: Add(*xs, evaluate=False)),
        pairs.map(lambda xs: Mul(*xs, evaluate=False)),
    )


def larger(parts):
    pairs = st.tuples(parts, parts)
    return st.one_of(
        st.lists(parts, min_size=2, max_size=4).map(lambda xs: Add(*xs)),
        st.lists(parts, min_size=2, max_size=4).map(lambda xs: Mul(*xs)),
        pairs.map(lambda xs: Max(*xs)),
        pairs.map(lambda xs: Min(*xs)),
        parts.map(ceiling),
        parts.map(Active),
        # The base is positive, so that no value divides by zero.
        st.tuples(parts, st.integers(-2, 3)).map(lambda x: Pow(Max(1, x[0]) + b, x[1])),
    )


EXPRESSIONS = st.recursive(ATOMS, larger, max_leaves=6)
PRINTED = EXPRESSIONS | st.recursive(EXPRESSIONS, left_as_given, max_leaves=3)
VALUES = st.fixed_dictionaries({symbol.name: st.integers(1, 9) for symbol in SYMBOLS})


def exact_value(expr, values):
    bound = expr.xreplace({symbol: Integer(values[symbol.name]) for symbol in SYMBOLS}).doit()
    return Fraction(int(bound.p), int(bound.q))


@given(PRINTED, VALUES)
def test_nothing_is_lost_in_print(expr, values):
    value = exact_value(expr, values)
    assert value_of_plain(plain(expr), values) == value
    assert value_of_latex(latex(expr), values) == value
    assert value_of_latex(latex(expr, breakable=True), values) == value


@pytest.mark.parametrize(
    ("expr", "tex"),
    [
        (b * l * (13 * e - 4) / m1, r"b l \allowbreak (13 e - 4)/m_1"),
        ((b + l) / m1, r"(b + l)/m_1"),
        (b / (m1 * dp), r"b/(m_1 \, \allowbreak \mathit{dp})"),
        (Max(b, l) / (e + f), r"\max(b, \allowbreak l)/(e + f)"),
        ((b + l) ** 2 / e, r"(b + l)^{2}/e"),
        (ceiling(V / m1) * Active(m1), r"\lceil V/m_1 \rceil \allowbreak [m_1 > 1]"),
        (n_layers * (b + l) - 1, r"n_{\mathrm{layers}} \allowbreak (b + l) - 1"),
    ],
)
def test_breakable_latex(expr, tex):
    assert latex(expr, breakable=True) == tex


@given(st.lists(st.sampled_from(SYMBOLS), min_size=2, max_size=5))
def test_order_of_construction_does_not_matter(factors):
    there, back = Add(*factors, 3 * b), Add(3 * b, *reversed(factors))
    assert plain(there) == plain(back)
    assert latex(Mul(*factors)) == latex(Mul(*reversed(factors)))


def test_symbols_stand_in_glossary_order():
    assert symbols_of([mu * e, h + l, b + Symbol("zz")]) == [b, l, e, h, mu, Symbol("zz")]


def test_where_lists():
    exprs = [e * b / m1, Symbol("unknown") + b]
    assert where_plain(exprs) == (
        "where b: microbatch size [sequences]; e: embedding (hidden) width; "
        "m1: tensor-parallel degree"
    )
    assert where_plain([Integer(2)]) == where_plain([]) == ""


def test_special_characters_are_escaped():
    assert latex_text("a_b & 50% #1 {x} ~^\\ <|>") == (
        r"a\_b \& 50\% \#1 \{x\} \textasciitilde{}\textasciicircum{}\textbackslash{} "
        r"\textless{}\textbar{}\textgreater{}"
    )


def test_symbols_are_those_of_sympy():
    x, y = symbols("x y")
    assert plain(y + x) == "x + y"


def test_a_choice_is_read_as_a_sentence_and_as_python():
    hops = Choice(AtLeast(p, 65), 2, p - 1)
    assert plain(1 + hops) == "1 + (2 if [p >= 65] else p - 1)"
    assert latex(hops, breakable=True) == r"(2 \text{ if } [p \ge 65] \text{ else } p - 1)"
    assert latex(hops).startswith(r"\begin{cases}")
    assert [eval(code(hops), {"p": n}) for n in (8, 65)] == [7, 2]  # noqa: S307 - our own text
