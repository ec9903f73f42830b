"""Models that embed texts by code beside their weights, and what of text families is refused."""

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count
from tests.models.test_families_truth import TRUTH
from tests.models.test_popular import config_of


@pytest.mark.parametrize(
    ("config", "changes", "told"),
    [
        ("jinaai/jina-embeddings-v3", {"auto_map": None}, "position_embedding_type"),
        ("jinaai/jina-embeddings-v2-base-code", {}, "auto_map"),
        ("nomic-ai/nomic-embed-text-v2-moe", {"num_shared_experts": 1}, "num_shared_experts"),
        ("nomic-ai/nomic-embed-text-v2-moe", {"moe_top_k": 9}, "moe_top_k"),
        ("nvidia/NV-Embed-v2", {"latent_attention_config": {"latent_dim": 8}}, "latent_dim"),
        ("amazon/chronos-bolt-base", {"chronos_config": {"input_patch_size": 16}}, "quantiles"),
        ("BAAI/bge-m3", {"is_decoder": True}, "is_decoder"),
        ("google/bigbird-roberta-base", {"block_size": 1}, "block_size"),
    ],
)
def test_what_is_not_declared_is_refused_by_name(config, changes, told):
    whole = {**config_of(config), **changes}
    with pytest.raises(InputError, match=told):
        count({k: v for k, v in whole.items() if v is not None}, 1, 1024)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("bailing_hybrid", {"linear_num_heads": 31}),
        ("embedding_gemma2_text", {"per_layer_config": None}),
    ],
)
def test_a_field_that_transformers_reads_otherwise_is_refused(family, changes):
    entry = next(e for e in TRUTH.values() if e["config"].get("model_type") == family)
    with pytest.raises(InputError, match=next(iter(changes))):
        count({**entry["config"], **changes}, 1, 32)


def test_a_filter_takes_all_labels_that_are_named():
    entry = TRUTH["text/openai_privacy_filter/4"]["config"]
    names = {str(i): f"L{i}" for i in range(5)}
    config = {**entry, "id2label": names, "label2id": {v: int(k) for k, v in names.items()}}
    more, less = (count({**config, "num_labels": n}, 1, 16)["params"] for n in (3, 9))
    assert more == less


def test_adapters_are_stored_and_do_not_run():
    config = config_of("jinaai/jina-embeddings-v3")
    plain, adapted = (
        count({**config, "lora_adaptations": tasks}, 1, 64) for tasks in (None, ["a", "b"])
    )
    assert plain["flops_fwd"] == adapted["flops_fwd"]
    assert adapted["params"] > plain["params"] == 559364096
    assert "no task is chosen" in adapted["ignored"]


def test_a_sequence_is_padded_to_whole_blocks():
    config = config_of("google/bigbird-roberta-base")
    short, padded, whole = (
        count({**config, "architectures": ["BigBirdModel"]}, 1, n)["flops_fwd"]
        for n in (704, 705, 768)
    )
    assert short < padded == whole
