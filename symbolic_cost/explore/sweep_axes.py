"""What a sweep varies, read against a job: words, degrees and sizes; all problems at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import chain

from symbolic_cost.errors import InputError, Problems, quote, refuse, unknown
from symbolic_cost.explore.choices import as_option
from symbolic_cost.explore.points import Axis, Grid, Ranks
from symbolic_cost.explore.ranges import Given, Value, values
from symbolic_cost.extrema import Min
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.numbers import RATES, degree_names
from symbolic_cost.numeric.binding import check_values
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.schedules import schedule, unread_chunks
from symbolic_cost.parallel.stages import block_count
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.program.lowering import lowered
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY, WORDS, v

WORDED = (
    *("system", "conventions", "recompute", "precision", "optimizer", "schedule", "offload"),
    *("attention", "overlap", "roofline", "stack", "layout", "order", "regather", "scattered"),
)
"""Options of a job that may vary."""

FLAGS = {"zero": "zero", "sp": "sp"}
"""Words of a strategy that may vary."""

_SWITCHES = ("regather", "scattered")

_BATCH = {"gpus": "R", "devices": "R", "global_batch": "B", "microbatches": "M"}


@dataclass(frozen=True)
class Varied:
    """A job and what varies of it.

    Args:
        words: axes of options, slowest.
        outer: axes that decide over degrees and structure.
        inner: axes of sizes that are numbers alone.
        ranks: how degrees follow.
    """

    job: Job
    words: Grid
    outer: Grid
    inner: Grid
    ranks: Ranks
    names: Mapping[str, str]

    @property
    def free(self) -> tuple[str, ...]:
        """Symbols of sizes that vary."""
        own = {*self.ranks.degrees, "R", "B", "M", "v"}
        axes = (*self.outer.axes, *self.inner.axes)
        return tuple(axis.symbol for axis in axes if axis.symbol not in own)


def varied(
    job: Job, vary: Mapping[str, Given], gpus: int | None = None, global_batch: int | None = None
) -> Varied:
    """Return what varies.

    Args:
        job: its numbers hold for what does not vary.
        vary: values by name: of degrees (tp), sizes (l, n_layers), M, v, gpus, global_batch, and
            options (recompute, zero).
        gpus: devices, from which dp follows.
        global_batch: sequences of one step; that of the job unless given.
    """
    problems = Problems()
    words, numbers = _axes(job, vary, problems)
    problems.refuse()
    numbers_set = {name: number for name, number in job.values.items() if name not in numbers}
    for name, number in (
        ("R", gpus),
        ("B", job.global_batch if global_batch is None else global_batch),
    ):
        if number is not None and name not in numbers:
            problems.attempt(check_values, {name: number})
            numbers_set[name] = number
        elif number is not None and name == "R":
            problems.texts.append("gpus is given and varies: one of the two is accepted")
    if gpus is not None and not _says_batch(job, numbers_set, numbers):
        numbers_set["B"] = gpus  # one sequence per device, which the table shows
    count = job.training.microbatches
    if "B" in numbers_set or "B" in numbers:
        if "M" in numbers:
            problems.texts.append("microbatches follow from the global batch: do not vary both")
        numbers_set.pop("M", None)
    elif "M" not in numbers and count.is_Integer:
        numbers_set["M"] = int(count)
    elif "M" not in numbers and "M" not in numbers_set:
        problems.texts.append("no number of microbatches: give a global batch, or vary M")
    problems.texts += _chunk_problems(job, words, numbers, numbers_set)
    problems.refuse()
    strategy = _strategy(job.strategy, words, numbers, numbers_set)
    ranks = _ranks(job, strategy, numbers, numbers_set, problems)
    problems.refuse()
    outer = [axis for axis in numbers.values() if _decides(axis.symbol, ranks)]
    inner = [axis for axis in numbers.values() if not _decides(axis.symbol, ranks)]
    own = _without_numbers(job, strategy, ranks, numbers)
    names = {axis.symbol: axis.name for axis in numbers.values()}
    names |= {symbol: name for symbol, name in ranks.names.items() if symbol not in names}
    names = {"R": "gpus", "B": "global_batch"} | names
    return Varied(own, Grid(tuple(words)), Grid(tuple(outer)), Grid(tuple(inner)), ranks, names)


def _axes(
    job: Job, vary: Mapping[str, Given], problems: Problems
) -> tuple[list[Axis], dict[str, Axis]]:
    """Return the axes of words, and those of numbers by symbol."""
    words: list[Axis] = []
    numbers: dict[str, Axis] = {}
    if not vary:
        problems.texts.append("nothing varies: give names with values, as in tp=1,2,4 l=2048,8192")
    for name, listed in vary.items():
        try:
            taken = values(name, listed)
        except InputError as error:
            problems.texts += error.problems
            continue
        named = _BATCH.get(name) or degree_names().get(name)
        symbol = named or (name if name in GLOSSARY else WORDS.get(name))
        if name in WORDED or name in FLAGS:
            words.append(Axis(name, name, taken))
            _check_words(job, name, taken, problems)
        elif symbol is None or not _is_read(job, symbol):
            accepted = sorted({*degree_names(), *_BATCH, *WORDED, *FLAGS, "v", *_sizes(job)})
            problems.texts.append(unknown("name to vary", name, accepted, WORDS))
        elif symbol in numbers:
            problems.texts.append(f"{name} and {numbers[symbol].name} are the same: give one")
        elif any(isinstance(value, str) for value in taken):
            problems.texts.append(f"{name}={quote(listed)}: numbers are accepted")
        else:
            numbers[symbol] = Axis(name, symbol, taken)
            for value in taken if len(taken) <= _CHECKED else (min(taken), max(taken)):
                problems.attempt(check_values, {symbol: value})
    return words, numbers


_CHECKED = 1000


def _check_words(job: Job, name: str, taken: tuple[Value, ...], problems: Problems) -> None:
    accepted = {"zero": (0, 1, 2, 3), "sp": ("on", "off")}.get(name)
    if accepted is None:
        for word in taken:
            option = as_option(name, word)
            if name not in _SWITCHES:
                problems.attempt(lambda one=option: job.replace(**{name: one}))
            elif isinstance(option, str):  # whether it has a use the strategy with sp says
                problems.texts.append(f"{name}={quote(word)}: accepted are on and off")
    else:
        problems.texts += [
            f"{name}={quote(one)}: accepted are {', '.join(map(str, accepted))}"
            for one in taken
            if one not in accepted
        ]


def _sizes(job: Job) -> set[str]:
    """Return the symbols of a model's sizes, and those of a machine's rates if it has any."""
    model = job.model
    used = {symbol.name for symbol in model.read_symbols}
    rates = RATES if job.machine is not None and job.machine.name == "symbolic" else ()
    return used | set(model.bindings) | set(rates)


def _is_read(job: Job, symbol: str) -> bool:
    degrees = {s.name for entry in STRATEGIES.values() for s in entry.meshes.values()}
    return symbol in {*degrees, "R", "B", "M", "v", *_sizes(job)}


def _says_batch(
    job: Job, numbers_set: Mapping[str, int | Fraction], numbers: Mapping[str, Axis]
) -> bool:
    """Tell whether the sequences or the microbatches of a step are given."""
    return (
        bool({"B", "M"} & {*numbers_set, *numbers}) or job.training.microbatches.is_Integer is True
    )


def _chunk_problems(
    job: Job,
    words: list[Axis],
    numbers: Mapping[str, Axis],
    numbers_set: Mapping[str, int | Fraction],
) -> Iterator[str]:
    """Say which schedules do not read the chunks that are given, or read some that are not."""
    named = [name for axis in words if axis.name == "schedule" for name in axis.choices]
    some = numbers["v"].choices if "v" in numbers else [numbers_set.get("v")]
    for name in map(str, named or [job.training.schedule]):
        yield from chain.from_iterable(unread_chunks(name, count) for count in some)
        if some == [None] and schedule(name).chunks == v:
            yield f"schedule {quote(name)} has no number of chunks per stage: give v, as in v=2"


def _strategy(
    job: Strategy,
    words: list[Axis],
    numbers: Mapping[str, Axis],
    numbers_set: Mapping[str, int | Fraction],
) -> Strategy:
    """Return the job's strategy with every name that varies, degrees as symbols."""
    names = dict.fromkeys(job.degrees)
    own: dict[str, str] = {}
    for name, symbol in degree_names().items():
        own.setdefault(symbol, name)  # cp, not ring
    for axis in numbers.values():
        held = [n for n in names if axis.symbol in {s.name for s in STRATEGIES[n].meshes.values()}]
        name = axis.name if axis.name in STRATEGIES else own.get(axis.symbol, "")
        if not held and name:
            names[name] = None
    if "R" in numbers_set or "R" in numbers or "ep" in names:
        names["dp"] = None
    varied_words = {axis.name: axis.choices for axis in words}
    if any(varied_words.get("zero", ())) and "dp" not in names:
        names["dp"] = None
    if "on" in varied_words.get("sp", ()):
        names["sp"] = None
    degrees = {name: tuple(STRATEGIES[name].meshes.values()) for name in names}
    return Strategy(degrees, job.zero, job.panels, reshard=job.reshard)


def _ranks(
    job: Job,
    strategy: Strategy,
    numbers: Mapping[str, Axis],
    numbers_set: dict[str, int | Fraction],
    problems: Problems,
) -> Ranks:
    """Return how degrees follow; refuse those without a number."""
    degrees = {
        symbol.name: name if len(STRATEGIES[name].meshes) == 1 else symbol.name
        for name in strategy.degrees
        for symbol in STRATEGIES[name].meshes.values()
    }
    devices = "R" in numbers_set or "R" in numbers
    follows = devices and "dp" not in numbers and "dp" not in numbers_set
    for symbol, name in degrees.items():
        if symbol not in numbers and symbol not in numbers_set and not (symbol == "dp" and follows):
            if symbol == "dp" and not job.strategy.degrees.get("dp"):
                numbers_set["dp"] = 1
            else:
                more = "; or give gpus, from which it follows" if name == "dp" else ""
                problems.texts.append(f"{name} has no number: vary it, or bind it{more}")
    used = {*degrees, "R", "B", "M", "v", "b"}
    constants = {name: float(number) for name, number in numbers_set.items() if name in used}
    known = {n: v for n, v in job.values.items() if n not in numbers and n not in degrees}
    exprs = {"blocks": block_count(job.model)}
    if "tp" in strategy and job.model.grouped:
        exprs["heads"] = Min(*(job.model.sizes[axis] for axis in job.model.grouped))
    return Ranks(tuple(degrees), degrees, constants, follows, lowered(exprs, values=known))


def _decides(symbol: str, ranks: Ranks) -> bool:
    return symbol in {*ranks.degrees, "R", "B", "M", "v", "b", *ranks.shape.inputs}


def _without_numbers(
    job: Job, strategy: Strategy, ranks: Ranks, numbers: Mapping[str, Axis]
) -> Job:
    """Return the job without the numbers of what varies, so that they stay symbols."""
    gone = {*numbers, *ranks.degrees, "M", "B", "v", "R"}
    bindings = {name: size for name, size in job.model.bindings.items() if name not in gone}
    rest = {name: number for name, number in job.numbers.items() if name not in gone}
    return job.replace(
        model=replace(job.model, bindings=bindings),
        strategy=strategy,
        numbers=rest,
        global_batch=None,
        microbatches=None,
        precision=job.training.precision,
    )


def numbers_missing(own: Varied, inputs: set[str]) -> None:
    """Refuse symbols of programs that nothing gives a number."""
    axes = {axis.symbol for axis in (*own.outer.axes, *own.inner.axes)}
    known = {*axes, *own.ranks.numbers, "M", "dp"}
    missing = sorted(inputs - known)
    refuse(f"no number for {name}: vary it, or bind it (--set {name}=...)" for name in missing)
