"""Passes of an engine against laws: parts of a prompt, mixed steps, prefixes, states."""

import json
from dataclasses import replace

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.config import from_config
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.serving.declared import declaring
from symbolic_cost.serving.engine import Engine
from symbolic_cost.serving.engine_numbers import Sized
from symbolic_cost.serving.passes import PASS, chunk, decode, mixed, prefill
from symbolic_cost.serving.precisions import Decoding, Reading
from symbolic_cost.systems.records import machine

MAMBA2 = {
    "model_type": "mamba2", "hidden_size": 256, "num_hidden_layers": 3, "num_heads": 8,
    "head_dim": 64, "state_size": 32, "n_groups": 1, "vocab_size": 512, "conv_kernel": 4,
    "chunk_size": 64, "expand": 2,
}  # fmt: skip
BAMBA = {
    "model_type": "bamba", "hidden_size": 256, "num_hidden_layers": 4, "attn_layer_indices": [1],
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 512,
    "vocab_size": 512, "mamba_n_heads": 8, "mamba_d_head": 64, "mamba_d_state": 32,
    "mamba_n_groups": 1, "mamba_expand": 2, "mamba_d_conv": 4, "mamba_chunk_size": 64,
    "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip
WINDOWS = {
    "model_type": "gpt_oss", "vocab_size": 512, "hidden_size": 256, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 256,
    "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": 128,
    "max_position_embeddings": 4096, "tie_word_embeddings": False,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
}  # fmt: skip
LATENT = {
    "model_type": "deepseek_v3", "vocab_size": 512, "hidden_size": 256,
    "intermediate_size": 512, "moe_intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 4, "n_shared_experts": 1,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "first_k_dense_replace": 1,
    "kv_lora_rank": 64, "q_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32,
    "v_head_dim": 32, "n_group": 1, "topk_group": 1, "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}  # fmt: skip
MISTRAL = {
    "model_type": "mistral", "vocab_size": 512, "hidden_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 512,
    "sliding_window": 128, "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip
CONFIGS = {
    "mistral": MISTRAL,
    "mamba2": MAMBA2,
    "bamba": BAMBA,
    "gpt_oss": WINDOWS,
    "deepseek_v3": LATENT,
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("configurations")
    for name, config in CONFIGS.items():
        (folder / f"{name}.json").write_text(json.dumps(config), encoding="utf-8")
    known = {}

    def made(name, **options):
        key = (name, *sorted(options.items()))
        if key not in known:
            declare, latent = declaring(str(folder / f"{name}.json"))
            run_on = parse_strategy(options.pop("strategy", ""))
            on = machine(options.pop("system", "h100"))
            known[key] = Engine(name, declare, run_on, on, latent=latent, **options)
        return known[key]

    return made


def seconds(run, **numbers):
    return sum(run.seconds(numbers).values())


def attention_flop(run, **numbers):
    """FLOP of both products of the cores of a pass; softmax between them leaves out no key."""
    (own,) = run.runs
    numbers, total = {**run.numbers, **numbers}, 0
    for stage in own.divided.structure.stages:
        share = own.at(stage)
        for path in {f"{p.path}.{op.path}" for p in share.parts for op in p.ops if op.core}:
            rows = [r for r in share.forward if r.path == path and r.quantity is Quantity.FLOP]
            for row in (rows[0], rows[-1]):
                expr = row.total
                total += expr.xreplace({s: numbers[s.name] for s in expr.free_symbols})
    return total


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("gpt_oss", "deepseek_v3", "bamba")]


@pytest.mark.parametrize("name", ["mamba2", *SLOW])
def test_part_of_a_prompt_with_nothing_cached_is_the_prompt(engine, name):
    own = engine(name)
    whole = seconds(prefill(own), b=2, l=700)
    assert seconds(chunk(own), b_p=2, l=700, c_p=0) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("name", SLOW)
def test_parts_attend_to_what_the_whole_prompt_attends_to(engine, name):
    own = engine(name)
    parts = [attention_flop(chunk(own), b_p=1, l=256, c_p=256 * i) for i in range(4)]
    assert sum(parts) == attention_flop(prefill(own), b=1, l=1024)


@pytest.mark.parametrize("name", ["mamba2", *SLOW])
def test_mixed_step_lies_between_its_longer_half_and_both(engine, name):
    own, numbers = engine(name), {"b_p": 1, "l": 300, "c_p": 600}
    step = seconds(decode(own), b=16, c=900)
    part = seconds(chunk(own), **numbers)
    both = seconds(mixed(own), b=16, c=900, **numbers)
    assert max(step, part) < both < step + part


def test_no_kernel_of_a_mixed_step_takes_longer_than_in_steps_of_its_own(engine):
    """Collectives begin once for both, passes of one shape alone run as they do without the other.

    Both recurrences pass on to a norm over all ranks: one run in chunks, one a token at a time.
    """
    own = engine("mamba2", strategy="tp=2")
    step, part = {"b": 500, "c": 900}, {"b_p": 1, "l": 3000, "c_p": 600}
    apart = [decode(own).seconds(step), chunk(own).seconds(part)]
    both = mixed(own).seconds({**step, **part})
    for kind in ("products", "passes over memory", "collectives"):
        assert max(one[kind] for one in apart) < both[kind] < sum(one[kind] for one in apart)


def test_part_of_a_prompt_takes_as_long_after_one_window_as_after_many(engine):
    """Queries see 128 keys whatever is cached: they compute as those of a prompt of 256 tokens."""
    own = chunk(engine("mistral"))
    times = [seconds(own, b_p=2, l=64, c_p=c) for c in (0, 1, 60, 128, 1000, 10**6)]
    assert times[0] < times[1] < times[2] < times[3]
    assert times[3:] == pytest.approx([times[3]] * 3, rel=1e-12)


@pytest.mark.slow
def test_weights_are_read_once_in_a_mixed_step():
    declare, _ = declaring("llama-3-8b")
    own = Engine("llama", declare, parse_strategy(""), machine("h100"))
    kinds = [
        decode(own).seconds({"b": 8, "c": 100})["products"],
        mixed(own).seconds({"b": 8, "c": 100, "b_p": 1, "l": 8, "c_p": 0})["products"],
        decode(own).seconds({"b": 16, "c": 100})["products"],
    ]
    assert kinds[0] < kinds[1] == pytest.approx(kinds[2], rel=0.01)


@pytest.mark.parametrize("context", [60, 1000])
def test_cascade_reads_each_token_of_the_prefix_once(engine, context):
    """Against a count of the tokens that layers of both kinds read, one by one."""
    shared, batch = 50, 6

    def read(c):
        whole, window = range(c + 1), range(max(0, c + 1 - 128 + 1), c + 1)
        return [set(whole), set(window)]

    once = [
        len(tokens & set(range(shared))) + batch * len(tokens - set(range(shared)))
        for tokens in read(context)
    ]
    each = [batch * len(tokens) for tokens in read(context)]
    plain = decode(engine("gpt_oss"))
    joint = decode(engine("gpt_oss", shared=shared, reading=Reading.CASCADE))
    from symbolic_cost.serving.pricing import Priced
    from symbolic_cost.systems.definitions import Definitions

    (run,) = plain.runs
    share = run.at(run.divided.structure.stages[0])
    cache = [r.expr for part in share.parts for r in share.cache_rows(part.path, states=False)]
    numbers = {**plain.numbers, "b": batch, "c": context}
    sizes = [
        Priced(own, [share], Definitions())._read(expr)  # noqa: SLF001 - what a kernel reads
        for own in (plain.engine, joint.engine)
        for expr in cache
    ]
    found = [s.xreplace({x: numbers[x.name] for x in s.free_symbols}) for s in sizes]
    ratio = [a / b for a, b in zip(found[len(cache) :], found[: len(cache)], strict=True)]
    assert {float(r) for r in ratio} == {a / b for a, b in zip(once, each, strict=True)}


def test_state_is_as_large_after_any_number_of_tokens(engine):
    """Layers x (heads x width x state, and the window of the convolutions), in 16 bits."""
    sized = Sized(engine("mamba2"))
    inner, state = 8 * 64, 32
    each = 3 * 2 * (inner * state + 4 * (inner + 2 * state))
    assert sized.cache(10) == sized.cache(10**6) == each
    step = decode(engine("mamba2"))
    assert seconds(step, b=4, c=10) == seconds(step, b=4, c=10**6)


def test_fp8_narrows_keys_and_values_and_no_state(engine):
    own = [Sized(engine(name, cache=c)) for name in ("mamba2", "bamba") for c in ("bf16", "fp8")]
    states, narrow, hybrid, other = (one.cache(1000) for one in own)
    assert states == narrow
    assert hybrid - other == 1000 * 2 * 2 * 64  # one layer of two heads, a byte less each


def test_hybrid_grows_by_its_attention_layers_alone(engine):
    sized = Sized(engine("bamba"))
    assert sized.cache(2000) - sized.cache(1000) == 1000 * 2 * 2 * 64 * 2


def test_recurrences_of_a_step_run_token_by_token_and_those_of_a_prompt_in_chunks(engine):
    own = engine("mamba2")
    paths = [
        {row.path.rpartition(".")[2] for row in run.at(stage).forward}
        for one in (decode(own), chunk(own))
        for run in one.runs
        for stage in run.divided.structure.stages
    ]
    assert "scan" in paths[0]
    assert "gain" not in paths[0]
    assert "gain" in paths[1]


@pytest.mark.slow
def test_shared_keys_read_per_head_take_longer(engine):
    plain, heads = (decode(engine("gpt_oss", decoding=way)) for way in Decoding)
    numbers = {"b": 64, "c": 4000}
    assert seconds(heads, **numbers) > seconds(plain, **numbers)
    with pytest.raises(Exception, match="no second-level cache of l40s"):
        engine("gpt_oss", decoding=Decoding.PER_HEAD, system="l40s")


@pytest.mark.slow
def test_every_rank_of_data_parallel_attention_holds_sequences_of_its_own(engine):
    assert Sized(engine("deepseek_v3", strategy="dp=4,ep=4")).copies == 4
    assert Sized(engine("deepseek_v3", strategy="tp=2,dp=2,ep=2")).copies == 2
    assert Sized(engine("deepseek_v3", strategy="tp=4")).copies == 1


def test_ranks_that_share_heads_hold_the_same_sequences(engine):
    """Four ranks of two key/value heads are one group: each head is on two of them."""
    four = replace(parse_strategy("tp=4"), copies=2)
    shared = Sized(replace(engine("gpt_oss"), strategy=four))
    assert shared.copies == 1
    assert shared.cache(1000) == Sized(engine("gpt_oss", strategy="tp=2")).cache(1000)


def test_groups_of_experts_are_read_from_a_configuration():
    assert from_config({**LATENT, "n_group": 4, "topk_group": 2}).routed == (4, 2)
    assert from_config(LATENT).routed == (1, 1)
    with pytest.raises(InputError, match="5 groups of a token are more than the 4"):
        from_config({**LATENT, "n_group": 4, "topk_group": 5})


def test_degrees_that_do_not_divide_are_refused(engine):
    with pytest.raises(Exception, match="not divisible"):
        decode(engine("gpt_oss", strategy="tp=3")).seconds({"b": 1, "c": 1})


def test_definitions_of_a_pass_are_formulas_of_its_shapes(engine):
    chain = mixed(engine("mamba2")).chain
    assert {s.name for s in chain.symbols} == {"b", "l", "b_p"}  # a state knows no context
    numbers = {"b": 8, "c": 500, "b_p": 1, "l": 200, "c_p": 100}
    assert float(chain.evaluate(numbers)[PASS]) == pytest.approx(
        seconds(mixed(engine("mamba2")), **numbers)
    )


@pytest.mark.slow
def test_slowest_stage_sets_the_pace_of_a_pipeline_that_does_not_divide(engine):
    """Three blocks on two stages: two and one; a round takes twice what the slower one takes."""
    whole, two = (decode(engine("mamba2", strategy=one)) for one in ("", "pp=2"))
    times = two.chain.evaluate({"b": 8, "c": 100})
    first, last = (float(times[f"{stage}.products"]) for stage in ("first", "last"))
    assert float(times["products"]) == pytest.approx(2 * max(first, last))
    assert two.cache_bytes == 2 * whole.cache_bytes / 3
