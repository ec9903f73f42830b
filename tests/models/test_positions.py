"""Sequences beyond a learned table of positions: PyTorch has no row for them, which is said."""

import pytest

from symbolic_cost.models.count import count
from tests.models.test_families_truth import TRUTH

MOST = {
    **dict.fromkeys(("bert", "albert", "electra", "distilbert", "dpr", "layoutlm", "xlm"), 512),
    # Those of Roberta's kind begin behind the row of padding, which is 0 in these files.
    **dict.fromkeys(("ibert", "luke", "longformer", "markuplm", "lilt"), 511),
    **dict.fromkeys(("biogpt", "bart", "mvp", "pegasus", "marian", "fnet"), 512),
    "mpnet": 510,
    "esm": 510,
    "opt": 2048,
    "gpt2": 1024,
    "gpt_neo": 256,
    "roberta": 512,
    "clip_text_model": 77,
    "layoutlmv3": 127,
    "gpt_bigcode": 512,
    "camembert": 512,
    # One text beside an image.
    "vilt": 40,
    "clipseg": 40,
}
"""The longest sequence that Transformers' model of a type runs, of the first file below."""

FREE = ("tapas", "fsmt", "llama")
"""Types without such a table, or whose positions begin anew."""


def configured(kind):
    return next(e["config"] for e in TRUTH.values() if e["config"].get("model_type") == kind)


def said(kind, length):
    ignored = count(configured(kind), 1, length)["ignored"] or ""
    return "learned positions: the table has" in ignored


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "opt" else pytest.mark.slow) for kind in MOST]
)
def test_the_first_position_without_a_row_is_said(kind):
    assert [said(kind, MOST[kind]), said(kind, MOST[kind] + 1)] == [False, True]


@pytest.mark.parametrize("kind", FREE)
def test_nothing_is_said_where_positions_are_computed(kind):
    assert not said(kind, 100_000)


def test_counts_stay():
    config = configured("gpt2")
    beyond, within = (count(config, 1, length)["params"] for length in (5000, 64))
    assert beyond == within
