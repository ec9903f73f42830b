"""Networks for diffusion: one field changed at a time, streams as one, what is assumed.

`diffusion_changes.jsonl` holds configurations of families_diffusion.json with one field changed,
as what PyTorch and diffusers count of them: parameters and FLOP of a forward pass;
`latents_changes.jsonl` those of families_latents.json.
"""

import json
from pathlib import Path

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count
from tests.models.test_families_truth import TRUTH

CHANGES, OF_LATENTS = (
    [
        json.loads(line)
        for line in (Path(__file__).parents[1] / "golden" / f"{name}_changes.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    for name in ("diffusion", "latents")
)
JOINT = {
    "_class_name": "FluxTransformer2DModel",
    "in_channels": 8,
    "num_attention_heads": 8,
    "attention_head_dim": 16,
    "axes_dims_rope": [4, 6, 6],
    "num_layers": 2,
    "sample_size": 16,
    "num_single_layers": 3,
    "joint_attention_dim": 32,
    "pooled_projection_dim": 16,
}
SIZES = {"b": 2, "l": 32}


@pytest.fixture
def flux(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(JOINT))
    return str(path)


def outcome(entry):
    """Whether a changed configuration is answered; a refusal names the field."""
    try:
        answer = count(entry["config"], entry["batch"], entry["length"])
    except InputError as error:
        if entry["what"][1] not in str(error):
            raise
        return False
    assert (answer["params"], answer["flops_fwd"]) == (entry["params"], entry["forward"])
    return True


REFUSED = {"image_dim", "added_kv_proj_dim", "patch_size"}
"""Fields of a Wan some of whose values are refused: patches of two sides, an image without keys."""


def check(entries):
    assert {entry["what"][1] for entry in entries if not outcome(entry)} <= REFUSED


def test_a_sample_of_changes_is_exact():
    check(CHANGES[::9])


@pytest.mark.slow
def test_every_other_change_is_exact():
    check([entry for place, entry in enumerate(CHANGES) if place % 9])


@pytest.mark.parametrize("entry", OF_LATENTS[::9], ids=lambda entry: "-".join(entry["what"]))
def test_a_sample_of_further_changes_is_exact_or_names_its_field(entry):
    outcome(entry)


@pytest.mark.slow
def test_every_other_further_change_is_exact_or_names_its_field():
    answered = [outcome(entry) for place, entry in enumerate(OF_LATENTS) if place % 9]
    assert answered.count(True) > len(answered) / 2


def test_tokens_of_streams_that_are_joined_count_once(flux):
    kind, amount = sc.job(flux, "", SIZES).model.work
    assert (kind, sc.bind(amount, SIZES)) == ("tokens", 2 * (32 + 64))


@pytest.mark.parametrize(
    ("strategy", "kind", "tensors"),
    [
        ("cp", "all-gather", {"attention.k", "attention.v"}),
        ("ring", "send-receive", {"attention.k", "attention.v"}),
        (
            *("ulysses", "all-to-all"),
            {"attention.q", "attention.k", "attention.v", "attention.context", "context"},
        ),
    ],
)
def test_ranks_join_their_own_parts_of_streams(flux, strategy, kind, tensors):
    """Attention moves what it moves in a language model; joining two streams moves nothing."""
    job, alone = (sc.job(flux, text, SIZES) for text in (f"{strategy}=4", ""))
    moved = job.rows.select("communication", where=lambda row: row.phase == "forward")
    assert {(row.collective.kind, row.tensor) for row in moved} == {(kind, t) for t in tensors}
    named = {row.path for row in job.repeated}
    mine, whole = (
        sum(sc.bind(row.total, numbers) for row in one.rows.select("flop") if row.path not in named)
        for one, numbers in (
            (job, SIZES | job.model.bindings | {"cp": 4, "s1": 4}),
            (alone, SIZES | alone.model.bindings),
        )
    )
    assert whole == 4 * mine


def test_what_is_assumed_of_a_configuration_is_said(flux):
    config = {key: value for key, value in JOINT.items() if key != "sample_size"}
    Path(flux).write_text(json.dumps(config))
    job = sc.job(flux, "", SIZES)
    said = "assumed of sample_size: 128, latents of an image of 1024 pixels a side"
    assert said in job.memory().sheet.notes


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"length": 77}, "behind an image a prompt has 512 tokens, not 77"),
        ({"added_kv_proj_dim": None}, "it stands with added_kv_proj_dim, or neither"),
        ({"added_kv_proj_dim": 7}, "the width 48 of the heads together is accepted"),
        ({"image_dim": None, "added_kv_proj_dim": None, "pos_embed_seq_len": 9}, "need image_dim"),
    ],
)
def test_images_beside_a_prompt_are_refused_where_its_code_fails(changed, said):
    config = {**TRUTH["WanTransformer3DModel/image"]["config"], **changed}
    with pytest.raises(InputError, match=said):
        count(config, 1, config.pop("length", 512))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"_class_name": "ControlNetModel", "class_embed_type": "simple_projection"}, "projection"),
        ({"_class_name": "UNet2DModel", "mid_block_type": "Other"}, "UNetMidBlock2D"),
        ({"_class_name": "Lumina2Transformer2DModel", "sample_size": 9}, "do not divide"),
        (
            {
                "_class_name": "HunyuanVideoTransformer3DModel",
                "image_condition_type": "token_replace",
            },
            "latent_concat",
        ),
        (
            {
                "_class_name": "AutoencoderDC",
                "decoder_block_out_channels": [128, 256, 512, 512, 1024, 1040],
            },
            "decoder_block_out_channels.*the last one a multiple of latent_channels, 32",
        ),
    ],
)
def test_other_kinds_are_refused(config, said):
    with pytest.raises(InputError, match=said):
        count(config, 1, 16)


STAGED = {
    name: TRUTH[name]["config"]
    for name in ("SD3Transformer2DModel/0", "QwenImageTransformer2DModel/0")
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flux", *STAGED])
def test_stages_hold_blocks_of_streams_in_their_order(tmp_path, name):
    """Both stages run what the whole does, and keep it; what conditions every block they copy."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(STAGED.get(name, JOINT)))
    whole, *stages = (
        sc.job(str(path), strategy, SIZES, stage=stage)
        for strategy, stage in (("", "first"), ("pp=2", "first"), ("pp=2", "last"))
    )

    def total(quantity, *jobs, beside=()):
        rows = ((job, row) for job in jobs for row in job.rows.select(quantity))
        return sum(
            sc.bind(row.total, {**SIZES, **job.model.bindings, "pp": 2})
            for job, row in rows
            if row.tensor not in beside
        )

    assert total("flop", *stages) == total("flop", whole)
    assert total("saved", *stages, beside=["cond"]) == total("saved", whole, beside=["cond"])
    kept = [row for row in stages[0].rows.select("saved") if row.tensor == "cond"]
    run = {row.part for row in stages[0].rows.select("flop") if row.count != 0}
    assert {row.part for row in kept if row.count != 0} <= run
    assert total("parameter", *stages) == total("parameter", whole)
    said = "pipeline: every stage keeps cond, which all its blocks take"
    assert said in stages[0].memory().sheet.notes


def test_a_block_keeps_what_every_one_before_hands_on(flux):
    """Two blocks of two streams keep two prompts, and send both streams to the next stage."""
    job = sc.job(flux, "pp=2", SIZES)
    numbers = {**SIZES, **job.model.bindings, "pp": 2}
    (kept,) = (
        row for row in job.rows.select("saved") if (row.part, row.tensor) == ("block", "prompt")
    )
    assert sc.bind(kept.total, numbers) == 2 * (2 * 2 * 32 * 128)
    sent = {row.tensor: sc.bind(row.expr, numbers) for row in job.rows.select("communication")}
    assert sent == {"y": 2 * 2 * (32 + 64) * 128, "cond": 2 * 2 * 128}


@pytest.mark.parametrize(
    ("train", "flop"),
    [
        ("all", 855646208),
        pytest.param("block", 624689152, marks=pytest.mark.slow),
        ("block.attention.image.q", 452198400),
    ],
)
def test_every_stream_behind_a_trained_block_needs_its_gradients(flux, train, flop):
    """Backward FLOP as PyTorch counts them, attention written out; of two blocks the first sees
    a constant prompt, the second what the first made of it."""
    options = {"train": train, "attention": "eager", "conventions": "torch-flop-counter"}
    whole, *stages = (
        sc.job(flux, strategy, SIZES, stage=stage, **options)
        for strategy, stage in (("", "first"), ("pp=2", "first"), ("pp=2", "last"))
    )

    def total(job):
        rows = job.rows.select("flop", where=lambda row: row.phase.value.startswith("backward"))
        return sc.bind(rows.total(), {**SIZES, **job.model.bindings, "pp": 2})

    assert total(whole) == sum(map(total, stages)) == flop


def test_what_stages_send_forward_does_not_depend_on_what_is_trained(flux):
    def sent(train):
        rows = sc.job(flux, "pp=2", SIZES, train=train).rows
        return {
            (row.tensor, row.total)
            for row in rows.select("communication", phase="forward", where=_is_of_stages)
        }

    assert {tensor for tensor, _ in sent("all")} == {"cond", "y"}
    assert sent("all") == sent("block") == sent("lora:r=2,block")


def _is_of_stages(row):
    return row.collective.meshes == ("pp",)
