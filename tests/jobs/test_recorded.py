"""Rows of measured runs are the jobs that ran; what cannot be expressed is listed with why."""

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.jobs.recorded import recorded_runs
from symbolic_cost.jobs.recorded_row import catalogue_name

HEADER = (
    "id,source,system,gpus,framework,model,n_layers,hidden,heads,kv_heads,ffn,gated,vocab,seq,"
    "tp,sp,pp,vpp,cp,ep,dp,zero,micro_batch,global_batch,recompute,precision,measured_step_s"
)
LLAMA = "a,s,h100,64,NeMo 24.07,llama3-70b,,,,,,,,8192,4,1,8,5,1,1,2,1,1,128,none,fp8,8.6"
BY_SIZES = (
    "b,s,a100-80gb,16,Megatron-LM,mine,4,1024,16,16,4096,0,50257,2048,"
    "4,0,2,1,1,1,2,0,4,64,full,fp16,1.5"
)
MIXTURE = "c,t,gb300-nvl72,256,NeMo,DeepSeek-V3,,,,,,,,4096,1,0,2,8,1,32,128,1,1,4096,,mxfp8,10.4"
UNKNOWN = "d,t,gb300-nvl72,256,NeMo,deepseek-v9,,,,,,,,4096,1,0,2,8,1,32,128,1,1,4096,,nvfp4,10.4"


def rows(tmp_path, *lines, header=HEADER):
    path = tmp_path / "runs.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return recorded_runs(path)


def test_checkpoints_of_pytorch_run_again_what_backward_needs(tmp_path):
    """They stop early since 2.1: after LLM Foundry's runs of a100-40gb, and never Megatron's."""
    lines = [
        BY_SIZES.replace("b,s,a100-80gb", f"{place},s,{system}").replace("Megatron-LM", name)
        for place, (system, name) in enumerate(
            [("h100", "torchtitan"), ("h100", "LLM Foundry"), ("a100-40gb", "LLM Foundry")]
        )
    ]
    found = rows(tmp_path, *lines, BY_SIZES)
    policies = [run.job.training.recompute.name for run in found.expressed]
    assert policies == ["needed", "needed", "full", "full"]


def test_rows_are_jobs(tmp_path):
    found = rows(tmp_path, LLAMA, BY_SIZES, MIXTURE, UNKNOWN)
    llama, sizes, mixture = found.expressed
    assert str(llama.job.strategy) == "tp=4,sp,dp=2,pp=8,zero=1"
    assert (llama.job.training.schedule, llama.job.values["v"]) == ("interleaved", 5)
    assert llama.job.training.precision == "fp8-params"  # as NeMo trains in 8 bits
    assert llama.job.methods.stack.name == "nemo"
    assert sizes.job.values["V"] == 50688  # 50257 to a multiple of 4 ranks x 128
    assert any("padded to a multiple of 512" in line for line in sizes.assumed)
    assert sizes.job.methods.stack.name == "megatron-2021"
    assert mixture.job.trained.layout == "uneven"  # 61 blocks in 2 stages of 8 chunks
    assert mixture.job.training.precision == "mxfp8"
    assert any("nothing is recomputed" in line for line in mixture.assumed)
    assert found.refused.keys() == {"d"}
    assert "unknown model 'deepseek-v9': did you mean deepseek-v3" in found.refused["d"]


def test_large_runs_of_bigscience_wait_for_every_kernel(tmp_path):
    """Those of 320 devices hung otherwise, those of one node did not."""
    small = BY_SIZES.replace("Megatron-LM", "Megatron-DeepSpeed (BigScience fork)")
    large = small.replace("b,s,a100-80gb,16", "c,s,a100-80gb,320").replace(
        ",2,0,4,64,", ",40,0,4,320,"
    )
    found = rows(tmp_path, small, large.replace("fp16", "bf16"))
    names = [run.job.methods.stack.name for run in found.expressed]
    assert names == ["megatron-deepspeed", "megatron-deepspeed-blocking"]
    assert found.expressed[1].job.training.precision == "bf16-deepspeed"


def test_names_however_they_are_punctuated():
    assert catalogue_name("Llama3-70B") == "llama-3-70b"
    assert catalogue_name("llama3.1-405b") == "llama-3-405b"
    assert catalogue_name("Qwen3_30B_a3B") == "qwen3-30b-a3b"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("zero,", "level,"), []),
        (("seq,", "words,"), ["column 'seq' is missing"]),
        (("measured_step_s", "took"), ["no column is measured: measured_step_s"]),
        ((",8.6", ",nan"), ["row 1: measured_step_s is 'nan': a positive number is accepted"]),
        ((",8.6", ",-1"), ["row 1: measured_step_s is '-1'"]),
        (("\na,", "\nb,"), ["id 'b' stands 2 times"]),
    ],
)
def test_bad_tables(tmp_path, change, said):
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEADER}\n{LLAMA}\n{BY_SIZES}\n".replace(*change))
    if not said:
        assert recorded_runs(path).expressed
        return
    with pytest.raises(InputError) as caught:
        recorded_runs(path)
    assert all(part in str(caught.value) for part in said)


def test_all_problems_at_once(tmp_path):
    with pytest.raises(InputError) as caught:
        rows(tmp_path, LLAMA.replace(",8.6", ",inf"), BY_SIZES.replace(",1.5", ",x"), LLAMA)
    assert len(caught.value.problems) == 3  # two numbers, one name twice
    with pytest.raises(InputError, match="row 2: is row 1 once more"):
        rows(tmp_path, LLAMA, LLAMA)


def test_other_units(tmp_path):
    """8600 ms written as seconds contradict the tokens per second that the row prints, too."""
    header = HEADER + ",tokens_per_s_per_gpu"
    assert rows(tmp_path, LLAMA + ",1905", header=header).expressed
    with pytest.raises(InputError, match=r"are the units the same\?"):
        rows(tmp_path, LLAMA.replace(",8.6", ",8600") + ",1905", header=header)


def test_why_a_row_is_refused(tmp_path):
    reasons = [
        ("64,NeMo", "63,NeMo", "another number of ranks than gpus = 63"),
        (",none,", ",sparse,", "unknown recompute policy 'sparse'"),
        (",1,128,none", ",,128,none", "micro_batch is not printed"),
        ("fp8", "fp9", "unknown precision 'fp9'"),
        ("h100", "h101", "unknown machine 'h101'"),
    ]
    for old, new, reason in reasons:
        assert reason in rows(tmp_path, LLAMA.replace(old, new)).refused["a"]


def test_experts_on_tensor_parallel_ranks(tmp_path):
    """64 expert-parallel ranks of 32 x 2 hold whole experts where they split positions."""
    line = "e,t,gb200-nvl72,64,NeMo,qwen3-30b-a3b,,,,,,,,8192,2,1,1,1,1,64,32,1,1,512,,mxfp8,9.9"
    (run,) = rows(tmp_path, line).expressed
    assert str(run.job.strategy) == "tp=2,sp,spread,ep=32,dp=32,zero=1"
    (run,) = rows(tmp_path, line.replace("8192,2,1,1", "8192,2,0,1")).expressed
    assert str(run.job.strategy) == "tp=2,ep=32,dp=32,zero=1"
    assert any("the 2 beyond data-parallel ones" in said for said in run.assumed)


def test_a_local_batch_is_split_into_as_many_microbatches_as_stages(tmp_path):
    line = "t,x,h100,512,torchtitan,llama3-70b,,,,,,,,8192,8,1,8,1,1,1,8,3,1,256,full,bf16,9.9"
    said = "local batch 32 split into pipeline microbatches (1 assumed)"
    header, row = f"{HEADER},assumed", f"{line},{said}"
    (run,) = rows(tmp_path, row, header=header).expressed
    assert (run.job.values["b"], run.job.value(run.job.training.microbatches)) == (4, 8)
    assert any("as many microbatches as stages" in one for one in run.assumed)
    (run,) = rows(tmp_path, line).expressed
    assert run.job.values["b"] == 1


def test_tensor_parallel_ranks_of_maxtext_split_the_residual_stream(tmp_path):
    """Its features, which takes the room and the messages of split positions."""
    row = BY_SIZES.replace("a100-80gb", "tpu-v5p").replace("Megatron-LM", "MaxText")
    row = row.replace("fp16", "bf16").replace("4,0,2,1,1,1,2", "4,0,1,1,1,1,4")
    (run,) = rows(tmp_path, row).expressed
    assert str(run.job.strategy) == "tp=4,sp,dp=4"


def test_what_is_assumed_is_told_once(tmp_path):
    (run,) = rows(tmp_path, BY_SIZES.replace("Megatron-LM", "")).expressed
    assert len(run.assumed) == len(set(run.assumed)) > 0
