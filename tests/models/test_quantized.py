"""Weights in few bits: bytes with their scales, what is left out, and what is refused."""

import json
import math
from pathlib import Path

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.count import count
from symbolic_cost.models.quantized import stored_as
from symbolic_cost.models.weight_formats import FORMATS
from symbolic_cost.references import REFERENCES
from tests.models.test_families_truth import TRUTH

LLAMA = {
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 256,
    "intermediate_size": 520,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
MODELOPT = {
    "quant_method": "modelopt",
    "producer": {"name": "modelopt", "version": "0.29.0"},
    "ignore": ["lm_head", "model.layers.2*", "model.layers.1.mlp.gate"],
    "config_groups": {
        "group_0": {
            "input_activations": {"dynamic": False, "num_bits": 4, "group_size": 16},
            "weights": {"dynamic": False, "num_bits": 4, "type": "float", "group_size": 16},
            "targets": ["Linear"],
        }
    },
}
OLDER = {
    "quant_method": "modelopt",
    "quant_algo": "NVFP4",
    "group_size": 16,
    "exclude_modules": ["lm_head"],
}
SHAPES = [(256, 256), (256, 128), (256, 128), (256, 256), (256, 520), (256, 520), (520, 256)]
"""Summed and made features of the linear layers of a block."""

PLAIN = 2 * (2 * 1000 * 256 + 5 * 256)
"""Tables and norms, two bytes each."""

NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}


COMPRESSED = json.loads(
    (Path(__file__).parents[1] / "golden" / "compressed_tensors.json").read_text(encoding="utf-8")
)["entries"]

STORED = json.loads(
    (Path(__file__).parents[1] / "golden" / "families_stored.json").read_text(encoding="utf-8")
)
"""Bytes in four formats by name of families_truth.json and others: see make_stored_bytes.py."""

WIDE = json.loads(
    (Path(__file__).parents[1] / "golden" / "families_stored_wide.json").read_text(encoding="utf-8")
)
"""Configurations of families whose files hold weights as one, and the same bytes of them."""

FORMS = (NF4, {**NF4, "bnb_4bit_use_double_quant": True}, {"load_in_8bit": True}, FP8)
LEFT = ["lm_head", "mlp.gate", "router", "block_sparse_moe.gate", "shared_expert_gate"]


def stored(config, **more):
    return count({**LLAMA, **more, "quantization_config": config}, 1, 8)["weight_bytes"] - PLAIN


def nf4(rows, columns):
    return rows * columns // 2 + 4 * math.ceil(rows * columns / 64)


def nf4_double(rows, columns):
    """Dettmers et al. 2023: 8 bits for 64 elements, 32 for 256 of these, and their mean."""
    n = rows * columns
    return n // 2 + math.ceil(n / 64) + 4 * math.ceil(n / 16384) + 4


def awq(rows, columns):
    """Scales of 16 bits and zeros of 4 bits for 128 summed features."""
    groups = math.ceil(rows / 128) * columns
    return rows * columns // 2 + 2 * groups + groups // 2


def gptq(rows, columns):
    """The same, and the group of every summed feature."""
    return awq(rows, columns) + 4 * rows


def fp8(rows, columns):
    return rows * columns + 4 * math.ceil(rows / 128) * math.ceil(columns / 128)


def fp8_whole(rows, columns):
    """One scale for a weight."""
    return rows * columns + 4


def fp8_static(rows, columns):
    """A scale for every block, and one for the inputs."""
    return fp8(rows, columns) + 4


def fp8_modelopt(rows, columns):
    """One scale for a weight and one for its inputs, a single-precision number each."""
    return rows * columns + 4 + 4


def nvfp4(rows, columns):
    """A scale of 8 bits for 16 summed features, one for a weight and one for its inputs."""
    return rows * columns // 2 + math.ceil(rows / 16) * columns + 4 + 4


def awq_vectors(rows, columns):
    """Zeros of eight groups fill a word, and scales are as many."""
    groups = 8 * math.ceil(rows / 1024) * columns
    return rows * columns // 2 + 2 * groups + groups // 2


def int8(rows, columns):
    """A scale for every result, and a byte that says how the weight lies."""
    return rows * columns + 4 * columns + 1


@pytest.mark.parametrize(
    ("config", "rule"),
    [
        (NF4, nf4),
        ({**NF4, "bnb_4bit_use_double_quant": True}, nf4_double),
        ({"load_in_8bit": True, "load_in_4bit": False, "llm_int8_threshold": 6.0}, int8),
        (GPTQ, gptq),
        (AWQ, awq),
        ({**AWQ, "version": "gemv"}, awq_vectors),
        (FP8, fp8),
        ({**FP8, "weight_block_size": None}, fp8_whole),
        ({**FP8, "activation_scheme": "static"}, fp8_static),
        ({**MODELOPT, "quant_algo": "FP8"}, fp8_modelopt),
        ({**MODELOPT, "quant_algo": "NVFP4"}, nvfp4),
        (OLDER, nvfp4),
    ],
)
def test_bytes_of_linear_layers_with_their_scales(config, rule):
    assert stored(config) == 2 * sum(rule(*shape) for shape in SHAPES)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(
            one,
            id=f"{one['config']['model_type']} {one['quantization_config']['format']}",
            marks=() if number % 3 == 1 else pytest.mark.slow,
        )
        for number, one in enumerate(COMPRESSED)
    ],
)
def test_bytes_are_those_that_compressed_tensors_writes(entry):
    """Layouts, scales of inputs, regular expressions, weights that files hold as one."""
    source = {**entry["config"], "quantization_config": entry["quantization_config"]}
    assert count(source, 1, 8)["weight_bytes"] == entry["bytes"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if number % 60 == 3 else pytest.mark.slow)
        for number, name in enumerate(STORED)
    ],
)
def test_layers_are_those_that_transformers_converts_or_no_bytes_are_counted(name):
    plain = {**TRUTH[name]["config"], "torch_dtype": "bfloat16"}
    _, length, _ = TRUTH[name]["forward"][0]
    by_default, with_routers = STORED[name]
    for number, form in enumerate(FORMS):
        counts = count({**plain, "quantization_config": form}, 1, length)
        assert counts.get("weight_bytes") in {None, by_default and by_default[number]}
        if with_routers:
            key = "modules_to_not_convert" if form is FP8 else "llm_int8_skip_modules"
            counts = count({**plain, "quantization_config": {**form, key: LEFT}}, 1, length)
            assert counts.get("weight_bytes") in {None, with_routers[number]}


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("number", range(len(FORMS)))
def test_weights_that_files_hold_as_one_are_counted_in_every_format(name, number):
    config, _, with_routers = WIDE[name]
    key = "modules_to_not_convert" if FORMS[number] is FP8 else "llm_int8_skip_modules"
    source = {**config, "torch_dtype": "bfloat16"}
    source["quantization_config"] = {**FORMS[number], key: LEFT}
    assert count(source, 1, 64)["weight_bytes"] == with_routers[number]


@pytest.mark.parametrize("family", ["qwen2", "gemma3", "qwen2_5_vl", "glm4v_moe", "falcon_mamba"])
def test_bytes_of_families_are_counted(family):
    names = [n for n in STORED if TRUTH[n]["config"]["model_type"] == family and STORED[n][0]]
    assert names
    for name in names:
        chosen = {**NF4, "llm_int8_skip_modules": LEFT}
        assert "weight_bytes" in count(
            {**TRUTH[name]["config"], "quantization_config": chosen}, 1, 64
        )


def test_scales_of_caches_stand_beside_keys_and_values():
    cached = {"kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"}}
    plain = {**MODELOPT, "quant_algo": "FP8"}
    assert stored({**plain, **cached}) - stored(plain) == 2 * 2 * 4
    assert stored({**plain, "kv_cache_scheme": {"dynamic": True}}) == stored(plain)


def test_one_scale_of_weights_that_files_may_hold_as_one_is_not_counted():
    """Falcon's files hold queries, keys and values as one, GPTQ with one index for them."""
    source = {
        "model_type": "falcon",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 1,
        "vocab_size": 100,
        "quantization_config": GPTQ,
    }
    counts = count(source, 1, 8)
    assert "weight_bytes" not in counts
    assert "of falcon, which weights files hold as one, is not understood" in counts["ignored"]


def test_a_group_of_all_is_one_for_each_result():
    rows, columns = SHAPES[0]
    own = stored({**AWQ, "group_size": -1}) - stored(AWQ)
    fewer = sum((math.ceil(r / 128) - 1) * c for r, c in SHAPES)
    assert own == -2 * (2 * fewer + fewer // 2)
    assert rows == columns


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["lm_head", "model.layers.*.self_attn"], SHAPES[4:]),
        (["lm_head", "down_proj", "norm"], SHAPES[:-1]),
        (
            ["lm_head", "model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj"],
            SHAPES[:-2] + SHAPES[-1:],
        ),
    ],
)
def test_modules_that_are_not_converted_stay_plain(names, left):
    plain = [
        shape for shape in SHAPES if shape not in left or SHAPES.count(shape) > left.count(shape)
    ]
    kept = 2 * (sum(a * b for a, b in SHAPES) - sum(a * b for a, b in left))
    own = stored({**FP8, "modules_to_not_convert": names})
    assert own == 2 * (sum(fp8(*shape) for shape in left) + kept)
    assert plain


def test_a_list_of_modules_says_whether_the_head_is_one_of_them():
    """Transformers leaves the head out by itself only where no list is given; AWQ always does."""
    own = stored({**FP8, "modules_to_not_convert": ["down_proj", "up_proj"]})
    other = stored({**FP8, "modules_to_not_convert": ["down_proj", "up_proj", "lm_head"]})
    assert own - other == fp8(256, 1000) - 2 * 256 * 1000
    assert stored({**AWQ, "modules_to_not_convert": []}) == stored(AWQ)


@pytest.mark.parametrize("one", [{"weight_block_size": None}, {"activation_scheme": "static"}])
def test_one_scale_for_a_weight_of_experts_is_refused(one):
    """Files hold one for every expert, others one for all of them."""
    experts = {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    with pytest.raises(InputError, match="experts with one scale"):
        stored({**FP8, **one}, **experts)


@pytest.mark.parametrize(
    ("layers", "experts", "total"), [(24, 32, 13_761_264_768), (36, 128, 65_248_815_744)]
)
def test_gpt_oss_is_as_large_as_its_files_say(layers, experts, total):
    """The total_size of their indices (2025)."""
    kept = [
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ]
    config = {
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_hidden_layers": layers,
        "num_local_experts": experts,
        "num_experts_per_tok": 4,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 201088,
        "tie_word_embeddings": False,
        "sliding_window": 128,
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": kept},
    }
    assert count(config, 1, 8)["weight_bytes"] == total


def test_kimi_k2_and_minimax_m2_are_as_large_as_their_files_say():
    """Tensors of Kimi-K2-Instruct and MiniMax-M2 (2025), by the headers of their files.

    Biases of routers, which are buffers, are in single precision; Kimi's layers have one more
    buffer of 56 elements each, and MiniMax's routers are in single precision as well.
    """
    kimi = {
        "model_type": "kimi_k2",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "first_k_dense_replace": 1,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "num_attention_heads": 64,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 163840,
        "torch_dtype": "bfloat16",
        "quantization_config": FP8,
    }
    minimax = {
        "model_type": "minimax_m2",
        "hidden_size": 3072,
        "intermediate_size": 1536,
        "num_hidden_layers": 62,
        "num_attention_heads": 48,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_local_experts": 256,
        "num_experts_per_tok": 8,
        "vocab_size": 200064,
        "torch_dtype": "bfloat16",
        "quantization_config": {**FP8, "modules_to_not_convert": ["gate", "lm_head"]},
    }
    buffers = 60 * 384 * 4 + 61 * 56 * 2
    assert count(kimi, 1, 8)["weight_bytes"] + buffers == 1_029_173_256_720
    routers = 62 * 256 * (3072 * 2 + 4)
    assert count(minimax, 1, 8)["weight_bytes"] + routers == 230_121_630_720


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_is_of_a_source_and_smaller(name):
    model = stored_as(sc.model("llama-3-8b"), name)
    forms = set(model.stored.values())
    assert {form.source for form in forms} <= REFERENCES.keys()
    assert all(form.size < 2 for form in forms)
    assert len(model.stored) == len(SHAPES)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({**GPTQ, "bits": 5}, "bits: 5: 2, 3, 4, 8 is accepted"),
        ({**GPTQ, "group_size": 0}, "group_size: 0: a size or -1 is accepted"),
        ({**FP8, "weight_block_size": [128]}, "weight_block_size: [128]: two sizes"),
        ({**FP8, "activation_scheme": "none"}, "'none': dynamic, static is accepted"),
        ({**AWQ, "modules_to_not_convert": ["blub"]}, "module that is not converted 'blub'"),
        ({**AWQ, "modules_to_not_convert": "lm_head"}, "modules_to_not_convert: 'lm_head': a list"),
        (
            {**AWQ, "modules_to_not_convert": ["model.layers.1.mlp"]},
            "block.mlp.gate is not converted in 1 of 2 layers",
        ),
        ({"load_in_4bit": True, "load_in_8bit": True}, "one of load_in_4bit and load_in_8bit"),
        ({**NF4, "load_in_4bit": "yes"}, "load_in_4bit: 'yes': False, True is accepted"),
        (7, "7: an object is accepted"),
    ],
)
def test_what_is_wrong_is_refused(config, said):
    with pytest.raises(InputError) as refused:
        stored(config)
    assert said in str(refused.value)
    assert "quantization_config" in str(refused.value)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"quant_method": "aqlm"}, "quantization_config.quant_method 'aqlm' is not understood"),
        ({**GPTQ, "dynamic": {"x": 1}}, "quantization_config: dynamic not understood"),
        ({**MODELOPT, "quant_algo": "NVFP4_AWQ"}, "quant_algo 'NVFP4_AWQ' not understood"),
        ({"quant_method": "modelopt"}, "quant_algo None not understood"),
        (
            {"quant_method": "compressed-tensors", "format": "marlin-24", "config_groups": {}},
            "format 'marlin-24', config_groups of no layer not understood",
        ),
    ],
)
def test_what_is_not_understood_counts_elements_and_no_bytes(config, said, tmp_path):
    source = {**LLAMA, "quantization_config": config}
    counts = count(source, 1, 8)
    assert counts["params"] == count(LLAMA, 1, 8)["params"]
    assert "weight_bytes" not in counts
    assert said in counts["ignored"]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(source))
    with pytest.raises(InputError, match="bytes of frozen weights"):
        sc.job(str(path), train="lora:r=4,q")


def test_frozen_weights_are_held_as_stored_and_trained_ones_are_not(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "quantization_config": AWQ}))
    job = sc.job(str(path), train="lora:r=4,q", precision="bf16-mixed")
    weights = job.value(job.memory_rows.total(Quantity.WEIGHT))
    assert weights == PLAIN + stored(AWQ) + 2 * 2 * 4 * (256 + 256)
    whole = sc.job(str(path), precision="bf16-mixed")
    plain = 2 * count(LLAMA, 1, 8)["params"]
    assert whole.value(whole.memory_rows.total(Quantity.WEIGHT)) == plain


def test_a_decode_step_reads_weights_as_they_are_stored(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "quantization_config": AWQ}))
    served = {"system": "h100", "gpus": 1, "prompt": 64, "answer": 64, "strategy": "tp=1"}
    plans = sc.serve_plan(str(path), weights="stored", **served)
    assert plans.best[0].sized.weights == PLAIN + stored(AWQ)
    with pytest.raises(InputError, match="has no quantization_config"):
        sc.serve_plan("llama-3-8b", weights="stored", **served)


def test_the_last_byte_of_a_matrix_is_not_shared():
    """Transformers has 66,838 bytes of this GPT-Neo, whose products of 33 by 33 have odd sizes."""
    config = {"model_type": "gpt_neo", "architectures": ["GPTNeoModel"], "hidden_size": 33}
    config |= {"num_layers": 4, "attention_types": [[["global", "local"], 2]], "vocab_size": 633}
    config |= {"window_size": 16, "intermediate_size": 32, "num_attention_heads": 1}
    config |= {"max_position_embeddings": 128, "torch_dtype": "bfloat16"}
    assert count({**config, "quantization_config": NF4}, 1, 8)["weight_bytes"] == 66838
