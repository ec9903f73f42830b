"""Options that commands share: how a model is costed, and how the result leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, NoReturn

import click

from symbolic_cost.cache import names_a_file
from symbolic_cost.cli.contradictions import DRAWS, checked_form, read_line
from symbolic_cost.cli.declared import parameters
from symbolic_cost.emit.files import check_target, write_whole
from symbolic_cost.emit.plots import is_picture, write_picture
from symbolic_cost.errors import InputError, NothingFitsError, Problems
from symbolic_cost.grouping import grouped
from symbolic_cost.records import dataclass

if TYPE_CHECKING:
    from symbolic_cost.analysis.notations import Notation
    from symbolic_cost.emit.sheet import Sheet
    from symbolic_cost.explore.subject import Subject
    from symbolic_cost.jobs.job import Job
    from symbolic_cost.jobs.launch_files import Launched

Options = dict[str, Any]

_OF_A_FILE = {"precision", "recompute", "schedule", "optimizer", "offload", "layout", "train"}
"""Options that a launch file may say; what the user did not type is not the user's word."""


@dataclass(frozen=True, slots=True)
class Choices:
    """How a model is run and costed, as typed: numbers, strategy, and options of `jobs.job`."""

    settings: tuple[str, ...]
    strategy: str
    options: Mapping[str, Any]
    typed: frozenset[str] = frozenset()

    def job(self, model: str, **options: Any) -> Job:
        """Return the job of a named model.

        Raises:
            InputError: every problem of every option.
        """
        from symbolic_cost.jobs.job import job
        from symbolic_cost.jobs.launch_files import launched
        from symbolic_cost.jobs.numbers import degree_names
        from symbolic_cost.jobs.tied import split_ties, tied
        from symbolic_cost.numeric.assignments import parse_assignments

        problems = Problems()
        ties, settings = split_ties(self.settings)
        numbers = problems.attempt(parse_assignments, settings, degree_names())
        chosen = {**self.options, **options}
        if launched(model) is not None:  # what the user did not type, the file says
            for name in _OF_A_FILE - self.typed:
                chosen.pop(name, None)
        make = partial(job, **chosen)
        own = problems.attempt(tied, model, ties) if ties else model
        built = problems.attempt(make, own or model, self.strategy, numbers)
        problems.refuse()
        return built

    def jobs(self, model: str, strategies: Iterable[str], **options: Any) -> list[Job]:
        """Return the job, and those of further strategies, without stages without a schedule."""
        from symbolic_cost.parallel.parsing import parse_strategy

        chosen = (self.strategy, *strategies)
        staged = ["pp" in parse_strategy(one) for one in chosen]
        asked = {**self.options, **options}
        flat = {name: one for name, one in asked.items() if name not in ("schedule", "layout")}
        runs = zip(chosen, (asked if p or not any(staged) else flat for p in staged), strict=True)
        return [replace(self, strategy=one, options=own).job(model) for one, own in runs]

    def sheet(self, model: str, make: Callable[[Job], Sheet], **options: Any) -> Sheet:
        """Return a table of the job's stage; for --stage all, of its stages one below another."""
        if self.options["stage"] != "all":
            return make(self.job(model, **options))
        from symbolic_cost.emit.sheet import stacked

        first = replace(self, options={**self.options, "stage": "first"}).job(model, **options)
        if "pp" not in first.strategy:
            return make(first)
        stages = (stage.value for stage in first.structure.stages)
        return stacked("stage", {stage: make(first.replace(stage=stage)) for stage in stages})


@dataclass(frozen=True, slots=True)
class Output:
    """Where a result goes, in which format, and how wide a picture is."""

    form: str
    file: str | None
    width: str = ""

    @property
    def is_picture(self) -> bool:
        """Whether the file is a picture."""
        return is_picture(self.file)

    def draw(self, draw: Callable[..., None], *what: object) -> None:
        """Draw a picture of some width into the file."""
        write_picture(self.file or "", lambda figure: draw(figure, *what), self.width)

    def sheet(self, sheet: Sheet) -> None:
        """Print a sheet, or write it to the file."""
        from symbolic_cost.emit.sheet import render

        self.text(render(sheet, self.form))

    def nothing(self, error: NothingFitsError) -> None:
        """Print that nothing is the answer, and what is nearest; no file is written."""
        from symbolic_cost.emit import sheet

        columns = sheet.headed("what is nearest")
        rows = tuple((problem,) for problem in error.problems)
        click.echo(sheet.render(sheet.Sheet("Nothing fits", columns, rows), self.form))

    def text(self, text: str | bytes) -> None:
        """Print a text, or write it to the file, whole or not at all."""
        if self.file is None:
            click.echo(text.rstrip("\n") if isinstance(text, str) else text)
            return
        whole = isinstance(text, bytes) or text.endswith("\n")
        write_whole(self.file, text if whole else f"{text!s}\n")


def nothing_fits() -> NoReturn:
    """End a command whose answer is that nothing is as it was asked for."""
    click.get_current_context().exit(1)


def every_stage(choices: Choices) -> Choices:
    """Return choices of a command that shows every stage."""
    if "stage" in choices.typed:
        raise InputError("--stage: every stage of the pipeline is written; leave it out")
    return choices


@dataclass(frozen=True)
class Searched:
    """What candidates are runs of, as typed: a model, what they share and what may be chosen."""

    model: str
    gpus: int | None
    settings: tuple[str, ...]
    choose: tuple[str, ...]
    shared: Mapping[str, Any]
    typed: frozenset[str] = frozenset()

    @cached_property
    def file(self) -> Launched | None:
        """The launch file that says the model, if one does."""
        if not names_a_file(self.model):  # what is kept of a search needs no SymPy
            return None
        from symbolic_cost.jobs.launch_files import launched

        return launched(self.model)

    def of_file(self, global_batch: int | None) -> tuple[int, int | None]:
        """Return ranks and global batch as typed, or else as a launch file says them."""
        file = self.file
        gpus = file.ranks if self.gpus is None and file is not None else self.gpus
        if gpus is None:
            where = f": {self.model} says no number of ranks" if file is not None else ""
            raise click.UsageError(f"Missing option '--gpus'{where}.")
        said = None if file is None else file.global_batch
        return gpus, said if global_batch is None else global_batch

    def job(self, problems: Problems, **options: Any) -> tuple[Job, dict[str, Any]]:
        """Return the job that candidates share, and what may be chosen; problems are collected."""
        from symbolic_cost.explore.search_options import read_choices

        chosen = problems.attempt(read_choices, self.choose)
        return problems.attempt(self._job, options), chosen

    def subject(
        self, problems: Problems, ranks: tuple[int, int] | None, **options: Any
    ) -> tuple[Subject, dict[str, Any]]:
        """Return the same as a search takes it: what is kept of the job where that is enough.

        Args:
            problems: are collected.
            ranks: and the global batch of a search, whose programs are derived apart.
            options: of the job.
        """
        from symbolic_cost.explore.apart import derived_apart
        from symbolic_cost.explore.search_options import read_choices, space_of, usual
        from symbolic_cost.explore.subject import subject_of_words

        words = {**self.shared, **options, "model": self.model, "set": " ".join(self.settings)}
        chosen = problems.attempt(read_choices, self.choose)
        make = partial(self._subject, options)
        if ranks is not None and not problems.texts:
            derived_apart(words, make, lambda facts: usual(facts, space_of(*ranks, chosen), chosen))
        return problems.attempt(subject_of_words, words, make), chosen

    def _subject(self, options: Mapping[str, Any]) -> Subject:
        from symbolic_cost.explore.facts import subject

        return subject(self._job(options))

    def _job(self, options: Mapping[str, Any]) -> Job:
        from symbolic_cost.jobs.job import job
        from symbolic_cost.numeric.assignments import parse_assignments

        problems = Problems()
        numbers = problems.attempt(parse_assignments, self.settings)
        chosen = {**self.shared, **options}
        model: str | Launched = self.model
        if self.file is not None:  # what the user did not type, the file says
            model = self.file.whole
            for name in _OF_A_FILE - self.typed:
                chosen.pop(name, None)
        own = problems.attempt(partial(job, **chosen), model, "", numbers)
        problems.refuse()
        return own


def _choices(options: Options, _: Options) -> Options:
    typed = read_line(click.get_current_context()).typed
    settings, strategy = options.pop("settings"), options.pop("strategy")
    return {"choices": Choices(settings, strategy, typed_options(**options), typed)}


def _line(options: Options, before: Options) -> Options:
    """Return what a sweep varies, of a model and how it is trained."""
    from symbolic_cost.explore.lines import Line, comma_separated
    from symbolic_cost.explore.sweep_run import Wanted
    from symbolic_cost.jobs.launch_files import strategy_of_file

    model, choices, trained = (before.pop(name) for name in ("model", "choices", "trained"))
    batch, bound = trained.pop("global_batch"), "none" if options.pop("yes") else "usual"
    columns, texts = options.pop("columns"), (*options.pop("vary"), *options.pop("more"))
    line = Line(
        make=lambda strategy: replace(choices, strategy=strategy).job(model, **trained),
        strategy=choices.strategy or strategy_of_file(model),
        texts=texts,
        gpus=options.pop("gpus"),
        batch=batch,
        wanted=Wanted(columns=comma_separated(columns), **options),
        bound=bound,
    )
    return {"line": line}


def _searched(options: Options, _: Options) -> Options:
    own = {name: options.pop(name) for name in ("model", "gpus", "settings", "choose")}
    typed = read_line(click.get_current_context()).typed
    return {"of": Searched(**own, shared=typed_options(**options), typed=typed)}


def _noted(options: Options) -> Notation | None:
    """Have what the command writes in the letters of a notation; return it if one is named."""
    from symbolic_cost.analysis.notations import OWN, notation
    from symbolic_cost.emit.naming import written_in

    named, symbols = options.pop("notation"), options.pop("symbols")
    letters = notation(named or OWN, symbols)
    click.get_current_context().with_resource(written_in(letters))
    return letters if named or symbols else None


def _notated(options: Options, _: Options) -> Options:
    _noted(options)
    return {}


def _cost_options(options: Options, _: Options) -> Options:
    """Return what `check` and `derive` ask of a cost."""
    from symbolic_cost.jobs.numbers import degree_names
    from symbolic_cost.jobs.tied import split_ties
    from symbolic_cost.numeric.assignments import parse_assignments

    letters = _noted(options)
    options["ties"], settings = split_ties(options.pop("settings"))
    options["numbers"] = parse_assignments(settings, degree_names())
    return {"asked": {**options, "notation_name": letters}}


def _output(options: Options, before: Options) -> Options:
    line, file = read_line(click.get_current_context()), options["file"]
    form, width = checked_form(line), before.pop("width", "") if line.command in DRAWS else ""
    out = Output(form, file, width)
    drawable = ("against", "width") if line.command in DRAWS else ()
    unread = [name for name in drawable if line.values.get(name)]
    if unread and not out.is_picture:
        raise InputError([f"--{name} is not read: of -o FILE.svg alone" for name in unread])
    return {"out": out}


def typed_options(**options: Any) -> Options:
    """Return the options that somebody said."""
    return {name: one for name, one in options.items() if one is not None}


_BUNDLES: Mapping[str, Callable[[Options, Options], Options]] = {
    "costing": _choices,
    "training": lambda options, _: {"trained": options},
    "sweeping": _line,
    "searched": _searched,
    "notated": _notated,
    "asked": _cost_options,
    "output": _output,
    "planned": _output,
}
"""What a command gets in place of the options of a group, beside the arguments before it."""


def _symbol_name(by: str) -> str:
    """Return the name of a symbol that is asked for: m1 of tp."""
    from symbolic_cost.jobs.numbers import degree_names

    return degree_names().get(by, by)


def command(
    name: str, cls: type[click.Command] = click.Command, **settings: Any
) -> Callable[[Callable[..., object]], Any]:
    """Make a function a command, which takes what options.toml lists for its name."""
    listed = [*parameters(name)]
    groups = grouped((group, str(one.name)) for group, one in listed)
    asks = any("--wrt" in one.opts for _, one in listed)

    def declared(function: Callable[..., object]) -> click.Command:
        @wraps(function)
        def bundled(**arguments: Any) -> object:
            if asks and arguments.get("by"):
                arguments["by"] = _symbol_name(arguments["by"])
            if arguments.get("file") is not None:  # said before anything is derived
                check_target(arguments["file"])
            for group in filter(_BUNDLES.__contains__, groups):
                taken = {one: arguments.pop(one) for one in groups[group]}
                arguments |= _BUNDLES[group](taken, arguments)
            try:
                return function(**arguments)
            except NothingFitsError as error:
                if "out" not in arguments:
                    raise
                arguments["out"].nothing(error)
                nothing_fits()

        params = [one for _, one in listed]
        return click.command(name.rpartition(" ")[2], cls, params=params, **settings)(bundled)

    return declared
