"""What tables say: formulas where numbers are missing, and plain English."""

from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.costs import named_cost


def printed(line):
    done = CliRunner().invoke(main, line.split())
    assert done.exit_code == 0, done.output
    return done.output


def test_a_step_without_numbers_is_a_formula_whose_names_are_all_defined():
    sheet = sc.job("gpt", system="symbolic").time().sheet
    defined = {row[0] for row in sheet.rows}
    named = {s.name for _, _, expr in sheet.rows if expr for s in expr.free_symbols}
    glossary = set(sc.symbols.GLOSSARY)
    assert {"step", "mfu"} <= defined
    assert named - defined <= glossary
    assert sheet.notes[1].startswith("no number for n_layers")


def test_what_needs_no_missing_number_is_a_number():
    job = sc.job("gpt2", "tp=2,pp=2,dp=2", system="h100")
    sheet, whole = job.time().sheet, job.bind(M=4).time().sheet
    assert sheet.title.endswith("formulas of M")
    assert "or --global-batch 512" in sheet.notes[1]
    numbers = {name: value for name, value, _ in whole.rows}
    formulas = {name: expr for name, value, expr in sheet.rows if value is None}
    settled = {name: value for name, value, _ in sheet.rows if value is not None}
    assert set(formulas) | set(settled) == {name for name, _, _ in sheet.rows}
    assert {"microbatches", "step", "mfu"} <= set(formulas)
    assert {"bubble", "microbatch", "model FLOP"} <= set(settled)
    assert all(numbers.get(name, value) == value for name, value in settled.items())
    names = {s.name for expr in formulas.values() for s in expr.free_symbols}
    assert names <= set(formulas) | set(settled) | set(sc.symbols.GLOSSARY)


def test_every_name_of_a_step_with_numbers_has_its_own():
    sheet = sc.job("gpt2", "tp=2,pp=2,dp=2", {"M": 4}, system="h100").time().sheet
    defined = {row[0] for row in sheet.rows}
    named = {s.name for _, _, expr in sheet.rows if expr for s in expr.free_symbols}
    assert named - defined <= set(sc.symbols.GLOSSARY)
    assert all(value for _, value, _ in sheet.rows)


def test_rates_of_a_symbolic_machine_are_bound_by_name():
    text = printed("time gpt --system symbolic --set F_m=3e14 --global-batch 8 --strategy dp=2")
    assert "F_m" not in text.split("bind them")[0]
    sizes = "b=1,l=64,e=64,f=256,h=4,V=128,n_layers=2,M=1"
    rates = "F_m=3e14,F_v=2e13,beta_m=2e12,t_k=1"
    assert "symbolic: parts" in printed(f"time gpt --system symbolic --set {sizes},{rates}")


def test_one_microbatch_is_one():
    assert "1 microbatch in a step" in printed("memory gpt2 --set M=1 --global-batch 1")
    assert "8 microbatches in a step" in printed("memory gpt2 --global-batch 8")


def test_states_are_held_between_steps():
    text = printed("memory gpt2 --global-batch 8")
    assert "\n between steps" in text
    assert "at between" not in text


def test_no_cost_is_explained_by_another():
    assert named_cost("flops_train").meaning == "training FLOP of one microbatch"


def test_one_rank_sends_nothing():
    assert "one rank sends nothing: --strategy names several" in printed("comm gpt2")
    assert "sends nothing" not in printed("comm gpt2 --strategy tp=2")
