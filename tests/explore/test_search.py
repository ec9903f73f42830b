"""Search: what it finds is what one job after the other would have found."""

import json
import random
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError, SymbolicCostError
from symbolic_cost.explore.axes import columns_of
from symbolic_cost.explore.candidates import candidates
from symbolic_cost.explore.facts import subject
from symbolic_cost.explore.flags import megatron_flags, time_command
from symbolic_cost.explore.objectives import LEGAL, MEMORY
from symbolic_cost.explore.search_table import search_sheet
from symbolic_cost.explore.space import Space
from symbolic_cost.explore.structured import structured_setup
from symbolic_cost.explore.together import all_priced
from symbolic_cost.jobs.job import Job
from symbolic_cost.models import from_config
from symbolic_cost.systems import records
from symbolic_cost.systems.prices import rates
from symbolic_cost.units import Unit, human


@pytest.fixture(autouse=True, scope="module")
def _kept(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path_factory.mktemp("programs")))
        yield


def small(name="gpt2", system="h100", **options):
    return sc.job(name, system=system, precision="bf16-mixed", **options)


def one_by_one(base, structure, numbers):
    """The job of one candidate: step [s] and peak [byte], or the refusal."""
    made = structured_setup(base, structure, numbers)
    run = Job(**{name: getattr(made, name) for name in made.__dataclass_fields__})
    try:
        answer = run.time()
        step = float(answer.step)
    except SymbolicCostError:
        return None
    return step, max(peak.size for peak in run.memory().fits.peaks.values())


SPACES = {
    "gpt2": Space(16, 64, cp=(1,), recompute=("selective",)),
    "llama-3-8b": Space(32, 64, zero=(1, 3), recompute=("full",)),
    "mixtral-8x7b": Space(16, 32, cp=(1,), zero=(1,), recompute=("none",)),
}


def test_a_candidate_is_the_job_of_its_numbers():
    assert compared("gpt2", structures=1, each=2) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SPACES)
def test_many_candidates_are_the_jobs_of_their_numbers(name):
    assert compared(name, structures=3, each=5) > 6


def compared(name, structures, each):
    """Compare random candidates with jobs of their own; return how many were legal."""
    base, space, draw = small(name), SPACES[name], random.Random(name)  # noqa: S311 - draws candidates
    found = candidates(space, subject(base).facts)
    chosen = [(shape, s) for shape, listed in found.structures.items() for s in listed]
    equal = 0
    for shape, structure in draw.sample(chosen, min(structures, len(chosen))):
        ((_, together),) = all_priced(subject(base), {shape: [structure]})
        rows = found.rows(shape)
        results = dict(together.evaluated(columns_of(found, shape), rows))
        if structure not in results:
            continue
        outputs = results[structure]
        for place in draw.sample(range(rows), min(each, rows)):
            legal = all(v[place] for n, v in outputs.items() if n.startswith(LEGAL))
            run, numbers = found.chosen(shape, structure, place)
            alone = one_by_one(base, run, numbers)
            assert (alone is not None) == legal, (run, numbers, alone)
            if alone is not None:
                step, memory = alone
                assert float(outputs["step"][place]) == pytest.approx(step, rel=1e-12)
                assert outputs[MEMORY][place] == pytest.approx(memory, rel=1e-12)
                equal += 1
    return equal


@pytest.mark.slow
def test_the_best_is_that_of_all_candidates():
    base, space = small(), Space(2, 4, cp=(1,), zero=(1,), recompute=("none",), sp=(False,))
    found = sc.search(base, 2, 4, choose={"cp": 1, "zero": 1, "recompute": "none", "sp": (False,)})
    listed = candidates(space, subject(base).facts)
    room = subject(base).facts.capacity
    scores = []
    for shape, structures in listed.structures.items():
        for structure in structures:
            for row in range(listed.rows(shape)):
                alone = one_by_one(base, *listed.chosen(shape, structure, row))
                if alone is not None and alone[1] <= room:
                    scores.append(alone[0])
    assert found.fitting == len(scores)
    assert found.considered == listed.count + sum(listed.left_out.values())
    best = [one.outputs["step"] for one in found.best]
    assert best == pytest.approx(sorted(scores)[: len(best)], rel=1e-12)


@pytest.mark.slow
def test_the_answer_is_a_command_that_runs():
    found = sc.search(small(), 8, 16, top=2, choose={"zero": 1, "cp": 1, "recompute": "full"})
    for one in found.best:
        line = shlex.split(time_command(found, one))[1:]
        told = CliRunner().invoke(main, [*line, "--format", "json"])
        assert told.exit_code == 0, told.output
        flags = megatron_flags(found, one)
        assert f"--tensor-model-parallel-size {one.numbers.tp} " in flags
        job = found.job(one)
        assert job.value(job.strategy.ranks) == 8
        assert job.values["b"] * job.values["M"] * one.numbers.dp == 16


def test_flags_ask_for_what_the_stack_has(tmp_path):
    """As a launch file they mean the same step: its loss, and what it hides, are asked for."""
    choose = {"zero": 1, "cp": 1, "recompute": "full", "tp": 2, "pp": 1, "sp": (True,)}
    found = sc.search(small(stack="megatron-core"), 8, 16, top=1, choose=choose)
    best = found.best[0]
    model = "--num-layers 12 --hidden-size 768 --num-attention-heads 12 --vocab-size 50257"
    file = tmp_path / "run.sh"
    file.write_text(
        f"torchrun --nproc-per-node 8 --nnodes 1 pretrain_gpt.py {model} --seq-length 1024 --bf16 "
        f"{megatron_flags(found, best)}"
    )
    own, wanted = sc.job(str(file), system="h100"), found.job(best)
    assert own.methods.stack == wanted.methods.stack
    said = {mesh: one.name for mesh, one in own.methods.overlaps.items()}
    assert said == {"dp": "full"}, "as the stack has it, which also says tp"
    plain = sc.search(small(), 8, 16, top=1, choose=choose)
    assert "--overlap-grad-reduce" not in megatron_flags(plain, plain.best[0])


def test_the_command_names_the_file_of_a_machine(tmp_path):
    path = tmp_path / "mine.toml"
    shipped = Path(records.__file__).parent / "data" / "h100.toml"
    path.write_text(shipped.read_text())
    found = sc.search(small(system=str(path)), 1, 4, top=1, choose={"recompute": "full"})
    assert f"symbolic-cost time gpt2 --system {path} " in time_command(found, found.best[0])
    assert records.find_machine("h100") == records.find_machine(str(path)), "no part of it"


def test_what_a_machine_cannot_offload_is_left_out_alone():
    few = {"cp": 1, "zero": 1, "recompute": "none", "sp": (False,), "schedule": "1f1b"}
    base = small(system="tpu-v5p")
    found = sc.search(base, 4, 8, choose={**few, "offload": ["", "optimizer"]})
    alone = sc.search(base, 4, 8, choose=few)
    assert [one.outputs for one in found.best] == [one.outputs for one in alone.best] != []
    assert not found.refused
    assert found.left_out["machine tpu-v5p has no link to the host on record"] == alone.considered


def test_nothing_fits_says_how_near():
    found = sc.search(
        "gpt3-175b", 2, 2, system="a100-80gb", choose={"recompute": "full", "zero": 3}
    )
    assert not found.best
    told = "\n".join(search_sheet(found).notes)
    assert "nothing fits: the smallest takes" in told
    assert human(found.smallest.outputs[MEMORY], Unit.BYTE) in told


@pytest.mark.parametrize("objective", ["memory", pytest.param("mfu", marks=pytest.mark.slow)])
def test_objectives(objective):
    choose = {"zero": 1, "cp": 1, "recompute": ("none", "full"), "schedule": "1f1b"}
    found = sc.search(small(), 4, 8, objective=objective, top=100, choose=choose)
    key = {"memory": lambda at: at[MEMORY], "mfu": lambda at: -at["mfu"]}[objective]
    values = [key(one.outputs) for one in found.best]
    assert values == sorted(values)


def test_what_a_token_costs():
    choose = {"zero": 1, "cp": 1, "recompute": "none", "schedule": "1f1b", "tp": 1}
    found = sc.search(small(), 4, 8, objective="tokens-per-dollar", choose=choose)
    known, best = rates("h100"), found.best[0].outputs
    dollars = known.price.value * 4 * best["step"] / 3600
    tokens = best["tokens per second"] * best["step"]
    assert found.objective.read(best) == pytest.approx(tokens / dollars)
    least = sc.search(small(), 4, 8, objective="energy", choose=choose)
    joules = known.power.value * known.pue.value * 4 / best["tokens per second"]
    assert least.objective.read(least.best[0].outputs) == pytest.approx(joules)
    assert str(known.price) in " ".join(search_sheet(found).notes)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--gpus 0 --global-batch 8", "gpus = 0"),
        ("--gpus 8 --global-batch -1", "global_batch = -1"),
        ("--gpus 8 --global-batch 8 --objective speed", "unknown objective 'speed'"),
        ("--gpus 8 --global-batch 8 --choose tp", "'tp': NAME=VALUE"),
        ("--gpus 8 --global-batch 8 --choose zeros=1", "unknown choice 'zeros'"),
        ("--gpus 8 --global-batch 8 --choose zero=5", "zero = 5"),
        ("--gpus 8 --global-batch 8 --choose recompute=most", "recompute policy 'most'"),
        ("--gpus 8 --global-batch 8 --choose tp=3", "no degrees make 8 ranks"),
        ("--gpus 8 --global-batch 8 --choose tp=x --choose sp=maybe", "sp 'maybe'"),
        ("--gpus 8 --global-batch 8 --top 0", "top = 0"),
        ("--gpus 8 --global-batch 16 --choose ep=8", "choose ep=8: no candidate has it"),
        ("--gpus 8 --global-batch 16 --choose dp=4,5", "choose dp=5: no candidate has it"),
        ("--gpus 8 --global-batch 16 --choose b=3", "no candidate on 8 ranks: the global batch"),
        ("--gpus 8 --global-batch 16 --choose cp=1 --choose context=ring", "cp is 1"),
        ("--gpus 8 --global-batch 16 --set b=4,M=2", "b=4 is not read: a search chooses it"),
    ],
)
def test_refusals(line, said):
    told = CliRunner().invoke(main, ["search", "gpt2", *line.split()])
    assert told.exit_code == 2
    assert said in told.stderr
    assert not told.stdout


@pytest.mark.parametrize("name", ["lenet-5", "resnet-18"])
def test_models_without_blocks_are_searched(name):
    """Of one stage, which needs none; more stages are left out."""
    found = sc.search(small(name), 2, 4, choose={"zero": 1, "recompute": "none"}, progress=False)
    assert found.fitting == 2
    assert {one.numbers[:5] for one in found.best} == {(1, 1, 1, 1, 2)}  # tp, cp, pp, ep, dp
    with pytest.raises(InputError, match="fewer blocks than stages"):
        sc.search(small(name), 2, 4, choose={"pp": 2}, progress=False)


DELTA = Path("tests/golden/families_text.json")


@pytest.mark.slow
@pytest.mark.parametrize("length", [64, 65])  # one chunk, two
@pytest.mark.parametrize("stack", ["roofline", "unknown"])
def test_what_lies_between_chunks_takes_no_time_where_there_is_one(stack, length):
    entries = json.loads(DELTA.read_text(encoding="utf-8"))
    config = next(one["config"] for one in entries if one["id"].startswith("text/Qwen3_5Text"))
    base = sc.job(from_config(config), "", {"l": length}, system="h100", stack=stack)
    choose = {"b": 2, "recompute": "none", "zero": 0, "schedule": "1f1b"}
    found = sc.search(base, 1, 2, choose=choose, progress=False).best[0].outputs["step"]
    assert found == pytest.approx(float(base.bind(b=2, M=1).time().step), rel=1e-12)


def test_a_job_with_a_strategy_is_refused():
    with pytest.raises(InputError, match="strategy tp=2 is not read"):
        sc.search(sc.job("gpt2", "tp=2", system="h100"), 8, 16)


def test_positions_are_split_where_the_sequence_is_long():
    choose = {"recompute": "full", "zero": 1, "tp": 1, "pp": 1}
    short = sc.search(small(), 2, 2, choose=choose)
    assert short.space.cp == (1,)
    assert "positions whole" in "\n".join(search_sheet(short).notes)
    long = sc.search(small("llama-3-8b").bind(l=32768), 2, 2, choose=choose)
    assert long.space.cp == ()
    assert any("cp=2" in one.strategy for one in (*long.best, long.smallest))
