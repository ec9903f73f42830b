"""Files of ONNX Runtime's tools: fused, quantised, recurrent, built for generation."""

import json
import random
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from sympy import expand

import symbolic_cost as sc
from symbolic_cost import symbols
from symbolic_cost.errors import InputError
from symbolic_cost.models.traced.imported import traced
from symbolic_cost.models.traced.onnx import onnx_graph
from tests.models.test_onnx import COUNTED, field, ints, model, node, shape, tensor, totals

GOLDEN = Path(__file__).parents[1] / "golden"
TRUTH = json.loads((GOLDEN / "pt2" / "truth.json").read_text(encoding="utf-8"))
with zipfile.ZipFile(GOLDEN / "onnx" / "runtime.zip") as archive:
    FILES = {one.removesuffix(".onnx"): archive.read(one) for one in archive.namelist()}

SIZES = [{"b": 3, "l": 24}, {"b": 2, "l": 40}]
COUNTS = {
    # Of PyTorch's counter; LSTM has the products of GRU four thirds times: it counts none of it.
    "gru": (10362, [(1262592, 3769344), (1402880, 4196352)]),
    "rnn": (4474, [(451584, 1348608), (501760, 1501184)]),
    "lstm": (13306, [(1668096, 4979712), (1853440, 5543936)]),
}
OTHERWISE = {
    # Scaled otherwise in the head: no longer the table of the vocabulary, turned.
    **dict.fromkeys(("bert.dynamic", "bert.qdq", "bert.4bits"), 6144),
    # Batch norms became part of convolutions.
    **dict.fromkeys(("resnet.dynamic", "resnet.qdq", "resnet.qoperator"), -400),
}
LLAMA = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 160, "vocab_size": 96,
    "max_position_embeddings": 128, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.fixture
def path(tmp_path):
    def written(data):
        file = tmp_path / "model.onnx"
        file.write_bytes(data)
        return file

    return written


def known(name):
    """Parameters, and FLOP forward and of training at both sizes."""
    if name in COUNTS:
        return COUNTS[name]
    if name == "llama":
        declared = [totals(sc.from_config(LLAMA), size) for size in SIZES]
        return declared[0][0], [tuple(flop) for _, *flop in declared]
    truth = TRUTH[name]
    return truth["params"], [(size["flops_fwd"], size["flops_train"]) for size in truth["sizes"]]


@pytest.mark.parametrize("name", sorted(FILES))
def test_counts_are_those_of_the_network_itself(name, path):
    found = traced(path(FILES[name]))
    params, flops = known(name.partition(".")[0])
    for size, flop in zip(SIZES, flops, strict=True):
        assert totals(found.model, size) == [params + OTHERWISE.get(name, 0), *flop]
    assert set(found.dims) <= {"b", "l"}
    few = [note for note in found.notes if "stand in integers" in note]
    assert bool(few) == (name.partition(".")[2] not in {"fused", "plain", "fp32"})


def test_caches_that_are_inputs_are_taken_as_empty(path):
    notes = traced(path(FILES["llama.int4"])).notes
    assert "caches are taken as empty: prompts are counted" in notes


@pytest.mark.parametrize("strategy", ["tp=2,sp", "cp=2"])
def test_two_ranks_have_half_of_the_work_each(strategy, path):
    found = traced(path(FILES["llama.int4"])).model
    whole, rank = (sc.cost(found, COUNTED, one) for one in ("", strategy))
    sizes = {symbols.symbol(name): size for name, size in found.bindings.items()}
    assert expand((whole.total("flop") - 2 * rank.total("flop")).subs(sizes)) == 0


def number(name, value):
    return field(1, name) + field(3, value) + field(20, 2)


def fused(op, inputs, *attributes, outputs=("y",)):
    return node(op, list(inputs), list(outputs), *attributes, domain="com.microsoft")


EMBEDDED = fused("EmbedLayerNormalization", ["i", "", "W", "P", "", "g", "c"], outputs=["x", "m"])
TABLES = [tensor("W", (96, 64)), tensor("P", (32, 64)), tensor("g", (64,)), tensor("c", (64,))]
IDS = [shape("i", ("n", "s"), 6)]


@pytest.mark.parametrize(
    ("nodes", "tensors", "params", "flop"),
    [
        (
            [fused("Attention", ["x", "A", "a"], number("num_heads", 4))],
            {"A": (64, 192), "a": (192,)},
            64 * 192 + 192,
            (2 * 64 * 192, 4 * 64),
        ),
        (
            [fused("MultiHeadAttention", ["x", "x", "x", "a"], number("num_heads", 4))],
            {"a": (192,)},
            192,
            (0, 4 * 64),
        ),
        (
            [
                fused("FastGelu", ["x", "a"], outputs=["u"]),
                fused("FusedMatMul", ["u", "A"], number("transB", 1)),
            ],
            {"a": (64,), "A": (32, 64)},
            64 + 32 * 64,
            (2 * 32 * 64, 0),
        ),
        (
            [
                fused("GemmFastGelu", ["x", "A", "a"], outputs=["u"]),
                fused("SkipLayerNormalization", ["u", "x", "k", "j", "o"]),
            ],
            {"A": (64, 64), "a": (64,), "k": (64,), "j": (64,), "o": (64,)},
            64 * 64 + 4 * 64,
            (2 * 64 * 64, 0),
        ),
    ],
)
def test_fused_nodes_by_hand(nodes, tensors, params, flop, path):
    """Two tables and a norm; FLOP of a token, and of a token and a key."""
    held = [*TABLES, *(tensor(name, dims) for name, dims in tensors.items())]
    found = traced(path(model([EMBEDDED, *nodes], held, IDS))).model
    size, (each, pair) = {"b": 3, "l": 8}, flop
    tables = 96 * 64 + 32 * 64 + 2 * 64
    assert totals(found, size)[:2] == [tables + params, 24 * each + 24 * 8 * pair]


def test_operators_that_others_compose_have_no_parameters(path):
    """A convolution with a norm of channels, positions made one length, a product."""
    nodes = [
        node("Conv", ["x", "w"], ["c"], ints("pads", (1, 1, 1, 1))),
        node("LRN", ["c"], ["r"], number("size", 5)),
        node("MeanVarianceNormalization", ["r"], ["m"]),
        node("Flatten", ["m"], ["f"]),
        node("LpNormalization", ["f"], ["u"]),
        node("Gemm", ["u", "A", "a"], ["y"], number("transB", 1)),
    ]
    tensors = [("w", (8, 3, 3, 3)), ("A", (10, 2048)), ("a", (10,))]
    held = [tensor(*one) for one in tensors]
    found = traced(path(model(nodes, held, [shape("x", ("n", 3, 16, 16))]))).model
    flop = 2 * (2 * 27 * 8 * 256 + 2 * 2048 * 10)
    assert totals(found, {"b": 2, "l": 1})[:2] == [216 + 20490, flop]


BLOCKS = [number("K", 64), number("N", 32), number("bits", 4), number("block_size", 32)]
HEADS = [number("num_heads", 4), number("kv_num_heads", 2)]
GIVEN = [shape("x", ("n", "s", 64)), shape("p", ("n", 2, "t", 16))]


@pytest.mark.parametrize(
    ("nodes", "tensors", "told"),
    [
        ([fused("MatMulNBits", ["x", "A", "s"], *BLOCKS)], {"A": (32, 3, 16)}, "32 columns of 2"),
        ([fused("MatMulNBits", ["x", "x", "s"], *BLOCKS)], {}, "x is no tensor of the file"),
        (
            [fused("QLinearAveragePool", ["x", "s", "z"], number("channels_last", 1))],
            {},
            "channels before positions are accepted",
        ),
        (
            [fused("GroupQueryAttention", ["x", *[""] * 10, "h"], *HEADS)],
            {"h": (4,)},
            "a learned sink (head_sink) is not read",
        ),
        (
            [
                node("Relu", ["p"], ["q"]),
                fused("GroupQueryAttention", ["x", "x", "x", "q", "q"], *HEADS),
            ],
            {},
            "caches that are inputs of the file are accepted",
        ),
        (
            [fused("MultiHeadAttention", ["x"], number("num_heads", 4))],
            {},
            "queries, keys and values apart are accepted",
        ),
        (
            [node("LSTM", ["x", "A", "B", "", "", "", "", "h"], ["y"])],
            {"A": (1, 64, 64), "B": (1, 64, 16), "h": (1, 48)},
            "without peepholes are accepted",
        ),
        ([node("GRU", ["x", "x", "x"], ["y"])], {}, "x is no tensor of the file"),
        ([fused("MoE", ["x", "x"])], {}, "com.microsoft.MoE of [b, l, 64]"),
    ],
)
def test_what_has_no_rule_is_refused_by_name(nodes, tensors, told, path):
    held = [tensor(name, dims) for name, dims in tensors.items()]
    with pytest.raises(InputError) as error:
        traced(path(model(nodes, held, GIVEN)))
    assert told in str(error.value)


def test_what_attention_does_not_read_is_told(path):
    window = [*HEADS, number("local_window_size", 4)]
    nodes = [fused("GroupQueryAttention", ["x", "k", "k"], *window)]
    given = [GIVEN[0], shape("k", ("n", "s", 32))]
    (note,) = traced(path(model(nodes, [], given))).notes
    assert note.startswith("local_window_size of GroupQueryAttention is not read")


def test_files_with_other_bytes_are_refused_or_read():
    chance = random.Random(0)  # noqa: S311 - no secret
    for name in ("llama.int4", "lstm.dynamic", "resnet.qoperator"):
        for _ in range(30):
            data = bytearray(FILES[name])
            for _ in range(3):
                data[chance.randrange(len(data))] = chance.randrange(256)
            with suppress(InputError):
                onnx_graph(bytes(data), "other.onnx")
