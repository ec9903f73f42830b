"""The command `profile`."""

import csv
import json

import pytest
from click.testing import CliRunner

from symbolic_cost.cli import main


def run(*arguments):
    return CliRunner().invoke(main, ["profile", *map(str, arguments)])


def test_bert_base_as_published():
    result = run("bert-base", "--batch", 4, "--seq", 128)
    assert result.exit_code == 0
    assert "Number of flops:       89.45 G" in result.output
    row = "(query): Linear(590.59 k, 0.54% Params, 301.99 MMACs, 0.68% MACs, in_features=768"
    assert row in result.output


def test_latencies_of_a_file(tmp_path):
    file = tmp_path / "latencies.json"
    measured = {"modules": {"": "135.52 ms", "pooler.dense": 9.394e-5}, "run": {"bwd": 0.3}}
    file.write_text(json.dumps(measured), encoding="utf-8")
    result = run("bert-base", "--batch", 4, "--seq", 128, "--latencies", file)
    assert "(dense): Linear(590.59 k, 0.54% Params, 2.36 MMACs, 0.01% MACs, 93.94 us" in (
        result.output
    )
    assert "fwd latency - {'BertModel': '135.52 ms'}" in result.output
    assert "2 * fwd flops per device / bwd latency:" in result.output


def test_table_for_programs():
    result = run("alexnet", "--batch", 256, "--format", "csv")
    rows = {row["module"]: row for row in csv.DictReader(result.output.splitlines())}
    assert rows["alexnet"]["params"] == "61100840"
    assert rows["alexnet"]["MACs"] == "182832250880"
    assert rows["features.0"]["class"] == "Conv2d"


def test_configuration_by_its_path(tmp_path):
    file = tmp_path / "config.json"
    sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
    more = {"intermediate_size": 160, "vocab_size": 101, "max_position_embeddings": 64}
    file.write_text(json.dumps({"model_type": "bert", **sizes, **more}), encoding="utf-8")
    result = run(file, "--batch", 3, "--seq", 20, "--profiler", "2021")
    assert result.exit_code == 0
    assert "-- Flops Profiler --" in result.output
    assert "(2): BertLayer(...)" in result.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["bert-bas"], "unknown model 'bert-bas': did you mean bert-base"),
        (["bert-base", "--batch", 0, "--seq", -1], "seq = -1 is not accepted"),
        (["bert-base", "--profiler", "2022"], "unknown version of the profiler '2022'"),
        (["bert-base", "--latencies", "absent.json"], "'absent.json': cannot be read"),
        (["bert"], "no number without values for"),
    ],
)
def test_refuses(arguments, text):
    result = run(*arguments)
    assert result.exit_code == 2
    assert text in result.output
    assert "Traceback" not in result.output
