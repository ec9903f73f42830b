"""Rows and totals of the model against closed forms written down on their own."""

import importlib.util
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import expand, lambdify

from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Quantity
from symbolic_cost.published import contract, nersc_2024
from symbolic_cost.published.nersc_2024.books import ALL_SLIPS, BOOKS, SLIPS
from symbolic_cost.published.nersc_2024.declaration import Scheme, derived
from symbolic_cost.published.nersc_2024.layers import handed_on, layers
from symbolic_cost.symbols import F_m, F_v, b, e, f, h, l, m1, m2, mu, panels, s
from symbolic_cost.systems.times import TRAFFIC

_SPEC = importlib.util.spec_from_file_location(
    "nersc_formulas", Path(__file__).with_name("nersc_formulas.py")
)
FORMULAS = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(FORMULAS)

SCHEMES = (
    Scheme("1d"),
    Scheme("1d", flash=False),
    Scheme("1d", flash=False, recompute=True),
    Scheme("2d"),
    Scheme("2d", flash=False),
    Scheme("2d-seqp"),
    Scheme("2d-seqp", flash=False),
)
SYSTEM = nersc_2024.PUBLISHED_INPUTS["system"]


def _closed_forms(scheme, *, corrected):
    return FORMULAS.layers(
        scheme.strategy, corrected=corrected, flash=scheme.flash, recompute=scheme.recompute
    )


def same(one, other):
    return expand(one - other) == 0


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_derived_rows_are_the_closed_forms(scheme, corrected):
    wanted = _closed_forms(scheme, corrected=corrected)
    repaired = ALL_SLIPS.keys() - {"inflated FLOP"}  # the closed forms count as printed
    found = layers(scheme, frozenset(repaired if corrected else ()))
    assert [layer.name for layer in found] == list(wanted)
    for layer in found:
        want = wanted[layer.name]
        assert same(layer.sum(Quantity.SAVED) / s, want["act"]), layer.name
        assert same(layer.sum(Quantity.WEIGHT) / s, want["w"]), layer.name
        for name, flop in (("fwd", "ff"), ("bwd", "fb")):
            sums = layer.sum(Quantity.FLOP, way=name), layer.sum(*TRAFFIC, way=name)
            assert same(sums[0], want[flop]), (layer.name, name)
            assert same(sums[1] / s, want[f"mem_{name}"]), (layer.name, name)
            moved = Counter(
                (move.kind.value, expand(move.calls * move.message / s))
                for move in layer.moves(name)
            )
            wanted_moves = Counter((kind, expand(size)) for kind, size in want[f"comm_{name}"])
            assert moved == wanted_moves, (layer.name, name)


def test_every_printed_number():
    rows = nersc_2024.reproduce()
    assert len(rows) == 14 * 18 + 20 + 19
    assert [row.key for row in rows if not row.match] == []
    assert contract.reproduce("nersc-2024").matched == len(rows)


def test_every_departure_is_named_and_changes_something():
    names = [departure.name for departure in BOOKS + SLIPS]
    assert len(names) == len(set(names))
    for departure in BOOKS + SLIPS:
        for strategy in departure.where:
            changed = [
                departure.change(row, scheme) != (row,)
                for scheme in SCHEMES
                if scheme.strategy == strategy
                for row in (*derived(scheme), *BOOKS.applied(derived(scheme), strategy, scheme))
            ]
            assert any(changed), departure.name


_SIZES = (b, l, e, f, h, m1, m2, panels, s, mu, F_m, F_v)


def _numbers(given_):
    """Closed forms as numbers, with the mesh of every collective."""
    system = given_["system"]
    degrees = [*given_["tp"], 1][:2]
    values = {
        b: given_["micro_batch_size"],
        l: given_["l"],
        e: given_["e"],
        f: given_["f"],
        h: given_["h"],
        m1: degrees[0],
        m2: degrees[1],
        panels: system["summa_nb"],
        s: system["element_size"],
        mu: system["mask_element_size"],
        F_m: system["matrix_flops_fp16"],
        F_v: system["vector_flops_fp16"],
    }
    arguments = [values[symbol] for symbol in _SIZES]
    rows = {}
    for name, row in _compiled()[_scheme(given_), given_["corrected"]].items():
        rows[name] = {key: rule(*arguments) for key, rule in row.items() if callable(rule)}
        for key in ("comm_fwd", "comm_bwd"):
            rows[name][key] = [(k, rule(*arguments), mesh) for k, rule, mesh in row[key]]
    return rows


def _scheme(given_):
    names = ("strategy", "flash_attention", "recompute_attention")
    return Scheme(*(given_[name] for name in names))


_KEYS_OVER_M2 = {"fusedla", "logits", "attend"}


def _mesh(strategy, name, size):
    """Messages over m2 are keys, values and weights; the closed forms tell them by their size."""
    if strategy != "2d" or name == "fusedla":
        return "m2" if name in _KEYS_OVER_M2 else "m1"
    if name in _KEYS_OVER_M2:
        return "m2" if same(size, b * l * e / m1) else "m1"
    return "m1" if b in size.free_symbols else "m2"


@cache
def _compiled():
    found = {}
    for scheme in SCHEMES:
        for corrected in (False, True):
            rows = {}
            for name, row in _closed_forms(scheme, corrected=corrected).items():
                rows[name] = {
                    key: lambdify(_SIZES, value)
                    for key, value in row.items()
                    if not isinstance(value, list)
                }
                for key in ("comm_fwd", "comm_bwd"):
                    rows[name][key] = [
                        (kind, lambdify(_SIZES, size), _mesh(scheme.strategy, name, size))
                        for kind, size in row[key]
                    ]
            found[scheme, corrected] = rows
    return found


@st.composite
def configurations(draw):
    scheme = draw(st.sampled_from(SCHEMES))
    strategy = scheme.strategy
    power = st.integers(0, 3).map(lambda n: 2**n)
    tp = [draw(power) for _ in range(1 if strategy == "1d" else 2)]
    dp, pp, mbs = draw(power), draw(power), draw(power)
    size = draw(st.sampled_from([1, 4, 8, 64]))
    ranks = [*tp, dp, pp]
    inside = [draw(st.sampled_from([n for n in (1, 2, 4, 8) if n <= min(r, size)])) for r in ranks]
    heads = 8 * draw(st.integers(1, 6))
    rate = st.floats(1, 1000).map(lambda x: round(x, 3))
    system = {
        **SYSTEM,
        "nvlink_size": size,
        "nic_factor": draw(st.sampled_from([0.5, 1, 2])),
        "summa_nb": draw(st.sampled_from([1, 2, 4, 8])),
        "hbm_bandwidth": draw(rate),
        "nvlink_bandwidth": draw(rate),
        "ib_bandwidth": draw(rate),
        "matrix_flops_fp16": draw(rate),
        "vector_flops_fp16": draw(rate),
        "element_size": draw(st.sampled_from([2e-9, 4e-9])),
    }
    return {
        "strategy": strategy,
        "l": 64 * draw(st.integers(1, 64)),
        "e": heads * 16 * draw(st.integers(1, 8)),
        "f": 64 * draw(st.integers(1, 300)),
        "h": heads,
        "depth": 8 * draw(st.integers(1, 12)),
        "global_batch_size": 64 * draw(st.integers(1, 16)),
        "micro_batch_size": mbs,
        "tp": tp,
        "dp": dp,
        "pp": pp,
        "nv_assignment": inside,
        "flash_attention": scheme.flash,
        "recompute_attention": scheme.recompute,
        "corrected": draw(st.booleans()),
        "system": system,
    }


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(configurations())
def test_any_inputs_agree_with_the_closed_forms(inputs):
    found = nersc_2024.evaluate(inputs)
    wanted = FORMULAS.step(inputs, _numbers(inputs))
    for row in found["layers"]:
        for one in ("fwd", "bwd"):
            wanted_time = wanted["rows"][row["layer"], one]
            assert row[f"t_{one}"] == pytest.approx(wanted_time, rel=1e-12), row["layer"]
    for name in ("t", "mem", "throughput"):
        assert found["totals"][name] == pytest.approx(wanted[name], rel=1e-12), name


def test_totals_are_told_under_both_names():
    totals = nersc_2024.evaluate(nersc_2024.PUBLISHED_INPUTS)["totals"]
    assert totals["t_total"] == totals["t"]
    assert totals["memory"] == totals["mem"]
    assert totals["feasible"] is False
    assert totals["number_micro_batches"] == 64


def test_names_with_capitals():
    one = nersc_2024.evaluate({**nersc_2024.PUBLISHED_INPUTS, "strategy": "1D"})
    assert one == nersc_2024.evaluate(nersc_2024.PUBLISHED_INPUTS)


def test_corrected_repairs_the_slips_alone():
    printed = nersc_2024.evaluate(nersc_2024.PUBLISHED_INPUTS)
    fixed = nersc_2024.evaluate({**nersc_2024.PUBLISHED_INPUTS, "corrected": True})
    differs = {
        one["layer"]
        for one, two in zip(printed["layers"], fixed["layers"], strict=True)
        if one != two
    }
    assert differs == {"fc2-bias", "vproj-bias", "ln1", "ln2", "fusedla"}
    fused = [r["layers"][9] for r in (printed, fixed)]
    assert fused[0]["flops_fwd"] > fused[1]["flops_fwd"]
    assert fused[0]["t_fwd"] == pytest.approx(fused[1]["t_fwd"], rel=1e-12)


BUSY = {
    **nersc_2024.PUBLISHED_INPUTS,
    "dp": 8,
    "pp": 8,
    "l": 4096,
    "global_batch_size": 64,
    "f": 4 * 25600,
    "system": {**SYSTEM, "nvlink_size": 64, "element_size": 4e-9},
}


@pytest.mark.slow
@pytest.mark.parametrize("slip", ALL_SLIPS)
def test_every_slip_is_repaired_alone(slip):
    """Each changes some number of some strategy, and nothing else is repaired with it."""
    changed = []
    for strategy, tp in (("1d", [4]), ("2d", [4, 2]), ("2d-seqp", [4, 2])):
        inside = [*tp, 1, 2]
        inputs = {**BUSY, "strategy": strategy, "tp": tp, "nv_assignment": inside}
        one = nersc_2024.evaluate({**inputs, "corrected": [slip]})
        changed.append(one != nersc_2024.evaluate(inputs))
        every = nersc_2024.evaluate({**inputs, "corrected": list(ALL_SLIPS)})
        assert every == nersc_2024.evaluate({**inputs, "corrected": True})
        assert every != one
    assert any(changed)


def test_what_stages_hand_on():
    assert same(handed_on(Scheme("1d")), s * b * l * e / m1)
    assert same(handed_on(Scheme("2d-seqp")), s * b * l * e / (m1 * m2))
    assert same(handed_on(Scheme("2d"), frozenset({"norm width"})), s * b * l * e / (m1 * m2))
    assert same(handed_on(Scheme("2d")), s * b * l * l / (m1 * m2))


def test_refusals():
    wrong = {
        **nersc_2024.PUBLISHED_INPUTS,
        "e": 25601,
        "pp": 7,
        "nv_assignment": [4, 8, 1],
    }
    with pytest.raises(InputError) as caught:
        nersc_2024.evaluate(wrong)
    assert list(caught.value.problems) == [
        "e = 25601 is not divisible by m1 = 4",
        "e = 25601 is not divisible by h = 160",
        "depth = 128 is not divisible by pp = 7",
        "nv_assignment of dp = 8 is more than nvlink_size = 4",
    ]
    with pytest.raises(InputError, match="strategy 2d takes 2 degrees"):
        nersc_2024.evaluate({**nersc_2024.PUBLISHED_INPUTS, "strategy": "2d"})
    with pytest.raises(InputError, match="3 numbers are accepted"):
        nersc_2024.evaluate({**nersc_2024.PUBLISHED_INPUTS, "nv_assignment": [1]})
    with pytest.raises(InputError, match="recompute_attention: accepted with strategy 1d"):
        nersc_2024.evaluate({**nersc_2024.PUBLISHED_INPUTS, "recompute_attention": True})
    with pytest.raises(InputError, match="unknown slip 'free lnks': did you mean free links"):
        nersc_2024.evaluate({**nersc_2024.PUBLISHED_INPUTS, "corrected": ["free lnks"]})
    bad = {**SYSTEM, "nvlink_eff": 2, "empirical": True}
    with pytest.raises(InputError) as caught:
        nersc_2024.evaluate({**nersc_2024.PUBLISHED_INPUTS, "strategy": "3d", "system": bad})
    assert len(caught.value.problems) == 3
