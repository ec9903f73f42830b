"""Models that are named by their configuration have the parameters that Transformers counts."""

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.jobs.job import job
from symbolic_cost.models.config import from_config
from symbolic_cost.models.published_size import configured
from symbolic_cost.references import REFERENCES


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("nemotron-3-nano", 31577937344),
        ("nemotron-3-super", 120668687360),
        ("qwen3-next-80b-a3b", 79674391296),
        ("deepseek-v4-flash", 284332230231),
    ],
)
def test_parameters(name, parameters):
    assert job(name).total("params") == parameters


def test_sources():
    assert all(one.source in REFERENCES for one in configured().values())


def test_a_latent_has_no_bias():
    config = {**configured()["nemotron-3-super"].config, "mlp_bias": True}
    with pytest.raises(InputError, match="only false is declared beside moe_latent_size"):
        from_config(config)
