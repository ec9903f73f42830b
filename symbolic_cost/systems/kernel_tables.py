"""Tables of measured kernels in files, and the rates that are fitted to them.

A file's columns say of what kind its kernels are; a file may hold several machines and precisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from symbolic_cost.errors import InputError, Problems, quote
from symbolic_cost.reading import csv_rows
from symbolic_cost.records import dataclass
from symbolic_cost.systems.kernel_fit import KERNEL_FORMS, Fitted, Form, Rows, fit_kernels
from symbolic_cost.systems.machines import Machine

FAR = 2.0
"""Kernels that take so many times what the fit says, or this part of it, are outliers."""

_FASTEST = 1.1
"""Kernels faster than so many times the peak were measured in another unit."""

_SHOWN = 5

_PLACES: Mapping[str, tuple[str, ...]] = {
    "products bf16": ("products", "bf16"),
    "products fp8": ("products", "fp8"),
    "attention prefill": ("attention",),
    "attention decode": ("attention",),
    "passes": ("passes",),
    "collectives": ("collectives",),
}
"""Where a kind's parameters stand in a record."""


@dataclass
class KernelFits:
    """What files of kernels give.

    Args:
        outliers: by kind, the rows that are far from the fit, the farthest first.
    """

    fits: dict[str, Fitted] = field(default_factory=dict)
    outliers: dict[str, list[str]] = field(default_factory=dict)

    @property
    def record(self) -> dict[str, Any]:
        """The rates as `Machine.kernels` holds them."""
        tables: dict[str, Any] = {}
        for kind, fit in self.fits.items():
            place = tables
            for name in _PLACES[kind]:
                place = place.setdefault(name, {})
            place |= {name: float(f"{number:.4g}") for name, number in fit.values.items()}
        tables["errors"] = {k: [round(f.error, 4), f.count] for k, f in self.fits.items()}
        return tables


_WIDE = "bf16"
"""The precision of attention, and of products but for narrow ones."""


def kernel_fits(files: Sequence[str], machine: Machine) -> KernelFits:
    """Fit the rates of a machine's kernels to files of measured ones.

    Raises:
        InputError: every file that cannot be read or has no kind of kernel, other units, too few
            kernels, or half of a kind (attention in prefill alone).
    """
    problems, outcome = Problems(), KernelFits()
    if _WIDE not in machine.matrix:
        raise InputError(f"kernels are fitted in {_WIDE}, of which {machine.name} has no rate")
    tables = [(file, problems.attempt(_rows, file, machine)) for file in files]
    problems.refuse()
    for file, rows in tables:
        kinds = list(_kinds(rows, machine))
        if not kinds:
            problems.texts.append(f"kernel file {quote(file, 200)}: {_accepted(rows[0], machine)}")
        for kind, form in kinds:
            fit = problems.attempt(_fitted, file, kind, form, rows, machine)
            if fit is not None:
                outcome.fits[kind], outcome.outliers[kind] = fit
    halves = {"attention prefill", "attention decode"}
    if len(halves & outcome.fits.keys()) == 1:
        problems.texts.append("attention: kernels of prefill and of decode are needed together")
    problems.refuse()
    return outcome


def _rows(file: str, machine: Machine) -> Rows:
    """Return the rows of a machine; all of them where the file names none."""
    rows = csv_rows(file, place=f"kernel file {quote(file, 200)}")
    if "machine" not in rows[0]:
        return rows
    own = [row for row in rows if row["machine"] == machine.name]
    if not own:
        names = ", ".join(sorted({row["machine"] for row in rows}))
        raise InputError(
            f"kernel file {quote(file, 200)}: no kernel of {machine.name}: it has {names}"
        )
    return own


def _kinds(rows: Rows, machine: Machine) -> Iterator[tuple[str, Form]]:
    """Yield the kinds of kernels that a table has, with their forms."""
    for kind, form in _forms(machine):
        if {*form.columns, "latency_ms"} <= rows[0].keys() and any(
            form.chosen(row) for row in rows
        ):
            yield kind, form


def _forms(machine: Machine) -> Iterator[tuple[str, Form]]:
    """Yield the kinds of kernels that a machine has, with their forms."""
    for kind, make in KERNEL_FORMS.items():
        if kind != "products fp8" or "fp8" in machine.matrix:
            yield kind, make(machine)


def _accepted(row: Mapping[str, str], machine: Machine) -> str:
    for kind, form in _forms(machine):
        if {*form.columns, "latency_ms"} <= row.keys():
            others = {name: text for name, text in row.items() if name not in form.columns}
            return f"has the columns of {kind}, but no row is one: the first has {quote(others)}"
    times = [name for name in row if name and name.startswith(("latency", "time"))]
    other = f"; {', '.join(times)} is there" if times and "latency_ms" not in times else ""
    return (
        "its columns are of no kind of kernel: m, n, k and dtype (products); batch, q_len, kv_len, "
        "heads, kv_heads, head_dim and phase (attention); op, gpus and bytes (collectives); "
        f"kernel, tokens, hidden, ffn, heads, kv_heads and tp (passes), each with latency_ms{other}"
    )


def _fitted(
    file: str, kind: str, form: Form, rows: Rows, machine: Machine
) -> tuple[Fitted, list[str]]:
    """Return the fit of a kind, and its outliers."""
    own = [row for row in rows if form.chosen(row)]
    try:
        table = form.table(own)
        if kind.startswith("products"):
            _check_units(table, machine, kind.rsplit(maxsplit=1)[-1])
        fit = fit_kernels(form, own)
    except InputError as error:
        raise InputError(
            [f"kernel file {quote(file, 200)}: {one}" for one in error.problems]
        ) from None
    said = form.time(np.array(list(fit.values.values())), table) * 1000
    times = table["latency_ms"] / said
    far = [
        int(n) for n in np.argsort(-np.abs(np.log(times))) if abs(np.log(times[n])) > np.log(FAR)
    ]
    names = [f"{own[n].get('id', f'row {n + 1}')} takes {times[n]:.2g} x" for n in far]
    return fit, [*names[:_SHOWN], *([f"and {len(far) - _SHOWN} more"] if len(far) > _SHOWN else [])]


def _check_units(table: Mapping[str, Any], machine: Machine, precision: str) -> None:
    rate = 2 * table["m"] * table["n"] * table["k"] / (table["latency_ms"] / 1000)
    fast = int(np.sum(rate > _FASTEST * float(machine.peak(precision))))
    if fast:
        raise InputError(
            f"products {precision}: {fast} are faster than the peak of {machine.name}: is "
            "latency_ms in milliseconds?"
        )
