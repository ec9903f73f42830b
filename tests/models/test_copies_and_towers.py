"""Decoders on copies of the stream, with shared keys, and beside towers that are kept."""

import json

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count
from tests.models.test_families_truth import TRUTH

PHASES = ("forward", "backward_input", "backward_weight")


def job(tmp_path, name, strategy, **changes):
    config = {**TRUTH[name]["config"], "vocab_size": 212, **changes}
    if "vocab_size_per_layer_input" in config:
        config["vocab_size_per_layer_input"] = 212
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return sc.job(str(path), strategy)


def flop(chosen, sequences):
    table = chosen.bind(b=sequences, l=32).table()
    return sum(table.total("flop", phase=phase) for phase in PHASES)


@pytest.mark.parametrize(
    ("name", "strategy", "least", "most"),
    [
        ("gemma4_text/shared", "cp=2", 1, 1),
        # Gradients are added up by ranks.
        pytest.param("gemma3n_text/a", "dp=2,zero=3", 1, 1.0001, marks=pytest.mark.slow),
        pytest.param("mimo_v2_flash/a", "tp=2,sp", 1, 1.0001, marks=pytest.mark.slow),
        # Narrow products run on every rank.
        pytest.param("gemma3n_text/a", "tp=2", 1, 1.2, marks=pytest.mark.slow),
    ],
)
def test_ranks_share_the_work(tmp_path, name, strategy, least, most):
    alone = flop(job(tmp_path, name, ""), 2)
    shared = flop(job(tmp_path, name, strategy), 1 if "dp" in strategy else 2)
    assert least <= 2 * shared / alone <= most


def test_keys_of_other_blocks_do_not_cross_stages(tmp_path):
    with pytest.raises(InputError, match="which may stand on another stage"):
        job(tmp_path, "gemma4_text/shared", "pp=2").bind(b=1, l=32).table().total("flop")


def test_features_of_layers_start_on_the_first_stage(tmp_path):
    """They pass every stage beside the stream, and nothing goes round to the first again."""
    held = {"first": (2, 0), "middle": (2, 2), "last": (0, 2)}
    for stage, counts in held.items():
        one = job(tmp_path, "gemma4_text/b", "pp=3").replace(stage=stage, microbatches=4)
        rows = one.rows.select("communication", where=lambda row: row.kind == "pipeline")
        own = [row for row in rows if row.collective.kind == "send-receive"]
        phases = ("forward", "backward_input")
        sent = tuple(sum(row.count for row in own if row.phase == phase) for phase in phases)
        assert sent == counts, stage


def test_what_towers_do_is_refused_and_their_weights_are_counted():
    config = TRUTH["gemma4/text_alone"]["config"]
    with pytest.raises(InputError, match="image_tokens = 0 is accepted"):
        count(config, 1, 64, image_tokens=16)
    assert count(config, 1, 64)["params"] in TRUTH["gemma4/text_alone"]["params"]
    text = {**config["text_config"], "use_bidirectional_attention": "all"}
    with pytest.raises(InputError, match="use_bidirectional_attention"):
        count({**config, "text_config": text}, 1, 64)


def test_a_list_of_one_value_per_layer_is_that_value():
    config = TRUTH["gemma3n_text/a"]["config"]
    assert count(config, 1, 64)["params"] in TRUTH["gemma3n_text/a"]["params"]
    uneven = [*config["intermediate_size"][:-1], 8]
    with pytest.raises(InputError, match="one value for all layers is declared"):
        count({**config, "intermediate_size": uneven}, 1, 64)


def test_a_tower_that_is_missing_is_named():
    config = {k: v for k, v in TRUTH["voxtral/text"]["config"].items() if k != "audio_config"}
    with pytest.raises(InputError, match="audio_config"):
        count(config, 1, 64)


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param([0, 3], id="a block that the tower lacks"),
        pytest.param([1, 1], id="one twice"),
        pytest.param([0, 1, 2], id="more than the language model has"),
    ],
)
def test_stages_that_nothing_reads_are_refused_with_images(stages):
    config = TRUTH["qwen3_vl/a"]["config"]
    vision = {**config["vision_config"], "deepstack_visual_indexes": stages}
    config = {**config, "vision_config": vision}
    with pytest.raises(InputError, match="blocks of the tower, each once"):
        count(config, 1, 64, image_tokens=16)
    assert count(config, 1, 64)["flops_fwd"] == TRUTH["qwen3_vl/a"]["images"][0][1]


@pytest.mark.parametrize(
    "name",
    [
        "llava/a",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("qwen2_5_vl/seen", "colpali/one", "gemma3/a")
        ),
    ],
)
def test_every_table_says_that_a_tower_sees_nothing(name):
    """What a tower does is no part of a job whose sequences have no images: its header says so."""
    config, said = TRUTH[name]["config"], "text alone: no image tokens are counted"
    blind, seeing = (sc.models.from_config(config, sc.Shape(i=i)) for i in (0, 16))
    assert said in str(sc.job(blind).table())
    assert said not in str(sc.job(seeing).table())
    assert count(config, 1, 64)["note"].count(said) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        "search --gpus 2 --global-batch 8 --set l=64",
        "fit --gpus 1 --set l=64",
        "serve-plan --gpus 1 --input 50 --output 10 --strategy tp=1",
        "mfu --seq 64 --tokens-per-second 1000",
        "flops-per-token --seq 64",
    ],
)
def test_answers_without_a_job_say_so_too(tmp_path, asked):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TRUTH["llava/a"]["config"]), encoding="utf-8")
    command, *options = asked.split()
    machine = [] if command == "flops-per-token" else ["--system", "h100"]
    told = CliRunner().invoke(main, [command, str(path), *options, *machine])
    assert "text alone: no image tokens are counted" in " ".join(told.output.split())


def test_null_is_not_the_default_of_a_tower():
    config = TRUTH["deepseek_ocr2/text"]["config"]
    encoder = {**config["vision_config"]["encoder_config"], "num_key_value_heads": None}
    tower = {**config["vision_config"], "encoder_config": encoder}
    with pytest.raises(InputError, match=r"num_key_value_heads.*null is not its default"):
        count({**config, "vision_config": tower}, 1, 64)


@pytest.mark.parametrize(
    ("name", "section", "field", "value", "said"),
    [
        ("exaone4_5/text", "vision_config", "depth", None, "null is not its default"),
        ("exaone4_5/text", "vision_config", "num_heads", 5, "5 heads do not divide a width of"),
        ("instructblip/opt", "qformer_config", "num_attention_heads", 5, "5 heads do not divide"),
        ("lighton_ocr/one", "vision_config", "head_dim", 24, "a head, all of which is rotated"),
        ("fuyu/text", "text_config", "partial_rotary_factor", 0.2, "are no pairs of a head's"),
        ("video_llava/text", "", "vision_feature_layer", [], "a list of some is accepted"),
    ],
)
def test_sizes_of_sections_that_fit_none_are_refused(name, section, field, value, said):
    config = TRUTH[name]["config"]
    inner = {**config.get(section, config), field: value}
    with pytest.raises(InputError, match=said):
        count({**config, section: inner} if section else inner, 1, 16)


def test_a_projector_takes_as_many_layers_as_are_listed():
    """Of one layer, written as it is or as a list, and of three."""
    config = TRUTH["video_llava/text"]["config"]
    one, same, three = (
        count({**config, "vision_feature_layer": layers}, 1, 16)["params"]
        for layers in (-2, [-2], [-2, -1, 0])
    )
    wide, narrow = (config[key]["hidden_size"] for key in ("vision_config", "text_config"))
    assert one == same == three - 2 * wide * narrow


def test_a_layer_that_a_tower_lacks_is_refused():
    config = TRUTH["llava/a"]["config"] | {"vision_feature_layer": -5}
    with pytest.raises(InputError, match="there are 3"):
        count(config, 1, 64)


@pytest.mark.parametrize(("name", "told"), [("qwen2_vl/a", True), ("mistral3/joint", False)])
def test_tokens_of_images_of_any_size_are_those_of_one(name, told):
    counted = count(TRUTH[name]["config"], 1, 64, image_tokens=16)
    assert ("image_tokens: of one image" in (counted["ignored"] or "")) == told


@pytest.mark.parametrize(
    ("name", "changes", "vision"),
    [
        pytest.param("aya_vision/new", {}, {"image_size": 48}, id="3 patches, joined by 2"),
        pytest.param("gemma3/a", {"mm_tokens_per_image": 9}, {}, id="8 patches, 3 tokens a side"),
        pytest.param("gemma3/a", {"mm_tokens_per_image": 8}, {}, id="no square of tokens"),
    ],
)
def test_patches_that_are_no_whole_tokens_are_refused_with_images(name, changes, vision):
    config = TRUTH[name]["config"] | changes
    config = {**config, "vision_config": {**config["vision_config"], **vision}}
    with pytest.raises(InputError, match="are no grid of whole tokens"):
        count(config, 1, 128, image_tokens=72)
    assert count(config, 1, 128)["flops_fwd"]


def test_a_llava_that_would_leave_a_patch_out_is_refused_with_images():
    vision = {"model_type": "siglip_vision_model", "image_size": 64, "patch_size": 16}
    config = TRUTH["llava/a"]["config"] | {
        "vision_config": {**TRUTH["deepseek_vl/a"]["config"]["vision_config"], **vision}
    }
    with pytest.raises(InputError, match="no class token to leave out"):
        count(config, 1, 64, image_tokens=16)
    assert count(config | {"vision_feature_select_strategy": "full"}, 1, 64, image_tokens=16)
