"""Further detectors, masks, depths and videos: what is refused, and what strategies divide."""

import json
from pathlib import Path

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count

GOLDEN = Path(__file__).parents[1] / "golden" / "families_vision.json"
ROWS = {row["id"]: row["config"] for row in json.loads(GOLDEN.read_text("utf-8"))}


def changed(name, path, value):
    """A configuration with one field changed, the path of which has dots."""
    config = json.loads(json.dumps(ROWS[name]))
    *outer, last = path.split(".")
    inner = config
    for key in outer:
        inner = inner[key]
    inner[last] = value
    return config


HIERA = "vision_config.backbone_config"


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("sam2/a", "vision_config.num_feature_levels", 4, "only 3 is declared"),
        ("sam2/a", f"{HIERA}.query_stride", [2, 3], "one value for all layers is declared"),
        ("sam2/a", f"{HIERA}.window_size_per_stage", [8, 4, 5, 4], "steps of 2 do not divide"),
        ("sam2/a", f"{HIERA}.embed_dim_per_stage", [16, 16, 64, 128], "pooled widen"),
        ("sam2/a", f"{HIERA}.blocks_per_stage", [1, 2], "as many sizes as blocks_per_stage"),
        ("sam2/a", "prompt_encoder_config.image_size", 64, "a map of 8 x 8, as of the image"),
        ("sam2/a", "mask_decoder_config.hidden_size", 64, "32 channels are accepted"),
        ("sam2/a", "mask_decoder_config.num_attention_heads", 5, "5 heads do not divide"),
        ("sam2_video/a", "memory_fuser_embed_dim", 48, "only 32 is declared"),
        ("grounding-dino/a", "two_stage", False, "only true is declared"),
        ("grounding-dino/a", "num_feature_levels", 2, "3 and more"),
        ("grounding-dino/a", "encoder_attention_heads", 1, "halves of 1 heads"),
        ("grounding-dino/a", "backbone_config.out_indices", [1, 2], "'stage2', 'stage3', 'stage4'"),
        ("grounding-dino/a", "text_config.model_type", "roberta", "did you mean bert"),
        ("d_fine/a", "eval_idx", 1, "only -1 is declared"),
        ("d_fine/a", "decoder_n_points", [3, 6], "3 sizes are accepted"),
        ("d_fine/a", "backbone_config.stem_strides", [2, 1, 1, 1, 1], "is declared for hgnet_v2"),
        ("d_fine/a", "backbone_config.model_type", "resnet", "model_type hgnet_v2 is accepted"),
        ("hgnet_v2/a", "stage_kernel_size", [4, 3, 3, 3], "odd kernels keep maps"),
        ("depth_pro/a", "scaled_images_ratios", [1, 0.5, 0.25], "rising shares of the image"),
        ("depth_pro/a", "intermediate_hook_ids", [4, 1], "as many layers below 4"),
        ("depth_pro/a", "image_size", 72, "144 and more"),
        ("vjepa2/a", "num_attention_heads", 24, "6 features of a head and more"),
        ("vjepa2/a", "tubelet_size", 8, "tubes of 8 frames"),
        ("cvt/a", "cls_token", [False, False, False], "a token of the last stage"),
        ("cvt/a", "qkv_projection_method", ["avg", "dw_bn", "dw_bn"], "only dw_bn is declared"),
        ("cvt/a", "depth", [1, 1, 3], "more blocks than stages before it"),
        ("superpoint/a", "keypoint_decoder_dim", 64, "only 65 is declared"),
        ("vitmatte/a", "fusion_hidden_sizes", [20, 16, 10], "as many as halve patches of 16"),
        ("vitmatte/a", "backbone_config.out_features", ["stage2"], "stage4 last"),
    ],
)
def test_what_is_not_declared_is_refused(name, path, value, said):
    with pytest.raises(InputError, match=said):
        count(changed(name, path, value), 1, 8)


def test_a_text_is_no_longer_than_its_detector_reads():
    with pytest.raises(InputError, match="33 tokens of a text: 32 "):
        count(ROWS["grounding-dino/a"], 1, 33)


def test_sizes_beside_a_backbone_hold_nothing():
    """A DPT reads the images that the section of its backbone says, and tells it."""
    answer = count(ROWS["dpt/dino-beside"], 1, 8)
    said = "image_size: images of 70 x 70 pixels, as backbone_config says"
    assert answer["ignored"] == said
    assert count(changed("dpt/dino-beside", "image_size", 70), 1, 8) == answer


def forward(config, strategy):
    """Forward FLOP of an op on one rank, by its path."""
    flop = {}
    for row in sc.job(sc.from_config(config), strategy, {"b": 1, "M": 1}).rows.select("flop"):
        if row.phase.value == "forward":
            numbers = dict.fromkeys(row.total.free_symbols, 2)
            flop[row.path] = flop.get(row.path, 0) + row.total.subs(numbers)
    return flop


def test_two_ranks_do_the_whole_and_what_they_repeat():
    """Products of heads and of perceptrons are halved; patches, projections and norms repeated."""
    config = changed("vjepa2/a", "pred_num_attention_heads", 4)
    whole, one = forward(config, ""), forward(config, "tp=2")
    split = {path for path in whole if one[path] != whole[path]}
    products = (".query", ".key", ".value", ".scored", ".attend", ".proj", ".fc1", ".fc2")
    assert {path[path.rindex(".") :] for path in split if path.endswith(products)} == set(products)
    assert all(2 * one[path] >= whole[path] for path in split)  # biases of sums are on one rank
    kept = {path for path in whole.keys() - split if whole[path]}
    assert not any(path.endswith(products) for path in kept)
    assert any(path.endswith(".patch") for path in kept)


def test_what_sequence_parallelism_meets_is_named():
    rows = json.loads((GOLDEN.parent / "families_truth.json").read_text("utf-8"))
    config = next(row["config"] for row in rows if row["config"].get("model_type") == "jetmoe")
    said = "sp: block.attention.scatter_q of model 'jetmoe' has z_r token posted beside k head"
    with pytest.raises(InputError, match=said):
        sc.job(sc.from_config(config), "tp=2,sp", {"b": 1, "l": 8}).table()


def test_a_last_block_that_stages_cannot_share_is_named():
    rows = json.loads((GOLDEN.parent / "families_diffusion.json").read_text("utf-8"))
    config = next(row["config"] for row in rows if row["id"] == "CogView4Transformer2DModel/a")
    with pytest.raises(InputError, match="ends with a block of its own, of which every stage"):
        sc.job(sc.from_config(config), "pp=2", {"b": 4, "l": 16}).table()
