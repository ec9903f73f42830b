"""Errors of the peak that is allocated, beside PyTorch's own storages followed through a step.

The bytes are of tests/golden/make_peak_memory.py, on a machine without GPU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sympy import Integer

import symbolic_cost as sc

GOLDEN = Path(__file__).parents[2] / "tests" / "golden"
TRUTH, ON_GPUS = GOLDEN / "peak_memory.json", GOLDEN / "allocated_on_gpus.json"
KEPT = {"bfloat16": "torch-autograd", "float32": "torch-autograd-fp32"}
PRECISIONS = {"bfloat16": "bf16", "float32": "fp32"}
PHASES = ("forward", "backward", "step")
PEAK = "most"
OPTIONS = ("attention", "dtype", "precision", "recompute", "optimizer", "train", "experts")

INTRODUCTION = """\
## Allocated memory

PyTorch's own storages followed through a step of training on a machine without GPU: models of
Transformers on the device "meta", where storages have sizes and no memory; every result of an op
from its creation to the end of its storage, through forward, backward and the optimizer. Not seen
is what a kernel allocates inside, as flash attention does in backward, nor rounding to blocks of
512 bytes. The stack is `pytorch`; what is kept for backward is counted as PyTorch keeps it, norms
and casts of Transformers included (`--conventions torch-autograd`). *Fused* is the error with the
library's own assumption of fused norms and angles (`standard`), by which a table of memory says
less than Transformers takes: its style, not the framework's. Nothing is fitted. Ranks that shard
everything stand beside what FSDP2's processes allocate on CPU in `tests/parallel/test_units.py`: 50
runs, in backward within 1 %."""

EXPERTS = """\
Experts of Transformers that run one by one (*apart*) make a gradient of the size of all experts'
weights for each, which is not modelled: up to 5 % of wide ones."""


GPUS = """\
### On GPUs

What Megatron-LM's runs on eight B200 allocated, the most of all ranks, as {source} prints it,
beside what their launch scripts say (`symbolic-cost memory run.sh --system b200 --as allocated`).
Nothing is fitted to memory. That a gate and its activation are one kernel, that
TransformerEngine's loss overwrites the logits and that heads have an unused gradient as well was
looked up in the code of both after these rows were seen; a job that names no stack, which has none
of the three, is -5.6 to +13.6 % off.

Their steps, which nothing was fitted to either, are too fast: large products of this box, whose
power is limited, were measured at 0.45 to 0.51 of the peak (kernels_simumax), where those of
others of its name, from which the rates are, reach 0.56 to 0.59. Nominal 80 % intervals are of
boxes of its name; by its own products (*Boxes of one name*) the same steps come out. Beside runs
without tensor parallelism those of 2 and 4 take 3 to 8 % longer than told, of 8 12 and 26, which
is not explained. `calibrate` tells."""


def runs() -> Sequence[Mapping[str, Any]]:
    """Return every run with its bytes."""
    found: Sequence[Mapping[str, Any]] = _truth()["runs"]
    return found


def named(run: Mapping[str, Any]) -> str:
    """Return what tells a run from others of its model."""
    shape = f"{run['b']} x {run['l']}" + (f", {run['M']} microbatches" if run["M"] > 1 else "")
    return ", ".join([shape, *(run[key] for key in OPTIONS if key in run)])


def job(run: Mapping[str, Any], conventions: str | None = None) -> sc.Job:
    """Return a run as a job, counted as PyTorch keeps it unless conventions are named."""
    counted = sc.preset(conventions or KEPT[run["dtype"]])
    if run.get("experts") == "grouped":  # what is added is not kept, unlike one by one
        kept = {one: other for one, other in counted.kept_as.items() if one != "gathered_sum"}
        counted = replace(counted, kept_as=kept)
    kernel = "sdpa" if run["attention"] == "flash" else "eager"
    config = {**_truth()["models"][run["model"]], "attn_implementation": kernel}
    return sc.job(
        sc.from_config(config, sc.Shape(Integer(run["b"]), Integer(run["l"]))),
        conventions=counted,
        precision=run.get("precision", PRECISIONS[run["dtype"]]),
        attention=None,
        microbatches=run["M"],
        recompute=run.get("recompute", "none"),
        optimizer=run.get("optimizer", "adam"),
        train=run.get("train"),
        stack="pytorch",
    )


def measured(run: Mapping[str, Any]) -> int:
    """Return the most bytes of a run's step."""
    return max(run.get(phase, 0) for phase in PHASES)


def error(run: Mapping[str, Any], conventions: str | None = None) -> float:
    """Return by how much the peak is off, as a share."""
    return held(run, conventions)[PEAK] / measured(run) - 1


def held(run: Mapping[str, Any], conventions: str | None = None) -> Mapping[str, float]:
    """Return what the table of memory says [byte], and its peak as PEAK."""
    return _held(json.dumps(run), conventions)


@cache
def _held(text: str, conventions: str | None) -> Mapping[str, float]:
    """Return the same of a run's text: errors and terms are of one table."""
    rows = job(json.loads(text), conventions).memory().sheet.rows
    found = {str(row[0]): float(row[2]) for row in rows}
    return {**found, PEAK: next(found[name] for name in found if name.startswith("peak"))}


def is_mixture(run: Mapping[str, Any]) -> bool:
    """Tell whether a run has experts."""
    return "experts" in run


def sections() -> Iterator[str]:
    """Yield the section of the report."""
    yield INTRODUCTION
    yield _summary()
    yield EXPERTS
    yield GPUS.format(source="github.com/MooreThreads/SimuMax")
    yield _on_gpus()
    yield "### Every run, and its peak by term [MiB]"
    yield _terms()


def _summary() -> str:
    lines = [
        "| models | runs | mean | bias | largest | fused, bias |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for title, mixed in (("dense", False), ("mixtures", True)):
        own = [run for run in runs() if is_mixture(run) is mixed]
        errors = [error(run) for run in own]
        fused = [error(run, "standard") for run in own]
        sizes = [abs(one) for one in errors]
        lines.append(
            f"| {title} | {len(own)} | {_percent(sum(sizes) / len(own), '')} | "
            f"{_percent(sum(errors) / len(own))} | {_percent(max(sizes), '')} | "
            f"{_percent(sum(fused) / len(own))} |"
        )
    return "\n".join(lines)


def _on_gpus() -> str:
    """Tabulate errors of what GPUs allocated, and of the steps that they took."""
    sizes: dict[str, list[float]] = {}
    steps: dict[str, list[float]] = {}
    inside: dict[str, int] = {}
    with TemporaryDirectory() as folder:
        script = Path(folder) / "run.sh"
        for run in json.loads(ON_GPUS.read_text(encoding="utf-8"))["runs"]:
            script.write_text(run["flags"], encoding="utf-8")
            own, model, seconds = (
                sc.job(str(script), system="b200"),
                run["model"],
                run["step_ms"] / 1e3,
            )
            shown = own.device_memory("allocated").sheet
            size = next(row[1] for row in shown.rows if row[0] == "allocated")
            sizes.setdefault(model, []).append(size / 2**30 / run["allocated"] - 1)
            time = own.time()
            steps.setdefault(model, []).append(float(time.step) / seconds - 1)
            inside[model] = inside.get(model, 0) + (time.low <= seconds <= time.high)
    head = "| model | runs | allocated, mean | bias | largest | step, mean | bias | inside 80 % |"
    lines = [head, "|---|" + "---:|" * 7]
    for model, errors in sizes.items():
        off = [abs(one) for one in errors]
        late = [abs(one) for one in steps[model]]
        runs_of = len(errors)
        lines.append(
            f"| {model} | {runs_of} | {_percent(sum(off) / runs_of, '', 2)} | "
            f"{_percent(sum(errors) / runs_of, digits=2)} | {_percent(max(off), '', 2)} | "
            f"{_percent(sum(late) / runs_of, '')} | {_percent(sum(steps[model]) / runs_of)} | "
            f"{inside[model]} of {runs_of} |"
        )
    return "\n".join(lines)


def _terms() -> str:
    terms = ("weight", "weight gradient", "master weight", "optimizer", "saved", "workspace")
    head = f"| model | run | at | {' | '.join(terms)} | sum | PyTorch | error |"
    lines = [head, "|---|---|---|" + "---:|" * (len(terms) + 3)]
    for run in runs():
        table = held(run)
        at = next(name for name in table if name.startswith("peak, ")).removeprefix("peak, at ")
        late = {"saved": 0.0, "workspace": table.get("workspace of the optimizer step", 0.0)}
        there = table if at == "backward" else {**table, **late}
        cells = [f"{there.get(name, 0) / 2**20:.1f}" for name in terms]
        whole = f"{table[PEAK] / 2**20:.1f} | {measured(run) / 2**20:.1f}"
        off = _percent(table[PEAK] / measured(run) - 1, "+", 2)
        lines.append(
            f"| {run['model']} | {named(run)} | {at} | {' | '.join(cells)} | {whole} | {off} |"
        )
    return "\n".join(lines)


def _percent(share: float, sign: str = "+", digits: int = 1) -> str:
    return f"{100 * share:{sign}.{digits}f} %"


@cache
def _truth() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(TRUTH.read_text(encoding="utf-8"))
    return found
