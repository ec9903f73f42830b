"""Exported graphs: counts of PyTorch, the declared Llama, what axes are, files that are refused."""

import json
import random
import zipfile
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from sympy import expand

import symbolic_cost as sc
from symbolic_cost import symbols
from symbolic_cost.axes import Role
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError, PlacementError
from symbolic_cost.models.traced import archive
from symbolic_cost.models.traced.archive import read_archive
from symbolic_cost.models.traced.forest import Apart, Forest
from symbolic_cost.models.traced.history import CHECKPOINTED
from symbolic_cost.models.traced.imported import following, traced
from symbolic_cost.models.traced.program import graph
from symbolic_cost.models.traced.shapes import Shapes
from symbolic_cost.parallel.coverage import RESULTS

FOLDER = Path(__file__).parents[1] / "golden" / "pt2"
TRUTH = json.loads((FOLDER / "truth.json").read_text(encoding="utf-8"))
COUNTED = sc.preset("torch-flop-counter")


def counts(model, size):
    """Parameters, forward and training FLOP of a model at a batch and lengths."""
    table = sc.cost(model, COUNTED)
    given = {"b": size["b"], "l": size["l"], "l_t": size.get("m", size["l"]), **model.bindings}
    numbers = {symbols.symbol(name): number for name, number in given.items()}
    sums = (
        table.total("parameter"),
        table.total("flop", phase="forward"),
        table.total("flop"),
    )
    return [expr.subs(numbers) for expr in sums]


def truth(name, size):
    return [TRUTH[name]["params"], size["flops_fwd"], size["flops_train"]]


QUICK = {
    *("llama", "gpt2", "bert", "bart", "mixtral", "vit", "convnext", "resnet", "unet"),
    *("letters", "stopped", "retention", "mamba2", "whisper", "swin", "deberta_v2", "yolos"),
    *("written", "spectral", "thawed"),
}


WHOLE_BATCHES = {
    "clip": "mesh axis 'dp' splits b2 and b",  # compares every text with every image
    "steps": "cell runs along it",  # takes the batch in reverse
    "one_expert": "copy runs along it",  # rows of one expert each are laid out anew
}
"""Why a batch is not divided, by model."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in sorted(TRUTH)]
)
def test_counts_are_those_of_pytorch_at_other_sizes(name):
    model = traced(FOLDER / f"{name}.pt2").model
    for size in TRUTH[name]["sizes"]:
        assert counts(model, size) == truth(name, size)
    # What no product is has an answer as well, where elementwise work is counted.
    assert sc.cost(model).select("flop")
    if name in WHOLE_BATCHES:
        with pytest.raises(PlacementError, match=WHOLE_BATCHES[name]):
            sc.cost(model, COUNTED, "dp")
    else:
        assert sc.cost(model, COUNTED, "dp").select("flop")


@pytest.mark.slow
def test_axes_are_followed_through_graphs():
    apart = [
        name
        for name in TRUTH
        if any("could not be followed" in note for note in traced(FOLDER / f"{name}.pt2").notes)
    ]
    assert apart == ["dpt"]  # maps of images are joined to positions of tokens


def test_what_gets_no_gradient_is_not_trained():
    imported = traced(FOLDER / "stopped.pt2")
    assert imported.notes["weights without a gradient in the file: not trained"] == 2
    table = sc.cost(imported.model, COUNTED)
    trained = {row.path for row in table.select("flop", phase="backward_weight")}
    assert {path.split(".", 1)[-1] for path in trained} == {"held", "down", "up"}


@pytest.mark.parametrize("name", ["llama", "mixtral", "swin", "unet"])
def test_counts_are_the_same_where_axes_are_not_followed(name):
    read = graph(read_archive(FOLDER / f"{name}.pt2"))
    model = following(read, name, Apart()).model
    size = TRUTH[name]["sizes"][0]
    assert counts(model, size) == truth(name, size)


STRATEGIES = ("", "tp", "tp,sp", "cp", "dp,zero=3", "tp,sp,cp,dp,zero=3")


@pytest.fixture(scope="module")
def llama():
    return traced(FOLDER / "llama.pt2").model


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("conventions", ["torch-autograd"])
def test_llama_is_the_declared_one(llama, strategy, conventions):
    rules = sc.preset(conventions)
    imported, declared = (sc.cost(one, rules, strategy) for one in (llama, sc.model("llama")))
    for quantity in ("flop", "parameter", "saved", "weight", "communication", "read", "write"):
        for phase in ("forward", "backward_input", "backward_weight", "state", "step"):
            sums = [table.total(quantity, phase=phase) for table in (imported, declared)]
            assert expand(sums[0] - sums[1]) == 0, (quantity, phase)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_llama_communicates_what_the_declared_one_does(llama, strategy):
    kinds = []
    for model in (llama, sc.model("llama")):
        rows = sc.cost(model, COUNTED, strategy).select("communication")
        sums = {}
        for row in rows:
            key = (row.collective.kind, row.collective.meshes, row.phase)
            sums[key] = sums.get(key, 0) + row.collective.message * row.count
        kinds.append({key: expand(expr) for key, expr in sums.items()})
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("attention", ["flash", "eager"])
@pytest.mark.parametrize("strategy", ["tp,sp,cp"])
def test_llama_runs_as_the_declared_one(llama, strategy, attention):
    open_sizes = replace(llama, bindings={})
    jobs = [sc.job(one, strategy, attention=attention) for one in (open_sizes, sc.model("llama"))]
    for quantity in ("flop", "saved", "communication", "read"):
        sums = [job.table().total(quantity) for job in jobs]
        assert expand(sums[0] - sums[1]) == 0, quantity


WIDE = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 96}
LATENT = {
    **WIDE,
    "intermediate_size": 160,
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    "moe_intermediate_size": 32,
    "n_routed_experts": 8,
}
DECLARED = {
    "qwen3": {**WIDE, "intermediate_size": 160, "head_dim": 16, "num_key_value_heads": 2},
    "phi3": {**WIDE, "intermediate_size": 160, "pad_token_id": 0, "num_key_value_heads": 2},
    "gpt_neox": {**WIDE, "intermediate_size": 128},
    "falcon": {**WIDE, "multi_query": True, "parallel_attn": True, "bias": False},
    "gemma2": {
        **WIDE, "num_hidden_layers": 4, "intermediate_size": 160, "num_key_value_heads": 2,
        "head_dim": 16, "sliding_window": 8,
    },
    "gpt2": {
        "n_embd": 64,
        "n_layer": 3,
        "n_head": 4,
        "vocab_size": 96,
        "resid_pdrop": 0,
        "embd_pdrop": 0,
        "attn_pdrop": 0,
    },
    "deepseek_v2": {
        **LATENT, "q_lora_rank": None, "first_k_dense_replace": 1, "n_shared_experts": 2,
        "num_experts_per_tok": 2, "n_group": None, "topk_group": None, "topk_method": "greedy",
    },
    "deepseek_v3": {
        **LATENT, "q_lora_rank": 24, "first_k_dense_replace": 3, "n_group": 2, "topk_group": 1,
    },
}  # fmt: skip
APART = {
    # Declared layers hold latents of all tokens; a graph is divided along the tokens up to there.
    *(("deepseek_v2", "tp,sp"), ("deepseek_v3", "tp,sp")),
    # Attention and the perceptron beside it gather alike, in a graph once; keys that are copied for
    # every query head are saved whole.
    *(("falcon", "tp,sp"), ("falcon", "cp")),
    # How many ranks share the one key head is a question of the degree.
    ("falcon", "tp"),
}
ALIKE = [
    (name, strategy)
    for name in DECLARED
    for strategy in ("", "tp", "tp,sp", "cp", "dp,zero=3", "pp=2", "tp=2")
    if (name, strategy) not in APART
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "strategy"), ALIKE)
def test_families_are_the_declared_ones(name, strategy):
    config = {"model_type": name, "max_position_embeddings": 128, **DECLARED[name]}
    models = traced(FOLDER / f"{name}.pt2").model, sc.from_config(config)
    for quantity in ("flop", "parameter", "communication"):
        for phase in ("forward", "backward_input", "backward_weight", "state", "step"):
            sums = [
                sc.cost(one, COUNTED, strategy)
                .total(quantity, phase=phase)
                .xreplace({symbols.symbol(key): number for key, number in one.bindings.items()})
                for one in models
            ]
            assert expand(sums[0] - sums[1]) == 0, (quantity, phase)


def test_axes_have_roles_and_reasons(llama):
    found = traced(FOLDER / "llama.pt2")
    axes = {axis.name: axis for axis in found.axes}
    assert {name: axis.role for name, axis in axes.items()} == {
        "b": Role.BATCH, "l": Role.TOKEN, "r": Role.TOKEN, "t": Role.KEY_TOKEN,
        "v": Role.VOCABULARY, "e": Role.HIDDEN, "h": Role.HEAD, "g": Role.GROUP,
        "d": Role.WIDTH, "f": Role.INNER,
    }  # fmt: skip
    assert axes["v"].reason == "rows of model.model.embed_tokens.weight by given ids"
    assert "made by model.model.layers.0.mlp.gate_proj" in axes["f"].reason
    assert llama.bindings == {"e": 64, "f": 160, "q": 16, "V": 96, "k": 2, "h": 4, "n_layers": 3}


@pytest.mark.parametrize(
    ("name", "strategies"),
    [
        ("gpt2", ("tp", "tp,sp", "cp", "ulysses")),
        ("t5", ("tp,sp", "cp")),
        ("mixtral", ("tp,sp", "cp")),
        ("phi3", ("tp,sp", "cp")),
        ("deepseek_v3", ("tp", "cp")),
        ("vit", ("tp,sp",)),
        ("whisper", ("tp",)),
    ],
)
def test_two_ranks_divide_the_products(name, strategies):
    """Two ranks do half of the products each, and alike what the strategy names."""
    model = traced(FOLDER / f"{name}.pt2").model
    numbers = {"b": 4, "l": 64, "l_t": 32, **model.bindings, **dict.fromkeys(("m1", "cp", "s1"), 2)}
    given = {symbols.symbol(key): number for key, number in numbers.items()}
    whole, *own = (
        sc.cost(model, COUNTED, strategy).total("flop", phase="forward").subs(given)
        for strategy in ("", *strategies)
    )
    for strategy, part in zip(strategies, own, strict=True):
        read = sc.parse_strategy(strategy)
        alike = {one.path for one in read.repeated(read.model(model)) if one.reason is not RESULTS}
        rows = sc.cost(model, COUNTED, strategy).select("flop", phase="forward")
        repeated = sum(row.total.subs(given) for row in rows if row.path in alike)
        assert 2 * part - repeated == whole, strategy


def test_calls_of_one_module_are_attention_cores_apart():
    job = sc.job(traced(FOLDER / "albert.pt2").model, system="h100").bind(b=2, l=32, M=1)
    assert job.time().step > 0


@pytest.mark.parametrize(
    ("name", "divided"), [("yolos", "vit.encoder.layer"), ("wav2vec2", "wav2vec2.encoder.layers")]
)
def test_lists_whose_modules_change_axes_are_no_depth(name, divided):
    model = traced(FOLDER / f"{name}.pt2").model
    assert [part.path for part in model.parts if part.is_block] == [f"model.{divided}"]
    assert sc.cost(model, COUNTED, "pp=2").select("flop")


def test_results_of_several_stages_are_refused():
    model = traced(FOLDER / "dpt.pt2").model
    with pytest.raises(PlacementError, match="takes results of the blocks"):
        sc.cost(model, COUNTED, "pp=2")


def test_a_strategy_that_needs_a_role_is_refused_with_op_and_axes():
    model = traced(FOLDER / "resnet.pt2").model
    with pytest.raises(PlacementError, match=r"tp: model 'resnet' has none of its axes"):
        sc.cost(model, COUNTED, "tp")
    read = graph(read_archive(FOLDER / "llama.pt2"))
    model = following(read, "llama", Apart()).model
    with pytest.raises(PlacementError, match=r"cannot be split|each needs|splits"):
        sc.cost(model, COUNTED, "tp,sp")


# Files that are refused.


def changed(name="retention", **changes):
    """An archive whose graph is changed by a function of its JSON; further entries by name."""
    source, made = zipfile.ZipFile(FOLDER / f"{name}.pt2"), BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.namelist():
            data = source.read(entry)
            if entry.endswith("models/model.json") and "graph" in changes:
                program = json.loads(data)
                changes["graph"](program)
                data = json.dumps(program).encode()
            target.writestr(entry, data)
        for entry, data in changes.get("more", {}).items():
            target.writestr(entry, data)
    return made.getvalue()


CALLED = """File "model.py", line 9, in forward
    x = self._gradient_checkpointing_func(layer, x)
"""


@pytest.mark.parametrize(("lines", "told"), [(CALLED, 1), ("x = load_checkpoint(x)", 0)])
def test_a_checkpoint_in_the_lines_that_led_to_a_node_is_told(lines, told):
    def graph(program):
        node(program, "linear.default")["metadata"]["stack_trace"] = lines

    assert traced(changed("llama", graph=graph), "llama").notes[CHECKPOINTED] == told


def node(program, target):
    nodes = program["graph_module"]["graph"]["nodes"]
    return next(one for one in nodes if one["target"] == f"torch.ops.aten.{target}")


def strange(program):
    node(program, "linear.default")["target"] = "torch.ops.mine.secret.default"


def text(written):
    def change(program):
        values = program["graph_module"]["graph"]["tensor_values"]
        values["linear"]["sizes"][0] = {"as_expr": {"expr_str": written}}

    return change


def contradicting(program):
    program["graph_module"]["graph"]["tensor_values"]["linear"]["sizes"][2] = {"as_int": 47}


def missing(program):
    del program["graph_module"]["graph"]["nodes"][0]["inputs"]


def without_maker(program):
    node(program, "linear.default")["inputs"][0]["arg"]["as_tensor"]["name"] = "nowhere"


def cyclic(program):
    nodes = program["graph_module"]["graph"]["nodes"]
    last = nodes[-1]["outputs"][0]["as_tensor"]["name"]
    node(program, "linear.default")["inputs"][0]["arg"]["as_tensor"]["name"] = last


def misread(program):
    node(program, "view.default")["inputs"][0]["arg"] = {"as_int": 3}


def projected(program):
    node(program, "gru.input")["inputs"][2]["arg"]["as_tensors"].pop()


def vector_given(program):
    specs = program["graph_module"]["signature"]["input_specs"]
    place = next(i for i, one in enumerate(specs) if "p_model_vector" in json.dumps(one))
    specs[place] = {"user_input": {"arg": {"as_tensor": {"name": "p_model_vector"}}}}


def threefold(program):
    inputs = node(program, "einsum.default")["inputs"]
    inputs[0]["arg"]["as_string"] = "bld,dhk,bhm->bhlm"


def negative(program):
    program["graph_module"]["graph"]["tensor_values"]["linear"]["sizes"][2] = {"as_int": -1}


def older(program):
    program["schema_version"]["major"] = 7


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is no archive of torch.export.save"),
        (b"PK\x03\x04" + b"0" * 50, "is no archive of torch.export.save"),
        ((FOLDER / "retention.pt2").read_bytes()[:-100], "is no archive of torch.export.save"),
        (
            changed(more={"other/models/model.json": "{}"}),
            "one entry NAME/models/model.json is read",
        ),
        (
            changed(graph=strange),
            "operator mine.secret of [b, l, 48], [48, 48] is not known, 1 of it",
        ),
        (changed(graph=text("__import__('os').system('true')")), "is not understood"),
        (changed(graph=text("Pow(Integer(9), Integer(999999))")), "is not understood"),
        (changed(graph=text("Symbol('u0', integer=True)")), "depends on data"),
        (changed(graph=text("Add(" * 3000)), "is not understood"),
        (
            changed(graph=contradicting),
            "shapes contradict each other: linear is said to be [b l 47]",
        ),
        (changed(graph=missing), "the graph is not as torch.export.save writes it: KeyError"),
        (changed(graph=without_maker), "nothing makes the value 'nowhere'"),
        (changed(graph=cyclic), "before it is made: a graph has no cycles"),
        (changed(graph=misread), "aten.view in model: its arguments are not understood"),
        (changed("steps", graph=projected), "and weights other than 4 of each of"),
        (changed("operators", graph=vector_given), "memory's order decides whether PyTorch counts"),
        (changed(graph=threefold), "letters of 3 tensors, of which 2 stand"),
        (changed(graph=negative), "size -1: a whole number is accepted"),
        (changed(graph=older), "schema 7: 8 is read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refuses(data, said):
    with pytest.raises(InputError) as refused:
        traced(data, "a.pt2")
    assert said in str(refused.value)
    assert str(refused.value).count("a.pt2") >= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_graph_is_refused_or_read(seed):
    """Any exception but the library's own fails the test."""
    dice = random.Random(seed)  # noqa: S311 - no secret

    def damage(value, depth=0):
        if isinstance(value, dict) and value:
            key = dice.choice(sorted(value))
            if dice.random() < 0.1 + 0.05 * depth:
                value[key] = dice.choice([None, -1, "s0", [], {}, 10**30, "Symbol('x')"])
            else:
                damage(value[key], depth + 1)
        elif isinstance(value, list) and value:
            place = dice.randrange(len(value))
            if dice.random() < 0.2:
                del value[place]
            else:
                damage(value[place], depth + 1)

    def several(program):
        for _ in range(3):
            damage(program["graph_module"])

    data = changed(dice.choice(["retention", "mixer", "llama"]), graph=several)
    with suppress(InputError):
        sc.cost(traced(data).model, COUNTED)


def packed(entry, data):
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr(entry, data)
    return made.getvalue()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (packed("m/models/model.json", "["), "is not JSON"),
        (packed("m/models/model.json", "[" * 100_000), "is not JSON: 'nested too deeply'"),
        (packed("m/models/model.json", "[]"), "a JSON object is accepted"),
        (packed("m/models/model.json", "{}"), "schema None: 8 is read"),
        (packed("m/models/model.json", " " * 3_000_000), "packed at most 400 times"),
        (packed("../../models/model.json", "{}"), "one entry NAME/models/model.json is read"),
        (packed("m/data/weights/weight_0", "0"), "one entry NAME/models/model.json is read"),
    ],
)
def test_refuses_what_is_packed(data, said):
    with pytest.raises(InputError) as refused:
        read_archive(data)
    assert said in str(refused.value)


def test_a_long_graph_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr(archive, "MOST_JSON", 1000)
    with pytest.raises(InputError, match=r"at most 1000 bytes are read"):
        read_archive(FOLDER / "llama.pt2")


@pytest.mark.parametrize("command", ["import", "table", "memory", "count"])
def test_the_command_line_refuses_in_one_message(command, tmp_path):
    file = tmp_path / "model.pt2"
    file.write_bytes(changed(graph=strange))
    result = CliRunner().invoke(main, [command, str(file)])
    assert result.exit_code == 2
    assert "mine.secret" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("path", ["none.pt2", ".", "a\0b.pt2"])
def test_refuses_what_is_no_file(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"cannot be read|is not a regular file"):
        read_archive(path)


# Parts of it.


def test_sizes_are_read_without_evaluating():
    l = symbols.l
    shapes = Shapes("here", {"s0": l})
    assert shapes.read("Mul(Integer(64), Symbol('s0', positive=True, integer=True))") == 64 * l
    assert shapes.read("FloorDiv(Mul(Integer(4), Symbol('s0')), Integer(2))") == 2 * l
    assert shapes.read("Add(Symbol('s0'), Integer(-1))") == l - 1


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("FloorDiv(Add(Mul(<l>, <b>), <l>, Integer(-1)), <l>)", "b"),
        ("Mod(Add(Mul(<l>, <b>), Mul(Integer(8), <l>)), <l>)", "0"),
        ("FloorDiv(Add(Mul(Integer(4), <l>), Integer(7)), Integer(4))", "l + 1"),
        ("FloorDiv(Add(Mul(<l>, <b>), <b>), <l>)", "b + floor(b/l)"),
        ("TruncToInt(Mul(Float('1.5', precision=53), ToFloat(<l>)))", "floor(3*l/2)"),
        ("FloorToInt(FloatTrueDiv(ToFloat(<l>), Float('4.0')))", "floor(l/4)"),
    ],
)
def test_whole_terms_stand_before_a_floor(text, read):
    written = text.replace("<l>", "Symbol('s0')").replace("<b>", "Symbol('s1')")
    assert str(Shapes("here", {"s0": symbols.l, "s1": symbols.b}).read(written)) == read


@pytest.mark.parametrize(
    "text",
    [
        "TruncToInt(Mul(Float('0.69999999999999996', precision=53), ToFloat(Integer(10))))",
        "FloorToInt(FloatTrueDiv(Integer(10), Integer(3)))",
        "FloatTrueDiv(Integer(1), Integer(0))",
        "Float('inf')",
        "Float('nan')",
        "Float(3)",
    ],
)
def test_sizes_that_rounding_decides_are_refused(text):
    with pytest.raises(InputError, match="is not understood"):
        Shapes("here", {}).read(text)


def test_a_longer_axis_is_split_by_a_shorter_one():
    forest = Forest()
    (heads,), (key,), (group,) = forest.dims((8, 2, 4))
    assert forest.unify((heads,), (key, group))
    assert forest.flat((heads,)) == forest.flat((key, group))
    (six,), (four,) = forest.dims((6, 4))
    assert not forest.unify((six,), (four,))


def test_positions_of_keys_stay_apart_from_those_of_queries():
    forest = Forest()
    l = forest.new(symbols.l)
    (t,) = forest.copies((l,))
    assert not forest.unify((t,), (l,))
    assert forest.copies((l,)) == (t,)


@pytest.mark.parametrize("strategy", ["cp", "ring", "tp,sp"])
def test_a_learnt_table_of_positions_is_whole_on_ranks_that_split_positions(strategy):
    """As the declared one: 17 rows of 64 for 4 x 4 patches and a token, of which each uses some."""
    rows = sc.job(str(FOLDER / "vit.pt2"), strategy).rows.select(path="entry")
    held = rows.select("parameter", where=lambda row: row.tensor == "position_embeddings")
    assert sc.value(held.total("parameter").subs(symbols.e, 64)) == 17 * 64
    made = "dposition_embeddings"
    sent = rows.select("communication", where=lambda row: row.tensor == made)
    mesh = strategy.partition(",")[0]
    assert [(row.collective.kind, row.collective.meshes) for row in sent] == [
        ("all-reduce", (mesh,))
    ]


def test_import_writes_axes_parts_and_formulas():
    result = CliRunner().invoke(main, ["import", str(FOLDER / "gpt2.pt2"), "--format", "json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.output)["records"]
    totals = {row["name"]: row["value"] for row in rows if row["what"] == "total"}
    assert totals["params"] == TRUTH["gpt2"]["params"]
    assert any(row["why"].startswith("head: heads in") for row in rows)


def test_counts_by_name_and_by_command():
    found = sc.count(str(FOLDER / "bert.pt2"), batch=3, seq=24)
    size = TRUTH["bert"]["sizes"][0]
    assert (found["params"], found["flops_fwd"]) == (TRUTH["bert"]["params"], size["flops_fwd"])


@pytest.mark.slow
def test_trace_exports_and_reads():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 4)
    ).eval()
    model = sc.trace(module, (torch.zeros(3, 4),))
    b = symbols.b
    assert sc.cost(model, COUNTED).total("flop", phase="forward").subs(symbols.f, 8) == 128 * b
    assert model.name == "Sequential"
    with pytest.raises(InputError, match=r"a torch\.nn\.Module is accepted"):
        sc.trace(3, ())
