"""Architectures of timm by name: parameters and FLOP of an image as PyTorch counts them.

`timm_truth.json` holds, for names, classes and images of its published configurations, the
features before the classifier, parameters, and FLOP of a forward pass of one image;
`timm_written_truth.json` and `timm_views_truth.json` the same of networks that are written out in
words, with other classes and images as well.
"""

import json

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError, PlacementError
from symbolic_cost.models.count import count
from tests.models.test_families_truth import GOLDEN

ROWS = [
    row
    for file in ("timm_truth.json", "timm_written_truth.json", "timm_views_truth.json")
    for row in json.loads((GOLDEN / file).read_text(encoding="utf-8"))
]
FEW = ROWS[::60]


def config(name, classes, image, features):
    pretrained = {"input_size": image}
    return {"architecture": name, "num_classes": classes, "num_features": features,
            "pretrained_cfg": pretrained}  # fmt: skip


def is_exact(*named, params, forward):
    answer = count(config(*named), 1, 1)
    return (answer["params"], answer["flops_fwd"]) == (params, forward)


@pytest.mark.parametrize("row", FEW, ids=lambda row: row[0])
def test_a_sample_is_exact(row):
    assert is_exact(*row[:4], params=row[4], forward=row[5])


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row not in FEW], ids=lambda row: row[0])
def test_every_other_is_exact(row):
    assert is_exact(*row[:4], params=row[4], forward=row[5])


@pytest.mark.parametrize(
    ("name", "classes", "image", "features", "said"),
    [
        ("vit_base_patch16_224", 10, [3, 384, 384], 768, "input_size of 384: 224 by name"),
        ("vit_base_patch14_dinov2", 10, [3, 518, 518], 768, "0 is read, without a classifier"),
        ("tf_efficientnet_b0", 10, [3, 225, 225], 1280, "an even side is read"),
        ("focalnet_base_srf", 10, [3, 231, 231], 1024, "a multiple of 32 is read"),
        ("resnet18", 10, [3, 224, 160], 512, r"\[224, 160\] is not accepted"),
        ("resnet18", 10, [3, 224, 224], 2048, "num_features.* = 2048: 512 by name"),
        ("resnet18", -1, [3, 224, 224], 512, "num_labels.*-1 is not accepted"),
        ("efficientnet_b9", 10, [3, 224, 224], 1280, "did you mean efficientnet_b8"),
        ("mixer_b16_224", 10, [3, 256, 256], 768, "input_size of 256: 224 by name"),
        ("maxvit_tiny_tf_384", 10, [3, 224, 224], 512, "input_size of 224: 384 by name"),
        ("vit_base_patch16_clip_224", 10, [3, 240, 240], 768, "input_size of 240: 224 by name"),
        ("vit_small_patch14_reg4_dinov2", 10, [3, 224, 224], 384, "input_size of 224: 518"),
        ("densenet121", 10, [3, 16, 16], 1024, "does not fit into maps of 1 x 1"),
        ("coatnet_9_rw_224", 10, [3, 224, 224], 768, "did you mean coatnet_3_rw_224"),
        ("dla34", 10, [3, 150, 150], 512, "sizes of .*37, 37.* and of .*38, 38.* differ"),
    ],
)
def test_what_is_not_declared_is_refused(name, classes, image, features, said):
    with pytest.raises(InputError, match=said):
        count(config(name, classes, image, features), 1, 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stages": ["ir_r2_k3_s2_e6_c24_x9"]}, "such as ir_r2_k3_s2_e6_c24"),
        ({"stages": ["cn_r1_k3_s1_c8", 4]}, "4: blocks are accepted"),
        ({"stages": []}, "blocks are needed"),
        ({"last": "twice"}, "unknown value 'twice'"),
    ],
)
def test_blocks_that_are_not_words_are_refused(changes, said):
    config = {"model_type": "timm_inverted", "stages": ["ds_r1_k3_s1_c16"], "num_labels": 3}
    config["architectures"] = ["TimmForImageClassification"]
    assert count(config, 1, 1)["params"]
    with pytest.raises(InputError, match=said):
        count(config | changes, 1, 1)


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ("", "words are needed"),
        ("c8k3 bogus", "'bogus' is not accepted: bn, ln"),
        ("c8k3 (c8 | c8", r"\) is missing at the end"),
        ("c8k3)", r"'\)' is not accepted"),
        ("c8k3o4", "o does not go with cN"),
        ("c8k3k5", "'c8k3k5': each mark once"),
        ("c8k3p1v", "one of p, v and t"),
        ("c8k0", "a kernel has a size of 1 or more"),
        ("c8k3s2x3", "one size, 1 or more"),
        ("c8k3g5", "5 groups do not divide 3 and 8 channels"),
        ("c8 attn3", "3 heads do not divide 8 channels"),
        ("[c8 | c8 | c8]", r"\[ .. \] is no group"),
        ("gate(mean | mean)", r"gate\( .. \) is no group"),
        ("2*(c3 2*(c3))", r"2\*\( .. \) stands in another"),
        ("2*(c8)", "layer0.next: sizes .* differ"),
        ("[c3s2]", "layer0.short: sizes .* differ"),
        ("(c3 | c3s2)", "maps of one size stand side by side"),
        ("<c8 | c9>", "layer0.as1: sizes .* differ"),
        ("mean c8k3", "a window of .* on 0 axes of positions"),
        ("mean win1w4", "windows lie on maps, of two axes and not 0"),
        ("turn", "one axis of positions is turned, not 2"),
        ("c8 part9", "9 of 8 channels"),
        ("c8 flat lead(m9)", "layer2.ahead: sizes .* differ"),
        ("c8 flat lead(m8 | m8)", r"lead\( .. \) is no group"),
        ("9999x(9999x(c3))", "5000 layers"),
        ("(" * 30, "20 deep are accepted"),
    ],
)
def test_layers_that_are_not_words_are_refused(layers, said):
    config = {"model_type": "timm_written", "layers": layers, "image_size": 32, "num_labels": 3}
    config["architectures"] = ["TimmForImageClassification"]
    with pytest.raises(InputError, match=said):
        count(config, 1, 1)


def test_images_are_those_of_training():
    """A small network that was trained on small images costs less than on those of 224 pixels."""
    small, large = (
        count(config("resnet18", 1000, [3, side, side], 512), 1, 1) for side in (160, 224)
    )
    assert small["params"] == large["params"]
    assert (small["flops_fwd"], large["flops_fwd"]) == (1851596800, 3628146688)


@pytest.mark.parametrize(
    ("name", "saved", "channels"),
    [
        ("mobilenetv2_100", 12913920, 17056),
        ("mnasnet_100", 7387264, 18960),
        ("semnasnet_100", 8825456, 16744),
        ("efficientnet_es", 11709376, 25720),
        ("mobilenetv4_conv_small", 2790912, 12544),
    ],
)
def test_activations_keep_what_theirs_keep(name, saved, channels):
    """A relu keeps what the next product keeps as well, others what they take.

    `saved` are bytes that PyTorch keeps of two images of 64 pixels a side in single precision,
    without the loss: 1000 shares and a label of each. Statistics of channels are single here, too.
    """
    features = next(row[3] for row in ROWS if row[0] == name)
    answer = count(config(name, 1000, [3, 64, 64], features), 2, 1)
    loss = 2 * (4 * 1000 + 8) + 4  # labels are of 8 bytes, the number of those that count of 4
    assert 2 * answer["saved_bytes"] == saved + 8 * channels + 2 * loss


def forward(name, strategy):
    """FLOP of a forward pass on one rank, by op."""
    config = {"architecture": name, "num_classes": 10}
    flop = {}
    for row in sc.job(sc.from_config(config), strategy, {"b": 1, "M": 1}).rows.select("flop"):
        if row.phase.value == "forward":
            one = row.total.subs(dict.fromkeys(row.total.free_symbols, 2))
            flop[row.path] = flop.get(row.path, 0) + one
    return flop


def test_two_ranks_do_the_whole_and_what_they_repeat():
    """Heads and inner features are halved; norms, patches and the classifier are repeated."""
    whole, one = (forward("vit_base_patch16_clip_224", strategy) for strategy in ("", "tp=2"))
    split = {path for path in whole if one[path] != whole[path]}
    names = ("query", "key", "value", "scored", "attend", "proj")
    assert {path.rpartition(".")[2] for path in split} >= set(names)
    assert all(2 * one[path] >= whole[path] for path in whole)
    assert all(path in split for path in whole if path.endswith(names))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["densenet121", "mixer_b16_224", "vit_small_patch16_dinov3"])
def test_every_data_parallel_rank_runs_the_whole(name):
    assert forward(name, "dp=2,zero=3") == forward(name, "")


def test_networks_without_heads_are_not_split():
    with pytest.raises(PlacementError, match="has none of its axes"):
        forward("densenet121", "tp=2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "classes", "side", "train"),
    [
        ("test_vit", 1000, 160, 215981568),
        ("resnext50_32x4d", 1000, 64, 3234299904),
        ("densenet121", 1000, 64, 1374535680),
        ("nfnet_l0", 1000, 64, 2671570944),
        ("eca_nfnet_l0", 1000, 64, 2606553600),
        ("gmlp_ti16_224", 1000, 224, 7935399936),
        ("maxvit_tiny_tf_224", 1000, 224, 73882507200),
        ("xcit_nano_12_p16_224", 10, 224, 4667333120),
        ("xcit_tiny_12_p16_224", 0, 160, 5341223424),
        ("cspnext_tiny", 10, 160, 1201870080),
        ("dla46x_c", 10, 160, 2023848960),
        ("dla102", 10, 160, 21808803840),
        ("vitamin_small_224", 10, 224, 57419831808),
        ("fastvit_t8", 7, 97, 3317656704),
        ("fastvit_mci0", 10, 160, 22843942912),
        ("mambaout_femto", 10, 160, 9479189376),
        ("convformer_s18", 10, 160, 71124596736),
        ("caformer_s18", 7, 97, 9828993024),
        ("poolformerv2_s12", 10, 160, 5516113920),
        ("repvit_m0_9", 0, 150, 4104359904),
        ("cs3se_edgenet_x", 10, 160, 26955770880),
        ("cspresnext50", 10, 160, 16598753280),
    ],
)
def test_training_is_exact(name, classes, side, train):
    """As FlopCounterMode counts forward and backward, those of convolutions in groups as whole."""
    config = {"architecture": name, "num_classes": classes}
    config["pretrained_cfg"] = {"input_size": [3, side, side]}
    assert count(config, 1, 1)["flops_train"] == train
