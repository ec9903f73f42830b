"""Model FLOP utilisation of a measured throughput, under every convention that is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction

from sympy import Expr

from symbolic_cost.checking import is_count
from symbolic_cost.display import NotebookTable
from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.errors import InputError, Problems, looked_up, quote
from symbolic_cost.jobs.tables.per_token import ascending, chosen_conventions, counted, reason
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.models.token_flop.per_token import TokenFlop
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact
from symbolic_cost.systems.machines import Figure, Machine
from symbolic_cost.systems.records import find_machine


@dataclass(frozen=True)
class Utilisation(NotebookTable):
    """What a throughput says under several conventions.

    Args:
        counts: FLOP of a token by conventions, the least first.
        rate: tokens per second and GPU.
        peak: dense rate of the matrix units [FLOP/s], with its source.
    """

    counts: tuple[TokenFlop, ...]
    rate: Expr
    machine: Machine
    precision: str
    peak: Figure

    __repr__ = NotebookTable.__str__

    @property
    def shares(self) -> dict[str, Expr]:
        """MFU by conventions, the least first."""
        return {c.conventions.name: c.total * self.rate / self.peak.value for c in self.counts}

    @property
    def least(self) -> Expr:
        """The least of them."""
        return next(iter(self.shares.values()))

    @property
    def most(self) -> Expr:
        """The greatest of them."""
        return [*self.shares.values()][-1]

    def sheet(self) -> Sheet:
        """Tabulate MFU by conventions; every gap with its reason as a formula."""
        rows: list[tuple[Cell, ...]] = []
        for place, (count, share) in enumerate(zip(self.counts, self.shares.values(), strict=True)):
            why = reason(self.counts[place - 1], count) if place else ""
            row = (count.conventions.name, number(count.total), number(100 * share), why)
            rows.append(row)
        columns = headed("conventions, FLOP per token>, MFU> [%], against the row above")
        name = self.counts[0].model.name
        return Sheet(f"MFU of {name} on {self.machine.name}", columns, tuple(rows), self._notes())

    def _notes(self) -> tuple[str, ...]:
        peak, unit = self.peak, "FLOP/s"
        where = self.machine.sources.get(peak.source, peak.source)
        said = f" ({peak.includes})" if peak.includes else ""
        spread = f"MFU from {_percent(self.least)} to {_percent(self.most)} for one throughput"
        return (
            *self._beyond(),
            *((spread,) if len(self.counts) > 1 else ()),
            *self.counts[0].model.notes,
            f"{number(self.rate)} tokens per second and GPU",
            f"datasheet: {self.precision} {float(peak.value):.6g} {unit}{said}, {where}",
            *(f"{c.conventions.name}: {c.conventions.meaning}" for c in self.counts),
        )

    def _beyond(self) -> Iterator[str]:
        """Explain shares above one."""
        above = [name for name, share in self.shares.items() if share > 1]
        if self.least > 1:
            more = "more GPUs, or fewer bits, ran"
            yield f"more than the {self.precision} peak by every count: {more}"
        elif above:
            yield f"above 100 %: FLOP that did not run are counted by {', '.join(above)}"


def mfu(
    model: str | Model,
    tokens_per_second: float | Fraction | Decimal,
    system: str | Machine,
    seq: int | None = None,
    conventions: str = "all",
    *,
    gpus: int = 1,
    precision: str = "bf16",
    numbers: Mapping[str, int | Fraction] | None = None,
) -> Utilisation:
    """Return the model FLOP utilisation of a measured throughput.

    Args:
        model: name, path of a config.json, or a model.
        tokens_per_second: of all GPUs together.
        system: machine, or path of its TOML file.
        seq: tokens of a sequence.
        conventions: names or TOML files, separated by commas, or all.
        gpus: that share the throughput.
        precision: of the matrix units.
        numbers: further sizes by symbol name.

    Raises:
        InputError: every problem of the arguments; symbols without a number.

    >>> used = mfu("llama-3-70b", 412, "h100", 8192, "torchtitan")
    >>> f"{float(used.least):.4f}"
    '0.2005'
    """
    problems = Problems()
    problems.attempt(chosen_conventions, conventions)
    machine = problems.attempt(find_machine, system) if isinstance(system, str) else system
    problems.texts += _refused(tokens_per_second, gpus)
    problems.refuse()
    peak = problems.attempt(_peak, machine, precision)
    counts = problems.attempt(_counted, model, seq, conventions, numbers)
    problems.refuse()
    rate = exact(tokens_per_second) / gpus
    every = counts if conventions == "all" else _counted(model, seq, "all", numbers)
    _refuse_impossible(rate, min(count.total for count in every), machine)
    return Utilisation(tuple(ascending(counts)), rate, machine, precision, peak)


def _refused(rate: object, gpus: object) -> list[str]:
    """Say which numbers are none."""
    problems = []
    try:
        positive = exact(rate).is_positive
    except InputError:
        positive = False
    if not positive:
        problems.append(f"tokens per second = {quote(rate)}: a positive number is accepted")
    if not is_count(gpus):
        problems.append(f"gpus = {quote(gpus)}: a positive integer is accepted")
    return problems


def _refuse_impossible(rate: Expr, flop: Expr, machine: Machine) -> None:
    """Refuse what no precision of the machine computes, by the count that is least of all."""
    peaks = {name: one.value for name, one in machine.matrix.items() if one.value.is_number}
    fastest = max(peaks, key=lambda name: peaks[name])
    most = peaks[fastest] / flop
    if rate > most:
        raise InputError(
            f"tokens per second = {float(rate):.6g} of a GPU: {machine.name} computes at most "
            f"{float(most):.6g} in {fastest}; gpus says how many share what was measured"
        )


def _peak(machine: Machine, precision: str) -> Figure:
    figure = looked_up("precision of the machine", precision, machine.matrix)
    if figure.value.free_symbols:
        raise InputError(f"machine {machine.name!r} has symbols for rates: MFU needs numbers")
    return figure


def _counted(
    model: str | Model, seq: int | None, names: str, numbers: Mapping[str, int | Fraction] | None
) -> list[TokenFlop]:
    counts, _ = counted(model, seq, names, numbers)
    strange = sorted({str(symbol) for count in counts for symbol in count.total.free_symbols})
    if strange:
        raise InputError(f"{', '.join(strange)} without a number: --seq and --set give numbers")
    return counts


def _percent(share: Expr) -> str:
    return f"{100 * float(share):.2f} %"
