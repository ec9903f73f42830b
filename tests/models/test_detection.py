"""Detectors, masks and depths: what is refused, and what strategies divide of them."""

import json
from pathlib import Path

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count

GOLDEN = Path(__file__).parents[1] / "golden"
ROWS = {
    row["id"]: row["config"]
    for name in ("families_detection.json", "families_perception.json")
    for row in json.loads((GOLDEN / name).read_text("utf-8"))
}


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("detr/timm", {"backbone": "vgg16"}, "resnet18, 34, 50, 101 or 152 is accepted"),
        ("detr/timm", {"position_embedding_type": "learned"}, "only sine is declared"),
        ("detr/timm", {"num_labels": "many"}, "a positive integer"),
        ("detr/own", {"dilation": True}, "only false is declared"),
        ("detr/timm", {"num_channels": 6}, "3 channels are accepted"),
        ("detr/own", {"backbone_config": {"out_indices": [2]}}, "the last map is accepted"),
        ("deformable_detr/timm", {"two_stage": True}, "only false is declared"),
        ("deformable_detr/timm", {"num_feature_levels": 2}, "3 and more, are accepted"),
        ("dpt/0", {"reassemble_factors": [4, 2, 1, "x"]}, "a half and a quarter are accepted"),
        ("dpt/0", {"head_in_index": 0}, "only -1 is declared"),
        (
            "dpt/dino",
            {"architectures": ["DPTForSemanticSegmentation"]},
            "none is accepted: DPTForSemanticSegmentation has layers of its own",
        ),
        ("sam/0", {"vision_config": {"image_size": 512}}, "a map as large as that of the image"),
        ("upernet/swin", {"backbone_config": {"model_type": "swin", "depths": ["x"]}}, "num_heads"),
        ("mask2former/swin", {"feature_size": 40}, "a multiple of 32 is accepted"),
        ("owlv2/a", {"projection_dim": 32}, "24, the hidden_size of the text"),
        ("clipseg/simple", {"extract_layers": [4, 2]}, "rising numbers are accepted"),
        ("clipseg/simple", {"extract_layers": [2, 5]}, "layers below 5 are accepted"),
        ("clipseg/simple", {"conditional_layer": 3}, "below 3 is accepted"),
        ("clipseg/simple", {"reduce_dim": 18}, "4 heads do not divide 18"),
        ("vitpose/experts", {"backbone_config": {"model_type": "vit"}}, "unknown value 'vit'"),
        ("vitpose/simple", {"backbone_config": {"image_size": [62, 48]}}, "whole patches of an"),
        ("vitpose/layer", {}, r"only \[3\] is declared"),
        ("vitpose/unequal", {}, "a square is accepted"),
        ("vilt/answers", {"max_image_length": 8}, "only -1 is declared"),
        ("vilt/answers", {"image_size": [64, 96]}, "a square of patches is accepted"),
        ("bit/same", {"num_groups": 3}, "3 groups do not divide"),
        ("bit/same", {"global_padding": "VALID"}, "unknown value 'VALID'"),
        ("bit/moving", {}, "goes with global_padding"),
        ("hiera/own", {"image_size": [68, 68]}, "17 positions a side are no whole units of 8"),
        ("hiera/own", {"image_size": [64, 96]}, "two sides alike are accepted"),
        ("hiera/own", {"num_query_pool": 4}, "4 stages cannot be pooled so often"),
        ("hiera/own", {"masked_unit_attention": [True]}, "4 truth values are accepted"),
        ("hiera/own", {"embed_dim_multiplier": 1.0}, "stages widen"),
    ],
)
def test_what_is_not_declared_is_refused(name, changes, said):
    with pytest.raises(InputError, match=said):
        count({**ROWS[name], **changes}, 1, 8)


def test_frozen_networks_have_no_backward():
    """Of a network of Hugging Face in a DETR nothing is trained: no gradient flows below it."""
    rows = sc.cost(sc.from_config(ROWS["detr/own"]), "torch-flop-counter")
    below = rows.select("flop", where=lambda row: row.path.startswith("detr.0.backbone"))
    assert {row.phase.value for row in below if row.expr != 0} == {"forward"}


def test_two_ranks_hold_the_whole_and_what_they_repeat():
    """Heads and inner widths are halved; convolutions and what queries tell are repeated."""
    model = sc.from_config(ROWS["detr/own"])

    def held(strategy):
        sums = {}
        for row in sc.job(model, strategy, {"b": 1}).rows.select("parameter"):
            number = row.total.subs(dict.fromkeys(row.total.free_symbols, 2))
            sums[row.path] = sums.get(row.path, 0) + number
        return sums

    whole, one = held(""), held("tp=2")
    divided = {path for path in whole if one[path] != whole[path]}
    inner = (".query", ".key", ".value", ".proj", ".fc1", ".fc2")
    assert {path[path.rindex(".") :] for path in divided} == set(inner)
    assert all(whole[path] - one[path] <= one[path] for path in divided)  # but for a bias
    assert not {path for path in divided if "backbone" in path}


def test_a_strategy_without_an_axis_is_refused():
    with pytest.raises(InputError, match="every rank would do all the work of sam"):
        sc.cost(sc.from_config(ROWS["sam/0"]), strategy="tp=2")
    with pytest.raises(InputError, match="has none of its axes"):
        sc.cost(sc.from_config(ROWS["detr/own"]), strategy="tp=2,sp")


@pytest.mark.slow
def test_a_configuration_is_no_launch_file(tmp_path):
    """A Mask2Former says hidden_dim, as files of llm-analysis do."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(ROWS["mask2former/swin"]))
    flop = count(ROWS["mask2former/swin"], 1, 1)["flops_fwd"]
    job = sc.job(str(path), "", {"b": 1}, conventions="torch-flop-counter", attention="eager")
    assert job.table().total("flop", phase="forward") == flop


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        ("clipseg/complex", 14225),
        ("clipseg/complex_patch", 13273),
        ("clipseg/extract_layers", 10801),
    ],
)
def test_a_tower_without_gradients_is_not_trained(name, elements):
    """CLIPSeg runs CLIP under no_grad: its decoder alone has gradients and states.

    Counted of CLIPSegForImageSegmentation after one backward pass (Transformers 5.24): weights that
    have a gradient, none of them zero. All of them ask for one.
    """
    job = sc.job(sc.from_config(ROWS[name]), "", {"b": 2, "l": 8}, precision="fp32")
    for quantity, size in (("weight_gradient", 4), ("optimizer", 8)):
        assert job.value(job.memory_rows.total(quantity)) == size * elements
