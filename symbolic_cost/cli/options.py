"""Options that commands share: how a model is costed, and how the result leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from symbolic_cost.cli.contradictions import checked_form, read_line
from symbolic_cost.emit import FORMATS
from symbolic_cost.errors import Problems
from symbolic_cost.records import dataclass

if TYPE_CHECKING:
    from symbolic_cost.emit.sheet import Sheet
    from symbolic_cost.explore.lines import Line
    from symbolic_cost.explore.subject import Subject
    from symbolic_cost.jobs.job import Job

Command = Callable[..., Any]


_OF_A_FILE = {"precision", "recompute", "schedule", "optimizer", "offload", "layout"}
"""Options that a launch file may say; what the user did not type is not the user's word."""


@dataclass(frozen=True, slots=True)
class Choices:
    """How a model is run and costed, as typed: numbers, strategy, and options of `jobs.job`."""

    settings: tuple[str, ...]
    strategy: str
    options: Mapping[str, Any]
    typed: frozenset[str] = frozenset()

    def job(self, model: str, **options: Any) -> Job:  # noqa: ANN401 - checked by job
        """Return the job of a named model.

        Args:
            model: name, path of a config.json or of a launch script.
            **options: of this command alone.

        Raises:
            InputError: every problem of every option.
        """
        from symbolic_cost.jobs.job import job
        from symbolic_cost.jobs.launched import launched
        from symbolic_cost.jobs.numbers import degree_names
        from symbolic_cost.numeric.assignments import parse_assignments

        problems = Problems()
        numbers = problems.attempt(parse_assignments, self.settings, degree_names())
        chosen = {**self.options, **options}
        if "attention" not in self.typed:
            del chosen["attention"]  # the stack says it
        if launched(model) is not None:  # what the user did not type, the file says
            for name in _OF_A_FILE - self.typed:
                chosen.pop(name, None)
        make = partial(job, **chosen)
        built = problems.attempt(make, model, self.strategy, numbers)
        problems.refuse()
        return built

    def jobs(self, model: str, strategies: Iterable[str], **options: Any) -> list[Job]:  # noqa: ANN401
        """Return the job, and those of further strategies."""
        chosen = (self.strategy, *strategies)
        return [replace(self, strategy=one).job(model, **options) for one in chosen]

    def sheet(self, model: str, make: Callable[[Job], Sheet], **options: Any) -> Sheet:  # noqa: ANN401
        """Return a table of the job's stage; for --stage all, of its stages one below another.

        Args:
            model: as `job` takes it.
            make: the table of a job.
            **options: as `job` takes them.

        Raises:
            InputError: every problem of every option.
        """
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
    """Where a result goes, and in which format."""

    form: str
    file: str | None

    def sheet(self, sheet: Sheet) -> None:
        """Print a sheet, or write it to the file.

        Raises:
            InputError: unknown format, or a file that cannot be written.
        """
        from symbolic_cost.emit.sheet import render

        self.text(render(sheet, self.form))

    def text(self, text: str | bytes) -> None:
        """Print a text, or write it to the file, whole or not at all."""
        if self.file is None:
            click.echo(text.rstrip("\n") if isinstance(text, str) else text)
            return
        from symbolic_cost.emit.files import write_whole

        whole = isinstance(text, bytes) or text.endswith("\n")
        write_whole(self.file, text if whole else f"{text!s}\n")


def every_stage(choices: Choices) -> Choices:
    """Return choices of a command that shows every stage.

    Raises:
        InputError: one stage was asked for.
    """
    from symbolic_cost.errors import InputError

    if "stage" in choices.typed:
        raise InputError("--stage: every stage of the pipeline is written; leave it out")
    return choices


def costing(command: Command) -> Command:
    """Add the options that say how a model is run, which the command takes as `choices`."""
    return _bundled(command, "choices", _choices, *_COSTING)


def training(command: Command) -> Command:
    """Add the options of a training run, which the command takes as `trained`, to `costing`."""
    return costing(_bundled(command, "trained", dict, *_TRAINING))


def swept(command: Command) -> Command:
    """Add the options of a sweep, which the command takes as `line`, a function of the model."""

    @wraps(command)
    def bundled(
        choices: Choices, trained: dict[str, Any], sweeping: dict[str, Any], **rest: object
    ) -> object:
        def line(model: str) -> Line:
            from symbolic_cost.explore.lines import Line

            own, batch = dict(trained), trained["global_batch"]
            own.pop("global_batch")
            bound = "none" if sweeping.pop("yes") else "usual"
            said = sweeping.pop("stack")
            own |= {} if said is None else {"stack": said}
            texts = (*sweeping.pop("vary"), *sweeping.pop("more"))
            make = lambda strategy: replace(choices, strategy=strategy).job(model, **own)  # noqa: E731
            return Line(
                make=make,
                strategy=choices.strategy,
                texts=texts,
                batch=batch,
                bound=bound,
                **sweeping,
            )

        return command(line=line, **rest)

    return training(_bundled(bundled, "sweeping", dict, *_SWEPT))


def _choices(options: dict[str, Any]) -> Choices:
    typed = read_line(click.get_current_context()).typed
    return Choices(options.pop("settings"), options.pop("strategy"), options, typed)


def _bundled(
    command: Command,
    name: str,
    bundle: Callable[[dict[str, Any]], object],
    *options: Callable[[Command], Command],
) -> Command:
    """Add options to a command, which takes all of them as one argument."""
    own = _names(options)

    @wraps(command)
    def bundled(**arguments: Any) -> object:  # noqa: ANN401 - whatever the options are
        taken = {option: arguments.pop(option) for option in own}
        return command(**{name: bundle(taken)}, **arguments)

    return with_options(bundled, *options)


def _names(options: Iterable[Callable[[Command], Command]]) -> list[str]:
    """Return the names under which click passes options."""
    probe = with_options(lambda: None, *options)
    parameters: list[click.Parameter] = probe.__click_params__  # type: ignore[attr-defined]
    return [str(parameter.name) for parameter in parameters]


_COSTING = (
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=NUMBER",
        help="Bind a symbol or a degree, e.g. l=8192 or tp=8.",
    ),
    click.option("--strategy", default="", help="Parallel strategy, e.g. tp=8,sp,dp."),
    click.option(
        "--train",
        default="all",
        show_default=True,
        metavar="all|NAMES|all-but:NAMES|lora:r=N,NAMES",
        help="Weights that are trained; terms are joined by +.",
    ),
    click.option(
        "--conventions", default="standard", show_default=True, help="Counting conventions."
    ),
    click.option(
        "--recompute",
        default="none",
        show_default=True,
        metavar="none|selective|full|full/N",
        help="Recompute policy.",
    ),
    click.option(
        "--attention",
        default="flash",
        show_default=True,
        metavar="flash|eager",
        help="Kernel of attention cores; the stack may have another.",
    ),
    click.option(
        "--stage",
        default="first",
        show_default=True,
        metavar="first|middle|last|all",
        help="Pipeline stage.",
    ),
    click.option(
        "--regather/--no-regather",
        default=None,
        help="Keep shards of gathered inputs, gathered again in backward; or keep all of them.",
    ),
    click.option(
        "--layout",
        default="auto",
        show_default=True,
        metavar="auto|even|uneven|ends=N|ends=N/N",
        help="Blocks of the stages; ends hold N fewer.",
    ),
)

_TRAINING = (
    click.option("--system", help="A machine, or a TOML file."),
    click.option("--global-batch", type=int, help="Sequences per step; gives the microbatches."),
    click.option("--precision", default="bf16-mixed", show_default=True, help="Precision policy."),
    click.option("--optimizer", default="adam", show_default=True, help="Optimizer."),
    click.option("--schedule", default="1f1b", show_default=True, help="Pipeline schedule."),
)


STACK = click.option(
    "--stack", help="Software that runs, e.g. megatron-core; roofline for the record alone."
)

_SWEPT = (
    STACK,
    click.argument("more", nargs=-1, metavar="[NAME=VALUES]..."),
    click.option(
        "--vary",
        multiple=True,
        metavar="NAME=VALUES",
        help="Values of a degree, size or option: tp=1:16:x2 l=2048,8192 recompute=none,full.",
    ),
    click.option("--gpus", type=int, help="Devices; dp follows from the other degrees."),
    click.option(
        "--where", default="", help="What counts, e.g. 'memory < 80 GiB and tp*pp <= 64'."
    ),
    click.option(
        "--columns", default="", help="Columns beside what varies, e.g. step,cost,bubble."
    ),
    click.option(
        "--engine", default="threads", show_default=True, metavar="threads|dask", help="What runs."
    ),
    click.option("--scheduler", default="", help="Address of dask's, e.g. tcp://host:8786."),
    click.option("--yes", is_flag=True, help="However many candidates there are."),
)


def pictured(command: Command) -> Command:
    """Add --width, that of a picture."""
    return with_options(
        command,
        click.option(
            "--width",
            default="",
            metavar="article|ieee|acm|neurips|3.25in",
            help="Of the picture that -o FILE.svg, .png or .pdf draws; 6.5in unless given.",
        ),
    )


def against(command: Command) -> Command:
    """Add --against, further strategies of the picture, and --width."""
    option = click.option(
        "--against",
        multiple=True,
        metavar="STRATEGY",
        help="A further strategy of the picture; may be given several times.",
    )
    return pictured(with_options(command, option))


def refuse_unpictured(file: str | None, **typed: object) -> None:
    """Refuse options of a picture where none is drawn.

    Raises:
        InputError: every such option.
    """
    from symbolic_cost.emit.plots import is_picture
    from symbolic_cost.errors import InputError

    unread = [f"--{name} is not read: of -o FILE.svg alone" for name, said in typed.items() if said]
    if unread and not is_picture(file):
        raise InputError(unread)


def notated(command: Command) -> Command:
    """Add --notation and --symbols: what the command writes has these names.

    A command with an argument `letters` gets the notation; None where the user named none.
    """

    @wraps(command)
    def bundled(notation: str | None, symbols: str, **rest: object) -> object:
        from symbolic_cost.analysis.notations import OWN
        from symbolic_cost.analysis.notations import notation as read
        from symbolic_cost.emit.naming import written_in

        letters = read(notation or OWN, symbols)
        if "letters" in command.__annotations__:
            rest["letters"] = letters if notation or symbols else None
        with written_in(letters):
            return command(**rest)

    return with_options(
        bundled,
        click.option(
            "--notation",
            metavar="NAME|FILE.toml",
            help=f"Names of symbols: {', '.join(NOTATIONS)}, or those of a TOML file.",
        ),
        click.option(
            "--symbols", default="", metavar="SYMBOL=NAME,...", help="Names, as e=d_model,l=s."
        ),
    )


NOTATIONS = (
    *("own", "megatron", "jax-book", "palm", "kaplan", "deepseek", "deepseek-v3", "huggingface"),
)
"""Notations of the library; their files load when they are used."""


def output(command: Command, *, names: Iterable[str] = ("-o", "--output")) -> Command:
    """Add --format and -o, which the command takes as `out`.

    Args:
        command: that has a result.
        names: of the option for the file, where --output is another one.
    """

    @wraps(command)
    def bundled(form: str, file: str | None, **rest: object) -> object:
        form = checked_form(read_line(click.get_current_context()))
        return command(out=Output(form, file), **rest)

    return with_options(
        bundled,
        click.option(
            "--format",
            "form",
            default="table",
            show_default=True,
            metavar="|".join(FORMATS),
            help="How the result is written.",
        ),
        click.option(*names, "file", metavar="FILE", help="Write to FILE, whole or not at all."),
    )


@dataclass(frozen=True, slots=True)
class Searched:
    """What candidates are runs of, as typed: a model, what they share and what may be chosen."""

    model: str
    gpus: int
    settings: tuple[str, ...]
    choose: tuple[str, ...]
    shared: Mapping[str, Any]

    def job(self, problems: Problems, **options: Any) -> tuple[Job, dict[str, Any]]:  # noqa: ANN401 - checked by job
        """Return the job that candidates share, and what may be chosen; problems are collected."""
        from symbolic_cost.explore.asking import read_choices

        chosen = problems.attempt(read_choices, self.choose)
        return problems.attempt(self._job, options), chosen

    def subject(self, problems: Problems, **options: Any) -> tuple[Subject, dict[str, Any]]:  # noqa: ANN401 - checked by job
        """Return the same as a search takes it: what is kept of the job where that is enough."""
        from symbolic_cost.explore.asking import read_choices
        from symbolic_cost.explore.subject import subject_of_words

        words = {**self.shared, **options, "model": self.model, "set": " ".join(self.settings)}
        chosen = problems.attempt(read_choices, self.choose)
        make = partial(self._subject, options)
        return problems.attempt(subject_of_words, words, make), chosen

    def _subject(self, options: Mapping[str, Any]) -> Subject:
        from symbolic_cost.explore.facts import subject

        return subject(self._job(options))

    def _job(self, options: Mapping[str, Any]) -> Job:
        from symbolic_cost.jobs.job import job
        from symbolic_cost.numeric.assignments import parse_assignments

        problems = Problems()
        numbers = problems.attempt(parse_assignments, self.settings)
        make = partial(job, **self.shared, **options)
        made = problems.attempt(make, self.model, "", numbers)
        problems.refuse()
        return made


def searched(command: Command) -> Command:
    """Add a model and what its candidates share, which the command takes as `of`."""

    @wraps(command)
    def bundled(
        model: str,
        gpus: int,
        settings: tuple[str, ...],
        choose: tuple[str, ...],
        **rest: object,
    ) -> object:
        names = ("system", "precision", "optimizer", "attention", "stack", "train")
        options = {name: rest.pop(name) for name in names}
        shared = {name: value for name, value in options.items() if value is not None}
        return command(of=Searched(model, gpus, settings, choose, shared), **rest)

    return with_options(
        bundled,
        click.argument("model"),
        click.option(
            "--system", default="a100-80gb", show_default=True, help="A machine, or a TOML file."
        ),
        click.option("--gpus", type=int, required=True, help="Ranks."),
        click.option(
            "--choose",
            multiple=True,
            metavar="NAME=VALUE,VALUE",
            help="What may be chosen, e.g. tp=1,2,4 or recompute=none,full or sp=on.",
        ),
        click.option(
            "--set", "settings", multiple=True, metavar="NAME=NUMBER", help="Bind a size."
        ),
        click.option(
            "--precision", default="bf16-mixed", show_default=True, help="Precision policy."
        ),
        click.option("--optimizer", default="adam", show_default=True, help="Optimizer."),
        click.option(
            "--attention",
            metavar="flash|eager",
            help="Kernel of attention cores; as the stack has it.",
        ),
        STACK,
        click.option("--train", default="all", show_default=True, help="Weights that are trained."),
    )


def with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    """Add options, the first of them on top."""
    for option in reversed(options):
        command = option(command)
    return command
