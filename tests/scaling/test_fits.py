"""Fits return the constants of their own points, and say what they do not know."""

import random

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.scaling.declared import law
from symbolic_cost.scaling.optimum import optimum
from symbolic_cost.scaling.runs import read_runs, runs_of

BODY = law("chinchilla").constants("body").values


def points(name="chinchilla", constants="body", sizes=10, noise=0.0):
    made, chance = law(name), random.Random(7)  # noqa: S311 - noise of a test
    rows = []
    for i in range(sizes):
        for j in range(sizes):
            point = {"N": 2**i * 1e7, "D": 2**j * 2e8}
            given = made.at(point, constants)[made.gives] * (1 + noise * chance.gauss(0, 1))
            rows.append({**point, "loss": given, "group": f"size {i}"})
    return rows


def budgets():
    made, rows = law("chinchilla"), []
    for flop in (1e19, 1e20, 1e21, 1e22):
        for step in range(-4, 5):
            N = optimum(made, flop, "body").values["N"] * 2 ** (step / 3)
            point = {"N": N, "D": flop / (6 * N)}
            rows.append({**point, "loss": made.at(point, "body")["loss"], "group": f"{flop:g}"})
    return rows


def test_a_fit_returns_the_constants():
    pytest.importorskip("scipy")
    found = sc.laws.fit("chinchilla", points())
    assert found.values == pytest.approx(dict(BODY), rel=1e-9)
    assert found.objective < 1e-20
    assert found.warnings == ()


def test_projection_returns_the_constants():
    pytest.importorskip("scipy")
    found = sc.laws.fit("chinchilla", points(sizes=5), method="projection")
    assert found.values == pytest.approx(dict(BODY), rel=1e-6)


@pytest.mark.parametrize(
    ("law_", "method", "said"),
    [
        ("kaplan", "projection", "is no sum of factors times powers"),
        ("chinchilla", "hubert", "unknown method 'hubert': did you mean huber?"),
    ],
)
def test_methods_that_do_not_apply_are_refused(law_, method, said):
    with pytest.raises(InputError) as refused:
        sc.laws.fit(law_, points(sizes=4), method=method)
    assert said in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "constants"), [("kaplan", "table2"), ("besiroglu", "table"), ("chinchilla", "code")]
)
def test_fits_of_other_laws_return_theirs(name, constants):
    pytest.importorskip("scipy")
    found = sc.laws.fit(name, points(name, constants, sizes=6))
    expected = dict(law(name).constants(constants).values)
    assert found.values == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_errors_cover_the_truth_and_agree_with_resampling():
    pytest.importorskip("scipy")
    found = sc.laws.fit("chinchilla", points(noise=0.003), resampled=40, grouped=True)
    spread = dict(zip(found.values, found.samples.std(axis=0), strict=True))
    for name, truth in BODY.items():
        assert abs(found.values[name] - truth) < 4 * found.errors[name]
        assert 0.4 < spread[name] / found.errors[name] < 2.5
    assert 100 < found.condition < 1000
    assert set(found.left_out) == {f"size {i}" for i in range(10)}
    assert all(0.001 < error < 0.006 for error in found.left_out.values())
    exponent, error = found.band(1e22)["exponent of N"]
    truth = optimum(law("chinchilla"), 1e22, "body").exponents["N"]
    assert abs(exponent - truth) < 4 * error < 0.05


def test_approaches_one_and_two_give_the_exponent():
    truth = optimum(law("chinchilla"), 1e21, "body")
    for number, near in ((1, 1e-2), (2, 1e-3)):
        found = sc.laws.approach(number, "chinchilla", budgets())
        for name in ("N", "D"):
            assert found[name].exponent == pytest.approx(truth.exponents[name], rel=near)
            assert found[name].at(1e21) == pytest.approx(truth.values[name], rel=0.05)


ROWS = [{"N": 1e8 * 2**i, "D": 1e9 * 3**i, "loss": 3.0 - i / 10} for i in range(8)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "column N is missing"),
        (ROWS[:5], "has 5 rows; 5 parameters need at least 6"),
        ([{**row, "N": 1e8} for row in ROWS], "N is 1e+08 in every row"),
        ([{**row, "loss": 2} for row in ROWS], "loss is 2 in every row"),
        ([*ROWS, {**ROWS[0], "D": float("nan")}], "row 9: D is nan: a positive number is accepted"),
        ([*ROWS, {**ROWS[0], "D": "inf"}], "row 9: D is 'inf'"),
        ([*ROWS, {**ROWS[0], "N": -1}], "row 9: N is -1"),
        ([*ROWS, {"N": 1, "D": 2}], "row 9: loss is None"),
        ([*ROWS, {**ROWS[0], "N": True}], "row 9: N is True"),
        ([{"N": row["N"], "tokens": row["D"], "los": 2} for row in ROWS], "did you mean los"),
    ],
)
def test_runs_that_say_too_little_are_refused(rows, said):
    with pytest.raises(InputError) as refused:
        runs_of(rows, law("chinchilla"))
    assert said in str(refused.value)


def test_other_words_for_columns():
    rows = [{"params": row["N"], "tokens": row["D"], "loss": row["loss"]} for row in ROWS]
    assert runs_of(rows, law("chinchilla")).columns["N"].tolist() == [row["N"] for row in ROWS]


def test_what_did_not_converge_gives_no_constants(monkeypatch):
    pytest.importorskip("scipy")
    monkeypatch.setattr("symbolic_cost.scaling.problem._EVALUATIONS", 1)
    with pytest.raises(InputError, match="did not converge: no constants are given"):
        sc.laws.fit("chinchilla", points(noise=0.1, sizes=4))


def test_groups_are_needed_to_leave_one_out():
    pytest.importorskip("scipy")
    rows = [{k: v for k, v in row.items() if k != "group"} for row in points(sizes=4)]
    with pytest.raises(InputError, match="no column 'group'"):
        sc.laws.fit("chinchilla", rows, grouped=True)


def test_too_few_budgets_are_refused():
    with pytest.raises(InputError, match="budgets have a best N between their runs; 3 are needed"):
        sc.laws.approach(2, "chinchilla", budgets()[:9])
    with pytest.raises(InputError, match="unknown approach '4'"):
        sc.laws.approach(4, "chinchilla", budgets())


def test_without_scipy_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(InputError, match=r"symbolic_cost\[fit\]"):
        sc.laws.fit("chinchilla", points(sizes=4))


@pytest.mark.parametrize(
    ("heading", "row", "said"),
    [
        ("N,D,loss,loss", "1e9,2e10,2,3", "column 'loss' stands 2 times"),
        ("N,D,loss,params", "1e9,2e10,2,1e9", "N, D, loss, params: a column is given twice"),
        ("N,D,loss", "1e9,2e10", "row 1: has fewer cells"),
        ("N,D,loss", "1e9,2e10,2,3", "row 1: has more cells"),
    ],
)
def test_files_of_runs_that_could_be_read_two_ways_are_refused(tmp_path, heading, row, said):
    path = tmp_path / "runs.csv"
    path.write_text(f"{heading}\n{row}\n")
    with pytest.raises(InputError, match=said):
        read_runs(str(path), law("chinchilla"))
