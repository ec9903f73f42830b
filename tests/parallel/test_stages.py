"""Stages of a pipeline, for one model of every family."""

import pytest
from sympy import cancel, expand

import symbolic_cost as sc
from symbolic_cost.errors import PlacementError
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.config import imported
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.symbols import symbol
from symbolic_cost.systems.ends import states_of
from tests.models.test_families_truth import TRUTH

WITHOUT_BLOCKS = {"cnn"}
FAMILIES = {preset.family: name for name, preset in reversed(CATALOG.items())}
QUICK = {"bert", "deepseek_v3", "llama", "mamba2", "t5", "vit"}
"""Families that the quick run tries: each puts its parts together in another way."""


def forward(name, *strategy, **options):
    return sc.job(name, *strategy, **options).table().total("flop", phase="forward")


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in sorted(FAMILIES.keys() - WITHOUT_BLOCKS)
    ],
)
def test_stages_are_the_whole(family):
    """What every stage does forward is together what the whole model does."""
    first, middle, last = (
        forward(FAMILIES[family], "pp", stage=stage) for stage in ("first", "middle", "last")
    )
    stages = symbol("pp")
    together = first + (stages - 2) * middle + last
    assert cancel(expand(together - forward(FAMILIES[family]))) == 0


@pytest.mark.parametrize("family", sorted(WITHOUT_BLOCKS))
def test_nothing_to_divide(family):
    with pytest.raises(PlacementError, match="repeats no part"):
        forward(FAMILIES[family], "pp", stage="first")


@pytest.mark.parametrize(
    ("strategy", "turned"),
    [
        ("tp,pp", ()),
        ("tp,sp,dp,pp,zero=2", ()),
        ("2d,pp", ("all-to-all", "all-to-all")),
        ("2.5d,pp", ("all-to-all", "all-to-all")),
        ("3d,pp", ("all-gather",)),
    ],
)
def test_gradients_of_a_tied_table_are_added_in_one_cut(strategy, turned):
    """Both stages exchange what the first keeps; the last turns its gradient to that cut."""
    first, last = (sc.job("gpt", strategy, stage=stage).rows for stage in ("first", "last"))
    kept = first.select("weight_gradient", tensor="d@token").total()
    moved = [
        [r.collective for r in rows if r.origin == "pipeline" and r.per_step]
        for rows in (first, last)
    ]
    added = [[move.message for move in moves if move.meshes == ("pp",)] for moves in moved]
    assert added == [[kept], [kept]]
    assert tuple(move.kind for move in moved[1] if move.meshes != ("pp",)) == turned
    assert len(moved[0]) == 1


SMALL = {"hidden_size": 8, "intermediate_size": 32, "num_attention_heads": 2}
SMALL |= {"num_hidden_layers": 8, "vocab_size": 16, "max_position_embeddings": 16}


def sums(model, stage, **numbers):
    """What stages add up once per step: tensor, ranks and bytes."""
    own = sc.job(model, "pp=4", {"b": 1, **numbers}, stage=stage)
    return [
        (row.tensor, own.value(row.collective.ranks), own.value(row.collective.message))
        for row in own.rows
        if row.origin == "pipeline" and row.per_step
    ]


@pytest.mark.parametrize("stage", ["first", "last"])
def test_weights_of_one_name_in_two_parts_are_not_tied(stage):
    """Embedding and head of BERT have a norm each."""
    assert [tensor for tensor, *_ in sums("bert-base-mlm", stage)] == ["d@token"]


def _is_bias(row):
    return row.path.endswith("position.bias") and row.collective is None


@pytest.mark.parametrize("schedule", ["1f1b", "dualpipe"])
@pytest.mark.parametrize("stage", ["first", "middle", "last"])
def test_every_stage_has_the_biases_that_all_blocks_take(stage, schedule):
    """T5: each stack has 32 buckets of 12 heads, once on every stage, summed over all four."""
    own, alone = (
        sc.job("t5-base", text, {"b": 1, "l": 16, "l_t": 16, "M": 8}, **options)
        for text, options in (("pp=4", {"stage": stage, "schedule": schedule}), ("", {}))
    )
    for quantity, size in (("parameter", 2 * 32 * 12), ("flop", 2 * 16 * 16 * 12)):
        rows = (job.rows.select(quantity, where=_is_bias) for job in (own, alone))
        assert {own.value(one.total()) for one in rows} == {size}
    added = [one for one in sums("t5-base", stage) if one[0] == "dbias.table"]
    assert added == [("dbias.table", 4, 2 * 32 * 12)] * 2
    assert "every stage computes encoder.position and decoder.position" in str(own.table())


@pytest.mark.parametrize("stage", ["first", "middle", "last"])
def test_weights_that_all_blocks_share_are_added_over_all_stages(stage):
    """ALBERT: all stages hold 12 e^2 + 13 e weights, of a bias or norm each."""
    model = imported({"model_type": "albert", "embedding_size": 4, **SMALL}).model
    added = [one for one in sums(model, stage) if one[0].startswith("d@group")]
    assert sum(size for *_, size in added) == 2 * (12 * 8 * 8 + 13 * 8)
    assert {ranks for _, ranks, _ in added} == {4}


def test_a_table_for_all_blocks_passes_all_stages():
    """DeBERTa embeds 2 k = 8 distances on the first stage alone; every block takes them."""
    related = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 4}
    model = imported({"model_type": "deberta-v2", **SMALL, **related}).model
    for stage, times in (("first", 1), ("middle", 2), ("last", 1)):
        own = sc.job(model, "pp=4", {"b": 1, "l": 16}, stage=stage)
        sent = [row for row in own.rows.select("communication") if row.tensor == "relative"]
        assert len(sent) == times
        assert {own.value(row.collective.message) for row in sent} == {2 * 8 * 8}


@pytest.mark.parametrize(
    ("name", "tensor", "times"),
    [
        ("bart/a", "memory", (2, 2, 2)),  # the encoder's last block makes it; it goes round
        ("zamba/a", "first", (1, 2, 1)),  # what was embedded, beside the stream
    ],
)
def test_what_blocks_take_beside_the_stream_passes_all_stages(name, tensor, times):
    model = imported(TRUTH[name]["config"]).model
    for stage, number in zip(("first", "middle", "last"), times, strict=True):
        own = sc.job(model, "pp=3", stage=stage, layout="uneven")
        sent = own.rows.select("communication", where=lambda row: row.tensor == tensor)
        assert len(sent) == number, stage


@pytest.mark.parametrize(
    ("strategy", "schedule", "layers", "held"),
    [
        # 61 layers, the first 3 dense: 3 and 12 times 4 and 4, as Megatron lays them out
        ("pp=16", "1f1b", 61, {"first": (3, 0), "middle": (0, 4), "last": (0, 2)}),
        ("pp=2", "1f1b", 61, {"first": (3, 28), "last": (0, 30)}),
        ("pp=4", "interleaved", 64, {"first": (3, 13), "middle": (0, 16), "last": (0, 16)}),
        ("pp=4", "dualpipe", 64, {"first": (1.5, 14.5), "middle": (0, 16), "last": (1.5, 14.5)}),
        ("pp=64", "1f1b", 64, {"first": (1, 0), "middle": (2 / 62, 60 / 62), "last": (0, 1)}),
    ],
)
def test_layers_that_lead_are_on_the_first_stages(strategy, schedule, layers, held):
    """Dense layers before mixtures are no mean: an expert layer of these has 20 times the weights.

    deepseek-2024, section 4.2; with interleaved chunks of 4, the first holds the dense layers.
    """
    numbers = {"n_layers": layers} | ({"v": 4} if schedule == "interleaved" else {})
    for stage, counts in held.items():
        job = sc.job(
            "deepseek-v3", strategy, numbers, stage=stage, schedule=schedule, microbatches=128
        )
        # One row of each kind of block: the norm of attention.
        rows = job.rows.select("parameter", where=lambda row: row.path.endswith("attention.norm"))
        own = {row.part: float(job.value(row.count)) for row in rows}
        assert (own["dense.block"], own["experts.block"]) == pytest.approx(counts), stage


def test_stages_pass_on_what_later_blocks_take():
    """T5: a microbatch passes all stages as source, then as target, and its memory with that."""
    held = {"first": (3, 1), "middle": (3, 3), "last": (1, 3)}
    for stage, counts in held.items():
        job = sc.job("t5-small", "pp=3", stage=stage, microbatches=4)
        rows = job.rows.select("communication", where=lambda row: row.kind == "pipeline")
        own = [row for row in rows if row.collective.kind == "send-receive"]
        phases = ("forward", "backward_input")
        sent = tuple(sum(row.count for row in own if row.phase == phase) for phase in phases)
        assert sent == counts, stage
        summed = [(row.path, row.tensor) for row in rows if row.collective.kind == "all-reduce"]
        assert len(summed) == len(set(summed)), "what two uses of a weight give is added up there"


def test_the_first_trained_block_is_on_the_first_stage():
    """Below the first block nothing needs a gradient, so that it alone keeps less."""
    rows = {
        stage: sc.job("gpt2", "pp=3", {"b": 1}, stage=stage, train="lora:r=16,qkv", microbatches=4)
        for stage in ("first", "middle", "last")
    }
    counts = {
        stage: {r.part: int(job.value(r.count)) for r in job.rows.select("parameter", path="block")}
        for stage, job in rows.items()
    }
    assert counts["first"] == {"block.first": 1, "block": 3}
    assert counts["middle"] == counts["last"] == {"block.first": 0, "block": 4}


@pytest.mark.parametrize(("schedule", "layout"), [("dualpipe", "uneven"), ("zb-v", "even")])
def test_stages_together_do_the_work_of_the_model(schedule, layout):
    """Half of the microbatches pass either end of dualpipe; both ends hold the blocks of both."""
    options = {"schedule": schedule, "layout": layout}
    numbers = {"M": 24, "b": 1, "n_layers": 22 if layout == "uneven" else 24, "l": 128}
    jobs = {n: sc.job("gpt2", "pp=4", numbers, stage=n, **options) for n in Stage}
    whole = sc.job("gpt2", "", numbers).total("flops")
    first, middle, last = (job.total("flops") for job in jobs.values())
    assert first + 2 * middle + last == whole
    if schedule == "dualpipe":
        assert first == last
        assert jobs["first"].total("params") == jobs["last"].total("params")


@pytest.mark.parametrize(("precision", "size"), [("bf16-mixed", 4), ("bf16-accelerate", 2)])
def test_both_copies_of_a_stage_add_up_gradients_as_they_move(precision, size):
    """GPT-2's 12 blocks, two times 3 on an end, and both of what stands at the model's ends.

    A block has 12 e^2 + 13 e weights, the tables 50257 + 1024 rows of e, the last norm 2 e.
    """
    e = 768
    job = sc.job(
        "gpt2", "pp=4", {"b": 1, "l": 64, "M": 8}, schedule="dualpipe", precision=precision
    )
    rows = job.rows.select("communication", where=lambda row: row.tensor == "copies")
    held = 6 * (12 * e * e + 13 * e) + (50257 + 1024) * e + 2 * e
    assert [job.value(row.collective.message) for row in rows] == [size * held]


@pytest.mark.parametrize(
    ("strategy", "sent"),
    [
        ("tp=2,pp=2", {"send-receive": 64 * 768, "all-gather": 2 * 64 * 768}),
        ("tp=2,sp,pp=2", {"send-receive": 64 * 768}),
    ],
)
def test_stages_send_each_rank_s_part_once(strategy, sent):
    """64 positions of 768 in two bytes: half from each of two ranks, gathered there.

    Positions that are split already are sent as they are. Source: narayanan-2021, section 4.1.
    """
    job = sc.job("gpt2", strategy, {"b": 1, "l": 64}, scattered=True)
    rows = job.communication().rows.select("communication", where=lambda row: not row.per_step)
    moves = [row.collective for row in rows if row.origin == "pipeline"]
    assert {move.kind: job.value(move.message) for move in moves} == sent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpipe", "zb-v", "dualpipe"])
def test_one_stage_has_no_schedule(name):
    numbers = {"M": 4, "b": 1, "l": 128}
    alone, named = (
        sc.job("gpt2", text, numbers, schedule=chosen, system="h100")
        for text, chosen in (("", "1f1b"), ("pp=1", name))
    )
    for quantity in ("saved", "weight"):
        assert named.memory().total(quantity) == alone.memory().total(quantity)
    assert named.time().step == alone.time().step


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("t5-large", ["computes encoder.position", "last stage each hold table", "keeps memory"]),
        ("gpt2", ["last stage each hold table token"]),
        ("llama-3-8b", []),
    ],
)
def test_what_several_stages_have_is_told(name, told):
    """T5's distances are made before the blocks; Llama's angles hold no weights."""
    text = str(sc.job(name, "pp=2").table())
    lines = [line for line in text.splitlines() if "pipeline: " in line]
    assert len(lines) == len(told)
    assert all(words in line for words, line in zip(told, lines, strict=True))
    assert "pipeline: " not in str(sc.job(name, "pp=1").table())


@pytest.mark.parametrize("name", ["t5-small", "gpt2"])
def test_what_several_stages_hold_is_told_of_frozen_weights_too(name):
    """A frozen table stands at both ends, where nothing of it is added up."""
    job = sc.job(name, "pp=2", {"b": 1}, train="lora:r=4,block.attention.proj")
    text = " ".join(str(job.table()).split())
    assert "the first and the last stage each hold table token" in text
    assert ("every stage computes encoder.position" in text) == (name != "gpt2")
    assert "adds up their gradients" not in text
    assert not job.rows.select("communication", where=lambda row: row.per_step)


@pytest.mark.parametrize(
    ("strategy", "schedule"), [("", "1f1b"), ("pp=4", "1f1b"), ("pp=4", "dualpipe")]
)
def test_blocks_that_share_their_weights_hold_their_states_once(strategy, schedule):
    """ALBERT: 872 weights of all blocks, each with 2, 4, 4 and 8 bytes, however many blocks."""
    model = imported({"model_type": "albert", "embedding_size": 4, **SMALL}).model
    numbers = {"b": 1, "l": 16, "M": 8}
    job = sc.job(model, strategy, numbers, schedule=schedule, system="h100")
    for quantity, size in (("weight", 2), ("master_weight", 4), ("optimizer", 8)):
        own = job.memory_rows.select(quantity, path="block")
        assert job.value(own.total()) == size * (12 * 8 * 8 + 13 * 8)
    updated = states_of(Timed(job).setting, Stage.FIRST).rows()
    held = sum(job.value(row.total) for row in updated if row.part == "block")
    assert held == (4 + 8) * (12 * 8 * 8 + 13 * 8)


@pytest.mark.parametrize(
    ("strategy", "leading", "told"),
    [
        ("pp=4", 3, False),  # all of them on the first stage, which has four blocks
        ("pp=4", 6, True),
        ("pp=3", 6, False),  # the one stage between the others holds what it holds
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (("pp=2", 10, False), ("", 6, False), ("pp", 6, True))
        ),
    ],
)
def test_a_mean_of_blocks_that_lead_is_told(strategy, leading, told):
    """Of 16 blocks on four stages the second holds two of six that lead, and the third none."""
    layers = 12 if strategy == "pp=3" else 16
    job = sc.job("deepseek-v3", strategy, {"n_layers": layers, "n_dense": leading})
    mean = "stages between the first and the last hold the same share of dense.block"
    assert (mean in " ".join(str(job.table()).split())) is told
