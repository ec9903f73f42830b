"""What settings of a framework mean together: its defaults, and what several of them decide.

A format says of each key what it sets. What depends on several is decided here: of "said.NAME",
which a format collects for that alone, come strategies, policies and precisions of this library.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from symbolic_cost.importers.megatron import (
    OWN_LOSS,
    Refuse,
    Values,
    context_parallel,
    hidden,
    megatron,
    nemo,
    pad,
    padded,
    recomputed,
    settings,
)
from symbolic_cost.importers.sharding import FSDP, STATES, UPDATED, WEIGHTS, shards_of_fsdp
from symbolic_cost.importers.tuning import TUNERS
from symbolic_cost.models.fields import is_size


def deepspeed(values: Values, refuse: Refuse) -> None:
    """Complete a run of DeepSpeed: bytes of gradients by its defaults, what the host keeps.

    Gradients are kept in the type of the model under ZeRO, else in single precision; those of a
    rank's own shard are where the optimizer is.
    Source: github.com/deepspeedai/DeepSpeed, runtime/engine.py, get_data_types, and
    runtime/zero/stage_1_and_2.py, copy_grads_in_partition.
    """
    said = settings(values)
    if values.get("run.bf16") is True:
        usual = "bf16" if values.get("degrees.zero", 0) else "fp32"
        dtype = said.get("gradients") or usual
        names = {"bf16": "bf16-gradients", "fp32": "bf16-deepspeed"}
        values["run.policy"] = names.get(str(dtype))
        if values["run.policy"] is None:
            refuse("said.gradients", "bf16 and fp32 are read")
    types = (values.get("run.bf16"), values.get("run.fp16"))
    if types == (True, True):
        refuse("run.fp16", "bf16 or fp16 is read, not both")
    if "open" in types and True not in types:
        values["run.policy"] = "auto"
    if values.get("run.optimizer") == "sgd" and said.get("momentum"):
        values["run.optimizer"] = "momentum"
    stage = values.get("degrees.zero", 0)
    hosted = {"optimizer": "master_weight,optimizer" if stage == 1 else UPDATED}
    if stage == WEIGHTS:  # other stages do not read it
        hosted["weights"] = "weight"
    offloaded = [what for name, what in hosted.items() if said.get(name) in ("cpu", "nvme")]
    if offloaded and stage == 0:
        refuse("said.optimizer", "stages 1 to 3 keep states on the host")
    if offloaded:
        values["run.offload"] = ",".join(offloaded)


def megatron_lm(values: Values, refuse: Refuse) -> None:
    """Complete a run of Megatron-LM, or of Megatron-DeepSpeed, which is told to run DeepSpeed.

    Attention of the latter is fused where it is told to be.
    Source: github.com/deepspeedai/Megatron-DeepSpeed, megatron/arguments.py.
    """
    megatron(values, refuse)
    said = settings(values)
    waits = said.get("blocking") not in (None, 0)
    if said.get("deepspeed") is not True:
        if waits:
            known = "steps that wait for every kernel are known of Megatron-DeepSpeed alone"
            values["note.blocking"] = f"CUDA_LAUNCH_BLOCKING is not read: {known}"
        return
    if "config.num_experts" in values:
        refuse("config.num_experts", "experts of Megatron-DeepSpeed are not read")
    deepspeed(values, refuse)
    values["run.stack"] = "megatron-deepspeed" + "-blocking" * waits
    values["run.attention"] = "flash" if said.get("flash") is True else "eager"
    del values["run.overlap"]


_OTHER_KINDS = re.compile("|NO|False|MULTI_[A-Z]+|XLA|MEGATRON_LM")  # YAML reads NO as false


def accelerate(values: Values, refuse: Refuse) -> None:
    """Complete a run of accelerate: weights are in single precision, and cast for computing.

    FSDP shards them, DeepSpeed gradients and states, where nothing is said.
    Source: github.com/huggingface/accelerate, src/accelerate/utils/dataclasses.py.
    """
    said = settings(values)
    kind = str(said.get("kind", ""))
    sharding = {"FSDP": WEIGHTS, "DEEPSPEED": WEIGHTS - 1}
    if kind != "DEEPSPEED":
        shards_of_fsdp(values, said, refuse)
    if kind in sharding:
        values.setdefault("degrees.zero", sharding[kind])
    elif not _OTHER_KINDS.fullmatch(kind):
        refuse("said.kind", f"{', '.join(sharding)}, MEGATRON_LM, MULTI_GPU, XLA and NO are read")
    elif kind not in ("", "MEGATRON_LM") and values.get("degrees.zero"):
        refuse("degrees.zero", f"{kind} keeps no shards: FSDP does")
    if kind == "DEEPSPEED":
        _deepspeed_of_accelerate(values, refuse)
        return
    values |= {"run.stack": "fsdp"} if kind == "FSDP" else {}
    if kind == "MEGATRON_LM":
        _megatron_of_accelerate(values, said, refuse)
    elif values.get("run.precision") in ("bf16", "fp16"):
        sharded = kind == "FSDP"  # gradients are reduced in what it computes in
        values["run.policy"] = "bf16-accelerate" if sharded else "bf16-fsdp"  # or fp16's as many
    if said.get("offload") is True:
        values["run.offload"] = STATES


def _deepspeed_of_accelerate(values: Values, refuse: Refuse) -> None:
    """Say what DeepSpeed computes in by accelerate's name."""
    precise = values.pop("run.precision", "fp32")
    if precise in ("bf16", "fp16"):
        values[f"run.{precise}"] = True
    elif precise != "fp32":
        refuse("run.precision", "bf16, fp16 and no are read")
    deepspeed(values, refuse)


def _megatron_of_accelerate(values: Values, said: Values, refuse: Refuse) -> None:
    """Say what Megatron-LM does of itself where accelerate's file is silent."""
    context_parallel(values, "p2p", refuse)
    recomputed(values, said, refuse)
    values |= {"run.stack": OWN_LOSS, "run.overlap": hidden(values, said)}
    if said.get("hosted") is True:
        values["run.offload"] = "master_weight,optimizer"


def nanotron(values: Values, refuse: Refuse) -> None:
    """Complete a run of nanotron: gradients in single precision unless it says otherwise.

    Source: github.com/huggingface/nanotron, config/parallelism_config.py.
    """
    said = settings(values)
    if said.get("again") is True:
        values["run.recompute"] = "full"
    schedules = {"1f1b": "1f1b", "afab": "gpipe"}
    engine = said.get("engine", "afab")
    if engine not in schedules:
        refuse("said.engine", f"{', '.join(schedules)} are read")
    if values.get("degrees.pp", 1) != 1:
        values["run.schedule"] = schedules.get(engine, "gpipe")
    if values.get("run.precision") == "bfloat16" and said.get("fp32_gradients") is False:
        values["run.policy"] = "bf16-gradients"
    pad(values, 1)


def calculon(values: Values, refuse: Refuse) -> None:  # noqa: ARG001 - as its neighbours
    """Complete a run of Calculon: chunks of its stages, and what it keeps on the host."""
    said = settings(values)
    if is_size(said.get("chunks")) and said["chunks"] > 1:
        values["run.chunks"] = said["chunks"]
    hosted = {"weights": "weight", "activations": "saved", "optimizer": UPDATED}
    offloaded = [what for name, what in hosted.items() if said.get(name) is True]
    if offloaded:
        values["run.offload"] = ",".join(offloaded)
    padded(values)


_TITANS = ("torchtitan", "torchtitan-compiled")


def torchtitan(values: Values, refuse: Refuse) -> None:
    """Complete a run of torchtitan, with the defaults of its job configuration.

    Source: github.com/pytorch/torchtitan, torchtitan/config/job_config.py.
    """
    said = settings(values)
    parts = str(said.get("components", "model,loss")).split(",")
    values["run.stack"] = _TITANS[said.get("compiled") is True and "model" in parts]
    mode, option = values.get("run.recompute", "selective"), str(said.get("selective", "2"))
    if mode == "selective":
        values["run.recompute"] = {"op": "selective-op", "1": "full"}.get(option)
        if values["run.recompute"] is None:
            values["run.recompute"] = f"selective, option {option}"
    precise = values.pop("run.precision", "bfloat16")
    reduced = str(said.get("reduced", "float32"))
    policies = {
        ("bfloat16", "float32"): "bf16-fsdp",
        ("bfloat16", "bfloat16"): "bf16-accelerate",
        ("float32", "float32"): "fp32",
    }
    values["run.policy"] = policies.get((str(precise), reduced))
    if values["run.policy"] is None:
        what = "run.precision" if reduced == "float32" else "said.reduced"
        refuse(what, "bfloat16 and float32 are read")
    converters = str(said.get("converters", ""))
    if "float8" in converters and said.get("gathers_fp8") is True and reduced == "float32":
        values["run.policy"] = "fp8-linear"
    elif converters:
        accepted = "float8 with enable_fsdp_float8_all_gather, reduced in float32, is read"
        refuse("said.converters", accepted)
    _titan_shards(values, said, refuse)
    schedule = str(said.get("schedule", "1F1B"))
    named = {"1F1B": "1f1b", "GPipe": "gpipe", "ZBVZeroBubble": "zb-v"}
    chunks = _titan_chunks(values, said, schedule, refuse)
    if values.get("degrees.pp", 1) == 1:
        pass  # one stage has no schedule
    elif schedule == "Interleaved1F1B":
        values["run.chunks"] = chunks
    elif schedule in named:
        values["run.schedule"] = named[schedule]
    else:
        refuse("said.schedule", f"{', '.join(named)} and Interleaved1F1B are read")
    _titan_stages(values, said, refuse)
    if said.get("offload") is True:
        values["run.offload"] = STATES


_ENDS = ("first_less", "last_less")


def _titan_shards(values: Values, said: Values, refuse: Refuse) -> None:
    """Say whether weights stay whole after forward; by default those of a pipeline do."""
    stays = {"always": False, "never": True, "default": values.get("degrees.pp", 1) != 1}
    after = str(said.get("regathers", "default"))
    if after not in stays:
        refuse("said.regathers", f"{', '.join(stays)} are read")
    elif values.get("degrees.zero") and stays[after]:
        values |= FSDP["SHARD_GRAD_OP"]


def _titan_chunks(values: Values, said: Values, schedule: str, refuse: Refuse) -> int:
    """Return chunks of a stage: as many as layers of a chunk make, ends counted as some."""
    usual = 1 if schedule in ("1F1B", "GPipe") else 2
    each: Any = said.get("layers_per_stage")
    layers: Any = values.get("config.num_hidden_layers")
    stages = values.get("degrees.pp", 1)
    if stages == 1 or not (is_size(each) and is_size(layers)):
        return usual
    counted = layers + sum(end for end in _titan_ends(said) if is_size(end))
    chunks, left = divmod(-(-counted // each), stages)
    if left or chunks < usual or (chunks > usual and schedule != "Interleaved1F1B"):
        most = " or more" if schedule == "Interleaved1F1B" else ""
        refuse("said.layers_per_stage", f"{usual}{most} for each of {stages} stages is read")
        return usual
    return int(chunks)


def _titan_ends(said: Values) -> list[Any]:
    """Return as how many layers the embedding and the head count."""
    return [said.get(name, 1) for name in _ENDS]


def _titan_stages(values: Values, said: Values, refuse: Refuse) -> None:
    """Say how many blocks stages hold: ends count as one more, what is left goes to the first ones.

    Source: github.com/pytorch/torchtitan, torchtitan/distributed/pipeline_parallel.py.
    """
    layers, stages = values.get("config.num_hidden_layers", 0), values.get("degrees.pp", 1)
    ends = _titan_ends(said)
    if stages == 1 or not is_size(layers):
        return
    single = values.get("run.schedule") in ("1f1b", "gpipe")
    slots = stages * (1 if single else values.get("run.chunks", 2))
    whole = [end if is_size(end) else 0 for end in ends]
    each, left = divmod(layers + sum(whole), slots)
    wrong = [name for name, end in zip(_ENDS, ends, strict=True) if end not in range(each + 1)]
    for name in wrong if each else ():
        refuse(f"said.{name}", f"0 to {each} are read, as many as a stage holds")
    if not each:
        refuse("degrees.pp", f"{layers} blocks do not fill {slots} stages")
    if wrong or not each:
        return
    held = [each + (slot < left) for slot in range(slots)]
    held = [held[0] - ends[0], *held[1:-1], held[-1] - ends[1]]
    values["run.layout"] = f"blocks {held}" if left else f"ends={ends[0]}/{ends[1]}"


COMPLETIONS: Mapping[str, Callable[[Values, Refuse], None]] = {
    "Megatron-LM": megatron_lm,
    "NeMo": nemo,
    "nanotron": nanotron,
    "DeepSpeed": deepspeed,
    "accelerate": accelerate,
    "torchtitan": torchtitan,
    "Calculon": calculon,
    "llm-analysis": lambda values, _: padded(values),
    **TUNERS,
}
"""By the name of a format."""
