"""Errors on kernels, machines and served batches that nothing was fitted to, and what was wanted.

heldout.py keeps these figures with its own where the folder has tables of kernels and of serving.
"""

from __future__ import annotations

import math
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np

import symbolic_cost as sc

REPORTS = Path(__file__).parents[1]
KINDS = {
    "products bf16": "gemm",
    "products fp8": "gemm",
    "attention prefill": "attention",
    "collectives": "collectives",
}
"""Kinds of kernels by the table that has them."""

WANTED = {"products bf16": 7, "products fp8": 12, "attention prefill": 8, "collectives": 12}
ELSEWHERE = {"products bf16": 15, "products fp8": 15, "attention prefill": 20, "collectives": 20}
"""Mean errors that were wanted [%], of kernels and of machines left out."""


def figures(folder: Path) -> dict[str, Any]:
    """Return the errors of kernels by machine and kind, of machines, and of served batches."""
    found: dict[str, Any] = {}
    if (folder / "kernels_gemm.csv").is_file():
        found |= _kernels(folder)
    if (folder / "tensorrt_llm_inference.csv").is_file():
        serving = runpy.run_path(str(REPORTS / "serving" / "accuracy.py"))
        found["serving"] = serving["figures"](folder)
    return found


def _kernels(folder: Path) -> dict[str, Any]:
    """Return errors of every third kernel, fitted to the others, and under another's shares."""
    fit = runpy.run_path(str(REPORTS / "kernels" / "fit.py"))
    names, fits, tables = fit["MEASURED"], {}, {}
    files = {file: fit["read"](folder, file) for file in set(KINDS.values())}
    for name in names:
        for kind, file in KINDS.items():
            rows = [row for row in files[file] if row["machine"] == name]
            if file == "gemm":
                rows = fit["of_products"](rows, name)
            if kind == "products fp8" and "fp8" not in sc.systems.machine(name).matrix:
                continue
            tables[name, kind] = rows
            fits[name, kind] = sc.systems.fit_kernels(_form(name, kind), rows)
    own = {n: {k: round(fits[n, k].error, 4) for k in KINDS if (n, k) in fits} for n in names}
    other = {}
    for name in names:
        near = _nearest(name, names)
        other[name] = {"as": near} | {
            kind: _under(name, kind, _taken(kind, near, name, fits), tables[name, kind])
            for kind in KINDS
            if (name, kind) in fits and (near, kind) in fits
        }
    return {"kernels": own, "elsewhere": other}


def _form(name: str, kind: str) -> Any:  # noqa: ANN401 - a form, which is loaded when used
    return sc.systems.KERNEL_FORMS[kind](sc.systems.machine(name))


def _taken(kind: str, near: str, name: str, fits: Mapping[Any, Any]) -> list[float]:
    """Return the shares of the nearest machine, with the call of all but one of collectives."""
    values = dict(fits[near, kind].values)
    if kind == "collectives":
        others = (fit for (other, one), fit in fits.items() if one == kind and other != name)
        values["call"] = geometric_mean(fit.values["call"] for fit in others)
    return list(values.values())


def _under(name: str, kind: str, values: list[float], rows: list[dict[str, str]]) -> float:
    """Return the mean error of a machine's kernels with the shares of another."""
    form = _form(name, kind)
    table = form.table(rows)
    took = form.time(values, table) * 1000
    return round(float(np.mean(np.abs(took / table["latency_ms"] - 1))), 4)


def _nearest(name: str, names: tuple[str, ...]) -> str:
    """Return the machine whose peak, memory and inner link are nearest, as ratios."""

    def rates(one: str) -> tuple[float, ...]:
        own = sc.systems.machine(one)
        figures = own.matrix["bf16"], own.bandwidth, own.links[0].bandwidth
        return tuple(math.log(float(figure.value)) for figure in figures)

    return min(
        (other for other in names if other != name),
        key=lambda other: math.dist(rates(name), rates(other)),
    )


def sections(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables of kernels, machines and served batches as Markdown."""
    if "kernels" in found:
        note = (
            "Every third kernel, fitted to the others; in the last line what was wanted. Of "
            "products in 16 bits only those count whose operands are told: vLLM's collector "
            "multiplies by weights that nobody filled, which reach 0.94 of the peak of "
            "a100-80gb, as zeros do, that leave the clock at its highest (sglang 0.83); with "
            "these 8.5 % in place of 7.9, and of machines left out 11.2 of 10.0; l40s has no "
            "others, of two versions that differ by 11 % in the mean: the other four machines "
            "leave 6.9. The rest of this paragraph is of all of them. Products in 16 bits "
            "compute whole tiles of 128 rows: 9.0 % in the mean in place of 9.6; kernels in 8 "
            "bits show none of it. Those that Vidur measured among the kernels of a layer find "
            "their operands in no cache, which all others, run again and again, do: 8.5 % in "
            "place of 9.0 (h100 7.7 of 10.0), and 10.1 of 10.8 where a library is left out "
            "(h100 8.1 of 11.4). Why is open: aiconfigurator's collectors multiply six sets of "
            "operands in turn, of which large ones are in no cache either. l40s leaves 9.2 % of "
            "its newer version alone and 12.5 of the older, 10.6 where the newer is as cold as "
            "Vidur's, for which its code gives no reason. What is left is little that a form "
            "could tell: of one shape two libraries differ by 3 (a100-80gb) to 18 % (l40s). "
            "Without that a factor for each library, of which no other would know its own, left "
            "8.0 %, what the form leaves of the six nearest shapes 8.0, of the same library "
            "alone 7.1. Rounds of tiles over all units, with sums that are split, leave more "
            "(9.6 %), a part of the last round for idle units 8.3; a clock that falls with a "
            "kernel's time 7.9, at 7.6 on gb200-nvl72 and 10.8 on l40s, but stands on its "
            "bounds on a100-80gb (of told operands 7.3, and 6.8 with l40s's newer version alone: "
            "b200 6.5, gb200-nvl72 5.8, h100 6.9). It is that of collectors, not of training: "
            "kernels of many milliseconds take 1.18 times as long on h100, 1.23 on b200 and 1.32 "
            "on gb200-nvl72, where steps keep 0.86, 0.86 and 0.90 of the clock. Small sets of "
            "operands from the second-level cache (7.8), both times added softly (7.9) and sums "
            "that fill idle units (8.1, on bounds) leave as much. Of attention on h100 two "
            "libraries differ by 18 %. Forms of attention and collectives were chosen with these "
            "kernels in view: queries that leave units idle, tensors that move beside no product, "
            "a rank's copy of its own part, and on PCIe (l40s) bridges that all ranks share; last "
            "that an all-to-all sends to all at once, one hop and one for each doubling of ranks, "
            "where a ring had left 9.4 % of collectives (one hop 10.0, two 9.2, doublings alone "
            "9.1)."
        )
        yield f"### Kernels left out\n\n{note}\n\n{_by_kind(found['kernels'], WANTED)}"
        note = (
            "All kernels of a machine, by its peaks and the shares of the nearest other; the time "
            "of a call of collectives, which no datasheet tells, is the mean of all others: 6 us "
            "are measured on h100, 10 on a100-80gb. That this is the number to share was chosen "
            "with these machines in view."
        )
        yield f"### Machines left out\n\n{note}\n\n{_by_kind(found['elsewhere'], ELSEWHERE)}"
    if "serving" in found:
        lines = ["| machine | kind | rows | mean | bias | worst |", "|---|---|---:|---:|---:|---|"]
        for place, own in found["serving"]["rows"].items():
            lines.append(
                f"| {place} | {own['rows']} | {100 * own['mean']:.1f} % | "
                f"{100 * own['bias']:+.1f} % | {own['worst']} |"
            )
        inside = f"Inside the nominal 80 % interval: {100 * found['serving']['inside']:.0f} %."
        yield "\n".join(["### Serving\n", *lines, "", inside])


def _by_kind(machines: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, int]) -> str:
    told = any("as" in own for own in machines.values())
    head = f"| machine |{' shares of |' * told} {' | '.join(KINDS)} |"
    lines = [head, "|---|" + "---|" * told + "---:|" * len(KINDS)]
    for name, own in machines.items():
        cells = [f"{100 * own[kind]:.1f} %" if kind in own else "" for kind in KINDS]
        shares = f" {own['as']} |" if told else ""
        lines.append(f"| {name} |{shares} {' | '.join(cells)} |")
    means = [fmean(own[kind] for own in machines.values() if kind in own) for kind in KINDS]
    lines.append(f"| mean |{' |' * told} {' | '.join(f'{100 * m:.1f} %' for m in means)} |")
    lines.append(f"| wanted |{' |' * told} {' | '.join(f'{wanted[kind]} %' for kind in KINDS)} |")
    return "\n".join(lines)
