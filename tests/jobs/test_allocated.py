"""What Megatron-LM's runs on B200 allocated, beside what their launch scripts say they take."""

import json
from pathlib import Path

import pytest

import symbolic_cost as sc
from symbolic_cost.jobs.device_memory import DeviceMemory

TRUTH = json.loads((Path(__file__).parents[1] / "golden" / "allocated_on_gpus.json").read_text())
GIB = 2**30


@pytest.mark.slow
@pytest.mark.parametrize("run", TRUTH["runs"], ids=lambda run: f"{run['model']}, {run['shape']}")
def test_megatron_on_b200(run, tmp_path):
    """Nothing is fitted: within 1.5 %, half a per cent in the mean."""
    file = tmp_path / "run.sh"
    file.write_text(run["flags"])
    taken = DeviceMemory(sc.job(str(file), system="b200")).total("allocated")
    assert taken / GIB == pytest.approx(run["allocated"], rel=0.015)


def test_unused_gradients_and_loss_are_the_stacks(tmp_path):
    """Without TransformerEngine's loss likelihoods stay in single precision: 6 bytes for 2.

    With it a block's backward pass holds most, 64 MiB more than the head's.
    """
    file = tmp_path / "run.sh"
    text = TRUTH["runs"][0]["flags"].replace("--pipeline-model-parallel-size 2", "")
    sizes = []
    for flags in (text, text.replace("--cross-entropy-loss-fusion", "")):
        file.write_text(flags)
        sizes.append(DeviceMemory(sc.job(str(file), system="b200")))
    own = sizes[1].total("allocated") - sizes[0].total("allocated")
    assert own + 64 * 2**20 == pytest.approx(4 * 4096 * 128256, rel=1e-3)
