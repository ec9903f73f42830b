"""The log of LSTM layers: all its numbers, other runs against plain functions, slips, refusals."""

from fractions import Fraction

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.published import lstm_roofline
from symbolic_cost.published.contract import reproduce
from symbolic_cost.published.lstm_roofline import chain
from symbolic_cost.published.lstm_roofline.inputs import SLIPS, accepted
from tests.published.lstm_oracle import Run

SMALL = {"vocab_size": 1000, "layer_size": 64, "projection": 32, "batch_size": 16}
RUNS = {
    "published": {},
    "projected": {"include_projection_in_time": True},
    "memory bound": SMALL | {"num_layers": 3, "seq_len": 7},
    "few bytes": SMALL | {"topology": "mesh", "layer_size": 1, "dp": 4},
    "data": {"topology": "mesh", "dp": 3},
    "layers": {"topology": "mesh", "lp": 2, "hlp": 2, "batch_size": 64},
    "layers of slow links": SMALL | {"topology": "mesh", "lp": 2, "hlp": 2, "batch_size": 10**8},
    "CR": {"topology": "mesh"}
    | {f"kp_{part}_type": 1 for part in ("hidden", "softmax", "embedding", "projection")}
    | {f"kp_{part}_dim1": 4 for part in ("hidden", "softmax", "embedding", "projection")}
    | {"include_projection_in_time": True},
    "RC": {"topology": "mesh", "dp": 2, "include_projection_in_time": True}
    | {f"kp_{part}_type": 2 for part in ("hidden", "softmax", "embedding", "projection")}
    | {f"kp_{part}_dim1": 2 for part in ("hidden", "softmax", "embedding", "projection")}
    | {f"kp_{part}_dim2": 4 for part in ("hidden", "softmax", "embedding", "projection")},
    "one dimension unused": {"topology": "mesh", "kp_hidden_type": 2, "kp_hidden_dim2": 8, "lp": 2},
}


def test_every_printed_number_is_reproduced():
    found = reproduce("lstm-roofline")
    assert (found.matched, found.total) == (293, 293)
    assert {row.note for row in found.rows} == {
        "",
        "equal inside the roundings of double precision",
    }


def test_the_total_is_exact():
    total = lstm_roofline.evaluate(lstm_roofline.PUBLISHED_INPUTS)["time.total"]
    assert total == Fraction(64401598388279, 212625000000)


def test_the_configuration_as_it_was_written():
    written = {
        "_note": "decimal strings",
        "model": {"batch_size": "512", "num_add": "8 (unused)"},
        "arch": {"kernel_launch_overhead_s": "37e-6"},
        "tech": {"HBM_stack_capacity_B": "4*2^30", "line_latency_s": "16e-7 (unused)"},
        "code_constants": {
            "include_projection_in_time (proj)": "False",
            "gemm_epilogue_flop_per_output": "15 + 5*ceil(k/X2)",
        },
        "schedule": {"topology": "ring", "all kp_*_dim": "1", "all kp_*_type": "-1"},
        "time_limit": {"batch_size": "32 (NOT 512)"},
    }
    assert lstm_roofline.evaluate(written) == lstm_roofline.evaluate({})


@pytest.mark.parametrize("mode", [pytest.param("as printed", marks=pytest.mark.slow), "corrected"])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_other_runs(run, mode):
    oracle = Run(run, corrected=mode == "corrected")
    found = lstm_roofline.evaluate(run | {"mode": mode})
    assert found["time.total"] == oracle.total()
    assert found["params.billion"] * 10**9 == oracle.parameters()
    assert found["mem.data_shard.total"] == oracle.shard(spread=False)
    assert found["mem.model_shard.total"] == oracle.shard(spread=True)


@pytest.mark.parametrize(
    ("branch", "sizes"),
    [
        ("A>=", (1, 8, 0.1, 1)),
        ("A<", (1, 8, 3.16e-6, 2)),
        ("B>=", (1, 8, 3.16e-9, 1)),
        ("B<", (1, 8, 1.78e-8, 2)),
        ("C>=", (64, 4096, 1.78e-5, 1)),
        ("C<", (1, 4096, 3.16e-6, 2)),
    ],
)
def test_every_branch_of_the_pipeline(branch, sizes):
    run = {"topology": "mesh", "lp": 2, "hlp": 2, "vocab_size": 100, "num_layers": 6}
    run |= dict(zip(("batch_size", "layer_size", "IB", "dp"), sizes, strict=True))
    oracle = Run(run)
    total = oracle.total()
    assert oracle.branch == branch
    assert lstm_roofline.evaluate(run)["time.total"] == total


def test_slips_are_switched_one_by_one():
    kept = lstm_roofline.evaluate({"slips": sorted(SLIPS)})
    assert kept == lstm_roofline.evaluate({})
    without = lstm_roofline.evaluate({"slips": sorted(set(SLIPS) - {"projection left out"})})
    assert f"{float(without['time.total']):.8f}" == "303.44057758"
    corrected = lstm_roofline.evaluate({"mode": "corrected"})
    assert f"{float(corrected['time.time_per_step_limit']):.8f}" == "0.01151028"
    assert corrected == lstm_roofline.evaluate({"slips": []})


def test_without_a_second_memory_nothing_is_read_again():
    found = lstm_roofline.evaluate({"L2": 0})
    assert found["gemm.Cf.AB.gmem.reload_AB"] == 1
    assert found["gemm.Cf.AB.l2mem.reload_AB"] == 39


def test_the_chain_differentiates():
    model = chain(accepted({}))
    launches = model.derivative("time.total", "t_k")
    values = accepted({}).numbers(glossary=True)
    slope = launches.evaluate(values)["d time.total/d t_k"]
    # 16 launches per cell and step forward, 17 backward; softmax 5 and 6; two of the embedding.
    assert slope == 2 * 20 * (16 + 17) + 5 + 6 + 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dp": 2}, ["dp = 2: devices exchange data", "topology 'mesh'"]),
        ({"kp_hidden_type": 1, "topology": "mesh"}, ["kp_hidden_type = 1"]),
        ({"batch_sise": 4}, ["unknown input 'batch_sise'", "did you mean batch_size"]),
        ({"batch_size": "many"}, ["input 'model.batch_size' is 'many'"]),
        ({"model": {"batch_size": 1}, "batch_size": 2}, ["given twice"]),
        ({"slips": ["gather"]}, ["unknown slip 'gather'"]),
        ({"data_scale": 1e-9}, ["less than one batch"]),
        ({"dp": 2, "lp": 0, "mode": "meant"}, ["schedule.lp", "'mode' is 'meant'"]),
        ({"tech": {"HBM_stack_bw_Bps": "2*3*4"}}, ["'tech.HBM_stack_bw_Bps' is '2*3*4'"]),
    ],
)
def test_refusals(given, said):
    with pytest.raises(InputError) as caught:
        lstm_roofline.evaluate(given)
    assert all(part in str(caught.value) for part in said)
