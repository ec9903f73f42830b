"""Workbooks: a job's numbers as live formulas, from inputs that can be changed.

Every named step of the workings is a cell; inputs are named cells with their sources, and every
text is written as text, whatever it begins with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from symbolic_cost.checking import checked
from symbolic_cost.emit.cells import Formulas
from symbolic_cost.emit.code import identifier
from symbolic_cost.emit.files import check_ending, write_whole
from symbolic_cost.emit.formulas import plain
from symbolic_cost.errors import InputError, Problems, visible
from symbolic_cost.jobs.inputs import Input
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.workings import MEMORY, SENT, TIME, Step, Workings
from symbolic_cost.jobs.worksheets import FIRST, Worksheets
from symbolic_cost.numeric.binding import LARGEST_COUNT
from symbolic_cost.program.scalars import rounded
from symbolic_cost.symbols import GLOSSARY
from symbolic_cost.systems.step import RESULTS, STEP_PARTS
from symbolic_cost.units import Unit

SHEETS = {TIME: "Time", MEMORY: "Memory", SENT: "Communication"}
"""Sheets of the steps, by what these are about."""

_SCALES = {
    Unit.BYTE.value: ("GiB", str(1 << 30)),
    Unit.SECOND.value: ("ms", "1E-3"),
    Unit.FLOP.value: ("TFLOP", "1E12"),
    Unit.FLOP_PER_SECOND.value: ("TFLOP/s", "1E12"),
}
"""The unit that people read, and how many of the base unit it is."""


@checked
def workbook(job: Job, path: str) -> None:
    """Write a job as a workbook with live formulas: change a size, a degree or a rate.

    Args:
        job: model, strategy and machine; b and M start at 1 where they have no number.
        path: of the .xlsx file, written whole or not at all.

    Raises:
        InputError: XlsxWriter is missing, another ending, symbols without numbers, no machine.
    """
    workings, problems = Workings(job), Problems()
    problems.attempt(check_ending, "workbook", path, ".xlsx")
    problems.attempt(lambda: workings.inputs)
    problems.refuse()
    write_whole(path, workbook_bytes(workings))


def workbook_bytes(workings: Workings) -> bytes:
    """Return the file of a workbook; the same for the same workings."""
    try:
        from xlsxwriter import Workbook
    except ImportError:
        raise InputError(
            "a workbook needs the package XlsxWriter: pip install 'symbolic_cost[xlsx]'"
        ) from None
    inputs, steps = workings.inputs, workings.steps  # refused before anything is made
    buffer = BytesIO()
    parsed = ("strings_to_formulas", "strings_to_urls", "strings_to_numbers")  # text stays text
    book = Workbook(buffer, {"in_memory": True, **dict.fromkeys(parsed, False)})
    book.set_properties({"created": datetime(2000, 1, 1, tzinfo=UTC)})
    _Writer(book, workings, cell_names(one.name for one in inputs)).write(inputs, steps)
    book.close()
    return buffer.getvalue()


def cell_names(symbols: Iterable[str]) -> dict[str, str]:
    """Return a defined name for every symbol: none is a cell's address, none differs by case alone.

    >>> cell_names(["b", "B", "m1", "machine.links.=x.ranks", "machine.links.x.ranks"])
    {'b': 'b_', 'B': 'B_cap', 'm1': 'tp_', 'machine.links.=x.ranks': 'machine_links_x_ranks_', \
'machine.links.x.ranks': 'machine_links_x_ranks_2_'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for symbol in symbols:
        known = identifier(_WORDS.get(symbol, symbol))
        twin = known != known.lower() and known.lower() in GLOSSARY
        name, count = f"{known}_cap" if twin else f"{known}_", 1
        while name.lower() in taken:
            count += 1
            name = f"{known}_{count}_"
        taken.add(name.lower())
        names[symbol] = name
    return names


_WORDS = {"m1": "tp", "s1": "ulysses"}
"""Degrees that the field calls otherwise."""


class _Writer(Worksheets):
    def __init__(self, book: Any, workings: Workings, names: Mapping[str, str]) -> None:  # noqa: ANN401 - XlsxWriter's is untyped
        super().__init__(book, ("Summary", "Inputs", "Memory", "Communication", "Time", "Parts"))
        self._workings, self._names = workings, names
        self._parts: list[str] = []
        program = workings.program
        self._formulas = Formulas(program.nodes, names, self._part)
        self._where: dict[str, str] = {}
        self._known: Mapping[str, Any] = {}

    def write(self, inputs: tuple[Input, ...], steps: tuple[Step, ...]) -> None:
        numbers = {one.name: one.value for one in inputs if one.value is not None}
        self._known = {
            name: rounded(value) for name, value in self._workings.program.exact(numbers).items()
        }
        self._inputs(inputs)
        self._steps(steps)
        self._checks(len(inputs))
        self._summary()
        self._last()

    # ------------------------------------------------------------------ inputs

    def _inputs(self, inputs: tuple[Input, ...]) -> None:
        said = "Change the blue cells; everything else follows. Every number has its source."
        heads = ("symbol", "number", "accepted", "meaning", "source", "name in formulas")
        self.head("Inputs", "Inputs", said, heads)
        sheet = self.sheets["Inputs"]
        for row, one in enumerate(inputs, FIRST):
            name, cell = self._names[one.name], f"Inputs!$B${row + 1}"
            self.text("Inputs", row, 0, one.name.removeprefix("machine."), "name")
            style = "fixed" if one.least == one.most else one.counts
            sheet.write_number(row, 1, rounded(one.value or 0), self.style(style))
            for column, text in enumerate((_accepted(one), one.meaning, one.source, name), 2):
                self.text("Inputs", row, column, text)
            sheet.data_validation(row, 1, row, 1, _validation(one))
            self.book.define_name(name, f"={cell}")
        self.widths("Inputs", (26, 18, 22, 46, 70, 34))

    def _checks(self, count: int) -> None:
        """Write what the inputs must meet, below them."""
        checks, first = self._workings.checks, FIRST + count + 2
        self.text("Inputs", first - 1, 0, "What these numbers must meet", "head")
        for row, one in enumerate(checks, first):
            formula = self._formulas.formula(self._workings.program.outputs[one.name])[1:]
            value = "met" if self._known[one.name] == 0 else "NOT MET"
            text = f'=IF({formula}=0,"met","NOT MET")'
            self.formula(("Inputs", row, 0), text, value, "check")
            self.text("Inputs", row, 1, one.message)
        failing = {"type": "cell", "criteria": "==", "value": '"NOT MET"'}
        failing["format"], last = self.style("bad"), first + max(1, len(checks))
        self.sheets["Inputs"].conditional_format(first, 0, last - 1, 0, failing)
        self._where["checks"] = f"Inputs!$A${first + 1}:$A${last}"

    # ------------------------------------------------------------------ steps

    def _steps(self, steps: tuple[Step, ...]) -> None:
        said = "One line per named step, in the order in which they follow from each other."
        heads = ("step", "number", "unit", "number", "unit", "formula")
        rows = dict.fromkeys(SHEETS, FIRST)
        for sheet in SHEETS.values():
            self.head(sheet, f"{sheet} of {self._title}", said, heads)
            self.widths(sheet, (52, 16, 8, 14, 8, 120))
        definitions = self._workings.definitions
        for one in steps:
            row, sheet = rows[one.about], SHEETS[one.about]
            rows[one.about] += 1
            node = self._workings.program.outputs[one.name]
            formula, cell = self._formulas.formula(node), f"{sheet}!$B${row + 1}"
            value = self._known[one.name]
            self.text(sheet, row, 0, one.name, "name")
            self.formula((sheet, row, 1), formula, value, "number")
            self.text(sheet, row, 2, one.unit)
            if one.unit in _SCALES:  # once more in the unit that people read
                shown, scale = _SCALES[one.unit]
                self.formula((sheet, row, 3), f"={cell}/{scale}", value / float(scale), "shown")
                self.text(sheet, row, 4, shown)
            self.text(sheet, row, 5, plain(definitions[one.name]), "formula")
            self._formulas.cells.setdefault(node, cell)
            self._where[one.name] = cell

    def _part(self, formula: str) -> str:
        """Put a part of a long formula on its own sheet."""
        self._parts.append(formula)
        row = FIRST + len(self._parts) - 1
        self.text("Parts", row, 0, f"part {len(self._parts)}", "name")
        self.sheets["Parts"].write_formula(row, 1, formula, self.style("number"))
        return f"Parts!$B${row + 1}"

    @property
    def _title(self) -> str:
        job = self._workings.job
        return f"one step of {job.model.name} on {self._workings.machine.name}"

    # ------------------------------------------------------------------ summary

    def _summary(self) -> None:
        """Write the figures of the step, its parts, the memory of every stage, and what holds."""
        self.head("Summary", self._title.capitalize(), _HOW, ("figure", "number", "unit"))
        row = FIRST
        together, apart = "the inputs go together", "NO: see the conditions on Inputs"
        met = all(self._known[one.name] == 0 for one in self._workings.checks)
        test = f'COUNTIF({self._where["checks"]},"NOT MET")=0'
        self._verdict(row, "conditions", test, (together, apart), met=met)
        row += 1
        if "memory.left" in self._where:
            test, met = f"{self._where['memory.left']}>=0", self._known["memory.left"] >= 0
            self._verdict(row, "memory", test, ("fits", "DOES NOT FIT"), met=met)
            row += 1
        memory = ("memory.peak", "memory.beside", "memory.usable", "memory.left")
        units = {one.name: one.unit for one in self._workings.steps}
        names = [name for name in (*RESULTS, *STEP_PARTS, *memory) if name in self._where]
        first = {name: row + place for place, name in enumerate(names)}
        for name, at in first.items():
            self._line(name, at, units[name])
        row = max(row + len(names), _CHART_ROW + _MOST_PARTS) + 1
        for note in self._workings.notes:
            self.text("Summary", row, 0, note, "note")
            row += 1
        self.widths("Summary", (26, 26, 10))
        parts = [first[name] for name in STEP_PARTS if name in first]
        self._chart_of_time(min(parts), max(parts))
        self._chart_of_memory()

    def _verdict(
        self, row: int, name: str, test: str, words: tuple[str, str], *, met: bool
    ) -> None:
        """Write which of two things holds, by a formula."""
        yes, no = words
        self.text("Summary", row, 0, name, "name")
        text = f'=IF({test},"{yes}","{no}")'
        self.formula(("Summary", row, 1), text, yes if met else no, "check")

    def _line(self, name: str, row: int, unit: str) -> None:
        shown, scale = _SCALES.get(unit, (unit, "1"))
        value = self._known[name] / float(scale)
        self.text("Summary", row, 0, name.replace("memory.", "memory, "), "name")
        style = "shown" if unit in _SCALES else "ratio"
        self.formula(("Summary", row, 1), f"={self._where[name]}/{scale}", value, style)
        self.text("Summary", row, 2, "" if shown == "1" else shown)

    def _chart_of_time(self, first: int, last: int) -> None:
        chart = self.book.add_chart({"type": "bar"})
        chart.add_series(
            {
                "categories": ["Summary", first, 0, last, 0],
                "values": ["Summary", first, 1, last, 1],
                "fill": {"color": _COLOURS[0]},
            }
        )
        chart.set_title({"name": "Parts of the step [ms]", "name_font": {"size": 11}})
        chart.set_legend({"none": True})
        chart.set_y_axis({"reverse": True})
        chart.set_size({"width": 520, "height": 260})
        self.sheets["Summary"].insert_chart("E3", chart)

    def _chart_of_memory(self) -> None:
        """Draw what the ranks of every stage hold, one stack per stage."""
        stages = self._workings.open_job.structure.stages
        own = [n for n in self._where if n.startswith("memory.") and " on the host" not in n]
        parts = dict.fromkeys(n.split(".", 2)[2] for n in own if n.count(".") > 1)
        kinds = [part for part in parts if not part.startswith("at ") and part != "peak"]
        row, gib = _CHART_ROW, 1 << 30
        self.text("Summary", row, 4, "memory by stage [GiB]", "head")
        for column, stage in enumerate(stages, 5):
            self.text("Summary", row, column, str(stage), "head")
        for place, kind in enumerate(kinds, row + 1):
            self.text("Summary", place, 4, kind, "name")
            for column, stage in enumerate(stages, 5):
                name = f"memory.{stage}.{kind}"
                if name in self._where:
                    text, value = f"={self._where[name]}/{gib}", self._known[name] / gib
                    self.formula(("Summary", place, column), text, value, "shown")
        chart = self.book.add_chart({"type": "column", "subtype": "stacked"})
        for place, _ in enumerate(kinds, row + 1):
            series = {
                "name": ["Summary", place, 4],
                "categories": ["Summary", row, 5, row, 4 + len(stages)],
                "values": ["Summary", place, 5, place, 4 + len(stages)],
                "fill": {"color": _COLOURS[(place - row - 1) % len(_COLOURS)]},
            }
            chart.add_series(series)
        chart.set_title({"name": "Memory of a rank by stage [GiB]", "name_font": {"size": 11}})
        chart.set_size({"width": 520, "height": 300})
        self.sheets["Summary"].insert_chart("E17", chart)
        self.sheets["Summary"].set_column(4, 4, 24)

    def _last(self) -> None:
        said = "Parts of formulas that are too long for one cell."
        if self._parts:
            self.head("Parts", "Parts of long formulas", said, ("part", "number"))
            self.sheets["Parts"].set_column(0, 1, 16)
        else:
            self.sheets["Parts"].hide()
        for sheet in self.sheets.values():
            sheet.set_landscape()
            sheet.fit_to_pages(1, 0)
            sheet.set_paper(9)


def _accepted(one: Input) -> str:
    if one.least == one.most:
        return f"{one.least} alone"
    if one.counts == "whole":
        return f"a whole number from {one.least}"
    return "a number above 0"


def _validation(one: Input) -> dict[str, object]:
    whole = one.counts == "whole"
    bounds: dict[str, object] = {"criteria": ">", "value": 0}
    if whole:
        most = LARGEST_COUNT if one.most is None else one.most
        bounds = {"criteria": "between", "minimum": one.least, "maximum": most}
    said = _accepted(one).replace("alone", "alone is accepted: others have other steps")
    about = visible(one.name.removeprefix("machine."))
    return {
        "validate": "integer" if whole else "decimal",
        **bounds,
        "input_title": about[:_SHORT],
        "input_message": f"{one.meaning}: {said}"[:_MESSAGE],
        "error_title": about[:_SHORT],
        "error_message": f"Accepted is {said}."[:_MESSAGE],
    }


_SHORT, _MESSAGE = 32, 255
"""Characters that a spreadsheet takes in a title and in a message."""

_CHART_ROW, _MOST_PARTS = 33, 9
"""Row of the numbers of a picture, and how many these are at most."""

_HOW = "Live formulas: change the inputs on the sheet Inputs, and all numbers follow."

_COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#999999")
