"""The commands of the README, their formats, and what they print."""

import csv
import inspect
import io
import json

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main


def run(line, exit_code=0):
    result = CliRunner().invoke(main, line.split(), catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return result.stdout if exit_code == 0 else result.stderr


def test_table_gives_formula_and_value():
    printed = run("table gpt3-175b --strategy tp --set tp=4 --attention eager")
    assert "\n block.attention.core, n_layers times\n" in printed
    assert "\n   scores " in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert "m1 = 4" in printed
    assert "conventions standard" in printed


def test_table_for_programs_has_exact_values():
    rows = {
        row["op"]: row
        for row in csv.DictReader(
            io.StringIO(run("table gpt3-175b --strategy tp --set m1=4 --format csv"))
        )
    }
    l, e, f = 2048, 12288, 49152
    assert int(rows["block.mlp.fc1"]["flops_fwd value [FLOP]"]) == l * f * (2 * e + 1) // 4
    assert rows["block.mlp.fc1"]["times"] == "n_layers"
    total = int(rows["total"]["params value [element]"])
    assert total == sum(
        int(row["params value [element]"]) * (96 if row["times"] == "n_layers" else 1)
        for name, row in rows.items()
        if name != "total" and row["params value [element]"]
    )


def test_unbound_symbols_stay_symbolic():
    record = json.loads(run("formula flops gpt --phase fwd --set n_layers=2 --format json"))
    (row,) = record["records"]
    assert row["value"] is None
    assert "n_layers" in row["formula"]


def test_formula_in_latex_is_the_formula_alone():
    printed = run("formula params gpt --path block --format latex")
    assert printed == ("n_{\\mathrm{layers}} \\left(4 e^{2} + 2 e f + 9 e + f\\right)\n")


def test_formula_is_the_same_for_a_part_and_its_sum():
    whole = json.loads(run("formula params gpt3-175b --format json"))["records"][0]["value"]
    parts = [
        json.loads(run(f"formula params gpt3-175b --path {path} --format json"))
        for path in ("embedding", "block", "head")
    ]
    assert whole == sum(part["records"][0]["value"] for part in parts)
    e = 12288
    assert whole == 96 * (12 * e**2 + 13 * e) + (50257 + 2048) * e + 2 * e


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown", "latex", "html"])
@pytest.mark.parametrize(
    "line",
    [
        "models",
        "table gpt --strategy tp,sp,dp",
        "formula saved gpt3-13b --recompute selective",
        "tree gpt2 --of params",
        "scale flops gpt --wrt e --at gpt2",
    ],
)
def test_every_command_writes_every_format(line, form, tmp_path):
    printed = run(f"{line} --format {form}")
    assert printed.strip()
    target = tmp_path / "out"
    assert run(f"{line} --format {form} -o {target}") == ""
    assert target.read_text().rstrip("\n") == printed.rstrip("\n")


def test_scale_says_how_attention_meets_the_mlp():
    rows = {
        row["quantity"]: row
        for row in json.loads(
            run(
                "scale flops_train gpt --wrt l --at gpt3-175b "
                "--conventions model-flop --format json"
            )
        )["records"]
    }
    assert rows["attention core = MLP at l"]["formula"] == "f"
    assert rows["attention core = MLP at l"]["value"] == 49152
    assert rows["leading term in l"]["formula"] == "12*n_layers*b*l**2*e"
    assert rows["total"]["value"] == 2048 * 6 * 12288 * (50257 + 96 * (12 * 12288 + 2 * 2048))


def test_a_symbol_that_a_cost_lacks_is_told():
    told = "l does not occur in this cost of this model under this strategy"
    assert told in run("scale params gpt2 --in l")
    assert told not in run("scale flops_train gpt2 --in l")


def test_models_lists_four_sizes_of_gpt2_and_eight_of_gpt3():
    records = json.loads(run("models --format json"))["records"]
    names = [record["model"] for record in records]
    assert sum(name.startswith("gpt2") for name in names) == 4
    assert sum(name.startswith("gpt3") for name in names) == 8
    assert all(record["source"] for record in records)


def test_version_and_help():
    assert "symbolic-cost" in run("--version")
    printed = run("--help")
    for name in ("table", "formula", "tree", "scale", "reproduce", "models"):
        assert name in printed


def test_memory_has_states_activations_and_the_peak():
    line = "memory gpt3-175b --strategy tp=8,sp,pp=8,dp=8,zero=1 --recompute selective --set M=8"
    rows = {row["memory"]: row for row in json.loads(run(f"{line} --format json"))["records"]}
    held = ("weight", "weight gradient", "master weight", "optimizer", "saved")
    assert rows["at end of forward"]["value"] == sum(rows[name]["value"] for name in held)
    assert rows["weight gradient"]["value"] == 2 * rows["weight"]["value"]
    assert rows["peak, at backward"]["value"] == rows["at backward"]["value"]
    assert all(row["formula"] for name, row in rows.items() if not name.startswith("peak"))


def test_comm_totals_are_the_sum_of_the_collectives():
    line = "comm gpt3-175b --strategy tp=8,sp,pp=8,dp=8 --set M=64"
    for option in ("", " --per-op"):
        records = json.loads(run(f"{line}{option} --format json"))["records"]
        rows = [one for one in records if not one["collective"].startswith("sent by")]
        every = [one for one in records if one["group"] == "all"]
        totals = {one["collective"]: one["sent value"] for one in every}
        assert sum(row["sent value"] for row in rows) == totals["sent by one rank"]
        assert totals["sent by the cluster"] > 500 * totals["sent by one rank"]


def test_comm_lists_who_talks_to_whom():
    printed = run("comm gpt --strategy tp=2,dp=2,pp=2 --groups --node-size 4")
    assert "[n0_g0 n0_g2]" in printed
    assert "crosses 2 nodes" in printed


@pytest.mark.slow
def test_schedule_is_drawn(tmp_path):
    line = "schedule --strategy pp=4 --microbatches 8 --schedule zb-h1"
    rows = {row["quantity"]: row for row in json.loads(run(f"{line} --format json"))["records"]}
    assert rows["step time"]["value"] == rows["step time as it runs"]["value"] == 27
    picture = tmp_path / "schedule.svg"
    assert run(f"{line} -o {picture}") == ""
    assert picture.read_text().startswith("<?xml")


def test_report_is_the_published_text():
    assert "Amount of Parameters: 771,106,304" in run("report megatron")


def test_count_of_a_configuration(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "gpt2",
                "vocab_size": 50257,
                "n_positions": 1024,
                "n_embd": 768,
                "n_layer": 12,
                "n_head": 12,
            }
        )
    )
    counts = json.loads(run(f"count {config} --batch 1 --seq 128 --format json"))
    assert counts["params"] == 124439808
    assert counts["flops_fwd"] == 32228179968
    assert "124439808" in run(f"count {config}")


def test_the_difference_of_conventions_is_a_formula():
    line = "compare-conventions gpt2 torch-flop-counter fvcore --of flops_fwd --format json"
    rows = {row["kind"]: row for row in json.loads(run(line))["records"]}
    l, e, f, V, n_layers = 1024, 768, 3072, 50257, 12
    assert rows["einsum"]["formula"] == "b*l*e*(2*n_layers*l + 4*n_layers*e + 2*n_layers*f + V)"
    products = l * e * (n_layers * (2 * l + 4 * e + 2 * f) + V)
    norms = -5 * l * e * (2 * n_layers + 1)
    assert rows["einsum"]["value"] == products
    assert rows["total"]["value"] == products + norms


def test_time_has_parts_figures_and_ops():
    line = (
        "time gpt3-175b --system a100-80gb --strategy tp=8,sp,pp=8 "
        "--global-batch 64 --recompute selective"
    )
    rows = {row["part"]: row for row in json.loads(run(f"{line} --format json"))["records"]}
    assert rows["step"]["value"] > 1
    assert rows["step"]["value unit"] == "s"
    assert 0.3 < float(rows["mfu"]["value"]) < float(rows["hfu"]["value"]) < 1
    ops = json.loads(run(f"{line} --ops --format json"))["records"]
    assert {op["bound by"] for op in ops} == {"compute", "memory", "communication"}
    longer = json.loads(run(f"{line} --attention eager --wrt l --format json"))["records"]
    assert 1 < float(longer[2]["value"]) < 1.1  # the core alone grows with the square


def test_systems_name_their_sources():
    names = {row["machine"] for row in json.loads(run("systems --format json"))["records"]}
    assert {"v100", "a100-80gb", "h100", "mi300x", "tpu-v5p", "trillium"} <= names
    assert all(row["source"] for row in json.loads(run("systems h100 --format json"))["records"])


def test_roofline_is_drawn(tmp_path):
    picture = tmp_path / "roofline.svg"
    assert run(f"roofline gpt3-175b --system h100 -o {picture}") == ""
    assert picture.read_text().startswith("<?xml")
    assert "ridge point" in run("roofline gpt2 --system h100")


def test_import_says_where_values_come_from(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text(
        "pretrain_gpt.py --tensor-model-parallel-size 8 --sequence-parallel \\\n"
        "  --num-layers 96 --hidden-size 12288 --num-attention-heads 96 \\\n"
        "  --max-position-embeddings 2048 --vocab-size 50257\n"
    )
    printed = run(f"import {script}")
    assert "run.sh: line 2, key '--num-layers'" in printed
    assert "strategy: tp=8,sp" in printed


def test_every_command_is_listed_and_loads():
    from symbolic_cost.cli import commands

    group = main
    for name in commands():
        assert group.get_command(None, name).name == name
    assert group.get_command(None, "frobnicate") is None


def test_calibrate_writes_a_machine_that_time_takes(tmp_path):
    from symbolic_cost.published.vtrain_2024 import evaluate

    names = ("gpus", "global_batch", "micro_batch", "e", "h", "n_layers", "l", "tp", "dp", "pp")
    runs = [
        (8, 16, 1, 1024, 16, 24, 1024, tp, 8 // tp // pp, pp) for tp in (1, 2, 4) for pp in (1, 2)
    ] + [(8, 32, 4, 2048, 16, 24, 1024, tp, 8 // tp, 1) for tp in (1, 2, 4, 8)]
    lines = [",".join([*names, "iteration_time_ms"])]
    for run_sizes in runs:
        took = evaluate(dict(zip(names, run_sizes, strict=True)))["iteration_time_ms"]
        lines.append(",".join(map(str, [*run_sizes, took])))
    rows, record = tmp_path / "rows.csv", tmp_path / "mine.toml"
    rows.write_text("\n".join(lines) + "\n")
    (found,) = json.loads(run(f"calibrate --rows {rows} --format json"))["records"]
    assert found["runs"] == len(runs)
    assert found["mean"] < 1
    assert run(f"calibrate --rows {rows} -o {record}") == ""
    assert "mfu" in run(f"time gpt2 --system {record} --strategy tp=2 --global-batch 8")


def test_all_stages_stand_one_below_another():
    line = "formula params gpt2 --strategy pp=2 --stage all --format csv"
    rows = list(csv.DictReader(io.StringIO(run(line))))
    assert [row["stage"] for row in rows] == ["first", "last"]
    one = run("formula params gpt2 --strategy pp=2 --stage last --format csv")
    (last,) = csv.DictReader(io.StringIO(one))
    assert rows[1] == {"stage": "last", **last}
    assert run("formula params gpt2 --stage all --format csv") == run(
        "formula params gpt2 --format csv"
    )


@pytest.mark.parametrize(
    "line",
    [
        "formula params gpt --strategy pp --stage all --format latex",
        "time gpt2 --system h100 --stage last",
    ],
)
def test_one_stage_is_asked_of_what_has_one(line):
    assert "--stage" in run(line, exit_code=2)


@pytest.mark.parametrize(
    "line",
    [
        "comm gpt2 --strategy tp=2",
        "solve memory==40GiB gpt2 --in l --set M=1",
        "optimum gpt2 --of memory --in b --set M=1",
    ],
)
def test_questions_of_a_job_take_its_stack(line):
    done = CliRunner().invoke(main, [*line.split(), "--stack", "torchtitan"])
    assert done.exit_code == 0, done.output
    assert "bf16-fsdp, usual under stack torchtitan" in " ".join(done.output.split())
    assert "unknown stack" in CliRunner().invoke(main, [*line.split(), "--stack", "no"]).output


@pytest.mark.parametrize(
    "line",
    [
        *("formula saved gpt2", "table gpt2 --columns saved", "tree gpt2 --of saved"),
        *("scale saved gpt2 --in l", "crossover gpt2 attention.core mlp --in l"),
        *("sensitivity gpt2 --of saved --set b=1", "dominance gpt2 attention.core mlp"),
        *("check l gpt2 --of saved", "derive gpt2 --of saved", "roofline gpt2 --system h100"),
        *("memory gpt2 --set M=1", "comm gpt2"),
    ],
)
def test_a_stack_says_the_kernel_wherever_a_job_is_built(line):
    """The sheet of formulas has it, too: it takes the same group of options."""
    done = CliRunner().invoke(main, [*line.split(), "--stack", "megatron-2021"])
    assert done.exit_code in (0, 1), done.output
    assert "attention eager" in " ".join(done.output.split())
    asked = CliRunner().invoke(
        main, [*line.split(), "--stack", "megatron-2021", "--attention", "flash"]
    )
    assert "attention flash" in " ".join(asked.output.split())


def test_a_roofline_refuses_a_stack_that_its_machine_does_not_run():
    assert "stack nemo runs on gpus" in run(
        "roofline gpt2 --system tpu-v5p --stack nemo", exit_code=2
    )


def test_a_derivation_of_a_launch_file_has_its_recomputation(tmp_path):
    (tmp_path / "run.sh").write_text(
        "python pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 "
        "--seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 "
        "--recompute-activations\n"
    )
    run_file = str(tmp_path / "run.sh")
    derived = sc.derive(run_file, "saved")
    assert derived.about.run.training == sc.job(run_file).training
    assert derived.about.run.training.recompute.name == "selective"


def test_stages_send_in_parts_in_the_table_of_collectives():
    line = "comm gpt2 --strategy tp=2,pp=2 --set b=1 --set M=1 --format json --scattered"
    records = json.loads(run(line))["records"]
    forward = [row for row in records if "forward" in row.values()]
    sent = {(row["group"], row["collective"]): row for row in forward}
    assert ("tp", "all-gather") in sent
    assert sent["pp", "send-receive"]["sent value"] == 1024 * 768
    refused = run("comm gpt2 --strategy tp=2,pp=2 --groups --scattered", exit_code=2)
    assert "--scattered is not read: --groups lists ranks, not what they send" in refused


@pytest.mark.slow
def test_few_modules_lie_between_a_command_and_its_collectives(monkeypatch):
    """From the command to what books a row: who follows a strategy reads at most eight modules.

    The door of the command line (`cli`, `cli.door`, `cli.options`) passes words on and is above.
    """
    from symbolic_cost.ledger import Collective

    ways, made = set(), Collective.__init__

    def noted(self, *args, **named):
        frames, frame = [], inspect.currentframe()
        while frame is not None:
            frames.append(frame.f_globals["__name__"])
            frame = frame.f_back
        own = [name for name in reversed(frames) if name.startswith("symbolic_cost.")]
        ways.add(tuple(dict.fromkeys(own[own.index("symbolic_cost.cli.of_a_model") :])))
        made(self, *args, **named)

    monkeypatch.setattr(Collective, "__init__", noted)
    run("table gpt --strategy tp,sp,pp,dp,zero=3")
    ends = {way[-1].removeprefix("symbolic_cost.") for way in ways}
    assert {"ops.book", "parallel.sends"} <= ends
    assert max(map(len, ways)) <= 8, ways
