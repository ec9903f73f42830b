"""What published files say that no count needs, and what further families refuse."""

import json
from pathlib import Path

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count

GOLDEN = Path(__file__).parents[1] / "golden"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 128,
}


def known(name):
    for kind in ("truth", "more", "wider", "drawn"):
        file = f"families_{kind}.json"
        for entry in json.loads((GOLDEN / file).read_text(encoding="utf-8")):
            if entry["id"] == name:
                return entry["config"]
    raise KeyError(name)


HALF = {"partial_rotary_factor": 0.5}
LAGUNA = ("full_attention", "sliding_attention")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attention_bias", None),
        ("sentence_transformers", {"version": "4"}),
        ("transformers.js_config", {"dtype": "q4"}),
        ("neftune_noise_alpha", 5),
        ("pixel_shuffle_factor", 4),
    ],
)
def test_keys_that_change_nothing(key, value):
    assert count({**LLAMA, key: value}, 1, 8)["params"] == count(LLAMA, 1, 8)["params"]


def test_null_is_false_where_the_family_says_true():
    glm = {"model_type": "glm", **{k: v for k, v in LLAMA.items() if k != "model_type"}}
    glm |= {"head_dim": 16, "num_key_value_heads": 2}
    biased, plain = (count({**glm, "attention_bias": v}, 1, 8)["params"] for v in (True, None))
    assert biased - plain == 2 * (64 + 2 * 32)


@pytest.mark.parametrize(
    ("name", "key", "value", "said"),
    [
        ("glm_moe_dsa/a", "indexer_types", ["shared"] + ["full"] * 3, "of which the first is full"),
        ("glm_moe_dsa/a", "layer_types", ["full_attention"] * 4, "deepseek_sparse_attention are"),
        ("glm_moe_dsa/shared2", "index_topk_pattern", "FSSX", "of which the first is full"),
        ("flint/a", "layer_types", ["conv"] * 4, "'conv'] is no kind of layer: full_attention or"),
        ("arctic/a", "parallel_attn_mlp_res", False, "only true is declared for arctic"),
        ("phi3small/a", "hidden_act", "gelu", "unknown value 'gelu'"),
        ("pvt_v2/a", "linear_attention", True, "only false is declared"),
        ("mobilevit/a", "neck_hidden_sizes", [8, 16], "2 sizes: 7 are accepted"),
        ("mobilevitv2/a", "patch_size", 5, "no whole patches of 5"),
        ("longformer/a", "attention_window", [16, 16, 32, 16], "an even window above 2, alike"),
        ("longformer/a", "attention_window", 7, "an even window above 2, alike in all 4 layers"),
        ("modernbert-decoder/a", "sliding_window", 1, "1 is no window"),
        ("modernbert-decoder/a", "norm_bias", True, "only false is declared"),
        ("olmo_hybrid/new", "linear_key_head_dim", None, "a size is needed"),
        ("aya_vision/new", "alignment_intermediate_size", 81, "an even width is halved"),
        ("glm4v/new", "vision_config", None, "an object with the fields is accepted"),
        ("cohere2_moe/a", "num_shared_experts", 1, "not understood for cohere2_moe"),
        ("gpt_neox_japanese/a", "head_dim", 7, "knows no other"),
        ("falcon_h1/a", "mamba_d_state", 1, "1 is no product of states"),
        ("llama4_text/a", "attention_chunk_size", 1, "1 is no chunk"),
        ("squeezebert/a", "q_groups", 5, "5 groups do not divide 96"),
        ("lilt/a", "channel_shrink_ratio", 5, "does not divide heads of 16 features"),
        ("nystromformer/a", "conv_kernel_size", 64, "an odd kernel is accepted"),
        ("nystromformer/a", "num_landmarks", 7, "which 7 landmarks divide"),
        ("fnet/a", "use_tpu_fourier_optimizations", True, "only false is declared"),
        ("longt5/a", "d_kv", 1, "heads of one feature"),
        ("wav2vec2-bert/rotary", "position_embeddings_type", "alibi", "unknown value 'alibi'"),
        ("parakeet_encoder", "num_mel_bins", 33, "33 features are not thinned evenly"),
        ("wav2vec2/mms", "adapter_attn_dim", 0, "0 is not accepted"),
        ("wavlm/voices", "tdnn_kernel", [5], "as many sizes as tdnn_dim has"),
        ("led/a", "attention_window", 7, "an even window above 2, alike in all 4 layers"),
        ("mobilebert/a", "use_bottleneck", False, "only true is declared"),
        ("mobilebert/a", "embedding_size", 96, "a width below the 96 of hidden_size"),
        ("fnet/a", "embedding_size", 16, "not understood for fnet"),
        ("timesformer/a", "attention_type", "space_only", "unknown value 'space_only'"),
        ("blip/a", "text_config", None, "an object with the fields is accepted"),
        ("ved-trocr/a", "decoder", {"model_type": "llama"}, "decoders blip_text_model, bert, rob"),
        ("ved-trocr/a", "encoder", {"model_type": "trocr"}, "behind a vision transformer or one"),
        ("qwen2_5_omni/text", "talker_config", None, "talker_config': an object with the fields"),
        ("qwen3_omni_moe/text", "code2wav_config", {"upsample_rates": [8]}, "only .8, 5, 4, 3."),
        ("florence2/text", "tie_word_embeddings", False, "only true is declared"),
        ("florence2/text", "vision_config", {"depths": [1, 1]}, "a list of 4 positive integers"),
        ("florence2/text", "vision_config", {"image_pos_embed": {"max_pos_embeddings": 0}}, "0 is"),
        ("got_ocr2/text", "vision_config", {"global_attn_indexes": [12]}, "some of the layers"),
        ("siglip2_vision_model/a", "num_patches", 15, "a square is accepted"),
        ("colpali/a", "vlm_config", {"model_type": "llava"}, "a section of paligemma, qwen2_vl"),
        ("minimax_m3_vl_text/a", "index_n_heads", 4, "only num_key_value_heads = 2 is declared"),
        ("laguna/heads", "num_attention_heads_per_layer", [4, 6, 8, 6], "and one for all sliding"),
        ("laguna/heads", "gating", "half", "only true or false or .per-head. or .per-element. is"),
        ("laguna/heads", "rope_parameters", dict.fromkeys(LAGUNA, HALF), "of sliding layers is"),
        ("zamba/a", "n_mamba_heads", 5, "5 heads do not divide 192 channels"),
        ("zamba/a", "attention_hidden_size", 64, "only 192, stream and embeddings side by side"),
        ("aria/text", "projector_patch_to_query_dict", {"9": 4}, "only {.1225.: 128, .4900.: 256}"),
        ("kosmos-2/text", "vision_config", {"model_type": "vit"}, "only kosmos_2_vision_model is"),
        ("gemma4_unified_text/a", "hidden_size_per_layer_input", 8, "only 0 is declared"),
        ("flint/a", "head_dim", 21, "a head's width of 21 is odd"),
        ("glm_moe_dsa/a", "n_group", 4, "4 groups do not divide"),
        ("emu3/text", "vq_config", {"embed_dim": 8}, "8: only 4 is declared"),
        ("funnel/drawn-0", "block_sizes", [], "a list of up to 16 positive integers is accepted"),
        ("funnel/drawn-0", "block_sizes", [1] * 9, "64 tokens are too few to be pooled 8 times"),
        ("funnel/drawn-0", "block_repeats", [1] * 9, "9 numbers for "),
        ("bert/colbert-0", "dim", 0, "0 is not accepted"),
        ("aimv2/drawn-28", "patch_size", 64, "do not fit an image of"),
        ("aimv2/drawn-29", "hidden_size", 26, "a width that 4 divides"),
        ("funnel/drawn-0", "d_head", 1, "heads of one feature are not declared"),
        ("oneformer/drawn-1", "is_training", True, "only false is declared for oneformer"),
        ("oneformer/drawn-1", "enforce_input_proj", True, "only false is declared for oneformer"),
        ("oneformer/drawn-1", "mask_dim", 64, "only the 32 of hidden_dim is declared"),
        ("oneformer/drawn-1", "decoder_layers", 1, "the first is no layer"),
        ("hrm_text/drawn-0", "num_attention_heads", 7, "7 heads do not divide a hidden_size of"),
        ("hrm_text/drawn-0", "num_layers_per_stack", 9, "of num_layers_per_stack, is declared"),
        ("hrm_text/drawn-0", "L_bp_cycles", [-1], "a list of integers from zero is accepted"),
        ("hrm_text/drawn-0", "H_cycles", 99, "up to 64 are accepted"),
        ("xlstm/a", "num_blocks", 9, "9 blocks have states of 4 layers"),
        ("xlstm/a", "mode", "train", "only .inference. is declared"),
        ("xlstm/a", "chunk_size", 48, "48 does not divide 16384"),
        ("xlstm/a", "num_heads", 5, "5 heads do not divide a width of 48"),
        ("xlstm/a", "qk_dim_factor", None, "null, but xlstm needs it"),
        ("xlstm/a", "slstm_at", [1], "not understood for xlstm"),
        ("prophetnet/a", "ngram", 0, "0 is not accepted"),
        ("gemma3n/text", "vision_config", {"architecture": "x"}, "only .mobilenetv5_300m_enc. is"),
    ],
)
def test_what_is_not_declared_is_refused(name, key, value, said):
    with pytest.raises(InputError, match=said):
        count({**known(name), key: value}, 1, 64)


def test_a_decoder_of_images_does_not_stand_alone():
    config = {**known("ved-trocr/a")["decoder"], "architectures": ["TrOCRForCausalLM"]}
    with pytest.raises(InputError, match="trocr is declared as a part of others"):
        count(config, 1, 64)


def test_images_of_mllama_are_refused():
    with pytest.raises(InputError, match="image_tokens = 0 is accepted"):
        count(known("mllama/a"), 1, 64, image_tokens=4)


def test_texts_of_mllama_leave_the_layers_that_see_images_out():
    counted = count(known("mllama/a"), 1, 64)
    assert (counted["params"], counted["flops_fwd"]) == (389607, 13799424)


def test_images_of_towers_that_are_kept_are_refused():
    with pytest.raises(InputError, match="image_tokens = 0 is accepted"):
        count(known("molmo2/text"), 1, 64, image_tokens=4)


@pytest.mark.parametrize(("length", "fine"), [(64, True), (65, False)])
def test_experts_of_limited_capacity(length, fine):
    config = known("switch_transformers/a")
    if fine:
        assert count(config, 1, length)["flops_fwd"] == 94316544
    else:
        with pytest.raises(InputError, match="at most 64 tokens are accepted"):
            count(config, 1, length)


@pytest.mark.parametrize(
    ("family", "more"),
    [
        ("mamba", {}),
        ("mamba2", {"num_heads": 2, "n_groups": 1}),
        ("falcon_mamba", {}),
        (
            "lfm2",
            {
                "conv_L_cache": 4,
                "intermediate_size": 128,
                "layer_types": ["conv", "full_attention"],
                "num_attention_heads": 8,
            },
        ),
    ],
)
def test_a_prompt_shorter_than_what_its_cache_convolves_is_refused(family, more):
    config = {"model_type": family, "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 96}
    assert count(config | more, seq=4)["flops_fwd"]
    with pytest.raises(InputError, match="seq = 3: 4 tokens or more are accepted"):
        count(config | more, seq=3)
