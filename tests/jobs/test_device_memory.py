"""What a device shows of a job's memory, term by term."""

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.jobs.device_memory import DeviceMemory
from symbolic_cost.jobs.fit import fit
from symbolic_cost.jobs.job import job
from symbolic_cost.numeric.binding import value

MIB = 2**20


def device(stack="megatron-core", strategy="tp=4,sp,dp=2,zero=1", system="h100", **options):
    made = job(
        "gpt2",
        strategy,
        {"b": 1},
        **{
            "system": system,
            "stack": stack,
            "precision": "bf16-mixed",
            "global_batch": 8,
            **options,
        },
    )
    return DeviceMemory(made)


def sizes(found):
    return {term.name: term.size for term in found.terms}


def test_views_are_sums_of_terms():
    found = device()
    own = sizes(found)
    assert own["tensors at backward"] == max(p.size for p in fit(found.setup).peaks.values())
    assert own["workspaces of cuBLAS"] == 64 * MIB
    assert own["workspace of TransformerEngine"] == 32 * MIB + 1024
    # one communicator of 4 ranks, one of 2, one of all 8, inside a node
    assert own["buffers of NCCL"] == 3 * 72 * 9633792
    assert found.total("allocated") < found.total("reserved") < found.total("smi")
    assert found.total("smi") == sum(own.values())


def unused(setup):
    """Return the sizes of the rows of unused gradients."""
    rows = setup.stages_memory.table(setup.stage)
    return [value(setup.value(row.total)) for row in rows if row.path == "unused_gradients"]


def test_shared_weight_gradients():
    """One block of 768: q, k, v, projection and two of 3072, a quarter of each, two bytes.

    And the head, whose 50,257 words are padded to four ranks.
    """
    block, head = (4 * 768 * 768 + 2 * 768 * 3072) // 4, 768 * -(-50257 // 4)
    assert unused(device().setup) == [2 * (block + head)]
    assert unused(device("torchtitan").setup) == []


def test_experts_share_one_gradient():
    made = job(
        "qwen3-30b-a3b",
        "ep=8,dp=8,zero=1",
        {"b": 1, "l": 4096},
        system="b200",
        stack="nemo",
        precision="bf16-mixed",
        global_batch=8,
    )
    attention = 2048 * (32 * 128 * 2 + 4 * 128 * 2)
    wanted = 2 * (attention + 3 * 2048 * 768 + 2048 * 151936)
    assert unused(made) == [wanted]


def test_logits_and_rounding():
    """Where the loss is op by op its two gradients in single precision are in the tensors."""
    own, fused = (sizes(device(stack, "dp=8,zero=1")) for stack in ("fsdp", "unknown"))
    logits = 1024 * 50257
    (of_ops, *_), (of_one, *_) = own.values(), fused.values()
    assert of_ops - of_one == 6 * logits - 2 * 1024  # 12 at a time, not 6 and the loss's own
    assert 0 < own["blocks of 512 bytes"] < MIB
    assert own["workspaces of cuBLAS"] == 64 * MIB
    assert sizes(device(system="a100-80gb"))["workspaces of cuBLAS"] == 8 * MIB + 128 * 1024 + MIB


def test_refusals():
    with pytest.raises(InputError, match="is no GPU"):
        device("maxtext", "dp=8", system="tpu-v5e")
    with pytest.raises(InputError, match="needs a number for every symbol"):
        device(strategy="tp", global_batch=None)
    with pytest.raises(InputError, match="unknown view of memory 'top'"):
        device().setup.replace().device_memory("top")
