"""How much boxes of one name differ, from steps of sources that were never fitted.

What kinds of work leave open is as spread.py has it. Beside it the computing of a source is off
alike in all of its steps ("box") and each step by itself ("step"): the most likely two numbers of
all sources but one, one vote each, make the intervals of that one's steps.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import allocated
import numpy as np
from numpy.typing import NDArray

import symbolic_cost as sc

Floats = NDArray[np.float64]

VOTES = 4
"""What all runs of one source together count for, in steps."""

FAR = 0.15
"""Steps further off count as no further: what no spread explains."""

BOX = ("b200", "gemm")
"""Machine of the box whose own products are on record, and what they are called there."""

GRID = np.arange(0.02, 0.1001, 0.005)
"""Spreads that are tried."""


@dataclass(frozen=True)
class Source:
    """Logarithms of the errors of a source, and of what every doubt moves each step by."""

    errors: Floats
    alike: Floats
    box: Floats

    def covariance(self, box: float, step: float) -> Floats:
        """Return what errors are expected to share."""
        own = self.alike.T @ self.alike + box**2 * np.outer(self.box, self.box)
        return np.asarray(own + step**2 * np.eye(len(self.errors)))

    def unlikely(self, box: float, step: float) -> float:
        """Return the negative logarithm of the likelihood, as one source's vote."""
        whole, near = self.covariance(box, step), np.clip(self.errors, -FAR, FAR)
        spread = np.linalg.slogdet(whole)[1] + near @ np.linalg.solve(whole, near)
        return float(spread) * VOTES / len(near) / 2

    def held(self, box: float, step: float) -> dict[str, float]:
        """Return what part of the steps lies in intervals, half their width, where the mean is."""
        whole = self.covariance(box, step)
        half, size = sc.systems.QUANTILE * np.sqrt(np.diag(whole)), math.sqrt(whole.mean())
        return {
            "inside": round(float(np.mean(np.abs(self.errors) < half)), 3),
            "width": round(float(np.median(half)), 4),
            "place": round(float(self.errors.mean()) / size, 2),
        }


def source(steps: Sequence[Any], seconds: Sequence[float]) -> Source:
    """Return a source from its derived steps and what they took."""
    errors, moves, boxes = [], [], []
    for step, took in zip(steps, seconds, strict=True):
        *every, _ = step.derived.doubts
        (box,) = (doubt for doubt in every if doubt.kind == sc.systems.COMPUTING)
        moved = {doubt.kind: _moved(step, doubt) for doubt in every}
        boxes.append(moved.pop(box.kind) / box.spread)
        moves.append(list(moved.values()))
        errors.append(math.log(took / step.seconds()))
    return Source(np.array(errors), np.array(moves).T, np.array(boxes))


def _moved(step: Any, doubt: Any) -> float:  # noqa: ANN401 - of systems, which do not name them
    ones = {name: 1.0 for name in step.derived.run.inputs if name not in step.values}
    ends = [
        step.derived.run.floats({**step.values, **ones, **doubt.moved(ones, sign)})["step"]
        for sign in (1, -1)
    ]
    return math.log(ends[0] / ends[1]) / 2


def on_gpus(kernels: Path) -> dict[str, Any]:
    """Return the errors of the steps of the box whose memory allocated.py has, by its own products.

    Args:
        kernels: table of the products of that box, with the share of the peak that each reached.
    """
    with kernels.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["machine"], row["kernel"]) == BOX]
    with TemporaryDirectory() as folder:
        table, script = Path(folder) / "products.csv", Path(folder) / "run.sh"
        table.write_text("\n".join(("m,n,k,dtype,latency_ms", *map(_product, rows))) + "\n")
        fits, others = sc.systems.kernel_fits, sc.systems.machine(BOX[0])
        own = replace(others, kernels=fits((str(table),), others).record)
        errors, inside, steps = [], 0, sc.Steps()
        for run in json.loads(allocated.ON_GPUS.read_text(encoding="utf-8"))["runs"]:
            script.write_text(run["flags"], encoding="utf-8")
            step, took = steps.of(sc.job(str(script), system=own)), run["step_ms"] / 1e3
            ends = step.interval()
            errors.append(step.seconds() / took - 1)
            inside += ends.low <= took <= ends.high
    return {
        "products": len(rows),
        "runs": len(errors),
        "mean": round(float(np.mean(np.abs(errors))), 4),
        "bias": round(float(np.mean(errors)), 4),
        "inside": int(inside),
    }


def _product(row: Mapping[str, str]) -> str:
    """Return a product as `calibrate --kernels` reads it."""
    sides = [row[name] for name in ("m", "n", "k")]
    flop = 2 * math.prod(map(int, sides))
    rate = float(row["efficiency_of_peak"]) * float(row["peak_tflops"]) * 1e9
    return ",".join((*sides, "bf16", repr(flop / rate)))


def figures(sources: Mapping[str, Source]) -> dict[str, Any]:
    """Return the two spreads, of all sources and without each, and what intervals hold then."""
    pairs = [(float(box), float(step)) for box in GRID for step in GRID]
    each = {n: np.array([own.unlikely(*pair) for pair in pairs]) for n, own in sources.items()}
    total = sum(each.values())
    found: dict[str, Any] = {"all": _rounded(pairs[int(np.argmin(total))]), "left out": {}}
    for name, own in sources.items():
        pair = pairs[int(np.argmin(total - each[name]))]
        found["left out"][name] = {
            "runs": len(own.errors),
            "spreads": _rounded(pair),
            **own.held(*pair),
        }
    return found


def _rounded(pair: Sequence[float]) -> list[float]:
    return [round(one, 3) for one in pair]


NOTE = """\
GPUs of one name differ by limits of power, cooling and drivers, all steps of a cluster alike. Of
{sources} sources, one vote each, computing differs by {box:.1f} % and a step besides by
{step:.1f}, the most likely two numbers beside what kernels and stacks leave open; {least:.1f} to
{most:.1f} and {small:.1f} to {large:.1f} with one source left out, whose own steps are then in
intervals of these. They hold {rows:.0f} % of all rows so, {votes:.0f} % with one vote per
source. *Mean* is where a source's mean step lies, in spreads: {near} of {sources} within 1.28. A
cluster is one draw: nearly all of its steps are inside where that is near, few where it is far.
In logarithms, large products of several origins, fitted to all, are 4.1 % faster and 3.3 slower
on a100-80gb (sglang, Vidur), 2.1 slower, 0.8 faster and 0.8 slower on h100 (sglang,
TensorRT-LLM, Vidur), and on b200 2.5 slower (TensorRT-LLM). Links of one name do not: messages
above 16 MB of four releases of NCCL and of two boxes of h100 are within 6 % of the fit, b200's
within 2. All of these were in view when the two numbers were put where one of the chip (4.3 % of
products) stood and a step had 5, and again when what stacks say was put at half of what had been
assumed; they fall away once a cluster is calibrated."""

OWN = """\
The box of *On GPUs*, whose power is limited, is none of these: its own {products} products, 33 %
slower in the logarithm (15 of them the clock that lasts), are on record. With rates fitted to them
(`calibrate --kernels`), and to none of its steps, these are {mean:.1f} % off in the mean, the bias
{bias:+.1f} %, {inside} of {runs} inside; with those of others of its name 18."""


def sections(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of sources."""
    every = found["left out"]
    box, step = zip(*(own["spreads"] for own in every.values()), strict=True)
    runs = [own["runs"] for own in every.values()]
    inside = [own["inside"] for own in every.values()]
    yield "### Boxes of one name\n\n" + NOTE.format(
        sources=len(every),
        box=100 * found["all"][0],
        step=100 * found["all"][1],
        least=100 * min(box),
        most=100 * max(box),
        small=100 * min(step),
        large=100 * max(step),
        rows=100 * np.average(inside, weights=runs),
        votes=100 * np.average(inside),
        near=sum(abs(own["place"]) < sc.systems.QUANTILE for own in every.values()),
    )
    head = "| source | runs | box, step of the others | inside | mean |"
    lines = [head, "|---|" + "---:|" * 4]
    for name, own in every.items():
        spreads = ", ".join(f"{100 * one:.1f}" for one in own["spreads"])
        lines.append(
            f"| {name} | {own['runs']} | {spreads} % | "
            f"{100 * own['inside']:.0f} % of +-{100 * own['width']:.0f} % | {own['place']:+.1f} |"
        )
    yield "\n".join(lines)
    if "own" in found:
        own = found["own"]
        yield OWN.format(**own | {k: 100 * own[k] for k in ("mean", "bias")})
