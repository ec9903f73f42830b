"""What is trained against PyTorch and PEFT: parameters, FLOP and what autograd keeps, exactly."""

import json
from math import prod
from pathlib import Path

import pytest
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.conventions.presets import preset
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.bound import bound
from symbolic_cost.models.checked import FROZEN, UNCHECKED
from symbolic_cost.models.config import from_config
from symbolic_cost.models.count import count
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.traced.archive import read_archive
from symbolic_cost.models.traced.program import graph
from symbolic_cost.models.training import training
from symbolic_cost.ops.derive import cost
from tests.models.test_families_truth import TRUTH as TRUTH_OF_FAMILIES

TRUTH = json.loads(
    (Path(__file__).parents[1] / "golden" / "torch_trained.json").read_text(encoding="utf-8")
)
RULES = {"bfloat16": "torch-autograd", "float32": "torch-autograd-fp32"}
ENTRIES = [
    pytest.param(
        entry,
        id=f"{entry['config']['model_type']} {entry['learns']}",
        marks=() if number % 3 == 1 else pytest.mark.slow,
    )
    for number, entry in enumerate(TRUTH["entries"])
]
ADAPTED = json.loads(
    (Path(__file__).parents[1] / "golden" / "torch_adapted.json").read_text(encoding="utf-8")
)
"""Adapters at linear layers of Transformers by name; whether what it means is certain."""
UNTRAINED = json.loads(
    (Path(__file__).parents[1] / "golden" / "untrained.json").read_text(encoding="utf-8")
)
"""Trained parameters of configurations of families_truth.json and others, as PyTorch has them."""
UNKNOWN = {"llava"}
"""Families whose saved bytes are said to be unchecked."""


def costs(entry, run):
    attention, dtype = run.split()
    config = {**entry["config"], "attn_implementation": attention}
    images = Integer(4 if "vision_config" in config else 0)
    shape = Shape(Integer(TRUTH["b"]), Integer(TRUTH["l"]), i=images)
    return cost(bound(training(from_config(config, shape), entry["learns"])), preset(RULES[dtype]))


@pytest.mark.parametrize("entry", ENTRIES)
def test_counts_and_what_is_kept_are_those_of_torch(entry):
    table = costs(entry, "eager float32")
    assert table.total(Quantity.PARAMETER) == entry["params"]
    assert table.total(Quantity.WEIGHT_GRADIENT) == 4 * entry["trained"]
    assert table.total(Quantity.FLOP, phase="forward") == entry["fwd"]
    assert table.total(Quantity.FLOP) == entry["train"]
    if entry["config"]["model_type"] not in UNKNOWN:
        assert table.total("saved") == entry["saved"]["eager float32"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", [one for one in ENTRIES if one.values[0]["config"]["model_type"] not in UNKNOWN]
)
@pytest.mark.parametrize("run", ["eager bfloat16", "sdpa float32", "sdpa bfloat16"])
def test_other_kernels_and_precisions_keep_what_torch_keeps(entry, run):
    assert costs(entry, run).total("saved") == entry["saved"][run]


def test_families_said_to_be_checked_are():
    assert {entry["config"]["model_type"] for entry in TRUTH["entries"]} == FROZEN | UNKNOWN


@pytest.mark.slow
@pytest.mark.parametrize("name", UNTRAINED)
def test_weights_that_are_made_without_gradients_are_not_trained(name):
    config = TRUTH_OF_FAMILIES[name]["config"]
    counts = count(config, 1, 64)
    assert counts["trained"] == "all"
    assert counts["params_trained"] == UNTRAINED[name] < counts["params"]
    model = bound(from_config(config, Shape(Integer(1), Integer(64))))
    table = cost(model, preset(RULES["float32"]))
    assert table.total(Quantity.WEIGHT_GRADIENT) == 4 * UNTRAINED[name]


def test_tables_without_gradients_stay_so_whatever_is_named():
    config = TRUTH_OF_FAMILIES["pegasus/a"]["config"]
    trained = count(config, 1, 64, train="all-but:decoder.norm")["params_trained"]
    assert trained == UNTRAINED["pegasus/a"] - 2 * config["d_model"]
    with pytest.raises(InputError, match="leaves no weight that is trained"):
        count(config, 1, 64, train="encoder.embedding.position")
    assert count(config, 1, 64, train="lora:r=4,q,v")["flops_decode"] is not None


@pytest.mark.parametrize(
    ("name", "learns", "trained", "flop"),
    [
        ("marian/a", "encoder.block", 286784, 200970240),
        ("marian/a", "decoder.block", 436544, 144740352),
        ("whisper/a", "all-but:decoder,head,encoder.embedding,encoder.norm", 286400, 318603264),
        ("whisper/a", "decoder.block", 435776, 201990144),
    ],
)
def test_a_step_of_the_decoder_lacks_the_encoder_that_is_trained(name, learns, trained, flop):
    """The numbers are those of PyTorch with requires_grad of these layers alone."""
    config = TRUTH_OF_FAMILIES[name]["config"]
    counts = count(config, 1, 64, train=learns)
    assert (counts["params_trained"], counts["flops_train"]) == (trained, flop)
    assert counts["flops_decode"] == count(config, 1, 64)["flops_decode"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", ADAPTED, ids=lambda e: f"{e['config']['model_type']} {e['learns'].partition(',')[2]}"
)
def test_adapters_are_those_of_linear_layers_of_a_name_or_refused(entry):
    b, l, forward = entry["fwd"]
    if not entry["answered"]:
        with pytest.raises(InputError, match=entry["learns"].rpartition(",")[2]):
            count(entry["config"], b, l, train=entry["learns"])
        return
    counts = count(entry["config"], b, l, train=entry["learns"])
    assert (counts["params"], counts["params_trained"]) == (entry["params"], entry["trained"])
    assert (counts["flops_fwd"], counts["flops_train"]) == (forward, entry["train"])


DOGE = {"model_type": "doge", "vocab_size": 101, "hidden_size": 64, "intermediate_size": 96}
DOGE |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}


@pytest.mark.parametrize(
    ("learns", "trained", "flop"),
    [
        ("lora:r=4,v", 768, 11417600),
        ("lora:r=4,decay", 272, 11201280),
        ("lora:r=4,q,v", 1792, 11745280),
        ("lora:r=4,down", 1280, 9518080),
    ],
)
def test_a_mask_that_values_make_learns_through_the_scores(learns, trained, flop):
    """The numbers are those of PyTorch for 2 sequences of 20 tokens; scores take the mask."""
    counts = count(DOGE, 2, 20, train=learns)
    assert (counts["params_trained"], counts["flops_train"]) == (trained, flop)


HRM = {"model_type": "hrm_text", "vocab_size": 1024, "hidden_size": 64, "head_dim": 16}
HRM |= {"intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}


@pytest.mark.parametrize(
    ("learns", "trained", "flop"),
    [
        ("head", 65536, 53616640),
        ("mlp", 73728, 93045760),
        ("all-but:embedding", 221184, 112838656),
    ],
)
def test_turns_without_gradients_run_forward_alone(learns, trained, flop):
    """The numbers are those of PyTorch for 2 sequences of 17 tokens."""
    counts = count(HRM, 2, 17, train=learns)
    assert (counts["params_trained"], counts["flops_train"]) == (trained, flop)


def test_a_parameter_of_an_einsum_is_no_linear_layer():
    """Of XLNet's layers the perceptron alone has linear ones, as Transformers makes them."""
    config = {"model_type": "xlnet", "vocab_size": 101, "d_model": 48, "n_layer": 2, "n_head": 4}
    config |= {"d_inner": 64, "dropout": 0.0}
    trained = count(config, 2, 24, train="lora:r=4,all-linear")["params_trained"]
    assert trained == 2 * 4 * 2 * (48 + 64)
    with pytest.raises(InputError, match="unknown linear layer of model 'xlnet' 'q'"):
        count(config, 2, 24, train="lora:r=4,q")


def test_layers_of_an_unknown_order_are_refused():
    """Of Zamba's, some Mamba layers stand behind the first that attends."""
    config = TRUTH_OF_FAMILIES["zamba/a"]["config"]
    with pytest.raises(InputError, match="come first is not declared; weights of both"):
        count(config, 1, 64, train="lora:r=2,attention.q")


def test_several_parts_are_trained_side_by_side():
    """GPT-2's 1024 positions of 768, and the scale and shift of its last norm; Adam has 8 bytes."""
    job = sc.job("gpt2", "", {"b": 1}, train="head.norm+embedding.position", precision="bf16-mixed")
    assert job.value(job.memory_rows.total("optimizer")) == 8 * (1024 * 768 + 2 * 768)


def test_counts_say_what_is_trained():
    entry = TRUTH["entries"][1]
    counts = count(entry["config"], TRUTH["b"], TRUTH["l"], train=entry["learns"])
    assert counts["params_trained"] == entry["trained"]
    assert (counts["trained"], counts["note"]) == ("lora:r=4,q,v", None)
    assert count(entry["config"], 1, 8, train="adapter:r=4,proj,down")["note"] == UNCHECKED
    assert "trained" not in count(entry["config"], 1, 8)


def test_a_bottleneck_has_two_products_and_their_biases():
    """Behind proj and down of 32 blocks: 2 (4096 64 + 64 * 4096) + 64 + 4096 weights each."""
    plain, own = sc.job("llama-3-8b"), sc.job("llama-3-8b", train="adapter:r=64,proj,down")
    narrow = 2 * 4096 * 64
    assert own.total("params") - plain.total("params") == 64 * (narrow + 64 + 4096)
    rules = "torch-flop-counter"
    more = own.replace(conventions=rules).total("flops_fwd")
    more -= plain.replace(conventions=rules).total("flops_fwd")
    assert more == 64 * 2 * 8192 * narrow


def test_experts_have_adapters_of_their_own():
    mixtral = sc.job("mixtral-8x7b", train="lora:r=8,experts.up")
    plain = sc.job("mixtral-8x7b")
    assert mixtral.total("params") - plain.total("params") == 32 * 8 * 8 * (4096 + 14336)


def test_names_mean_the_start_of_paths_first():
    entry = TRUTH["entries"][-1]
    both = {**entry, "learns": "lora:r=4,attention.q"}
    language = {**entry, "learns": "lora:r=4,block.attention.q"}
    seen = [costs(one, "eager float32").total(Quantity.PARAMETER) for one in (both, language)]
    assert (
        seen[0] > seen[1] > costs({**entry, "learns": "head"}, "eager float32").total("parameter")
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lora:r=0,q", "'r=0': r=NUMBER from 1 to 1000000 is accepted"),
        ("lora:r=4,r=8,q", "gives r more than once"),
        ("lora:r=4", "names nothing"),
        ("lora:r=4,qq", "unknown linear layer of model 'llama-3-8b' 'qq': did you mean q"),
        ("lora:r=4,norm", "unknown linear layer of model 'llama-3-8b' 'norm'"),
        ("embeding", "unknown weight of model 'llama-3-8b' 'embeding': did you mean embedding"),
        ("all-but:block,head,embedding", "leaves no weight that is trained"),
        ("all-but:all", "leaves no weight that is trained"),
        ("all-but:head,all", "leaves no weight that is trained"),
        ("all-but:embedding+frozen:nf4", "'frozen:nf4': no linear layer is left frozen"),
        ("lorra:r=4,q", "unknown method 'lorra': did you mean lora"),
        ("head+frozen:nf5", "unknown format of weights 'nf5'"),
        ("frozen:nf4", "one format, and what is trained, is accepted"),
        ("", "names nothing"),
        ("__import__('os')", "is no name of a part, op or weight"),
    ],
)
def test_what_names_nothing_is_refused(text, said):
    with pytest.raises(InputError) as refused:
        sc.job("llama-3-8b", train=text)
    assert said in str(refused.value)


@pytest.mark.parametrize("text", ["experts", "all-but:experts", "lora:r=4,experts"])
def test_a_name_of_blocks_and_of_ops_in_them_is_refused(text):
    with pytest.raises(InputError) as refused:
        sc.job("deepseek-v3", train=text)
    assert "'experts' means experts.block and mlp.experts in it" in str(refused.value)
    one = sc.job("deepseek-v3", train=text.replace("experts", "mlp.experts"))
    assert one.model.trains == text.replace("experts", "mlp.experts")


def test_every_problem_is_said_at_once():
    with pytest.raises(InputError) as refused:
        sc.job("llama-3-8b", "tq=2", train="lora:r=4,qq,vv+haed")
    assert len(refused.value.problems) == 4


SIZES_OF_BOTH = {"vocab_size": 96, "max_position_embeddings": 64}


@pytest.mark.parametrize(
    ("config", "name", "added"),
    [
        ({"model_type": "bert", "hidden_size": 32, "intermediate_size": 64, **SIZES_OF_BOTH,
          "num_hidden_layers": 2, "num_attention_heads": 4}, "query", 2 * 4 * (32 + 32)),
        ({"model_type": "gptj", "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 8,
          **SIZES_OF_BOTH}, "fc_in", 2 * 4 * (32 + 128)),
    ],
)  # fmt: skip
def test_names_of_a_family_s_checkpoints_are_those_of_pytorch(config, name, added):
    # Sums of 4 (in + out) over the linear layers of this name.
    model = from_config(config)
    adapted = training(model, f"lora:r=4,{name}")
    one, other = (sc.cost(m, preset("torch-flop-counter")) for m in (model, adapted))
    difference = other.total("parameter") - one.total("parameter")
    numbers = {sc.symbols.symbol(k): n for k, n in adapted.bindings.items()}
    assert difference.subs(numbers) == added


def test_names_of_exported_graphs_are_their_own():
    model = sc.model(str(Path(__file__).parents[1] / "golden" / "pt2" / "bert.pt2"))
    trained = training(model, "lora:r=4,dense")
    added = {op.path for p in trained.parts for op in p.ops if op.path.endswith("lora_a")}
    assert {path.removesuffix(".lora_a").rpartition(".")[2] for path in added} == {"dense"}
    assert len(added) == 4


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("mixer", "head"),  # the norm before it is none of it
        ("thawed", "model"),  # the last layer is one of it
        ("clip", "vision_model"),  # so are patches and positions before its blocks
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (
                ("whisper", "encoder"),
                ("siglip", "out_proj"),  # of the pooling head too, where attention is one op
                ("steps", "gru"),  # another module calls an operator so
                ("deberta_v2", "attention"),  # takes a table of distances of its encoder
                ("deberta_v2", "rel_embeddings"),
                ("yolos", "interpolation"),
            )
        ),
    ],
)
def test_a_module_of_a_graph_is_no_part_of_its_name(file, name):
    path = Path(__file__).parents[1] / "golden" / "pt2" / f"{file}.pt2"
    exported = graph(read_archive(path))
    called = [key for key in exported.parameters if f".{name}." in f".{key}"]
    sizes = (exported.values[exported.parameters[key]].sizes for key in called)
    own = {key: prod(each) for key, each in zip(called, sizes, strict=True)}
    learnt = sum(size for key, size in own.items() if key not in exported.frozen)
    assert count(str(path), train=name)["params_trained"] == learnt


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [("phi-3-mini", "q,v,down", True), ("phi-3-mini", "down", False), ("qwen2-7b", "q", False)],
)
def test_adapters_of_layers_that_files_hold_as_one_are_told(name, words, told):
    """Of Phi-3's one layer of queries, keys and values PEFT makes one adapter."""
    lines = str(sc.job(name, train=f"lora:r=8,{words}").memory())
    assert ("q, k, v have an adapter each" in lines) is told
    note = count(name, train=f"lora:r=8,{words}")["note"] or ""
    assert ("q, k, v have an adapter each" in note) is told


ALBERT = {
    "model_type": "albert",
    "architectures": ["AlbertForMaskedLM"],
    "vocab_size": 2000,
    "embedding_size": 64,
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "max_position_embeddings": 128,
}


@pytest.mark.parametrize(
    ("words", "trained"),
    [
        ("lora:r=8,q,v", 2 * (256 + 256) * 8),  # A and B, of queries and of values
        ("lora:r=8,all-linear", 4 * (256 + 256) * 8 + 2 * (256 + 512) * 8),
        ("adapter:r=8,fc2", 2 * 256 * 8 + 8 + 256),  # two products and their biases
    ],
)
def test_a_layer_that_repeats_itself_has_one_adapter(words, trained):
    """Transformers' ALBERT runs one module four times, and PEFT puts one adapter into it."""
    assert count(ALBERT, train=words)["params_trained"] == trained
    one = count({**ALBERT, "num_hidden_layers": 1}, train=words)
    assert one["params_trained"] == trained
    assert count(ALBERT, train=words)["flops_train"] > one["flops_train"]


@pytest.mark.parametrize("words", ["all+head", "all-but:head+head", "lora:r=8,qkv+all"])
def test_terms_that_say_every_weight_are_refused(words):
    """Beside all no name adds a weight, and an adapter has nothing frozen to stand at."""
    with pytest.raises(InputError, match="is every weight: all alone is accepted"):
        sc.job("gpt2", train=words)


@pytest.mark.parametrize("words", ["lora:r=8,all-linear", "lora:r=8,q,v"])
def test_towers_that_all_linear_leaves_out_are_told(words):
    entry = next(one for one in TRUTH["entries"] if "vision_config" in one["config"])
    note = count(entry["config"], image_tokens=4, train=words)["note"]
    assert ("beside those of vision.block, connector there is no adapter" in note) is (
        "all-linear" in words
    )


def test_of_two_streams_of_one_part_the_frozen_one_needs_no_gradient():
    """Distances are learnt, words are not: the first block has none of the words' gradients."""
    roles = sc.roles("b batch, l token query, e hidden, f inner, g width, n whole, v vocabulary")
    sizes = {"b": 2, "l": 3, "e": 5, "f": 7, "g": 11, "n": 13, "v": 17}
    entry = (
        sc.lookup("words", "!ids[b l], *w[v e] -> x[b l e]"),
        sc.einsum("far", "!c[n f], *t[n g] -> r[f g]"),
    )
    block = (
        sc.einsum("up", "x[b l e], *w[e f] -> u[b l f]"),
        sc.einsum("mix", "u[b l f], r[f g] -> m[b l g]"),
        sc.einsum("down", "m[b l g], *o[g e] -> y[b l e]"),
    )
    parts = (
        sc.Part("entry", entry, takes={"ids": "outside", "c": "outside"}),
        sc.Part("block", block, repeat=Integer(3), takes={"x": "entry", "r": "entry"}),
        sc.Part("head", (sc.einsum("out", "x[b l e], *w[e v] -> z[b l v]"),)),
    )
    exact = {name: Integer(size) for name, size in sizes.items()}
    learnt = training(sc.Model("two", parts, exact, axes=roles), "entry.far")
    up, mix, down, out, far = 6 * 5 * 7, 6 * 7 * 11, 6 * 11 * 5, 6 * 5 * 17, 13 * 7 * 11
    backward = 2 * (out + 3 * down + (3 + 2) * mix + 2 * up + far)
    table = cost(learnt, sc.preset("torch-flop-counter"))
    assert table.total("flop", phase="backward") == backward
