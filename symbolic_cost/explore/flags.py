"""A candidate as a command line that runs: this library's, and Megatron-LM's where it has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symbolic_cost.explore.best import Search
from symbolic_cost.explore.choices import CONTEXT, DEGREES, FLAGS
from symbolic_cost.explore.subject import Facts
from symbolic_cost.explore.tally import Candidate

_SHARDED = 1
"""Level of ZeRO of Megatron-LM's distributed optimizer; higher ones are other programs' flags."""


def time_command(outcome: Search, candidate: Candidate) -> str:
    """Return the command that times a candidate."""
    facts = outcome.facts
    words = ["symbolic-cost time", facts.model, facts.words[0]]
    words += [f"--strategy {candidate.strategy}"] if candidate.strategy else []
    defaults = {"recompute": "none", "schedule": "1f1b", "layout": "even"}
    options = dict(candidate.options)
    if facts.launched is not None:  # what the file says of its own run is not this candidate's
        options = {"offload": "''", **defaults, **options}
        options["overlap"] = _overlap(facts, candidate)
        defaults = {"overlap": ""}
    words += [
        f"--{text}" if text in FLAGS else f"--{name} {text}"
        for name, text in options.items()
        if defaults.get(name) != text
    ]
    bindings = {**dict(facts.numbers), **candidate.bindings}
    words.append("--set " + ",".join(f"{name}={number}" for name, number in bindings.items()))
    return " ".join([*words, *facts.words[1:]])


def _overlap(facts: Facts, candidate: Candidate) -> str:
    """Return what the search hid of mesh axes of which a launch file says otherwise."""
    texts = (facts.hidden, candidate.options.get("overlap", ""))
    hidden, chosen = (dict(one.split("=", 1) for one in text.split(",") if one) for text in texts)
    said = {one.partition("=")[0] for one in facts.launched or ()}
    named = said & candidate.structure.shape.names
    own = {mesh: hidden.get(mesh, "none") for mesh in sorted(named)} | chosen
    return ",".join(f"{mesh}={answer}" for mesh, answer in own.items())


def megatron_flags(outcome: Search, candidate: Candidate) -> str:
    """Return the flags of Megatron-LM; empty where it has none for the candidate.

    Source: megatron-lm, arguments.
    """
    numbers, structure = candidate.numbers, candidate.structure
    if any(lacking(outcome, candidate)):
        return ""
    flags = [
        f"--tensor-model-parallel-size {numbers.tp}",
        f"--pipeline-model-parallel-size {numbers.pp}",
        f"--micro-batch-size {numbers.b}",
        f"--global-batch-size {outcome.space.global_batch}",
    ]
    flags += [f"--context-parallel-size {numbers.cp}"] if numbers.cp > 1 else []
    flags += [f"--expert-model-parallel-size {numbers.ep}"] if numbers.ep > 1 else []
    flags += ["--sequence-parallel"] if structure.positions else []
    flags += ["--use-distributed-optimizer"] if structure.zero else []
    flags += _of_order(candidate.options.get("order", "")) or []
    flags += [flag for option, of in _SAID.items() for flag in of[_said(outcome.facts, option)]]
    own_loss = "--stack megatron-core-own-loss" in outcome.facts.words
    if own_loss or "--stack megatron-core" in outcome.facts.words:
        flags += [] if own_loss else list(_FUSED_LOSS)
        flags += _hiding(candidate)
    flags += _of_recompute(candidate.options["recompute"])
    if numbers.v > 1:
        flags.append(f"--num-virtual-stages-per-pipeline-rank {numbers.v}")
    return " ".join(flags)


def lacking(outcome: Search, candidate: Candidate) -> Iterator[str]:
    """Yield what of a candidate Megatron-LM has no flags for, in words."""
    structure, options = candidate.structure, candidate.options
    if outcome.facts.trains:
        yield f"train {outcome.facts.trains}"
    for option, of in _SAID.items():
        if _said(outcome.facts, option) not in of:
            yield f"{option} {_said(outcome.facts, option)}"
    if structure.zero > _SHARDED:
        yield (
            f"zero={structure.zero}: the distributed optimizer is zero={_SHARDED}, and more is "
            "sharded by --use-megatron-fsdp alone, which is another step than this"
        )
    yield from (name for name in CONTEXT[1:] if name in structure.shape.names)
    if options.get("layout") == "uneven":
        yield "layout uneven"
    if _of_order(options.get("order", "")) is None:
        yield f"order {options['order']}"
    yield from (
        f"{name} {options[name]}" for name in ("overlap", "offload", "scattered") if name in options
    )
    if options.get("regather") == "no-regather":
        yield "regather off"


_NARROW, _EIGHT = "--grad-reduce-in-bf16", ("--bf16", "--fp8-format hybrid")
_PRECISIONS: Mapping[str, Sequence[str]] = {
    "fp32": (),
    "fp16-mixed": ("--fp16",),
    "bf16-mixed": ("--bf16",),
    "bf16-gradients": ("--bf16", _NARROW),
    "fp8-hybrid": _EIGHT,
    "fp8-gradients": (*_EIGHT, _NARROW),
    "fp8-weights": (*_EIGHT, "--fp8-param-gather"),
    "fp8-params": (*_EIGHT, "--fp8-param-gather", _NARROW),
    "mxfp8": ("--bf16", "--fp8-format e4m3 --fp8-recipe mxfp8", "--fp8-param-gather", _NARROW),
}
"""Flags of what is kept in how many bits; gradients are in 32 unless said otherwise."""


_OPTIMIZERS: Mapping[str, Sequence[str]] = {
    "": (),
    "adam": (),
    "momentum": ("--optimizer sgd",),
    "muon": ("--optimizer muon",),
}
_KERNELS: Mapping[str, Sequence[str]] = {
    "": (),
    "flash": ("--attention-backend flash",),
    "eager": ("--attention-backend unfused",),
}
_SAID = {"precision": _PRECISIONS, "optimizer": _OPTIMIZERS, "attention": _KERNELS}
"""Flags of what a job says, by its option; nothing is said of what is usual."""


def _said(facts: Facts, option: str) -> str:
    words = (one for one in facts.words if one.startswith(f"--{option} "))
    return next(words, "").partition(" ")[2]


_FUSED_LOSS = ("--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl te")
"""What the stack megatron-core has; with its own loss it has not."""


def _hiding(candidate: Candidate) -> list[str]:
    """Return what both stacks hide, and Megatron-LM where it is asked to."""
    numbers, structure = candidate.numbers, candidate.structure
    flags = ["--overlap-grad-reduce"] if numbers.dp > 1 else []
    flags += ["--overlap-param-gather"] if structure.zero else []
    return flags + (["--tp-comm-overlap"] if structure.positions else [])


def _of_order(order: str) -> list[str] | None:
    """Return the flag of an order of mesh axes; None where there is none.

    Stages may lie inside of the data-parallel groups, and nothing else may move.
    """
    if not order:
        return []
    inner = [name for name in DEGREES if name in order.split(",") and name not in ("dp", "pp")]
    return ["--use-tp-pp-dp-mapping"] if order == ",".join([*inner, "pp", "dp"]) else None


def _of_recompute(policy: str) -> list[str]:
    if policy == "none":
        return []
    if policy == "selective":
        return ["--recompute-granularity selective"]
    every = policy.partition("/")[2] or "1"
    return [
        f"--recompute-granularity full --recompute-method uniform --recompute-num-layers {every}"
    ]
