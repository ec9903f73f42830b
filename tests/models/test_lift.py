"""Families lifted from exported graphs of several sizes."""

import json
import zipfile
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner
from sympy import expand

import symbolic_cost as sc
from symbolic_cost import symbols
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.models.traced.lift import lifted
from symbolic_cost.models.traced.monomials import Fitter

GOLDEN = Path(__file__).parents[1] / "golden" / "pt2" / "families.zip"
COUNTED = sc.preset("torch-flop-counter")
COUNT = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces")
    with zipfile.ZipFile(GOLDEN) as archive:
        archive.extractall(path)
    return path


def paths(folder, family):
    return [folder / f"{family}{i}.pt2" for i in range(1, COUNT + 1)]


@pytest.fixture(scope="module")
def llama(folder):
    return lifted(paths(folder, "llama"))


def test_llama_is_lifted(llama):
    found = llama
    sizes = {name: str(size) for name, (size, _) in found.sizes.items()}
    assert {name: sizes[name] for name in "ehgdfv"} == {
        "e": "hidden_size",
        "h": "num_key_value_heads",
        "g": "num_attention_heads/num_key_value_heads",
        "d": "head_dim",
        "f": "intermediate_size",
        "v": "vocab_size",
    }
    assert "num_hidden_layers" in {str(times) for times in found.repeats.values()}


@pytest.mark.parametrize("family", ["llama", pytest.param("bert", marks=pytest.mark.slow)])
def test_a_lifted_family_is_the_declared_one(family, folder, request):
    """At sizes that no graph has."""
    known = family == "llama"
    found = request.getfixturevalue("llama") if known else lifted(paths(folder, family))
    fields = {
        "hidden_size": 96, "intermediate_size": 264, "num_hidden_layers": 7, "head_dim": 26,
        "num_attention_heads": 12, "num_key_value_heads": 4, "vocab_size": 210,
        "max_position_embeddings": 190, "type_vocab_size": 9,
    }  # fmt: skip
    beside = ("head_dim", "num_key_value_heads") if family == "bert" else ("type_vocab_size",)
    fields = {name: size for name, size in fields.items() if name not in beside}
    heads = {"llama": "LlamaForCausalLM", "bert": "BertForMaskedLM"}
    config = {**fields, "model_type": family, "architectures": [heads[family]]}
    config["tie_word_embeddings"] = family == "bert"
    declared = sc.from_config(config)
    numbers = {symbols.symbol(name): number for name, number in declared.bindings.items()}
    for quantity in ("parameter", "flop"):
        sums = [sc.cost(one, COUNTED).total(quantity) for one in (found.at(fields), declared)]
        assert expand(sums[0] - sums[1].xreplace(numbers)) == 0, quantity


@pytest.mark.slow
def test_the_command_prints_a_candidate(folder):
    line = ["lift", *map(str, paths(folder, "llama"))]
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, line)
    assert result.exit_code == 0, result.output
    assert "num_attention_heads/num_key_value_heads" in "".join(result.output.split())
    assert "predicted exactly: parameters and FLOP of llama6.pt2" in result.output


def refusal(files):
    with pytest.raises(InputError) as error:
        lifted(files)
    result = CliRunner().invoke(main, ["lift", *map(str, files)])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    return str(error.value)


@pytest.mark.slow
def test_what_cannot_be_lifted_is_refused(folder, tmp_path):
    llama, bert = paths(folder, "llama"), paths(folder, "bert")
    assert "3 graphs: at least 4 are lifted" in refusal(llama[:3])
    assert "one family has the same" in refusal([*llama[:3], bert[0], llama[4]])
    copies = []
    for file in llama:
        copies.append(tmp_path / file.name)
        copies[-1].write_bytes(file.read_bytes())
        fields = json.loads(file.with_suffix(".json").read_text())
        fields.pop("intermediate_size")
        copies[-1].with_suffix(".json").write_text(json.dumps(fields))
    assert "axis f, sizes 112, 144, 176, 136, 200: no short sum of the fields" in refusal(copies)
    copies[0].with_suffix(".json").unlink()
    copies[1].with_suffix(".json").write_text("[]")
    said = refusal(copies)
    assert "llama1.json: cannot be read" in said
    assert "llama2.json: only a JSON object is accepted" in said


@pytest.mark.slow
def test_a_wrong_prediction_is_refused(folder, tmp_path):
    files = paths(folder, "llama")
    held = tmp_path / "llama6.pt2"
    held.write_bytes(files[-1].read_bytes())
    fields = json.loads(files[-1].with_suffix(".json").read_text()) | {"intermediate_size": 105}
    held.with_suffix(".json").write_text(json.dumps(fields))
    said = refusal([*files[:-1], held])
    assert "3 problems" in said
    assert "llama6.pt2, held out: parameters = " in said


ROWS = ((3, 5, 2), (4, 7, 6), (6, 11, 4), (10, 9, 8), (14, 13, 10))
FIELDS = [dict(zip("abc", row, strict=True)) for row in ROWS]


@pytest.mark.parametrize(
    ("function", "written"),
    [
        (lambda a, b, c: a, "a"),  # noqa: ARG005
        (lambda a, b, c: 7, "7"),  # noqa: ARG005
        (lambda a, b, c: 96, "96"),  # noqa: ARG005
        (lambda a, b, c: a * b, "a*b"),  # noqa: ARG005
        (lambda a, b, c: Fraction(a * b, c), "a*b/c"),
        (lambda a, b, c: 2 * b + 1, "2*b + 1"),  # noqa: ARG005
        (lambda a, b, c: a * (b + c), "a*b + a*c"),
        (lambda a, b, c: a * a - b, "a**2 - b"),  # noqa: ARG005
        (lambda a, b, c: 2**a + c, None),  # noqa: ARG005
    ],
)
def test_values_are_explained(function, written):
    values = [Fraction(function(**one)) for one in FIELDS]
    found = Fitter(FIELDS).explained(values)
    assert (found and str(found)) == written
    if found is not None:
        assert [found.at(one) for one in FIELDS] == values


def test_repetitions_are_affine():
    fitter = Fitter(FIELDS)
    square = [Fraction(one["a"] ** 2) for one in FIELDS]
    less = [Fraction(one["a"] - 1) for one in FIELDS]
    assert fitter.explained(square, affine=True) is None
    assert str(fitter.explained(less, affine=True)) == "a - 1"
