"""What settings of axolotl, Hugging Face's Trainer, LLM Foundry and MaxText mean together.

Their files name a model, or say its sizes; how many ranks there are they leave to who starts them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from symbolic_cost.errors import quote
from symbolic_cost.importers.megatron import Refuse, Values, settings
from symbolic_cost.importers.sharding import STATES, WEIGHTS, shards_of_fsdp
from symbolic_cost.models.configfile import is_folder
from symbolic_cost.models.fields import is_size
from symbolic_cost.models.sources import document
from symbolic_cost.reading import package_data

_OPEN = "auto"
"""A precision that depends on versions, or on the compiler: it is asked for where bytes are."""


def base(values: Values, folder: Path, refuse: Refuse) -> None:
    """Take the model that a file names: of a folder beside it, or one that is known.

    Args:
        values: by target; "said.base" is the name.
        folder: of the file.
        refuse: notes a problem.
    """
    name = str(values["said.base"])
    if any(target.startswith("config.") for target in values):  # of another file
        return
    records = package_data("importers/bases.toml").values()
    known = {one: record["config"] for record in records for one in record["names"]}
    config: Mapping[str, Any] | None = known.get(name)
    if config is not None:
        config = {"model_type": "llama", "tie_word_embeddings": False, **config}
    elif is_folder(str(folder / name)):
        config = document(folder / name).values
    if config is None:
        beside = f"its config.json in a folder {quote(name)} beside the file, or given as well"
        refuse("said.base", f"no model of that name is known: {beside}, is read")
    values |= {f"config.{key}": value for key, value in (config or {}).items()}


# ---------------------------------------------------------------------- axolotl


def axolotl(values: Values, refuse: Refuse) -> None:
    """Complete a run of axolotl: what FSDP shards, what adapters train.

    FSDP has weights in single precision and reduces gradients in 16 bits; elsewhere it depends on
    versions which weights stay in 16 bits.
    Source: github.com/axolotl-ai-cloud/axolotl, src/axolotl/utils/schemas/config.py.
    """
    said = settings(values)
    sharded = _sharded(values, said, refuse)
    sixteen = [name for name in ("bf16", "fp16", "bfloat16", "float16") if said.get(name) is True]
    whole = sharded and "adapter" not in said and sixteen in (["bf16"], ["fp16"])
    values["run.policy"] = "bf16-accelerate" if whole else _OPEN if sixteen else "fp32"
    if said.get("deepspeed"):  # by whose rules the types of states go
        values |= {f"run.{name}": True for name in sixteen}
        del values["run.policy"]
    kernels = [kernel for kernel in ("flash", "eager") if said.get(f"runs_{kernel}") is True]
    if len(kernels) > 1:
        refuse("said.runs_eager", "flash_attention is on as well: one kernel is read")
    for kernel in kernels:
        values["run.attention"] = kernel
    if "adapter" in said:
        values["run.train"] = _adapters(said, refuse)


def _sharded(values: Values, said: Values, refuse: Refuse) -> bool:
    """Say what FSDP shards, if it is on."""
    named = [word for word in str(said.get("fsdp") or "").replace(" ", ",").split(",") if word]
    if not named and said.keys().isdisjoint(("sharding", "after", "offload")):
        return False
    strategies = {"full_shard": "FULL_SHARD", "shard_grad_op": "SHARD_GRAD_OP"}
    for word in named:
        if word in strategies:
            said.setdefault("sharding", strategies[word])
        elif word not in ("auto_wrap", "offload"):
            refuse("said.fsdp", f"{', '.join(strategies)}, auto_wrap and offload are read")
    if said.get("deepspeed"):
        refuse("said.deepspeed", "fsdp is said as well: one of the two is read")
    shards_of_fsdp(values, said, refuse)
    values.setdefault("degrees.zero", WEIGHTS)
    values["run.stack"] = "fsdp"
    if said.get("offload") is True or "offload" in named:
        values["run.offload"] = STATES
    return True


def _adapters(said: Values, refuse: Refuse) -> str:
    """Return what is trained, in the words of the option train."""
    kind, four = said["adapter"], said.get("four_bits") is True
    if kind not in ("lora", "qlora"):
        refuse("said.adapter", "lora and qlora are read")
    if not is_size(said.get("rank")):
        refuse("said.adapter", "lora_r says its rank: give it")
    if (kind == "qlora") is not four:
        refuse("said.adapter", "qlora is with load_in_4bit, and lora without it")
    names = ["all-linear"] if said.get("linear") is True else []
    names += [name for name in str(said.get("targets") or "").split(",") if name]
    if len(names) != len({*names}) or ("all-linear" in names and len(names) > 1):
        refuse("said.targets", "names, each once, or lora_target_linear alone are read")
    if not names:
        refuse("said.adapter", "lora_target_linear or lora_target_modules say where: give one")
    frozen = "+frozen:nf4" if four else ""
    return f"lora:r={said.get('rank')},{','.join(names)}{frozen}"


# ---------------------------------------------------------------------- Trainer


def trainer(values: Values, refuse: Refuse) -> None:
    """Complete a run of Hugging Face's Trainer, as TRL's scripts start it: axolotl runs it as well.

    What computes again where the file is silent depends on the script; nothing is taken. The types
    of weights and gradients are those of a file of accelerate, if one is given.
    Source: github.com/huggingface/transformers, src/transformers/training_args.py;
    github.com/huggingface/trl, trl/trainer/model_config.py and sft_config.py.
    """
    said, policy = settings(values), values.get("run.policy")
    if said.get("four_bits") is True and "adapter" in said:
        values["said.adapter"] = "qlora"
    elif said.get("four_bits") is True:
        refuse("said.four_bits", "with adapters, of use_peft, it is read")
    axolotl(values, refuse)
    values |= {} if policy is None else {"run.policy": policy}
    if "run.recompute" not in values:
        silent = "of gradient_checkpointing the file says nothing"
        values["note.recompute"] = f"nothing is taken to run again: {silent}"


# ---------------------------------------------------------------------- LLM Foundry


def llm_foundry(values: Values, refuse: Refuse) -> None:
    """Complete a run of LLM Foundry: an MPT by its sizes, what FSDP shards.

    An MPT has biases and learned positions unless it says otherwise; the one with both is a GPT-2,
    the one with neither, whose heads have slopes, the MPT of a config.json.
    Source: github.com/mosaicml/llm-foundry, llmfoundry/models/mpt/configuration_mpt.py.
    """
    said = settings(values)
    if said.get("name") == "mpt_causal_lm":
        values |= {f"config.{key}": value for key, value in _mpt(said, refuse).items()}
    elif said.get("name") != "hf_causal_lm":
        refuse("said.name", "mpt_causal_lm and hf_causal_lm are read")
    values.setdefault("run.sequence", said.get("positions", 2048))
    sharded = "sharding" in said
    shards_of_fsdp(values, said, refuse)
    if sharded:
        values["run.stack"] = "fsdp"
    precise, mixed = str(said.get("precision", "amp_bf16")), str(said.get("mixed", "DEFAULT"))
    if precise not in ("amp_bf16", "amp_fp16", "fp32"):
        refuse("said.precision", "amp_bf16, amp_fp16 and fp32 are read")
    reduced = "bf16-accelerate" if mixed.upper() == "PURE" else _OPEN
    alone = "fp32" if precise == "fp32" else "bf16-fsdp"
    values["run.policy"] = reduced if sharded and precise != "fp32" else alone


_MPT = {"d_model": 2048, "n_heads": 16, "n_layers": 24, "vocab_size": 50368, "positions": 2048}


def _mpt(said: Values, refuse: Refuse) -> Mapping[str, Any]:
    """Return the configuration of an MPT; what another one would need is refused."""
    width, heads, layers, words, rows = (said.get(name, usual) for name, usual in _MPT.items())
    ratio, slopes = said.get("ratio", 4), said.get("alibi") is True
    bare = said.get("no_bias") is True
    sizes = {"said.d_model": width, "said.ratio": ratio, "said.positions": rows}
    for target in (name for name, size in sizes.items() if not is_size(size)):
        refuse(target, "a positive integer is read")
        return {}
    if bare is not slopes or said.get("learned") is slopes:
        accepted = "one with biases and learned positions, or with alibi and no_bias"
        refuse("said.name", f"{accepted}, is read")
    drops = {name: said.get(f"drop_{name}", 0.0) for name in ("resid", "emb", "attn")}
    if not slopes:
        return {
            "model_type": "gpt2",
            "activation_function": "gelu",
            "n_embd": width,
            "n_head": heads,
            "n_layer": layers,
            "n_inner": ratio * width,
            "n_positions": rows,
            "vocab_size": words,
            "resid_pdrop": drops["resid"],
            "embd_pdrop": drops["emb"],
            "attn_pdrop": drops["attn"],
        }
    return {
        "model_type": "mpt",
        "d_model": width,
        "n_heads": heads,
        "n_layers": layers,
        "expansion_ratio": ratio,
        "max_seq_len": rows,
        "vocab_size": words,
        "no_bias": True,
        "resid_pdrop": drops["resid"],
        "emb_pdrop": drops["emb"],
        "attn_config": {"alibi": True, "attn_pdrop": drops["attn"]},
    }


# ---------------------------------------------------------------------- MaxText

_LLAMA = {
    "hidden_size": 2048,
    "intermediate_size": 7168,
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 128,
    "vocab_size": 32000,
}
"""What a file of MaxText departs from (base.yml)."""


def maxtext(values: Values, refuse: Refuse) -> None:
    """Complete a run of MaxText: its own Llama, or one that it names; data-parallel ranks.

    Where a device has a part of a sequence alone, shards are no tensor-parallel ones of this
    library; one slice is taken where no number of them is said.
    Source: github.com/AI-Hypercomputer/maxtext, src/MaxText/configs/base.yml.
    """
    said = settings(values)
    if "base" not in said:
        values |= {f"config.{key}": values.get(f"config.{key}", n) for key, n in _LLAMA.items()}
        values |= {"config.model_type": "llama"}
        values.setdefault("config.tie_word_embeddings", False)
    devices = said.get("per_device", 12)
    if not (isinstance(devices, int | float) and devices >= 1 and int(devices) == devices):
        refuse("said.per_device", "whole sequences of each device are read")
    else:
        values["run.micro_batch"] = int(devices)
    values.setdefault("run.recompute", "full")
    shards, copies = said.get("fsdp", -1), said.get("data", 1)
    for name, degree in (("fsdp", shards), ("data", copies), ("slices", said.get("slices", 1))):
        if degree != -1 and not is_size(degree):
            refuse(f"said.{name}", "a positive integer, or -1, is read")
            return
    copies = max(copies, 1) * max(said.get("slices", 1), 1)
    if said.get("slices", -1) == -1:
        values["note.slices"] = "one slice is taken: dcn_data_parallelism says how many there are"
    if said.get("data") == -1 and shards == -1:
        refuse("said.data", "one degree of -1 is read")
    values |= {"degrees.zero": WEIGHTS} if shards != 1 else {}
    values |= {"degrees.dp": shards} if shards != -1 else {}
    values |= {"degrees.replicas": copies} if copies > 1 else {}
    values["run.policy"] = "fp32" if said.get("dtype") == "float32" else _OPEN


TUNERS: Mapping[str, Callable[[Values, Refuse], None]] = {
    "axolotl": axolotl,
    "Hugging Face Trainer": trainer,
    "LLM Foundry": llm_foundry,
    "MaxText": maxtext,
}
"""By the name of a format."""
