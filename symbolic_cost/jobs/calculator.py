"""Calculators: one offline page that computes a model's step in the browser.

The page holds a program for every structure that its controls can reach, with what these share
once, as packed text; a node names its arguments by how far they stand before it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from fractions import Fraction
from zlib import compress

from symbolic_cost.checking import checked
from symbolic_cost.emit.files import check_ending, write_whole
from symbolic_cost.emit.html import escaped
from symbolic_cost.errors import InputError, Problems, refuse, visible
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.inputs import figure_unit
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.packed import DEGREES, Packed
from symbolic_cost.jobs.provenance import figures
from symbolic_cost.jobs.structures import CLASSES, Structures, rates_of
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.numeric.binding import LARGEST_COUNT
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.parallel.layout import AUTO
from symbolic_cost.reading import package_data
from symbolic_cost.symbols import GLOSSARY
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.records import machine, machine_names
from symbolic_cost.systems.stacks import ROOFLINE, stack_name, usual
from symbolic_cost.systems.step import STEP_PARTS

_START = "h100"
_TRAINING = ("b", "l", "M")


@checked
def calculator(job: Job, path: str) -> None:
    """Write a page that computes a model's step in any browser, without a network.

    Args:
        job: its model, conventions, precision, optimizer, schedule and attention hold for the
            page; sizes, degrees and the machine are where it starts.
        path: of the .html file, written whole or not at all.

    Raises:
        InputError: another ending, a strategy or a machine that the page has not.
    """
    structures = Structures(job, {name: tuple(own) for name, own in CLASSES.items()})
    problems = Problems()
    problems.attempt(check_ending, "calculator", path, ".html", ".htm")
    problems.attempt(_Page(structures).checked)  # before anything is derived
    problems.refuse()
    write_whole(path, page(structures))


def page(structures: Structures) -> str:
    """Return the text of a page."""
    whole = _Page(structures)
    whole.checked()
    written = whole.data()
    data = json.dumps(written, ensure_ascii=True, separators=(",", ":"))
    packed = b64encode(compress(data.encode(), 9)).decode()
    text: str = package_data("emit/calculator.html")
    return text.replace("%TITLE%", escaped(str(written["title"]))).replace("%DATA%", packed)


class _Page:
    def __init__(self, structures: Structures) -> None:
        self._of, self._job, self._packed = structures, structures.job, Packed(structures)
        self._sources: dict[str, int] = {}

    def data(self) -> dict[str, object]:
        job = self._job
        start, models, machines = self._start(), list(self._models()), list(self._machines())
        names, words = self._packed.names()
        records, runs = self._packed.ops()
        about = (line for line in header(job) if line.startswith(("attention", "conventions")))
        return {
            "title": visible(f"{job.model.name}: one training step"),
            "about": "; ".join(about),
            "notes": [visible(note) for note in self._notes()],
            "symbols": [self._symbol(name) for name in self._packed.symbols],
            "nodes": self._packed.nodes,
            "names": names,
            "words": words,
            "choices": [".".join(choice) for choice in self._of.every],
            "outputs": list(self._packed.outputs()),
            "ops": records,
            "ops_of": runs,
            "recomputes": list(dict.fromkeys(choice[-1] for choice in self._of.every)),
            "parts": list(STEP_PARTS),
            "units": self._of.units,
            "most": LARGEST_COUNT,
            "models": models,
            "machines": machines,
            "sources": list(self._sources),
            "start": start,
        }

    # ------------------------------------------------------------------ inputs

    def _symbol(self, name: str) -> dict[str, object]:
        if name in GLOSSARY:
            entry = GLOSSARY[name]
            group = "degree" if name in DEGREES else "run" if name in _TRAINING else "size"
            label, meaning = "tp" if name == "m1" else name, entry.meaning
            counts, zero = int(entry.integer), 0
        else:
            place, group, meaning = name.removeprefix("machine."), "machine", figure_unit(name)
            label, last = _labelled(place), place.rpartition(".")[2]
            counts, zero = int(last == "ranks"), int(last in _MAY_BE_ZERO)
        words = {"label": visible(label), "meaning": visible(meaning), "group": group}
        return {"name": name, **words, "counts": counts, "zero": zero}

    def checked(self) -> dict[str, str]:
        """Return the rates and options where the page starts."""
        job, zero, stack = self._job, self._job.strategy.zero, stack_name(self._job.methods.stack)
        strange = [name for name in job.strategy.degrees if name not in {"tp", "sp", "pp", "dp"}]
        policies = {name: recompute_policy(name) for name in CLASSES["recompute"]}
        again = [name for name, policy in policies.items() if policy == job.training.recompute]
        own = job.machine or machine(_START)
        rates = rates_of(own, self._of.units)
        said = {
            f"strategy {', '.join(strange)}: tp, sp, pp and dp are accepted on the page": strange,
            f"recompute: {', '.join(policies)} are accepted on the page": not again,
            f"zero={zero}: 0, 1 and 3 are accepted on the page": zero not in {0, 1, 3},
            f"machine {visible(own.name)}: one with two kinds of links, with a rate in "
            f"{self._of.units} and without efficiencies by size is accepted on the page": not rates,
            f"stack {stack}: the page has each machine's own efficiencies (stack {ROOFLINE})": (
                stack not in {usual(job.machine), ROOFLINE}
            ),
            f"layout {job.training.layout}: blocks are evenly on stages on the page": (
                job.training.layout not in {AUTO, "even"}
            ),
            "offload: the page has no link to a host": job.training.offload,
        }
        problems = [text for text, wrong in said.items() if wrong]
        if problems or rates is None:
            raise InputError(problems)
        return {
            **{name: _plain(one.value) for name, one in rates.items()},
            "sp": str(int("sp" in job.strategy.degrees)),
            "zero": str(zero),
            "recompute": again[0],
        }

    def _start(self) -> dict[str, str]:
        values = self.checked() | self._sizes()
        refuse(
            f"no number for {name} ({GLOSSARY[name].meaning}): bind it, as in --set {name}=8"
            for name in self._packed.symbols
            if name not in values
        )
        options = ("sp", "zero", "recompute")
        return {name: values[name] for name in (*self._packed.symbols, *options)}

    def _sizes(self) -> dict[str, str]:
        """Return the sizes where the page starts: the job's, else those of the family's first."""
        job = self._job
        named = [one for one in CATALOG.values() if one.family == job.model.family and one.bindings]
        first = dict(named[0].bindings) if named and not job.model.bindings else {}
        values: dict[str, object] = {"b": 1, "M": 1, **dict.fromkeys(DEGREES, 1), **first}
        values |= job.counted_values
        return {name: str(value) for name, value in values.items() if name in self._packed.symbols}

    def _models(self) -> Iterator[dict[str, object]]:
        for one in CATALOG.values():
            if one.family == self._job.model.family and one.bindings:
                own = {n: str(v) for n, v in one.bindings.items() if n in self._packed.symbols}
                yield {"name": one.name, "values": {n: v for n, v in own.items() if n != "b"}}

    def _machines(self) -> Iterator[dict[str, object]]:
        """Yield the machines that the page can have, the job's own first if it has no name."""
        own = self._job.machine
        listed: list[Machine] = [] if own is None or own.name in machine_names() else [own]
        listed += [machine(name) for name in machine_names()]
        for one in listed:
            rates = rates_of(one, self._of.units)
            if rates is None:
                continue
            titles = {known.name: f"{known.source} ({known.status})" for known in figures(one)}
            by_figure = {id(figure): titles[name] for name, figure in one.figures()}
            yield {
                "name": visible(one.name),
                "values": {name: _plain(figure.value) for name, figure in rates.items()},
                "sources": {
                    name: self._sources.setdefault(
                        visible(by_figure.get(id(figure), "neglected (nominal)")),
                        len(self._sources),
                    )
                    for name, figure in rates.items()
                },
            }

    def _hidden(self) -> str:
        overlaps = self._job.methods.overlaps.items()
        said = ", ".join(f"{mesh} {one.name}" for mesh, one in overlaps)
        return f"overlap of {said}" if said else "no communication hidden"

    def _notes(self) -> Iterator[str]:
        training = self._job.training
        yield (
            f"Held as they are: precision {training.precision}, optimizer {training.optimizer}, "
            f"schedule {training.schedule}, the kernels of attention, the counting conventions, "
            f"rings inside and between domains, {self._hidden()}, roofline "
            f"{self._job.methods.roofline.name}, blocks evenly on stages. Seconds are those of "
            "--stack roofline: each machine's own efficiencies, of no software."
        )
        yield (
            "Not covered: context, expert and two-dimensional parallelism, ZeRO 2, other "
            "schedules, offloading, more tensor-parallel ranks than key/value heads, uneven "
            "stages. The library and its command line compute these."
        )
        yield from (
            line
            for line in header(self._job)
            if line.startswith(("attention", "conventions", "inputs gathered", "ranks in the"))
        )
        yield "This page needs no network and sends nothing; its address holds what you typed."


_MAY_BE_ZERO = ("latency", "half", "launch", "host")

_LABELS = {
    "half": "product at half the rate",
    "launch": "kernel launch",
    "host": "op issued by host",
}


def _labelled(place: str) -> str:
    """Return what people call a figure of the machine.

    >>> _labelled("links.domain.bandwidth"), _labelled("efficiencies.matrix")
    ('domain bandwidth', 'matrix efficiency')
    """
    kind, *rest = place.split(".")
    if kind == "efficiencies":
        return _LABELS.get(rest[0], f"{rest[0]} efficiency")
    if kind in {"matrix", "vector"}:
        return f"{kind} peak, {rest[0]}"
    return " ".join(rest if kind == "links" else place.split("."))


def _plain(value: object) -> str:
    """Return a number as people type it: an integer, or the float next to it."""
    number = float(value)  # type: ignore[arg-type]  # SymPy's number
    if number.is_integer() and abs(number) < _LONG:
        return str(int(number))
    mantissa, _, exponent = f"{number:.16e}".partition("e")
    short = f"{float(mantissa):.16g}e{int(exponent)}"
    return short if float(short) == number and not _LEAST <= number < _LONG else repr(number)


_LEAST, _LONG = Fraction(1, 1000), 10**6
"""Numbers between are written without an exponent."""
