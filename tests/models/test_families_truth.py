"""Configurations of the families that people run: exact, or refused; never wrong.

`families_truth.json` holds what PyTorch counts of small random and of published configurations:
parameters (two numbers where Transformers ties what the published file does not), FLOP of a forward
pass at two sizes, of training and of a decode step, and the elements of the cache.
`families_more.json` holds those of further families and heads, `families_images.json` those of
networks for images, recordings and diffusion, `families_detection.json` those of detectors, masks
and depths, `families_diffusion.json` those of further networks for diffusion, `families_wider.json`
those of decoders with further layers and of models that see, `families_perception.json` those of
further networks for images with fields changed one at a time, `families_seeing.json` those of
models that see, with many fields changed at once, whose training sees images too,
`families_text.json` those of further networks for texts, at random sizes; of LongCat-Flash with a
router whose choices fall on experts that compute in the mean share, and, as published, without the
weights that Transformers makes for those that do not;
`families_vision.json` those of further detectors, masks, depths and videos, with fields changed one
and many at a time. What a SAM 2 of videos runs there is one image, as Sam2Model does;
`families_denoisers.json` those of autoencoders and further networks for diffusion,
`families_latents.json` those of more of them, ControlNets and priors, whose fields were drawn,
`families_sound.json` those of codecs and further encoders of recordings, whose fields were drawn,
`families_recent.json` those of decoders of 2026, at small sizes,
`families_text_more.json` those of further networks for texts and recordings, at random sizes,
`families_further.json` those of further models that see, encoder-decoders and decoders;
`families_joint.json` those of networks for images, that see, and for diffusion, of which two to
five fields were changed at once, and heads, bare or tied, of other classes of their types;
`families_recurrences.json` those of xLSTM and ProphetNet, with every field changed and with several
drawn, `families_mended.json` those of untied heads, bare classes and values that were once
mistaken, `families_views.json` those of bare networks of detectors and of further networks for
images and diffusion, as they are and with several fields changed at once; `families_texts.json`
those of Qwen4-Exp, with one to five fields changed, and of mixtures whose files do not say which
layers are dense; `families_series.json` those of forecasters and of further models of sound, with
one to five fields changed; `families_embedders.json` those of models whose code is with their
weights and that embed or rank texts, of BigBird's blocks, of Chronos-Bolt, searched Nemotrons and
Sarvam's decoders, of which many fields were drawn; `families_drawn.json` those of which all fields
were drawn together.
`families_exact.txt` names those that are answered, so that none falls silently:
`python -m tests.models.test_families_truth` writes it anew.
"""

import json
from itertools import zip_longest
from pathlib import Path

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count

GOLDEN = Path(__file__).parents[1] / "golden"
TRUTH = {
    entry["id"]: entry
    for name in (
        *("families_truth.json", "families_more.json"),
        *("families_images.json", "families_detection.json", "families_diffusion.json"),
        *("families_wider.json", "families_perception.json", "families_seeing.json"),
        "families_text.json",
        "families_vision.json",
        *("families_denoisers.json", "families_latents.json", "families_sound.json"),
        *("families_recent.json", "families_text_more.json", "families_further.json"),
        *("families_joint.json", "families_recurrences.json", "families_mended.json"),
        *("families_views.json", "families_texts.json", "families_series.json"),
        *("families_embedders.json", "families_drawn.json"),
    )
    for entry in json.loads((GOLDEN / name).read_text(encoding="utf-8"))
}
APPROVED = GOLDEN / "families_exact.txt"
SAMPLE = sorted(TRUTH)[::28]


def differences(entry):
    """What is answered otherwise than PyTorch does, by quantity and size."""
    answers = {}

    def answer(b, l, images=0):
        if (b, l, images) not in answers:
            answers[b, l, images] = count(entry["config"], b, l, image_tokens=images)
        return answers[b, l, images]

    pictured = [tokens for tokens, _ in entry.get("images", ())]
    asked = [
        ("flops_fwd", (*case, tokens))
        for case, tokens in zip_longest(entry["forward"], pictured, fillvalue=0)
    ]
    asked += [
        ("flops_fwd", (b, l, blind, 0))
        for (b, l, _), (_, blind) in zip(entry["forward"], entry.get("images", ()), strict=False)
    ]
    asked += [
        (key, (*entry[name], 0)[:4])
        for name, key in (
            ("train", "flops_train"),
            ("decode", "flops_decode"),
            ("cache", "kv_cache_elements"),
        )
        if name in entry
    ]
    b, l, _ = entry["forward"][0]
    params = answer(b, l)["params"]
    wrong = {} if params in entry["params"] else {"params": (params, entry["params"])}
    return wrong | {
        f"{key} b={b} l={l} images={images}": (answer(b, l, images)[key], truth)
        for key, (b, l, truth, images) in asked
        if answer(b, l, images)[key] != truth
    }


def outcome(name):
    """Whether an entry is answered; it is never answered otherwise than PyTorch does."""
    try:
        wrong = differences(TRUTH[name])
    except InputError:
        return False
    assert not wrong
    return True


def approved():
    return set(APPROVED.read_text(encoding="utf-8").split("\n")) - {""}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_is_exact_or_refused(name):
    assert outcome(name) == (name in approved())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TRUTH.keys() - set(SAMPLE)))
def test_every_other_is_exact_or_refused(name):
    assert outcome(name) == (name in approved())


def test_nothing_else_is_approved():
    assert approved() <= TRUTH.keys()


if __name__ == "__main__":
    APPROVED.write_text("\n".join(sorted(filter(outcome, TRUTH))) + "\n", encoding="utf-8")
