"""Forecasters and further models of sound: what is refused, and work over ranks."""

import json

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError, PlacementError
from symbolic_cost.models.count import count
from tests.models.test_families_truth import TRUTH
from tests.models.test_sound_and_frames import changed, inside

NAMES = sorted(name for name, entry in TRUTH.items() if entry.get("category") == "series")
SMALL = sorted({name.rpartition(" ")[0]: name for name in NAMES[::-1]}.values())


CONFORMERS = (
    *("lasr_encoder", "lasr_ctc", "nemotron_asr_streaming", "nemotron_asr_streaming_encoder"),
    *("parakeet_rnnt", "parakeet_tdt"),
)
REFUSED = {
    "speecht5": ("tp=2",),
    **dict.fromkeys((*CONFORMERS, "chronos_bolt"), ("cp=2", "ulysses=2")),
}
"""Keys of distances are one table of all heads; convolutions run along positions, and a token that
ends the patches is joined to them."""


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (changed("timesfm2_5/TimesFm2_5Model 0", quantiles=[0.5]), "two or more are accepted"),
        (
            changed("timesfm2_5/TimesFm2_5Model 0", use_continuous_quantile_head=False),
            "use_continuous_quantile_head",
        ),
        (changed("pop2piano/Pop2PianoForConditionalGeneration 0", dense_act_fn="elu"), "dense_act"),
        (
            changed("speecht5/SpeechT5ForTextToSpeech 0", speech_decoder_postnet_kernel=4),
            "an odd kernel is accepted",
        ),
        (changed("patchtst/PatchTSTForPrediction 0", pooling_type="max"), "pooling_type.*mean"),
        (changed("patchtst/PatchTSTModel 0", channel_attention=True), "channel_attention"),
        (changed("patchtst/PatchTSTModel 0", use_cls_token=True), "use_cls_token"),
        (inside("clap/s0", "audio_config", patch_size=12), "steps of patch_size, 12"),
        (changed("encodec/s0", codebook_size=1), "a power of two"),
        (changed("mimi/s0", head_dim=1), "1 is no width of a head"),
    ],
)
def test_what_is_not_declared_is_refused(config, said):
    with pytest.raises(InputError, match=said):
        count(config, 1, 20)


def test_patches_beyond_the_context_are_said():
    config = changed("timesfm/TimesFmModelForPrediction 0", context_length=8, patch_length=4)
    assert count(config, 1, 2)["ignored"] is None
    assert "it holds 2 patches: 20 are counted" in count(config, 1, 20)["ignored"]


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        pytest.param(name, strategy, marks=() if (number + way) % 3 == 0 else pytest.mark.slow)
        for number, name in enumerate(SMALL)
        for way, strategy in enumerate(("tp=2", "cp=2", "ulysses=2"))
        if strategy not in REFUSED.get(name.partition("/")[0], ())
    ],
)
def test_ranks_together_do_the_whole_work(tmp_path, name, strategy):
    """Of every op a rank does a half, or more where the answer says that ranks repeat it."""
    path, (b, length, _) = tmp_path / "config.json", TRUTH[name]["forward"][0]
    path.write_text(json.dumps(TRUTH[name]["config"]))
    sizes = {"b": b} if name.startswith("patchtst") else {"b": b, "l": length}
    whole, half = (sc.job(str(path), text, sizes) for text in ("", strategy))
    numbers = sizes | whole.model.bindings | {"cp": 2, "s1": 2, "m1": 2}
    repeated = {row.path for row in half.repeated}

    def work(job):
        done = {}
        for row in job.rows.select("flop"):
            key = row.path, row.phase
            done[key] = done.get(key, 0) + sc.bind(row.total, numbers)
        return done

    alone, together = work(whole), work(half)
    assert together.keys() == alone.keys()
    for key, done in together.items():
        least = alone[key] / 2
        if key[0].endswith("norm"):  # one addition fewer in every half of a row
            continue
        # Of a loss over a divided vocabulary, maxima and sums of the shards are joined besides.
        more = key[0] in repeated or key[0] == "head.loss"
        assert least <= done <= (alone[key] if more else least), key


@pytest.mark.parametrize(
    ("name", "strategy", "said"),
    [
        ("speecht5/SpeechT5ForTextToSpeech 0", "tp=2", "all the work of encoder"),
        ("lasr_ctc/LasrForCTC 0", "cp=2", "the conv runs along it"),
        ("chronos_bolt/0", "cp=2", "the copy runs along it"),
    ],
)
def test_what_no_strategy_divides_is_refused(tmp_path, name, strategy, said):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TRUTH[name]["config"]))
    job = sc.job(str(path), strategy, {"b": 1, "l": 80})
    with pytest.raises(PlacementError, match=said):
        job.rows  # noqa: B018 - made when asked for
