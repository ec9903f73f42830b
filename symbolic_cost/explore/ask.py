"""The search as a question of a script: a job, its GPUs, and what may be chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from symbolic_cost.checking import checked
from symbolic_cost.errors import InputError, Problems, quote, refuse
from symbolic_cost.explore.best import Search
from symbolic_cost.explore.facts import subject
from symbolic_cost.explore.search_options import Choice, checked_space, search_of, usual
from symbolic_cost.explore.space import Space
from symbolic_cost.explore.subject import Subject
from symbolic_cost.jobs.build import USUAL_PRECISION, Modelled
from symbolic_cost.jobs.job import Job, job
from symbolic_cost.jobs.launch_files import launched
from symbolic_cost.jobs.tied import size_symbols
from symbolic_cost.symbols import symbol

if TYPE_CHECKING:
    from symbolic_cost.explore.fits import Fits
    from symbolic_cost.explore.proven import Proof

USUAL = ("l", "b", "n_layers")
"""Sizes that are asked for where nothing is said."""


@checked
def search(
    of: Job | Modelled,
    gpus: int,
    global_batch: int,
    *,
    system: str | None = None,
    objective: str = "step",
    top: int = 10,
    choose: Mapping[str, Choice | Iterable[Choice]] | None = None,
    progress: bool = True,
) -> Search:
    """Price every strategy of a job on a number of GPUs, and keep the best.

    Args:
        of: a job without a strategy, a model by name, or a launch file, of which the strategy and
            the microbatch are not read.
        gpus: ranks.
        global_batch: sequences of one step.
        system: machine, for a model by name.
        objective: "step", "memory", "mfu", "throughput", "tokens-per-dollar" or "energy".
        top: how many candidates are kept.
        choose: what may be chosen, by name of a choice, as in {"tp": (1, 2, 4), "zero": (1,)}.
            What is not named takes every value that is legal; but for positions, which are split
            from LONG of them on, and options: schedules take 1f1b and interleaved, the rest the
            usual value.
        progress: whether a terminal shows it.

    Returns:
        The best candidates with step [s] and memory [byte], and what was ruled out by what.

    Raises:
        InputError: every problem of every argument.
    """
    own = choose or {}
    base, space = _job_and_space(of, system, (gpus, global_batch), own, top)
    return search_of(base, space, own, objective=objective, top=top, progress=progress)


@checked
def prove(
    of: Job | Modelled,
    gpus: int,
    global_batch: int,
    *,
    vary: Mapping[str, str | int | Iterable[str | int | Fraction]],
    system: str | None = None,
    objective: str = "step",
    choose: Mapping[str, Choice | Iterable[Choice]] | None = None,
) -> Proof:
    """Find the best of all combinations of a strategy with sizes and rates, and prove it.

    What varies are values by symbol: of sizes (l, s) and of rates of the machine, in base units, as
    in {"l": "1024:8192:x2", "beta": "1e10:1e11:x1.1"}. All other arguments are those of `search`.

    Returns:
        The best combination, a bound that no other is better than, and what the proof covers.

    Raises:
        InputError: every problem of every argument.
    """
    from symbolic_cost.explore.proven import proof

    base, space = _job_and_space(of, system, (gpus, global_batch), choose or {})
    return proof(base, usual(base.facts, space, choose or {}), vary, objective)


@checked
def fit(
    of: Job | Modelled,
    gpus: int,
    global_batch: int | None = None,
    *,
    system: str | None = None,
    symbols: Iterable[str] = USUAL,
    choose: Mapping[str, Choice | Iterable[Choice]] | None = None,
) -> Fits:
    """Ask what fits: the job, the largest sizes on these GPUs, the fewest GPUs that hold it.

    >>> import symbolic_cost as sc
    >>> found = sc.fit("gpt2", 2, system="h100", symbols=("b",))
    >>> bool(found), found.largest["b"].size, found.fewest[0]
    (True, 493, 1)

    Arguments are those of `search`; a rank has one sequence of the global batch unless it is given,
    and where nothing is said sequence parallelism is on, ZeRO 1 or 3, the schedule 1f1b. What is to
    be large is "b" or sizes of the model; of the usual three those that it lacks are left out.

    Raises:
        InputError: every problem of every argument.
    """
    from symbolic_cost.explore.fits import what_fits

    asked = tuple(symbols)
    problems = Problems()
    for name in asked:  # said before anything is derived
        problems.attempt(symbol, name)
    problems.refuse()
    chosen = {"sp": (True,), "zero": (1, 3), "schedule": ("1f1b",), **(choose or {})}
    base, space = _job_and_space(
        of, system, (gpus, gpus if global_batch is None else global_batch), chosen
    )
    names = {one.name for one in size_symbols(base.setup.model)}
    if asked == USUAL:
        asked = tuple(name for name in asked if name == "b" or name in names)
    refuse(
        f"{name} is no size of {base.setup.model.name}: {', '.join(sorted({'b', *names}))}"
        for name in asked
        if name != "b" and name not in names
    )
    return what_fits(base, usual(base.facts, space, choose or {}), asked)


def _job_and_space(
    of: Job | Modelled,
    system: str | None,
    ranks: tuple[int, int],
    choose: Mapping[str, Choice | Iterable[Choice]],
    top: int = 1,
) -> tuple[Subject, Space]:
    problems = Problems()
    space = checked_space(problems, *ranks, choose, top)
    base = problems.attempt(lambda: subject(_job(of, system)))
    problems.refuse()
    return base, space


def _job(of: Job | Modelled, system: str | None) -> Job:
    if not isinstance(of, Job):
        file = launched(of)
        if file is None:
            return job(of, system=system, precision=USUAL_PRECISION)
        return job(file.whole, system=system)
    if system is not None:
        raise InputError(f"system {quote(system)} is not read: the job names its own")
    return of
