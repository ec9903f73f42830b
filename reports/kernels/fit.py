"""Fit the rates of kernels to measured ones.

    python reports/kernels/fit.py FOLDER > symbolic_cost/systems/kernels.toml

FOLDER holds kernels_gemm.csv, kernels_attention.csv, kernels_elementwise.csv and
kernels_collectives.csv. The parameters are fitted to all kernels; errors are those of every third
kernel, fitted to the other two thirds.
"""

import csv
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean

import symbolic_cost as sc

Rows = list[dict[str, str]]

FILES = ("gemm", "attention", "elementwise", "collectives")

MEASURED = ("a100-80gb", "h100", "l40s", "b200", "gb200-nvl72")
ALIKE = {"a100-80gb": ["v100"], "l40s": ["a40"]}
"""Machines without measured kernels, by the one whose shares they take."""

CHIPS = {
    "a100-80gb": ["a100-40gb"],
    "h100": ["h100-nvl", "h100-pcie", "h200", "h800"],
    "b200": ["b300"],
    "gb200-nvl72": ["gb300-nvl72"],
}
"""The same chip under another limit of power, or with other memory."""

PASSES_OF = {"l40s": "a100-80gb", "b200": "h100", "gb200-nvl72": "h100"}
"""Machines whose passes were not measured, and the nearest whose were.

A pass that leaves bandwidth unused waits for its instructions, and takes no longer beside slower
memory: norms of a100-80gb reach 0.75 TB/s, of h100 1.27, in proportion to multiprocessors and
clock; on l40s with 0.86 TB/s these have memory wait for nothing else.
"""

NARROW = {"l40s": "CutlassFP8ScaledMMLinearKernel"}
CUBLAS = "torch_flow"
"""Whose products in fp8 are fitted: those of cuBLAS, which frameworks of training call as well, or
of what stands here, where it was not measured. Others scale by row and column in their products."""

UNTOLD = "vllm/"
"""Software whose kernels in 16 bits multiply by weights that nobody filled, as memory has them.

Zeros leave the clock at its highest: they reach 0.94 of the peak of a100-80gb and 0.88 of h100,
random numbers 0.83 and 0.85, and less the longer they take. Where nothing else was measured, as on
l40s, they are all there is. Sources: github.com/ai-dynamo/aiconfigurator,
collector/vllm/collect_gemm.py ("TODO, to evaluate random weights impact"); random numbers in
collector/trtllm and collector/sglang.
"""

HEAD = """\
# Rates of kernels, fitted to measured ones by reports/kernels/fit.py; systems/kernel_formulas.py
# has the formulas. Sources: aiconfigurator (Apache-2.0), commit 095f58a, Vidur (MIT), 7d47513.
# errors: mean relative error of kernels that the fit did not see, and how many there are in all.
# cold is measured on a100-80gb and h100, and their geometric mean on others.
"""


def read(folder: Path, name: str) -> Rows:
    """Return the rows of a file."""
    with (folder / f"kernels_{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_products(rows: Rows, name: str) -> Rows:
    """Return the products of a machine whose operands are told: in fp8 those of one library."""
    own, narrow = [row for row in rows if row["machine"] == name], NARROW.get(name, CUBLAS)
    wide = [row for row in own if row["dtype"] != "fp8"]
    told = [row for row in wide if not row["software"].startswith(UNTOLD)]
    eight = [row for row in own if row["dtype"] == "fp8" and row["kernel"] == narrow]
    return [*(told or wide), *eight]


def table(title: str, *parts: sc.systems.Fitted) -> str:
    """Return a TOML table of parameters."""
    lines = [f"[{title}]"]
    for part in parts:
        lines += [
            f"{name} = {value:.4g}" + ("  # on the bound of the fit" if name in part.bounds else "")
            for name, value in part.values.items()
        ]
    return "\n".join([*lines, ""])


def record(name: str, files: dict[str, Rows]) -> str:
    """Return the record of a machine."""
    own, where, errors = sc.systems.machine(name), f"measured.{name}", []

    def fit(kind: str, file: str, origin: str = name) -> sc.systems.Fitted:
        rows = [row for row in files[file] if row["machine"] == origin]
        if file == "gemm":
            rows = of_products(rows, origin)
        form = sc.systems.KERNEL_FORMS[kind](sc.systems.machine(origin))
        fitted = sc.systems.fit_kernels(form, rows)
        errors.append(f'"{kind}" = [{fitted.error:.3f}, {fitted.count}]')
        inside = "cast" in fitted.values and name in NARROW
        values = {key: value for key, value in fitted.values.items() if not inside or key != "cast"}
        return replace(fitted, values=values)

    rates = [rate for rate in ("bf16", "fp8") if rate in own.matrix]
    origin = PASSES_OF.get(name, name)
    tables = [table(f"{where}.products.{r}", fit(f"products {r}", "gemm")) for r in rates]
    attention = (fit(f"attention {phase}", "attention") for phase in ("prefill", "decode"))
    tables.append(table(f"{where}.attention", *attention))
    passes = fit("passes", "elementwise", origin)
    if origin != name:
        passes = replace(passes, values=kept_up(name, origin, passes.values))
    tables += [
        f"# of {origin}\n" * (origin != name) + table(f"{where}.passes", passes),
        table(f"{where}.collectives", fit("collectives", "collectives")),
    ]
    return "\n".join([*tables, f"[{where}.errors]", *errors, ""])


def kept_up(name: str, origin: str, values: Mapping[str, float]) -> dict[str, float]:
    """Return shares of passes beside another memory: no larger than an addition's, never smaller.

    As many vector units per byte as there are more, as much larger a share do their instructions
    leave, to what waits for memory alone.
    """
    own, near = sc.systems.machine(name), sc.systems.machine(origin)
    units = own.vector["fp32"].value / near.vector["fp32"].value
    more = max(float(units * near.bandwidth.value / own.bandwidth.value), 1)
    most = values["addition"]
    return {key: one if key == "call" else min(one * more, most) for key, one in values.items()}


SECOND = """\
# Bandwidth of the second-level cache [byte/s], for kernels that read keys once per query head.

[second.a100-80gb]
value = 7.2e12
source = "NVIDIA A100 whitepaper, 2020: 5120 byte per clock, at 1.41 GHz"

[second.h100]
value = 9.4e12
source = "assumed: as many bytes per clock as A100, at 1.83 GHz"
"""

FASTER = """\
# Part of the time of attention in forward in 16 bits that units for exponentials of twice the rate
# save, beside the chip whose kernels were measured. What they save in 8 bits are as many seconds.
"""
SOFTMAX = "NVIDIA, Making Softmax More Efficient with NVIDIA Blackwell Ultra, 2026"
ULTRA = {"b300": f"{SOFTMAX}: about 35 % more in forward in 8 bits", "gb300-nvl72": "the same"}
SAVED = 0.162
"""In 8 bits 0.26, of a time that is 1/1.35 of it; in 16 bits attention takes 1.6 times as long."""


def exponentials() -> str:
    """Return the TOML tables of machines with faster units for exponentials."""
    tables = (
        f'[exponentials.{name}]\nvalue = {SAVED}\nsource = "{source}"\n'
        for name, source in ULTRA.items()
    )
    return "\n".join([FASTER, *tables])


def main(folder: Path) -> None:
    """Write the record of every machine."""
    files = {name: read(folder, name) for name in FILES}
    groups = [named("alike", ALIKE), f"# {CHIPS_ARE}\n{named('chips', CHIPS)}"]
    records = [record(name, files) for name in MEASURED]
    records.append(elsewhere(files["collectives"]))
    print("\n".join([HEAD, *groups, SECOND, exponentials(), *records]), end="")


def elsewhere(rows: Rows) -> str:
    """Return the TOML table of what other machines take that no datasheet tells."""
    form, calls = sc.systems.KERNEL_FORMS["collectives"], []
    for name in MEASURED:
        own = [row for row in rows if row["machine"] == name]
        calls.append(sc.systems.fit_kernels(form(sc.systems.machine(name)), own).values["call"])
    return f"{ELSEWHERE}[elsewhere.collectives]\ncall = {geometric_mean(calls):.4g}\n"


ELSEWHERE = """\
# Of machines without measured kernels: the time of a call, which no datasheet tells, is the
# geometric mean of those measured; shares are those of the nearest.
"""

CHIPS_ARE = "The same chip under another limit of power, or with other memory."


def named(title: str, groups: Mapping[str, list[str]]) -> str:
    """Return a TOML table of machines."""
    lines = [f"{name} = {others}".replace("'", '"') for name, others in groups.items()]
    return "\n".join([f"[{title}]", *lines, ""])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
