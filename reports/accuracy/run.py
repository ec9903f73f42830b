"""How well predicted step times agree with measured ones.

Writes Markdown to standard output, with a folder of tables of measured runs as argument their
figures, and with another folder a picture into it. After a change that is meant to alter them,
approve the new ones:

    python reports/accuracy/run.py reports/accuracy > reports/accuracy/output.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import allocated
import heldout
from literature import Guess, korthikanti, layers, llama, table_1

import symbolic_cost as sc

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED = Path(__file__).with_name("measured.json")

INTRODUCTION = """\
# Accuracy of predicted step times

FLOP, bytes and collectives are derived from declared models, times from the machine's rates,
links and efficiencies. Eight efficiencies of the A100 (`systems/data/a100-80gb.toml`) are
fitted to 774 measured steps of vTrain (arXiv:2312.12391), one half of those published, all
together: no run has a number of its own. Megatron's tables are predicted with them, Llama 3 with
the rates of kernels measured on an H100. Errors are (predicted - measured) / measured."""

SETS = """\
## Measured runs of vTrain, A100, 800 Gbit/s per node

The rows are not part of the project, the figures are. *Fitted* are errors of the shipped
efficiencies on the rows that they come from; *left out* those of five calibrations, each on four
fifths of the rows, on the other fifth."""

PEERS = """\
Mean absolute errors of others on all published rows (109 and 1440), multi-node and single-node:
Calculon 19.7 % and 39.0 %, llm-analysis 17.7 % and 56.7 %, transformer-perf-estimates 19.0 % and
41.2 %, vTrain itself, which profiles every kernel, 14.7 % and 8.4 %."""

WHERE = """\
### Where the error sits

* Eight-fold tensor parallelism on one node: 14 % too fast with one and two sequences per microbatch
  of width 1024, 10 of 2048, whatever the message. With one sequence it was 27 % while softmax was
  one kernel: that of Megatron-LM asks for a multiple of four heads times sequences on a rank, where
  these have two (core/fusions/fused_softmax.py; looked up after steps with one sequence were
  seen to take 0.9 ms a layer longer than with two). One multi-node run has six, and is 8 % too slow
  since. The efficiencies are those fitted before: anew they are within 4 %, but for the time of a
  step between nodes, 61 us in place of 157.
* Without tensor parallelism on one node: what a step takes whatever the number of layers is three
  times what is predicted, in proportion to the width. The product of the vocabulary runs at 70
  TFLOP/s there and at full rate from two ranks on, as one with 50257 columns would that are not
  padded. With that rate for it single-node errors fall to 7.0 % and multi-node ones rise to 7.6 %,
  where one rank shows nothing of it. Its data are said to be of Megatron-DeepSpeed, which pads
  unless told otherwise, so that all do here.
* Where the host stops setting the pace, two to four sequences per microbatch, errors change sign
  with the width: one time per op stands for all kernels.
* Between nodes a few runs are far off, most of all the one with 64 sequences per microbatch: it
  took twice the time of the same run with 16. Nothing in the model lets a run with fewer, larger
  microbatches and no pipeline be slower."""

NOTES = {
    "korthikanti": "One node of Selene has eight A100 and 25 GB/s per GPU to others. Full "
    "recomputation sends activations in parts and gathers them (narayanan-2021, section 4.1); "
    "175B and 530B have three chunks per stage. None of these rows was fitted, but they are not "
    "blind: sends in parts were added to the model when 530B with full recomputation came out 6 % "
    "too slow, and other weights of the two fitted sets (here equal) give means of 3.4 to 4.6 %.",
    "layers": "Forward and backward of one layer of the 22B model on eight GPUs. Megatron fuses "
    "bias, dropout and addition; the declared ops run one by one, so elementwise work takes "
    "longer here.",
    "narayanan": "Times follow from the printed throughput by Eq 3. The table prints no "
    "microbatches: 4 are assumed up to 39.1 B, 2 up to 145.6 B, 1 above, and no interleaving. "
    "Errors grow with the number of stages.",
    "llama": "Llama 3 405B in BF16 as `symbolic-cost time llama-3-405b --system h100` has it: "
    "rates of kernels measured alone, no stack named, as its authors ran their own. No "
    "recomputation, one sequence per microbatch, 126 blocks in eight chunks per stage of "
    "which both ends lack one, and ZeRO-1 are assumed. Throughput is taken for that of "
    "chowdhery-2022, which counts the whole square of attention; by half of it "
    "predictions are 4, 4 and 29 % lower. No row was fitted; in brackets, what four of "
    "five lie between.",
}


def report(found: Mapping[str, Any] | None = None) -> str:
    """Return the report as Markdown.

    Args:
        found: figures of published runs; those that the project carries unless given.
    """
    own = heldout.kept() if found is None else found
    return "\n\n".join([*_sections(), *heldout.sections(own), *allocated.sections()]) + "\n"


def picture(figure: Figure) -> None:
    """Draw predicted against measured numbers of all tables."""
    axes = figure.subplots()
    for name, guesses in _tables().items():
        axes.plot([g.measured for g in guesses], [g.predicted for g in guesses], "o", label=name)
    ends = [1, 600]
    axes.plot(ends, ends, color="grey", linewidth=1)
    for share in (0.9, 1.1):
        axes.plot(ends, [share * end for end in ends], color="grey", linewidth=0.5, dashes=(4, 4))
    axes.set(xscale="log", yscale="log", xlabel="measured", ylabel="predicted")
    axes.set_title("Step times [s], layer times [ms], throughputs [TFLOP/s]; 10 % dashed")
    axes.legend()


@cache
def _tables() -> Mapping[str, Sequence[Guess]]:
    return {
        "Korthikanti 2022, Table 5": tuple(korthikanti()),
        "Korthikanti 2022, Table 4": tuple(layers()),
        "Narayanan 2021, Table 1": tuple(table_1()),
        "Llama 3, Table 4": tuple(llama()),
    }


def _sections() -> Iterator[str]:
    yield INTRODUCTION
    yield _efficiencies()
    yield SETS
    yield _measured()
    yield PEERS
    yield _groups()
    yield WHERE
    units = ("s", "ms", "s", "TFLOP/s")
    for (title, guesses), unit, note in zip(_tables().items(), units, NOTES.values(), strict=True):
        yield f"## {title}\n\n{note}"
        yield _rows(guesses, unit)
        yield _sentence(
            sc.systems.errors_of([g.predicted for g in guesses], [g.measured for g in guesses])
        )
    yield "![Predicted against measured](predicted.svg)"


def _efficiencies() -> str:
    found = sc.systems.machine("a100-80gb")
    fitted = [
        (place, figure) for place, figure in found.figures() if figure.source == "calibration"
    ]
    lines = [
        f"| {place} | {float(figure.value):g} | {figure.includes} |" for place, figure in fitted
    ]
    return "\n".join(["| number | value | stands for |", "|---|---:|---|", *lines])


def _measured() -> str:
    head = "| set | runs | | mean | median | bias | largest |\n|---|---:|---|---:|---:|---:|---:|"
    lines = [
        f"| {name} | {found['runs']} | {label} | {_percents(found)} |"
        for name, sets in _figures().items()
        for label, found in (("fitted", sets["shipped"]), ("left out", sets["held out"]))
    ]
    return "\n".join([head, *lines])


def _groups() -> str:
    head = "| set | runs with | runs | mean | median | bias | largest |"
    rule = "|---|---|---:|---:|---:|---:|---:|"
    lines = [
        f"| {name} | {key} | {found['runs']} | {_percents(found)} |"
        for name, sets in _figures().items()
        for group in sets["groups"].values()
        for key, found in group.items()
    ]
    return "\n".join([head, rule, *lines])


def _figures() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def _percents(found: Mapping[str, float]) -> str:
    return " | ".join(
        f"{100 * found[name]:{sign}.1f} %"
        for name, sign in (("mean", ""), ("median", ""), ("bias", "+"), ("largest", ""))
    )


def _rows(guesses: Sequence[Guess], unit: str) -> str:
    head = f"| run | measured [{unit}] | predicted [{unit}] | error |\n|---|---:|---:|---:|"
    lines = [
        f"| {g.name} | {g.measured:.4g} | {g.predicted:.4g}{_between(g)} | {100 * g.error:+.1f} % |"
        for g in guesses
    ]
    return "\n".join([head, *lines])


def _between(guess: Guess) -> str:
    return f" ({' to '.join(f'{end:.4g}' for end in guess.ends)})" if guess.ends else ""


def _sentence(found: sc.systems.Errors) -> str:
    return (
        f"Mean absolute error {100 * found.mean:.1f} %, median {100 * found.median:.1f} %, "
        f"bias {100 * found.bias:+.1f} %, largest {100 * found.largest:.1f} %."
    )


if __name__ == "__main__":
    given = [Path(folder) for folder in sys.argv[1:]]
    tables = next(filter(heldout.is_measured, given), None)
    for folder in given:
        if folder != tables:
            sc.write_picture(str(folder / "predicted.svg"), picture)
    sys.stdout.write(report(None if tables is None else heldout.figures(tables)))
