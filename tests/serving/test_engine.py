"""Passes of an engine: what they cost, and what is refused."""

import json
from dataclasses import replace

import pytest
from sympy import Integer

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import InputError
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.ledger import CollectiveKind
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.inference import cached_bytes
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.serving.declared import declaring, predicting
from symbolic_cost.serving.engine import Engine
from symbolic_cost.serving.engine_numbers import Sized
from symbolic_cost.serving.passes import PASS, decode, expected, prefill
from symbolic_cost.systems.kernel_records import kernels
from symbolic_cost.systems.network import Link
from symbolic_cost.systems.records import machine


def engine(model="llama-3-8b", strategy="", system="a100-80gb", **precision):
    declare, latent = declaring(model)
    return Engine(
        model, declare, parse_strategy(strategy), machine(system), latent=latent, **precision
    )


def seconds(run, **numbers):
    return run.chain.compiled(PASS)(numbers)[PASS]


def test_decode_reads_weights_once_and_the_cache_of_every_sequence():
    """A step of 1 and of 64 sequences differ by their caches and little else."""
    step = decode(engine("llama-3-8b"))
    one, many = seconds(step, b=1, c=1000), seconds(step, b=64, c=1000)
    assert one < many < 8 * one
    assert seconds(step, b=64, c=8000) > many


def test_prefill_takes_logits_of_the_last_token_alone():
    run = prefill(engine("llama-3-8b"))
    head = run.chain.expression("first.head")
    assert {symbol.name for symbol in head.free_symbols} == {"b"}


def test_tensor_parallel_halves_weights_and_cache():
    whole, half = decode(engine("llama-3-8b")), decode(engine("llama-3-8b", "tp=2"))
    assert float(half.weight_bytes) < 0.52 * float(whole.weight_bytes)
    assert (half.cache_bytes * 2 - whole.cache_bytes).expand() == 0


def test_cache_is_that_of_the_model():
    declare, _ = declaring("llama-3-8b")
    of_model = cached_bytes(declare, STANDARD, Shape(1, 512))
    own = prefill(engine("llama-3-8b")).cache_bytes
    bindings = declare(Shape()).bindings
    numbers = {s: bindings[s.name] for s in of_model.free_symbols}
    value = STANDARD.sizes.value
    at = own.xreplace({s: {"b": 1, "l": 512}[s.name] for s in own.free_symbols})
    assert at == of_model.xreplace(numbers) * 2 / value


def test_fp8_halves_what_is_read_of_the_blocks():
    """Embedding and head of 128,256 words and 65 norms stay in 16 bits."""
    plain, narrow = (
        decode(engine("llama-3-8b", system="h100", weights=w)).weight_bytes for w in ("bf16", "fp8")
    )
    others = 2 * (2 * 128_256 + 65) * 4096
    assert float(narrow) == pytest.approx((float(plain) - others) / 2 + others)


def test_experts_are_those_that_tokens_reach():
    """30.5 of 256 for 4 tokens with 8 each, 57.4 for 8."""
    for tokens, reached in ((4, 30.5), (8, 57.4)):
        model = CATALOG["deepseek-v3"].model(Shape(tokens, 1))
        own = expected(model)
        changed = [axis for axis, size in own.sizes.items() if size != model.sizes[axis]]
        numbers = model.bindings
        sizes = [
            float(own.sizes[a].subs({s: numbers[s.name] for s in own.sizes[a].free_symbols}))
            for a in changed
        ]
        assert any(size == pytest.approx(reached, abs=0.05) for size in sizes)


@pytest.mark.parametrize("model", ["bert-large", "vit-b-16", "lstm-large", "t5-large", "resnet-50"])
def test_models_that_do_not_generate_from_a_cache_are_refused(model):
    with pytest.raises(InputError, match="a cache or a state"):
        engine(model)


def test_every_machine_on_record_has_kernels_of_its_own_or_of_the_nearest():
    own, other = kernels(machine("h100")), kernels(machine("h200"))
    assert own.note == "rates of kernels measured on h100"
    assert "no kernels of h200" in other.note
    with pytest.raises(InputError, match="machine with kernels on record"):
        kernels(machine("symbolic"))


def test_large_product_takes_its_share_of_the_peak():
    """The worked example: 0.80 of 989 TFLOP/s, the call, and operands that no cache has."""
    rate = kernels(machine("h100")).products["bf16"]
    flop, area = 2 * 4096**3, 4096**2
    time = float(rate.time(flop, area, 3 * 2 * 4096**2, 989.4e12, 3.35e12))
    assert time == pytest.approx(1.96e-4, rel=0.01)


def test_one_rank_calls_no_collective():
    calls = kernels(machine("h100")).calls
    link = Link("nvlink", Integer(450 * 10**9))
    assert calls.time(CollectiveKind.ALL_REDUCE, Integer(10**6), Integer(1), link) == 0
    assert 1e-5 < float(calls.time(CollectiveKind.ALL_REDUCE, 10**6, Integer(8), link)) < 3e-5


def test_latents_of_a_configuration_are_never_expanded_in_a_decode_step(tmp_path):
    """As those of a named model: the file and the preset decode in the same time."""
    config = {
        "model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 1024,
        "intermediate_size": 2048, "moe_intermediate_size": 512, "num_hidden_layers": 4,
        "num_attention_heads": 16, "num_key_value_heads": 16, "n_shared_experts": 1,
        "n_routed_experts": 16, "num_experts_per_tok": 4, "first_k_dense_replace": 1,
        "kv_lora_rank": 512, "q_lora_rank": 256, "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128, "v_head_dim": 128, "n_group": 1, "topk_group": 1,
        "max_position_embeddings": 4096, "tie_word_embeddings": False,
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    declare, latent = declaring(str(path))
    steps = [
        decode(Engine("mine", declare, parse_strategy(""), machine("h100"), latent=own))
        for own in (None, latent)
    ]
    expanded, absorbed = (seconds(step, b=32, c=2000) for step in steps)
    assert absorbed < expanded / 2


def test_block_that_drafts_shares_the_head_and_table_of_its_model():
    """DeepSeek-V3 has 11.5 billion parameters of its own for one further token, and one cache."""
    declare, latent = predicting("deepseek-v3")
    own = Engine(
        "mtp", declare, parse_strategy(""), machine("h200"), "fp8", latent=latent, borrows="@"
    )
    assert float(decode(own).weight_bytes) == pytest.approx(11.5e9, rel=0.01)
    assert Sized(own).cache(1000) == 1000 * 576 * 2


H800 = machine("h800")


@pytest.mark.slow
def test_wide_expert_parallelism_serves_what_is_published():
    """A node takes 73,700 tokens per second, or answers 14,800, at 20 to 22 to each user.

    56.3 % of those taken are cached. Four nodes prefill, 18 decode contexts of 4,989 tokens in the
    mean (deepseek-serving-2025). Two microbatches hide messages there, here none do; whether
    further tokens are predicted is not said.
    """
    declare, latent = declaring("deepseek-v3")
    own = Engine("v3", declare, parse_strategy("dp=32,ep=32"), H800, "fp8", latent=latent)
    cached = round(0.563 * 4989)
    prompt = sum(Sized(own).prefilled(4, 4989 - cached, cached).values())
    assert 8 * 4 * 4989 / prompt == pytest.approx(73_700, rel=0.15)
    wide = replace(own, strategy=parse_strategy("dp=144,ep=144"), drafted=1, memo={})
    further, absorbed = predicting("deepseek-v3")
    head = replace(wide, declare=further, latent=absorbed, drafted=0, borrows="@", memo={})
    step = sum(Sized(wide, Sized(head)).stepped(72, 4989).values())
    assert 20 < 1.85 / step < 24
    assert 8 * 72 * 1.85 / step == pytest.approx(14_800, rel=0.2)


def test_experts_that_ranks_do_not_divide_are_held_twice():
    declare, _ = declaring("qwen3-30b-a3b")
    sizes = {
        ranks: float(
            decode(
                Engine("q", declare, parse_strategy(f"dp={ranks},ep={ranks}"), H800)
            ).weight_bytes
        )
        for ranks in (32, 48, 64)
    }
    one = 3 * 2048 * 768 * 2 * 48  # bytes of an expert of all 48 layers
    assert sizes[32] - sizes[64] == 2 * one
    assert sizes[48] - sizes[64] == one  # 128 on 48: three each, 16 a second time


@pytest.mark.parametrize(
    ("model", "layers", "heads", "width", "window"),
    [("gemma-2-9b", 21, 8, 256, 4096), ("gpt-oss-120b", 18, 8, 64, 128)],
)
def test_layers_with_a_window_keep_no_more_than_it(model, layers, heads, width, window):
    """As many layers with a window as without: 2 x heads x width x 2 byte a token of each."""
    declare, _ = declaring(model)
    own = Sized(Engine(model, declare, parse_strategy(""), machine("h100")))
    each = layers * 2 * heads * width * 2
    assert own.cache(20_000) == pytest.approx(each * (20_000 + window), rel=1e-3)
    assert own.cache(50) == each * 2 * 50


def test_ranks_that_share_key_heads_hold_the_same_sequences():
    """llama-3-8b has 8 key/value heads: 16 ranks are one engine, not two."""
    declare, _ = declaring("llama-3-8b")
    for written, copies in (("tp=8", 1), ("tp=16", 1), ("tp=16,dp=2", 2)):
        placed = Setup(declare(TRAINING), parse_strategy(written)).strategy
        engine = Engine("llama-3-8b", declare, placed, machine("h100"))
        assert Sized(engine).copies == copies
