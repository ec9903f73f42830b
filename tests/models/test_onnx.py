"""ONNX files: counts of PyTorch, the archives of torch.export, files that are refused."""

import json
import random
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from sympy import expand

import symbolic_cost as sc
from symbolic_cost import symbols
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.models.traced.imported import traced
from symbolic_cost.models.traced.onnx import onnx_graph
from symbolic_cost.models.traced.onnx.sizes import broadcast, reshaped, sliced

GOLDEN = Path(__file__).parents[1] / "golden"
TRUTH = json.loads((GOLDEN / "pt2" / "truth.json").read_text(encoding="utf-8"))
COUNTED = sc.preset("torch-flop-counter")
with zipfile.ZipFile(GOLDEN / "onnx" / "models.zip") as archive:
    FILES = {one.removesuffix(".onnx"): archive.read(one) for one in archive.namelist()}

FOLDED = {
    "resnet.script": -400,  # batch norms became part of convolutions
    "unet.dynamo": -16,  # the same; ones and zeros of its norm of groups are no parameters
    "bart.script": 96,  # a buffer, which scripts do not tell from parameters
}
"""Parameters that a file has more than the model that it was exported from."""

QUICK = {
    *("llama.dynamo", "gpt2.dynamo", "bert.script", "vit.script", "convnext.dynamo"),
    *("unet.dynamo", "retention.dynamo"),
}


@pytest.fixture
def path(tmp_path):
    def written(data, name="model"):
        file = tmp_path / f"{name}.onnx"
        file.write_bytes(data)
        return file

    return written


def totals(model, size):
    table = sc.cost(model, COUNTED)
    given = {"b": size["b"], "l": size["l"], "l_t": size.get("m", size["l"]), **model.bindings}
    numbers = {symbols.symbol(name): number for name, number in given.items()}
    sums = (table.total("parameter"), table.total("flop", phase="forward"), table.total("flop"))
    return [expr.subs(numbers) for expr in sums]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in sorted(FILES)]
)
def test_counts_are_those_of_pytorch_at_other_sizes(name, path):
    model = traced(path(FILES[name])).model
    known = TRUTH[name.partition(".")[0]]
    params = known["params"] + FOLDED.get(name, 0)
    for size in known["sizes"]:
        assert totals(model, size) == [params, size["flops_fwd"], size["flops_train"]]


@pytest.mark.parametrize(
    "strategy", [*("", "tp,sp"), pytest.param("dp,zero=3", marks=pytest.mark.slow)]
)
def test_llama_is_that_of_torch_export(strategy, path):
    """Products, parameters and their collectives: formulas, not numbers."""
    files = [path(FILES[f"llama.{way}"], way) for way in ("dynamo", "dynamo23")]
    true, *own = (traced(one).model for one in (GOLDEN / "pt2" / "llama.pt2", *files))
    tables = [sc.cost(model, COUNTED, strategy) for model in (true, *own)]
    for quantity in ("flop", "parameter", "communication"):
        first, *others = (table.total(quantity) for table in tables)
        assert not any(expand(first - other) for other in others), quantity


def test_layers_are_one_part_and_axes_have_roles(path):
    found = traced(path(FILES["bert.script"]))
    (layer,) = [part for part in found.model.parts if part.repeat == symbols.n_layers]
    assert layer.path == "model.bert.encoder.layer"
    kinds = {op.kind for op in layer.ops}
    assert {"layer_norm", "gelu"} <= kinds
    assert found.model.bindings == {"n_layers": 3, "e": 64, "f": 128, "q": 16, "V": 96, "h": 4}


def test_what_is_stored_twice_is_one_parameter(path):
    """The head of GPT-2 is the table of its vocabulary, turned; that of Llama is told."""
    notes = traced(path(FILES["gpt2.dynamo"])).notes
    assert not [note for note in notes if "turned" in note]
    (note,) = [note for note in traced(path(FILES["llama.dynamo"])).notes if "turned" in note]
    assert note.endswith("where both are one (tied), 6144 parameters fewer")


def test_folded_norms_are_told(path):
    notes = traced(path(FILES["resnet.script"])).notes
    assert [n for n in notes if "batch norms that it folded, 400 parameters more" in n]
    notes = traced(path(FILES["unet.dynamo"])).notes
    assert [n for n in notes if "batch norms that it folded, 8 parameters more, twice that" in n]
    assert not [n for n in traced(path(FILES["convnext.dynamo"])).notes if "folded" in n]


# Files made here.


def varint(value):
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def shape(name, dims, dtype=1):
    sizes = b"".join(field(1, field(1 if isinstance(d, int) else 2, d)) for d in dims)
    tensor = field(1, dtype) + field(2, sizes)
    return field(1, name) + field(2, field(1, tensor))


def node(op, inputs, outputs, *attributes, domain=""):
    made = b"".join(field(1, one) for one in inputs) + b"".join(field(2, one) for one in outputs)
    return made + field(4, op) + b"".join(field(5, one) for one in attributes) + field(7, domain)


def ints(name, values):
    return field(1, name) + b"".join(field(8, value) for value in values) + field(20, 7)


def tensor(name, dims, dtype=1, numbers=None):
    made = b"".join(field(1, size) for size in dims) + field(2, dtype) + field(8, name)
    packed = b"" if numbers is None else struct.pack(f"<{len(numbers)}q", *numbers)
    return made + (field(9, packed) if numbers is not None else b"")


def model(nodes, tensors, inputs, outputs=("y",), functions=()):
    graph = b"".join(field(1, one) for one in nodes) + b"".join(field(5, one) for one in tensors)
    graph += b"".join(field(11, one) for one in inputs)
    graph += b"".join(field(12, field(1, one)) for one in outputs)
    return (
        field(1, 8) + field(7, graph) + field(8, field(2, 18))
        + b"".join(field(25, one) for one in functions)
    )  # fmt: skip


LINEAR = [node("MatMul", ["x", "w"], ["y"])], [tensor("w", (8, 6))], [shape("x", ("n", "s", 8))]


def test_a_model_made_by_hand(path):
    found = traced(path(model(*LINEAR)))
    table = sc.cost(found.model, COUNTED)
    assert table.total("parameter").subs(found.model.bindings) == 48
    flop = table.total("flop", phase="forward").subs(found.model.bindings)
    assert flop == 96 * symbols.b * symbols.l
    assert dict(found.dims) == {"b": "dimension 0 of x", "l": "dimension 1 of x"}


def test_weights_that_stand_in_a_node_are_parameters(path):
    """As some exporters write them, perhaps cast before the product."""
    held = field(1, "value") + field(5, tensor("", (8, 6))) + field(20, 4)
    nodes = [node("Constant", [], ["v"], held), node("Identity", ["v"], ["w"]), *LINEAR[0]]
    read = traced(path(model(nodes, (), LINEAR[2])))
    assert sc.cost(read.model, COUNTED).total("parameter") == 48


def test_an_image_of_the_file_is_no_parameter(path):
    kernel = [node("Conv", ["image", "w"], ["u"]), node("Add", ["u", "x"], ["y"])]
    tensors = [tensor("image", (1, 3, 8, 8)), tensor("w", (4, 3, 1, 1))]
    read = traced(path(model(kernel, tensors, [shape("x", (2, 4, 8, 8))])))
    assert sc.cost(read.model, COUNTED).total("parameter") == 12


def test_ones_and_zeros_of_a_norm_are_no_parameters(path):
    """What exporters write of a norm of groups, whose parameters follow."""
    nodes = [node("InstanceNormalization", ["x", "ones", "zeros"], ["u"])]
    nodes += [node("MatMul", ["u", "w"], ["y"])]
    tensors = [tensor("ones", (4,), 11, [1] * 4), tensor("zeros", (4,), 11, [0] * 4)]
    tensors += [tensor("w", (8, 6), 11)]
    read = traced(path(model(nodes, tensors, [shape("x", ("n", 4, 8), 11)])))
    assert sc.cost(read.model, COUNTED).total("parameter").subs(read.model.bindings) == 48


@pytest.mark.parametrize("names", [("up.weight", "val_1"), ("val_0", "val_1")])
@pytest.mark.parametrize(("numbers", "count"), [(range(48), 48), ([0] * 48, 96)])
def test_a_matrix_and_its_copy_turned_are_one_parameter(names, numbers, count, path):
    """As torch.onnx stores F.linear(x, w) @ w, or with its transpose; zeros may be of two."""
    w, copy = names
    nodes = [node("MatMul", ["x", copy], ["u"]), node("MatMul", ["u", w], ["y"])]
    across = [numbers[row * 8 + column] for column in range(8) for row in range(6)]
    tensors = [tensor(w, (6, 8), 11, numbers), tensor(copy, (8, 6), 11, across)]
    read = traced(path(model(nodes, tensors, [shape("x", ("n", "s", 8), 11)])))
    assert totals(read.model, {"b": 2, "l": 5})[:2] == [count, 2 * 96 * 2 * 5]


def test_a_copy_as_it_is_and_weights_of_two_modules(path):
    """What modules name is theirs alone, whatever numbers it has."""
    nodes = [node("MatMul", ["x", "w"], ["u"]), node("MatMul", ["u", "v"], ["y"])]
    for name, count in (("val_1", 64), ("b.weight", 128)):
        named = [node("Identity", [name], ["v"]), *nodes]
        tensors = [tensor(one, (8, 8), 11, range(64)) for one in ("w", name)]
        read = traced(path(model(named, tensors, [shape("x", ("n", "s", 8), 11)])))
        assert totals(read.model, {"b": 2, "l": 5})[0] == count


@pytest.mark.parametrize(("kind", "count"), [("PARAMETER", 48), ("", 56)])
def test_ones_of_a_norm_without_weights_are_no_parameters(kind, count, path):
    """As torch.onnx writes F.layer_norm(x, (8,)), where it tells which tensors are parameters."""
    nodes = [node("LayerNormalization", ["x", "val_0"], ["u"]), node("MatMul", ["u", "w"], ["y"])]
    key = "pkg.torch.export.graph_signature.InputSpec.kind"
    w = tensor("w", (8, 6), 11) + (field(16, field(1, key) + field(2, kind)) if kind else b"")
    tensors = [tensor("val_0", (8,), 11, [1] * 8), w]
    read = traced(path(model(nodes, tensors, [shape("x", ("n", "s", 8), 11)])))
    assert totals(read.model, {"b": 2, "l": 5})[0] == count


@pytest.mark.parametrize(("kind", "told"), [("PARAMETER", 1), ("", 0)])
def test_a_table_that_the_exporter_computed_is_told(kind, told, path):
    """As torch.onnx folds a buffer of integers, times its scale, into numbers."""
    nodes = [node("MatMul", ["x", "w"], ["u"]), node("MatMul", ["u", "val_1"], ["y"])]
    key = "pkg.torch.export.graph_signature.InputSpec.kind"
    w = tensor("w", (8, 6), 11) + (field(16, field(1, key) + field(2, kind)) if kind else b"")
    tensors = [w, tensor("val_1", (6, 2), 11, range(12))]
    read = traced(path(model(nodes, tensors, [shape("x", ("n", "s", 8), 11)])))
    assert totals(read.model, {"b": 2, "l": 5})[0] == 60
    said = "12 parameters are numbers that the exporter computed, from parameters or from buffers"
    assert len([note for note in read.notes if note.startswith(f"{said}: val_1")]) == told


def test_factors_of_a_resized_map_are_no_parameters(path):
    """As torch.onnx writes F.interpolate(conv(x), scale_factor=2)."""
    nodes = [node("Conv", ["x", "w"], ["u"]), node("Resize", ["u", "", "val_0"], ["y"])]
    factors = tensor("val_0", (4,), 11) + field(9, struct.pack("<4d", 1, 1, 2, 2))
    tensors = [tensor("w", (4, 3, 1, 1), 11), factors]
    read = traced(path(model(nodes, tensors, [shape("x", (2, 3, 8, 8), 11)])))
    assert totals(read.model, {"b": 2, "l": 5})[:2] == [12, 2 * 2 * 64 * 12]


def test_functions_of_the_file_are_written_out(path):
    body = field(7, node("MatMul", ["a", "m"], ["c"])) + field(7, node("Relu", ["c"], ["d"]))
    own = (
        field(1, "Layer") + field(4, "a") + field(4, "m") + field(5, "d") + body + field(10, "own")
    )
    nodes = [node("Layer", ["x", "w"], ["y"], domain="own")]
    found = traced(path(model(nodes, *LINEAR[1:], functions=[own])))
    assert [op.kind for part in found.model.parts for op in part.ops] == ["einsum", "relu"]


def test_a_function_that_calls_itself_is_refused(path):
    call = node("Layer", ["x", "w"], ["y"], domain="own")
    own = field(1, "Layer") + field(4, "x") + field(5, "y") + field(7, call) + field(10, "own")
    with pytest.raises(InputError, match="functions call each other without end"):
        traced(path(model([call], *LINEAR[1:], functions=[own])))


def test_unknown_operators_are_told_with_count_and_shapes(path):
    nodes = [node("MatMul", ["x", "w"], ["u"]), node("Mystery", ["u"], ["y"], domain="org.x")]
    with pytest.raises(InputError) as told:
        traced(path(model(nodes, *LINEAR[1:])))
    assert str(told.value).endswith(
        "operator org.x.Mystery of [b, l, 6] is not known, 1 of it: its cost would be missing"
    )


GROWING = (
    [node("Shape", ["x"], ["s0"])]
    + [
        one
        for i in range(60)
        for one in (
            node("Mul", [f"s{i}", f"s{i}"], [f"m{i}"]),
            node("Add", [f"m{i}", f"s{i}"], [f"a{i}"]),
            node("Mod", [f"a{i}", "seven"], [f"s{i + 1}"]),
        )
    ],
    [tensor("seven", (1,), 7, [7])],
    [shape("x", ("n", "s", 8))],
)
"""Sizes whose formula is four times as long with every step."""


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "empty"),
        (b"PK\x03\x04 not a model", "is no ONNX model"),
        (field(7, b""), "one graph and the version of its operators are expected"),
        (model(*LINEAR)[:-9], "is no ONNX model"),
        (model(LINEAR[0], [tensor("w", (7, 6))], LINEAR[2]), "8 columns meet 7 rows"),
        (model(LINEAR[0], [tensor("w", (-1 % 2**64, 6))], LINEAR[2]), "has dimensions"),
        (model([node("MatMul", ["u", "w"], ["y"])], *LINEAR[1:]), "'u' before it is made"),
        (model(*LINEAR, outputs=("z",)), "no node makes an output"),
        (
            model([node("Reshape", ["x", "x"], ["y"])], *LINEAR[1:]),
            "shape depends on data",
        ),
        (model(*GROWING), "a size is a formula of more than 500 terms"),
        (
            model([node("Transpose", ["x"], ["y"], ints("perm", (0, 0, 1)))], *LINEAR[1:]),
            "perm = [0, 0, 1] is no order of 3 dimensions",
        ),
        (
            model(LINEAR[0], LINEAR[1], [shape("x", ("__import__('os')", 8))]),
            "is no sum, product or whole quotient",
        ),
    ],
)
def test_damaged_files_are_refused(data, told, path):
    file = path(data)
    with pytest.raises(InputError) as error:
        traced(file)
    assert told in str(error.value)
    result = CliRunner().invoke(main, ["import", str(file)])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_files_cut_anywhere_or_with_other_bytes_are_refused_or_read():
    chance, whole = random.Random(0), FILES["retention.dynamo"]  # noqa: S311 - no secret
    for _ in range(60):
        data = bytearray(whole[: chance.randrange(len(whole))] if chance.random() < 0.5 else whole)
        for _ in range(3):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with suppress(InputError):
            onnx_graph(bytes(data), "cut.onnx")


def test_weights_are_not_read(tmp_path):
    """Half a gigabyte of a hole: a page that nobody looks at is never there."""
    length = 2**29
    tail = b"".join((field(1, 2**14), field(1, 2**13), field(2, 1), field(8, "w")))
    head = tail + varint(9 << 3 | 2) + varint(length)
    graph = field(1, node("MatMul", ["x", "w"], ["y"])) + field(11, shape("x", ("n", 2**14)))
    graph += field(12, shape("y", ()))
    inner = varint(5 << 3 | 2) + varint(len(head) + length) + head
    file = tmp_path / "large.onnx"
    with file.open("wb") as target:
        target.write(field(8, field(2, 18)) + varint(7 << 3 | 2))
        target.write(varint(len(graph) + len(inner) + length) + graph + inner)
        target.truncate(target.tell() + length)
    found = traced(file).model
    assert sc.cost(found, COUNTED).total("parameter").subs(found.bindings) == 2**27


def test_commands_take_a_file(path):
    file = str(path(FILES["llama.dynamo"], "llama"))
    lines = (["import"], ["memory", "--strategy", "tp,dp,zero=3"])
    for command, *rest in lines:
        result = CliRunner().invoke(main, [command, file, *rest])
        assert result.exit_code == 0, result.output
    counted = CliRunner().invoke(
        main, ["count", file, "--batch", "3", "--seq", "24", "--format", "json"]
    )
    assert json.loads(counted.output)["flops_fwd"] == TRUTH["llama"]["sizes"][0]["flops_fwd"]


def test_sizes():
    b, l = symbols.b, symbols.l
    assert reshaped((b, l, 64), (0, -1, 4, 16), zeros=False) == (b, l, 4, 16)
    assert reshaped((b, l, 64), (-1, 64), zeros=False) == (b * l, 64)
    assert broadcast((b, 1, l), (4, 1)) == (b, 4, l)
    assert [sliced(l, 0, 2**63 - 1, 1)[0], sliced(l, -1, 2**63 - 1, 1)[0]] == [l, 1]
    assert [sliced(10, 2, 20, 3)[0], sliced(10, 0, l, 1)[0], sliced(l, 1, -1, 1)[0]] == [
        3,
        l,
        l - 2,
    ]
    with pytest.raises(ValueError, match="meet"):
        broadcast((b, 3), (b, 4))
