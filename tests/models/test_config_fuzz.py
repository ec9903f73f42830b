"""Whatever a configuration holds, it is counted or refused: nothing else is ever raised."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count

GOLDEN = Path(__file__).parents[1] / "golden" / "public_configs.json"
PUBLIC = [entry["config"] for entry in json.loads(GOLDEN.read_text(encoding="utf-8")).values()]

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**5)
    | st.sampled_from([10**30, -(10**30), "sliding_attention", "gelu", float("nan"), float("inf")])
    | st.floats()
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@st.composite
def spoilt(draw):
    """A public configuration of which up to three keys are changed or left out."""
    config = dict(draw(st.sampled_from(PUBLIC)))
    for key in draw(st.lists(st.sampled_from(sorted(config)), max_size=3)):
        if draw(st.booleans()):
            config.pop(key, None)
        else:
            config[key] = draw(values)
    return config


def counts_of(config):
    """The counts, or None if the configuration is refused."""
    try:
        return count(config, 2, 16)
    except InputError:
        return None


@pytest.mark.slow
@settings(max_examples=25)
@given(spoilt())
def test_counts_or_refuses(config):
    counts = counts_of(config)
    assert counts is None or 0 < counts["params_active"] <= counts["params"]


@given(st.dictionaries(st.text(), values))
def test_refuses_what_is_no_model(config):
    assert counts_of({"model_type": "llama", **config}) is None
