"""`symbolic-cost laws` and `errata`: answers and refusals."""

import json

import pytest
from click.testing import CliRunner

from symbolic_cost.cli import main
from symbolic_cost.scaling.laws import cheapest, optimum


def run(line, exit_code=0):
    result = CliRunner().invoke(main, line.split(), catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return result.stdout if exit_code == 0 else result.stderr


def records(line):
    return json.loads(run(f"{line} --format json"))["records"]


def test_the_list_names_every_set():
    rows = records("laws")
    assert {row["constants"] for row in rows if row["law"] == "chinchilla"} == {
        "body",
        "tex",
        "code",
    }


def test_a_law_shows_its_derived_optimum():
    assert "best N = (C/6)**(beta/(alpha + beta))" in run("laws chinchilla")


def test_an_optimum_of_every_set():
    rows = records("laws chinchilla --flops 1e24")
    assert [row["constants"] for row in rows] == ["body", "tex", "code"]
    assert "to which law chinchilla was fitted" in run("laws chinchilla --flops 1e24")


def test_a_point_and_a_loss():
    (row,) = records("laws inference --loss 1.947 --set D_inf=2e12")
    assert row["N"] == pytest.approx(24.18e9, rel=1e-3)
    (row,) = records("laws chinchilla --constants body --set N=280e9,D=300e9")
    assert row["body"] == pytest.approx(1.99326, rel=1e-5)


def test_an_answer_names_the_variables_that_it_did_not_choose():
    """With 8 experts the exponents of Ludziejewski et al. are -0.16757 and -0.23386."""
    assert "E = 1: experts; --set E=NUMBER says another" in run("laws moe-joint --flops 1e21")
    answer = run("laws moe-joint --flops 1e21 --set E=8")
    assert "E = 8: experts\n" in answer
    (row,) = records("laws moe-joint --flops 1e21 --set E=8")
    assert row["exponent of N"] == pytest.approx(0.23386 / (0.16757 + 0.23386), rel=1e-4)
    assert "E = 1: experts; --set" in run("laws moe-joint --set N=1e9,D=1e10")
    found = optimum("moe-joint", 1e21)
    assert found.values["E"] == 1
    assert cheapest("inference", 2.2).values["D_inf"] == 0


def test_the_compute_of_a_loss_says_so_and_what_is_extrapolated():
    answer = run("laws chinchilla --constants body --loss 1.9")
    assert answer.startswith("Least compute for a loss of 1.9 of chinchilla\n")
    assert "outside of 4.4e+07 to 1.62e+10" in answer
    assert run("laws chinchilla --flops 1e21").startswith("Least loss of chinchilla\n")


def test_a_law_of_compute_takes_flops():
    """Table 6 of Kaplan et al.: 1.3e9 (C/8.64e19)^0.73 parameters; formula 4 of DeepSeek LLM."""
    rows = {row["quantity"]: row["table6"] for row in records("laws kaplan-compute --flops 1e23")}
    assert rows["N_opt"] == pytest.approx(1.3e9 * (1e23 / 8.64e19) ** 0.73)
    assert rows["loss [nat/token]"] == pytest.approx((3.1e8 / (1e23 / 8.64e19)) ** 0.05)
    rows = records("laws deepseek --flops 1e20 --flops 2e20")
    assert [row["C [FLOP]"] for row in rows] == ["1e+20"] * 4 + ["2e+20"] * 4
    assert "rounded too far" in run("laws llama3 --flops 3.8e25")


def test_approach_two_reads_a_file(tmp_path):
    path = tmp_path / "runs.csv"
    lines = ["N,D,loss,group"]
    for flop in (1e19, 1e20, 1e21):
        for step in (-2, -1, 0, 1, 2):
            N = (flop / 60) ** 0.5 * 2**step
            loss = 1 + 1 / flop**0.01 + step**2 / 100
            lines.append(f"{N},{flop / 6 / N},{loss},{flop:g}")
    path.write_text("\n".join(lines), encoding="utf-8")
    rows = records(f"laws fit {path} --approach 2")
    assert [row["exponent"] for row in rows] == pytest.approx([0.5, 0.5])


def test_prices_have_sources_and_dates():
    rows = records("prices")
    assert all(row["source"] and row["date"] for row in rows)
    (h100,) = [row for row in rows if (row["name"], row["what"]) == ("h100", "price")]
    assert h100["value"] == 10.8


def test_errata_have_proofs():
    rows = records("errata")
    assert len(rows) >= 12
    assert all(row["proof"] for row in rows)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("laws chinchila", "unknown law 'chinchila': did you mean chinchilla?"),
        ("laws chinchilla --constants tx", "unknown set of law chinchilla 'tx'"),
        ("laws chinchilla --flops -3", "flop = -3.0: a number above 0"),
        ("laws chinchilla --flops x", "Invalid value for '--flops'"),
        ("laws chinchilla --loss 2 --flops 1e20", "are not read with it"),
        ("laws chinchilla --family gpt", "--family is read with --flops"),
        ("laws chinchilla --rule e=2*f", "--rule is of a --family"),
        ("laws chinchilla --set N=7e9", "D is missing"),
        ("laws chinchilla --set N=x,Q=3", "2 problems"),
        (
            "laws chinchilla --flops 1e20 --family gpt --constants tex --rule e=open('x')",
            "is no part of one: numbers, names",
        ),
        ("laws llama3 --flops 1e21 --set C=1e20", "both say the compute"),
        ("laws sparsity --flops 1e21", "give its variables, N, D, S"),
        ("laws data-constrained --flops 1e25 --set U=1e10", "level there, and less compute"),
        ("laws fit nothing.csv", "cannot be read"),
        ("laws fit nothing.csv --approach 4", "1, 2 or 3 is accepted"),
        ("laws fit nothing.csv --approach 1 --bootstrap 3", "are of approach 3"),
        ("laws allocate --budget 1e6EUR --days 3", "a number with USD or kWh is accepted"),
        ("laws allocate --budget -1USD --budget x", "2 problems"),
        ("laws allocate --days 3 --days 4 --gpus 8", "is given more than once"),
        ("laws allocate --days 3", "days and GPUs are given together"),
        ("laws --format json chinchilla", "--format before chinchilla is not read"),
    ],
)
def test_refusals(line, said):
    assert said in run(line, exit_code=2)
