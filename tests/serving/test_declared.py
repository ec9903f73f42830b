"""What declares a configuration that is served, and how it decodes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.shape import DECODE
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.serving.declared import declaring
from symbolic_cost.serving.engine import Engine
from symbolic_cost.serving.passes import decode, prefill
from symbolic_cost.symbols import W
from symbolic_cost.systems.records import machine

GOLDEN = Path(__file__).parents[1] / "golden"
TRUTH = {
    entry["id"]: entry["config"]
    for file in ("families_truth.json", "families_more.json")
    for entry in json.loads((GOLDEN / file).read_text(encoding="utf-8"))
}
KIMI = next(name for name in TRUTH if name.startswith("kimi_k25"))


@pytest.mark.parametrize("name", ["glm_moe_dsa/a", "glm_moe_dsa/shared1", KIMI])
def test_latents_are_not_expanded_in_a_step(tmp_path, name):
    """Also of layers that take another's choice, and of a language model beside towers."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TRUTH[name]))
    _, latent = declaring(str(path))
    paths = {op.path for part in latent(DECODE).parts for op in part.ops}
    assert any(path.startswith("attention.latent") for path in paths)
    # Layers that choose keys have their scores in a step, too.
    assert ("attention.index_scores" in paths) is name.startswith("glm")


@pytest.mark.parametrize(
    "name", ["qwen3-next-80b-a3b", pytest.param("deepseek-v4-flash", marks=pytest.mark.slow)]
)
def test_names_of_configurations_are_served(name):
    """As the command `models` lists them, beside presets and paths."""
    declare, _ = declaring(name)
    model = declare(DECODE)
    held = sc.bind(sc.cost(model).total("parameter"), model.bindings)
    assert held == sc.count(name)["params"] == sc.job(name).total("params")


def test_graphs_are_not_served():
    """They have no caches: positions of keys are those of the tokens."""
    with pytest.raises(InputError, match=r"a name or a config\.json of the model is accepted"):
        declaring(str(GOLDEN / "pt2" / "llama.pt2"))


def test_what_has_no_latents_decodes_as_it_is(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TRUTH["qwen3_vl/a"]))
    assert declaring(str(path))[1] is None


def test_steps_go_through_chosen_positions_and_choose_among_all(tmp_path):
    """Of 16: products stay as they are beyond these; the indexer's keys are read in each step."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TRUTH["glm_moe_dsa/shared1"]))
    declare, latent = declaring(str(path))
    engine = Engine("mine", declare, parse_strategy(""), machine("h100"), latent=latent)
    (run,) = decode(engine).runs
    share = run.at(run.divided.structure.stages[0])
    numbers = {**decode(engine).numbers, "b": 1, "l": 1}

    def at(rows, context, tokens=1):
        known = {**numbers, "c": context, "l": tokens}
        return sum(
            row.total.subs({s: known[s.name] for s in row.total.free_symbols}) for row in rows
        )

    products = [r for r in share.forward if r.quantity is Quantity.FLOP and "latent" in r.path]
    scores = [
        r for r in share.forward if r.tensor.endswith("index_keys") and r.quantity is Quantity.READ
    ]
    assert 0 < at(products, 7) < at(products, 15) == at(products, 1000)
    assert at(scores, 1023) == 2 * 1024 * 2 * 16  # two layers choose, two take their choice
    prompts = prefill(engine).runs[0]
    whole = prompts.at(prompts.divided.structure.stages[0]).forward
    cores = [r for r in whole if r.path.endswith("latent.core") and W in r.expr.free_symbols]
    first, *later = (at(cores, 0, l) for l in (1, 2, 16, 17, 18, 1000))
    # Query i goes through min(i, 16) positions, in one kernel; of n, a head of a layer compares and
    # adds n - 1 times for its softmax.
    row = 2 * 6 * 4
    pairs = {2: 3, 16: 136, 17: 152, 18: 168, 1000: 136 + 984 * 16}
    assert later == [n * (first + row) - rows * row for rows, n in pairs.items()]
    laid = [row for part in share.parts for row in share.read_rows(part.path)]
    width = numbers["r_kv"] + numbers["d_r"]
    assert at(laid, 1023) == 4 * 16 * 2 * width


@pytest.mark.slow
@pytest.mark.parametrize(("name", "chooses"), [("glm_moe_dsa/a", True), ("qwen3_vl/a", False)])
def test_what_goes_through_all_positions_is_told(tmp_path, name, chooses):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TRUTH[name]))
    sizes = ["--system", "h100", "--gpus", "1", "--input", "64", "--output", "16"]
    result = CliRunner().invoke(main, ["serve-plan", str(path), *sizes, "--strategy", "tp=1"])
    assert result.exit_code == 0, result.output
    assert ("their choice through all positions" in " ".join(result.output.split())) is chooses
