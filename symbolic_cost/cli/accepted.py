"""What options accept, for `--help`: names of the library, which load only when they are used."""

from __future__ import annotations

import click

CONVENTIONS = (
    *("exact", "standard", "model-flop", "model-flop-causal", "megatron-2022"),
    *("transformer-tables-as-printed", "transformer-tables-as-coded"),
    *("transformer-tables-as-meant", "megatron-report", "flops-profiler", "flops-profiler-macs"),
    *("flops-profiler-megatron-2021", "flops-profiler-megatron-2021-macs", "torch-flop-counter"),
    *("torch-autograd", "torch-autograd-fp32", "fvcore", "palm-mfu", "6nd"),
)
PRECISIONS = (
    *("fp32", "bf16", "fp16-mixed", "bf16-mixed", "bf16-gradients", "bf16-fsdp", "bf16-deepspeed"),
    *("fp8-hybrid", "fp8-deepseek", "fp8-linear", "mxfp8", "nvfp4", "int8-fp32"),
)
OPTIMIZERS = ("sgd", "momentum", "adam", "adafactor", "adam-8bit", "muon")
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "dualpipe")
ROOFLINES = ("maximum", "launched maximum", "ridge")
STRATEGIES = (
    *(
        "tp",
        "sp",
        "spread",
        "2d",
        "2.5d",
        "3d",
        "ulysses",
        "cp",
        "ring",
        "ep",
        "dp",
        "replicas",
        "pp",
    ),
)
COSTS = (
    *("flops", "flops_fwd", "flops_bwd", "flops_recompute", "flops_train", "params", "weights"),
    *("weight_gradients", "saved", "bytes_fwd", "bytes_bwd", "bytes", "comm", "comm_fwd"),
    *("comm_bwd", "comm_step"),
)
MACHINES = (
    *("a100-40gb", "a100-80gb", "a40", "b200", "b300", "gaudi3", "gb200-nvl72", "gb300-nvl72"),
    *("h100", "h100-nvl", "h100-pcie", "h200", "h800", "l40s", "lstm-roofline", "mi250x"),
    *("mi300x", "mi355x", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v7", "trainium2"),
    *("transformer-tables", "trillium", "v100", "symbolic"),
)

_OF_OPTIONS = {
    "--conventions": CONVENTIONS,
    "--precision": PRECISIONS,
    "--optimizer": OPTIMIZERS,
    "--schedule": SCHEDULES,
    "--roofline": ROOFLINES,
    "--strategy": (*STRATEGIES, "zero=1|2|3", "panels=N"),
    "--of": COSTS,
    "--columns": COSTS,
    "--system": MACHINES,
}
_OTHERS = {
    "--conventions": ("diff", "flops-per-token", "mfu"),
    "--precision": ("roofline", "mfu"),
    "--strategy": ("schedule", "serve-plan"),
    "--system": ("serve-plan",),
    "--of": ("derive", "solve", "optimum", "sensitivity"),
    "--columns": ("sweep", "pareto"),
}
"""Commands whose options of these names take something else."""


def told(name: str, command: click.Command) -> click.Command:
    """Return a command whose help lists what its options accept."""
    for option in command.params:
        if not isinstance(option, click.Option):
            continue
        for opt in option.opts:
            names = _OF_OPTIONS.get(opt, ())
            if names and name not in _OTHERS.get(opt, ()) and _MARK not in (option.help or ""):
                option.help = f"{option.help or ''} {_MARK} {', '.join(names)}.".strip()
    return command


_MARK = "Accepted:"
