"""The transformer tables against print, code, and closed forms written here once more."""

import csv
import math
from fractions import Fraction
from pathlib import Path

import pytest
from sympy import Rational

from symbolic_cost.errors import DivisibilityError, InputError, UnknownNameError
from symbolic_cost.published import transformer_tables
from symbolic_cost.published.contract import reproduce
from symbolic_cost.published.transformer_tables import comparisons
from symbolic_cost.published.transformer_tables.blocks import LAYOUT
from symbolic_cost.published.transformer_tables.columns import implied
from symbolic_cost.published.transformer_tables.slips import SLIPS
from symbolic_cost.symbols import exact

GOLDEN = Path(__file__).parents[1] / "golden"
PUBLISHED = dict(transformer_tables.PUBLISHED_INPUTS)
SYSTEM = dict(PUBLISHED["system"])
MATRIX = {"fc1", "fc2", "qkv_proj", "v_proj", "logits", "attend"}


def small(**changes):
    return {
        "b": 3,
        "l": 40,
        "e": 48,
        "f": 80,
        "h": 8,
        "depth": 5,
        "system": SYSTEM | {"nvlink_size": 2},
        "element_size": 4e-9,
        "mask_element_size": 1e-9,
    } | changes


# ------------------------------------------------------------------------ print and code


def test_every_printed_number_is_reproduced():
    rows = transformer_tables.reproduce()
    differing = [row for row in rows if not row.match]
    assert not differing
    keys = [row.key for row in rows]
    assert len(keys) == len(set(keys)) == 454
    assert sum(key.startswith("totals.") for key in keys) == 20
    assert sum(row.published == "" for row in rows) == 52  # of 82 cells without a number
    assert {row.key: row.computed for row in rows}["mlp.fc1.flops_fwd"] == "0.618475"


def test_a_changed_number_is_noticed():
    values = transformer_tables.evaluate(PUBLISHED | {"m1": 8})
    rows = list(comparisons(values))
    assert len(rows) == 454
    assert 0 < sum(row.match for row in rows) < 300


@pytest.mark.parametrize("block", ["mlp", "sa"])
def test_as_coded(block):
    values = transformer_tables.evaluate(PUBLISHED | {"variant": "B", "s1": 4})
    name = {"mlp": "mlp", "sa": "attention"}[block]
    with (GOLDEN / f"transformer_{name}_as_coded.csv").open() as lines:
        printed = list(csv.DictReader(lines))
    assert [row["layer"] for row in printed] == [row["layer"] for row in values[block]]
    for expected, row in zip(printed, values[block], strict=True):
        assert expected.keys() == row.keys()
        for column, text in expected.items():
            cell = row[column]
            if text == "NaN":
                assert cell is None, (row["layer"], column)
            elif isinstance(cell, str):
                assert cell == text
            else:
                assert cell == pytest.approx(float(text), rel=1e-12), (row["layer"], column)


# ------------------------------------------------------------------------ closed forms
# Exact numbers in elements; sizes of elements are factors s and mu.


def linear(N, K, F, beta):
    return {
        "flops_fwd": N * F * (2 * K - 1) + beta * N * F,
        "flops_bwd": 4 * N * K * F - N * K - K * F + beta * N * F,
        "activation_in_mem": N * K,
        "activation_in_other_mem": 0,
        "activation_out_mem": N * F,
        "activation_buffer": N * K,
        "weights_mem": K * F + beta * F,
        "total_mem_fwd": N * K + N * F + K * F + beta * F,
        "activation_grad_mem": N * K + N * F,
        "weights_grad_mem": K * F + beta * F,
        "total_mem_bwd": 2 * N * K + N * F + 2 * (K + beta) * F,
    }


def layer_norm(N, e, meant):
    return {
        "flops_fwd": 9 * N * e,
        "flops_bwd": N * (13 * e - 4),
        "activation_in_mem": N * e,
        "activation_in_other_mem": 2 * N if meant else 0,
        "activation_out_mem": N * e,
        "activation_buffer": N * e,
        "weights_mem": 2 * e,
        "total_mem_fwd": 2 * N * e + 2 * e + (2 * N if meant else 0),
        "activation_grad_mem": 2 * N * e,
        "weights_grad_mem": 2 * e,
        "total_mem_bwd": 3 * N * e + 2 * e,
    }


def logits(b, l, q, H):
    small, large = b * H * l * q, b * H * l * l
    return {
        "flops_fwd": large * (2 * q - 1),
        "flops_bwd": 2 * small * (2 * l - 1),
        "activation_in_mem": small,
        "activation_in_other_mem": small,
        "activation_out_mem": large,
        "activation_buffer": 2 * small,
        "weights_mem": 0,
        "total_mem_fwd": 2 * small + large,
        "activation_grad_mem": 2 * small + large,
        "weights_grad_mem": 0,
        "total_mem_bwd": 4 * small + large,
    }


def softmax(b, l, H):
    rows, large = b * H * l, b * H * l * l
    return {
        "flops_fwd": rows * (3 * l - 1),
        "flops_bwd": rows * (4 * l - 1),
        "activation_in_mem": large,
        "activation_in_other_mem": 0,
        "activation_out_mem": large,
        "activation_buffer": large,
        "weights_mem": 0,
        "total_mem_fwd": 2 * large,
        "activation_grad_mem": 2 * large,
        "weights_grad_mem": 0,
        "total_mem_bwd": 3 * large,
    }


def attend(b, l, q, H, meant):
    small, large = b * H * l * q, b * H * l * l
    further = small if meant else 0
    return {
        "flops_fwd": small * (2 * l - 1),
        "flops_bwd": large * (2 * q - 1) + small * (2 * l - 1),
        "activation_in_mem": large,
        "activation_in_other_mem": small,
        "activation_out_mem": small,
        "activation_buffer": large + small,
        "weights_mem": 0,
        "total_mem_fwd": large + 2 * small,
        "activation_grad_mem": small + large + further,
        "weights_grad_mem": 0,
        "total_mem_bwd": 2 * small + 2 * large + further,
    }


def act(n, meant):
    further = n if meant else 0
    return {
        "flops_fwd": n,
        "flops_bwd": n,
        "activation_in_mem": n,
        "activation_in_other_mem": 0,
        "activation_out_mem": n,
        "activation_buffer": n,
        "weights_mem": 0,
        "total_mem_fwd": 2 * n,
        "activation_grad_mem": n + further,
        "weights_grad_mem": 0,
        "total_mem_bwd": 2 * n + further,
    }


def dropout(n, meant, mask):
    """`mask` is mu/s, so that all memory columns are in elements."""
    further = n if meant else 0
    return {
        "flops_fwd": n,
        "flops_bwd": n,
        "activation_in_mem": n,
        "activation_in_other_mem": n * mask,
        "activation_out_mem": n,
        "activation_buffer": n * mask,
        "weights_mem": 0,
        "total_mem_fwd": n * (2 + mask),
        "activation_grad_mem": n + further,
        "weights_grad_mem": 0,
        "total_mem_bwd": n * (1 + mask) + further,
    }


def tables(given, variant, m1, s1):
    """(layer, costs, {direction: (volume, type)}, ranks of the group) by block."""
    b, l, e, f, h = (given[name] for name in "blefh")
    mask = Fraction(str(given["mask_element_size"])) / Fraction(str(given["element_size"]))
    meant, coded = variant == "C", variant == "B"
    N, F, H, q, V = b * l, f // m1, h // m1, e // h, b * l * e
    p = s1 if coded else m1  # degree of the positions of norms and dropouts
    n = b * (l // p)

    ring = lambda ranks: Fraction(V * (ranks - 1), ranks)  # noqa: E731
    reduced = V * (m1 > 1) if variant == "A" else ring(m1)
    gathered = V * (m1 > 1) if variant == "A" else ring(p)
    additions = 0 if variant == "A" else ring(m1)
    gathers = p > 1 or not coded
    norm_moves = {"fwd": (gathered, "allgather")} if gathers else {}
    last_moves = {"bwd": (gathered, "allgather")} if gathers else {}
    norm_ranks = p if gathers else None

    def plus(costs, column):
        return costs | {column: costs[column] + additions}

    def norm(name):
        return (name, layer_norm(n, e, meant), norm_moves, norm_ranks)

    scattered = (reduced, "reducescatter")
    wide = dropout(N * F, meant, mask)
    core = [
        ("fc1", plus(linear(N, e, F, 1), "flops_bwd"), {"bwd": scattered}, m1),
        ("act", act(N * F, meant), {}, None),
        ("dpr1", wide, {}, None),
    ]
    fc2 = plus(linear(N, F, e, 1), "flops_fwd")
    if coded:
        mlp = [
            norm("layer_norm_1"),
            *core,
            ("fc2", fc2, {"fwd": scattered} | last_moves, s1 if s1 > 1 else m1),
            ("dpr1", dropout(b * l * f // s1, meant, mask), {}, None),
        ]
    else:
        final = ("dpr2", dropout(n * e, meant, mask), last_moves, m1)
        mlp = [*core, ("fc2", fc2, {"fwd": scattered}, m1), final]

    if coded and gathers:
        residual_moves, residual_ranks = {"bwd": (gathered * (m1 > 1), "allgather")}, m1
    else:
        residual_moves, residual_ranks = last_moves, m1 if gathers else None
    attention = [
        norm("layer_norm_1"),
        ("qkv_proj", plus(linear(N, e, 3 * e // m1, 0), "flops_bwd"), {"bwd": scattered}, m1),
        ("logits", logits(b, l, q, H), {}, None),
        ("softmax", softmax(b, l, H), {}, None),
        ("dropout_softmax", dropout(b * l * l * h // m1, meant, mask), {}, None),
        ("attend", attend(b, l, q, H, meant), {}, None),
        (
            "v_proj",
            plus(linear(N, h * q // m1, e, 1), "flops_bwd" if coded else "flops_fwd"),
            {"fwd": scattered},
            m1,
        ),
        ("dropout", dropout(n * e, meant, mask), residual_moves, residual_ranks),
        *(() if coded else (norm("layer_norm_2"),)),
    ]
    return {"mlp": mlp, "sa": attention}


def timed(given, variant, layer, costs, moves, ranks):  # noqa: PLR0917 - a row in full
    """All cells of a row, from its costs in elements."""
    system = {name: Fraction(str(rate)) for name, rate in given["system"].items()}
    size, unit = Fraction(str(given["element_size"])), Fraction(1, 10**12)
    row = {"layer": layer, "comm_size": ranks, "comm_topology": None}
    for column, value in costs.items():
        row[column] = value * (unit if column.startswith("flops") else size)
    bandwidth = latency = Fraction(0)
    if ranks is not None:
        domain = system["nvlink_size"]
        fast = ranks <= domain and domain > (1 if variant == "C" else 0)
        row["comm_topology"] = "nvlink" if fast else "ib"
        bandwidth = system["nvlink_bandwidth" if fast else "ib_bandwidth"]
        if variant == "C":
            latency = system.get("nvlink_latency" if fast else "ib_latency", Fraction(0))
    for way in ("fwd", "bwd"):
        volume, kind = moves.get(way, (None, None))
        row[f"comm_{way}"] = None if volume is None else volume * size
        row[f"comm_{way}_type"] = kind
        peak = system["matrix_flops_fp16" if layer in MATRIX else "vector_flops_fp16"]
        compute = 1000 * row[f"flops_{way}"] / peak
        memory = 1000 * row[f"total_mem_{way}"] / system["hbm_bandwidth"]
        move = 0
        if volume is not None:
            steps = latency * Fraction(math.log2(ranks))
            move = 1000 * (row[f"comm_{way}"] / bandwidth + steps)
        row[f"t_comp_{way}"], row[f"t_mem_{way}"] = compute, memory
        row[f"t_{way}"], row[f"t_comm_{way}"] = max(compute, memory), move
        row[f"t_total_{way}"] = max(compute, memory) + move
        row[f"frac_t_comm_{way}"] = move / row[f"t_total_{way}"]
    row["intensity"] = row["t_comp_fwd"] / row["t_mem_fwd"]
    return row


def assert_rows_equal(found, expected):
    assert found.keys() == expected.keys()
    for column, value in expected.items():
        cell = found[column]
        if value is None or isinstance(value, str):
            assert cell == value, (found["layer"], column)
        else:
            assert cell is not None, (found["layer"], column)
            assert cell == pytest.approx(float(value), rel=1e-13), (found["layer"], column)


CASES = [
    ("A", {"m1": 1}, {}),
    ("A", {"m1": 2}, {}),
    ("A", {"m1": 8}, {}),
    ("A", {"m1": 4, "s1": 2}, {"nvlink_size": 0}),
    ("B", {"m1": 1, "s1": 1}, {}),
    ("B", {"m1": 1, "s1": 4}, {}),
    ("B", {"m1": 4, "s1": 1}, {}),
    ("B", {"m1": 4}, {}),
    ("B", {"m1": 2, "s1": 4}, {}),
    ("B", {"m1": 8, "s1": 2}, {"nvlink_size": 8}),
    ("B", {"m1": 8, "s1": 2, "l": 42}, {"nvlink_latency": 1e-3}),
    ("C", {"m1": 1}, {"nvlink_size": 1, "ib_latency": 2e-6}),
    ("C", {"m1": 2}, {"nvlink_latency": 1e-6, "ib_latency": 2e-6}),
    ("C", {"m1": 8}, {"nvlink_latency": 1e-6, "ib_latency": 2e-6}),
    ("C", {"m1": 3, "e": 54, "h": 9, "f": 90, "l": 42}, {"ib_latency": 2e-6}),
]


@pytest.mark.parametrize(("variant", "changes", "system"), CASES)
def test_closed_forms(variant, changes, system):
    given = small(variant=variant, **changes)
    given["system"] = given["system"] | system
    values = transformer_tables.evaluate(given)
    m1 = given["m1"]
    expected = tables(given, variant, m1, given.get("s1", m1))
    for block, rows in expected.items():
        expected_rows = [timed(given, variant, *row) for row in rows]
        for found, row in zip(values[block], expected_rows, strict=True):
            assert_rows_equal(found, row)
        totals = values["totals"][block]
        for column in transformer_tables.TOTALS:
            total = given["depth"] * sum(row[column] for row in expected_rows)
            assert totals[column] == pytest.approx(float(total), rel=1e-13), column
        fraction = totals["t_comm_fwd"] / totals["t_total_fwd"]
        assert totals["time_spent_in_comms_fwd"] == pytest.approx(fraction, rel=1e-13)
        assert len(totals) == 10


def test_block_sums_of_the_formulas():
    b, l, e, f, h, m1 = 2, 24, 48, 60, 12, 3
    s, mu, D = Rational(2), Rational(1), 7
    numbers = {"b": b, "l": l, "e": e, "f": f, "h": h, "m1": m1, "s": s, "mu": mu, "n_layers": D}
    H = h // m1
    mlp = {
        "activation_buffer": s * (b * l * e + Rational(2 * b * l * f, m1))
        + mu * Rational(b * l * f + b * l * e, m1),
        "weights_mem": s * (Rational(2 * e * f + f, m1) + e),
        "flops_fwd": Rational(4 * b * l * e * f + 2 * b * l * f + b * l * e, m1),
        "flops_bwd": Rational(8 * b * l * e * f - 2 * e * f + 2 * b * l * f + b * l * e, m1),
    }
    attention = {
        "activation_buffer": s * (b * l * e * (1 + Rational(6, m1)) + 2 * b * H * l**2)
        + mu * (b * H * l**2 + Rational(b * l * e, m1)),
        "weights_mem": s * (Rational(4 * e**2, m1) + 5 * e),
        "flops_fwd": Rational(8 * b * l * e**2 + 4 * b * l**2 * e + 15 * b * l * e, m1)
        + 3 * b * H * l**2
        - b * H * l,
        "flops_bwd": Rational(
            16 * b * l * e**2 + 8 * b * l**2 * e - 4 * e**2 + 23 * b * l * e - 8 * b * l, m1
        )
        + 4 * b * H * l**2
        - b * H * l,
    }
    formulas = transformer_tables.formulas()
    for block, sums in (("mlp", mlp), ("sa", attention)):
        for column, expected in sums.items():
            formula = formulas[f"totals.{block}.{column}"]
            found = formula.subs({symbol: numbers[symbol.name] for symbol in formula.free_symbols})
            assert found == D * expected, (block, column)


# ------------------------------------------------------------------------ formulas, slips


@pytest.mark.parametrize("variant", ["A", "B", "C"])
def test_formulas_give_the_values(variant):
    given = small(variant=variant, m1=4, s1=2)
    values = transformer_tables.evaluate(given)
    system = {name: Rational(str(rate)) for name, rate in given["system"].items()}
    numbers = given | {
        "s": Rational(4, 10**9),
        "mu": Rational(1, 10**9),
        "F_m": system["matrix_flops_fp16"] * 10**12,
        "F_v": system["vector_flops_fp16"] * 10**12,
        "beta_m": system["hbm_bandwidth"],
        "alpha": 0,
    }
    formulas = transformer_tables.formulas(variant)
    for block in ("mlp", "sa"):
        rows = dict(zip(LAYOUT[variant][block], values[block], strict=True))
        for path, row in rows.items():
            named = {k: x for k, x in formulas.items() if k.startswith(f"{block}.{path}.")}
            assert len(named) >= 22
            link = {"nvlink": "nvlink_bandwidth", "ib": "ib_bandwidth", None: "ib_bandwidth"}
            numbers["beta"] = system[link[row["comm_topology"]]]
            for key, formula in named.items():
                column = key.rpartition(".")[2]
                unit = 10**-12 if column.startswith("flops") else 1
                bound = formula.xreplace({x: exact(numbers[x.name]) for x in formula.free_symbols})
                assert row[column] == pytest.approx(float(bound) * unit, rel=1e-12), key


def test_formulas_of_an_unknown_variant():
    with pytest.raises(UnknownNameError, match="unknown variant 'D': accepted are A, B, C"):
        transformer_tables.formulas("D")


def test_every_slip_changes_something():
    for slip in SLIPS:
        for variant in slip.where:
            rows = implied(variant).rows
            changed = [slip.change(row, variant) for row in rows]
            assert changed != [(row,) for row in rows], slip.name
            assert slip.meaning


def test_without_latency_one_device_never_communicates():
    for variant in "ABC":
        values = transformer_tables.evaluate(small(variant=variant, m1=1, s1=1))
        for block in ("mlp", "sa"):
            assert values["totals"][block]["time_spent_in_comms_fwd"] == 0


def test_defaults():
    given = {name: PUBLISHED[name] for name in ("b", "l", "e", "h", "m1", "depth", "system")}
    assert transformer_tables.evaluate(given) == transformer_tables.evaluate(PUBLISHED)


# ------------------------------------------------------------------------ refusals


def refusal(given):
    with pytest.raises(InputError) as caught:
        transformer_tables.evaluate(given)
    return caught.value.problems


@pytest.mark.parametrize("value", [0, -4, 2.5, True, "4", None, float("nan"), 10**400])
@pytest.mark.parametrize("name", ["b", "m1", "depth"])
def test_refuses_a_count(name, value):
    (problem,) = refusal(PUBLISHED | {name: value})
    assert problem.startswith(f"input {name!r} is ")


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "2e-9", None, True])
def test_refuses_a_size_and_a_rate(value):
    given = PUBLISHED | {"element_size": value, "system": SYSTEM | {"ib_bandwidth": value}}
    problems = refusal(given)
    starts = ["input 'system.ib_bandwidth' is ", "input 'element_size' is "]
    assert [p[: len(s)] for p, s in zip(problems, starts, strict=True)] == starts


def test_refuses_everything_at_once():
    system = {k: v for k, v in SYSTEM.items() if k != "hbm_bandwidth"} | {"nvlink_sice": 4}
    given = PUBLISHED | {"variant": "D", "m2": 2, "heads": 96, "system": system}
    del given["h"]
    problems = refusal(given)
    assert len(problems) == 6
    text = "\n".join(problems)
    assert "unknown input of 'system' 'nvlink_sice': did you mean nvlink_size" in text
    assert "input 'system.hbm_bandwidth' is missing" in text
    assert "input 'h' is missing" in text
    assert "unknown input 'heads'" in text
    assert "input 'm2' is 2" in text
    assert "input 'variant' is 'D'" in text


def test_names_every_axis_that_does_not_divide():
    with pytest.raises(DivisibilityError) as caught:
        transformer_tables.evaluate(small(m1=7))
    text = str(caught.value)
    for part in ("axis r", "axis h", "axis f", "m1 = 7", "3 problems"):
        assert part in text


def test_heads_must_divide_the_width():
    with pytest.raises(DivisibilityError, match=r"axis d .* is not a whole number"):
        transformer_tables.evaluate(small(h=7))


def test_as_coded_divides_the_width_of_the_last_dropout():
    given = small(variant="B", m1=2, s1=4, f=82)
    with pytest.raises(DivisibilityError, match=r"axis g .*82.* s1 "):
        transformer_tables.evaluate(given)


def test_every_cell_of_other_inputs_is_listed():
    given = PUBLISHED | {"variant": "B", "s1": 2}
    rows = {row.key: row for row in reproduce("transformer-tables", given).rows}
    assert len(rows) == 434 + 20
    assert rows["mlp.dpr1.flops_fwd"].computed != rows["mlp.dpr1#2.flops_fwd"].computed
    assert rows["mlp.act.comm_fwd"].computed == ""
    assert all(row.published is None and row.match is None for row in rows.values())


def test_refuses_a_rate_that_gives_no_float():
    given = PUBLISHED | {"system": SYSTEM | {"hbm_bandwidth": 1e-308}}
    assert refusal(given)[0].startswith("the inputs give a number above 10**308")
