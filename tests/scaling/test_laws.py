"""Laws: declared apart from constants; optima derived, equal to what a search finds."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.references import REFERENCES
from symbolic_cost.scaling.closed import closed, numeric
from symbolic_cost.scaling.declared import law, laws, laws_of
from symbolic_cost.scaling.family import Family
from symbolic_cost.scaling.law import Constants
from symbolic_cost.scaling.optimum import cheapest, optimum
from symbolic_cost.typed import Formula

SETS = [(name, one) for name in laws() for one in law(name).sets]
CLOSED = ["chinchilla", "kaplan", "over-training", "moe-joint"]


@pytest.mark.parametrize(("name", "constants"), SETS)
def test_every_set_has_a_reference(name, constants):
    source = law(name).constants(constants).source
    assert source.partition(",")[0] in REFERENCES


@pytest.mark.parametrize(("name", "constants"), SETS)
def test_constants_are_inside_the_bounds_of_their_parameters(name, constants):
    made = law(name)
    for parameter, value in made.constants(constants).values.items():
        low, high = made.parameters[parameter]
        assert low <= value <= high


@given(
    st.floats(0.1, 1),
    st.floats(0.1, 1),
    st.floats(1, 1e4),
    st.floats(1, 1e4),
    st.floats(17, 26),
)
@settings(max_examples=12, deadline=None)
def test_the_closed_form_is_stationary(alpha, beta, A, B, exponent):
    values = {"E": 1, "A": A, "B": B, "alpha": alpha, "beta": beta}
    made, flop = law("chinchilla").with_constants(Constants("c", values, "x")), 10**exponent
    best = optimum(made, flop).values
    N, D = best["N"], best["D"]
    assert pytest.approx(flop, rel=1e-9) == 6 * N * D
    assert alpha * A / N**alpha == pytest.approx(beta * B / D**beta, rel=1e-9)


@pytest.mark.parametrize("name", CLOSED)
def test_the_closed_form_is_the_least_of_its_budget(name):
    made, flop = law(name), 1e21
    constants = next(iter(made.sets))
    best = optimum(made, flop, constants)
    assert best.how == "closed form"
    here = best.values[made.gives]
    for factor in (0.8, 0.99, 1.01, 1.25):
        N = best.values["N"] * factor
        beside = {"N": N, "D": flop / (6 * N)}
        assert made.at(beside, constants)[made.gives] > here
    more = optimum(made, flop * 1.0001, constants).values[made.gives]
    assert (here - more) / (flop * 1e-4) == pytest.approx(best.price, rel=1e-3)


def test_exponents_of_the_closed_form():
    made = closed(law("chinchilla"))
    values = {"alpha": 0.3, "beta": 0.2}
    assert numeric(made.exponents["N"], values) == pytest.approx(0.4)
    assert numeric(made.excess, values) == pytest.approx(-0.12)


def test_a_search_finds_the_closed_form():
    best = optimum(law("chinchilla"), 1e22, "body")
    searched = optimum(law("inference").with_constants(law("chinchilla").constants("body")), 1e22)
    assert searched.how == "search"
    for name in ("N", "D"):
        assert searched.values[name] == pytest.approx(best.values[name], rel=1e-5)
        assert searched.exponents[name] == pytest.approx(best.exponents[name], rel=1e-3)
    assert searched.price == pytest.approx(best.price, rel=1e-4)


def test_without_inference_sardana_is_chinchilla():
    own = law("inference")
    best = optimum(own, 1e22)
    dual = cheapest(own, best.values["loss"])
    assert dual.values["C"] == pytest.approx(1e22, rel=1e-6)
    served = cheapest(own, best.values["loss"], others={"D_inf": 1e13})
    assert served.values["N"] < dual.values["N"]
    assert served.values["D"] > dual.values["D"]


def test_with_unlimited_data_muennighoff_is_chinchilla():
    own = law("data-constrained")
    point = {"N": 1e9, "D": 2e10}
    free = own.at(point)
    assert free["D_eff"] == pytest.approx(2e10)
    assert own.at({**point, "U": 1e9})["loss"] > free["loss"]
    assert own.at({**point, "U": 2e10})["D_eff"] == pytest.approx(2e10)


def test_one_expert_is_a_dense_model():
    values = law("moe-joint").at({"N": 1e9, "D": 1e10})
    start = law("moe-joint").constants().values["E_start"]
    assert values["E_hat"] == pytest.approx(start)


def test_loss_falls_with_compute():
    losses = [optimum(law("besiroglu"), 10.0**power).values["loss"] for power in range(18, 26)]
    assert losses == sorted(losses, reverse=True)


def test_a_family_has_the_flop_of_its_rows():
    family = Family(
        "gpt", {"e": "64*n_layers", "f": "4*e", "h": "n_layers"}, {"V": 50257, "l": 1024}
    )
    parameters, flop = family.at(12)
    gpt2 = sc.model("gpt2")
    table = sc.bind(sc.cost(gpt2, "model-flop"), gpt2.bindings | {"b": 1})
    assert parameters == int(table.total("parameter"))
    assert flop == int(table.total("flop")) / 1024
    assert family.size_of(parameters) == pytest.approx(12, rel=1e-8)
    assert family.member(12) == {
        "n_layers": 12,
        "V": 50257,
        "l": 1024,
        "e": 768,
        "f": 3072,
        "h": 12,
    }


def test_compute_of_a_family_buys_fewer_tokens_than_6nd():
    own = law("chinchilla")
    plain, family = optimum(own, 1e20, "tex"), optimum(own, 1e20, "tex", family=Family("gpt"))
    assert family.values["loss"] > plain.values["loss"]
    size = family.member["n_layers"]
    parameters, flop = Family("gpt").at(size)
    assert parameters == pytest.approx(family.values["N"], rel=1e-6)
    assert flop * family.values["D"] == pytest.approx(1e20, rel=1e-6)


def test_a_law_outside_its_range_warns_with_the_range():
    best = optimum(law("chinchilla"), 1e26, "body")
    assert any("is outside of 4.4e+07 to 1.62e+10" in text for text in best.warnings)
    assert not optimum(law("chinchilla"), 1e20, "body").warnings


def test_the_door():
    assert "chinchilla" in sc.laws.names()
    assert sc.laws.at("routed", "s-base", N=5e6, E=128)["N_bar"] == pytest.approx(51828431.87)
    formula = sc.laws.formula("chinchilla", "exponent of N")
    assert str(formula) == "beta/(alpha + beta)"
    found = sc.laws.frontier_of("besiroglu", [1e20, 1e21])
    assert [one.values["C"] for one in found] == [1e20, 1e21]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: optimum(law("chinchilla"), 1e21), "name one of body, tex, code"),
        (lambda: optimum(law("chinchilla"), -1, "tex"), "flop = -1: a number above 0"),
        (lambda: optimum(law("chinchilla"), math.nan, "tex"), "flop = nan"),
        (lambda: optimum(law("llama3"), 1e21, "text"), "says nothing about compute"),
        (lambda: law("chinchila"), "did you mean chinchilla"),
        (lambda: law("chinchilla").at({"N": 1}, "tex"), "D is missing: tokens trained on"),
        (lambda: law("chinchilla").at({"N": -1, "D": 2, "Q": 3}, "tex"), "2 problems"),
        (lambda: law("chinchilla").at({"N": -1, "D": 2, "Q": 3}, "tex"), "unknown variable"),
        (lambda: cheapest(law("inference"), 1.0), "no size reaches a loss of 1"),
        (lambda: Family("gpt", {"e": "64*n_layers"}).free, "free sizes are n_layers, f"),
        (
            lambda: Family("gpt", {"e": "64*n_layers", "f": "e", "h": "n_layers/3"}).member(4),
            "h = 4/3 at n_layers = 4 is not whole",
        ),
        (lambda: Family("gpt3-175b"), "has sizes: a family such as gpt"),
        (lambda: Family("gpt").size_of(1), "no member of 1 parameters"),
        (
            lambda: optimum(law("kaplan"), 1e20, family=Family("gpt")),
            "counts non-embedding parameters: give a family that does",
        ),
    ],
)
def test_refusals(call, said):
    with pytest.raises(InputError) as refused:
        call()
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("E + A/N**alpha + 0*B*beta", "has no optimum inside"),
        ("E - A/N**alpha - B/D**beta", "has no least loss of a compute"),
    ],
)
def test_a_law_without_an_optimum_is_refused(value, said):
    chinchilla = law("chinchilla")
    made = replace(chinchilla, value=Formula(value))
    with pytest.raises(InputError, match=said):
        optimum(made, 1e20, "body")


def test_compute_that_is_no_line_in_the_tokens():
    made = replace(law("chinchilla"), compute=Formula("6*N*D + D**1.5"))
    best = optimum(made, 1e20, "body").values
    assert 6 * best["N"] * best["D"] + best["D"] ** 1.5 == pytest.approx(1e20, rel=1e-6)


OWN = """
[mine]
meaning = "mine"
variables = { N = "parameters", D = "tokens" }
parameters = { E = [0, 10], A = [0, 1e9], alpha = [0.01, 2] }
value = "E + A/N**alpha + 1/D**alpha"
compute = "8*N*D"
sets.first = { values = { E = 1.7, A = 400, alpha = 0.34 }, source = "my runs" }
"""


def test_a_law_of_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(OWN, encoding="utf-8")
    best = optimum(law(str(path)), 1e20)
    assert 8 * best.values["N"] * best.values["D"] == pytest.approx(1e20)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("A/N**alpha", "A/M**alpha", "unknown name 'M'"),
        ("A/N**alpha", "open(N)", "unknown function 'open'"),
        ("A/N**alpha", "open('x')", "is no part of one"),
        ('compute = "8*N*D"', 'compute = "8*N*E"', "compute: unknown variable 'E'"),
        ("E = 1.7, ", "", "sets.first: E has no value"),
        ("A = 400", "A = nan", "sets.first.values.A is nan: a finite number is accepted"),
        ("E = [0, 10]", "E = [10, 0]", "[least, largest] is accepted"),
        (', source = "my runs"', "", "sets.first.source is missing"),
        ('meaning = "mine"', "meanig = 1", "unknown key 'meanig'"),
        ('value = "E + A/N**alpha + 1/D**alpha"', "value = 3", "value is 3: text is accepted"),
        ("[mine]", "[mine", "is not TOML"),
        ("sets.first = {", "sets = {", "is accepted"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, old, new, said):
    path = tmp_path / "mine.toml"
    path.write_text(OWN.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        law(str(path))
    assert said in str(refused.value)


def test_all_problems_of_a_file_are_told():
    with pytest.raises(InputError) as refused:
        laws_of({"a": {"meaning": 1}, "b": 3}, "file")
    assert len(refused.value.problems) == 4


def test_a_law_has_the_name_of_who_published_it():
    assert law("krajewski") is law("moe-granularity")
    assert law("hoffmann") is law("chinchilla")
    with pytest.raises(InputError, match="unknown law 'kaplann'"):
        law("kaplann")
