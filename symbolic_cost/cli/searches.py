"""Commands over many jobs: the best strategy, what fits, sweeps and fronts; engines that serve."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from symbolic_cost.cli.options import Output, Searched, command, nothing_fits
from symbolic_cost.errors import InputError, NothingFitsError, Problems, looked_up

if TYPE_CHECKING:
    from symbolic_cost.explore.lines import Line

import re
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symbolic_cost.serving.plan import Plans


@command("search")
def search(
    *,
    of: Searched,
    global_batch: int | None,
    objective: str,
    top: int,
    conventions: str,
    proves: bool,
    vary: tuple[str, ...],
    explain: bool,
    out: Output,
) -> None:
    """Search every strategy of MODEL on so many GPUs, and say why the best is the best.

    For example: symbolic-cost search gpt3-175b --system a100-80gb --gpus 512 --global-batch 512

    Of a launch file everything is taken but its strategy and its microbatch, which are chosen. The
    exit code is 1 if nothing fits; what is nearest is told.

    With --prove the best is that of every combination with sizes and rates that vary, by branch
    and bound: --prove --vary "l=1024:8192:x2 beta=1e10:1e11:x1.1" --objective throughput
    """
    from symbolic_cost.explore.objectives import OBJECTIVES
    from symbolic_cost.explore.ranges import named
    from symbolic_cost.explore.search_options import checked_space, search_of, usual

    gpus, batch = of.of_file(global_batch)
    if batch is None:
        raise click.UsageError("Missing option '--global-batch'.")
    problems = Problems()
    if top < 1:  # said before anything is derived
        problems.texts.append(f"top = {top}: a positive integer is accepted")
    problems.attempt(looked_up, "objective", objective, OBJECTIVES)
    base, chosen = of.subject(problems, None if proves else (gpus, batch), conventions=conventions)
    varied = named(vary, problems)
    problems.refuse()
    space = checked_space(problems, gpus, batch, chosen)
    problems.refuse()
    if proves:
        from symbolic_cost.explore.proof_table import proof_sheet
        from symbolic_cost.explore.proven import proof

        done = proof(base, usual(base.facts, space, chosen), varied, objective)
        out.sheet(proof_sheet(done))
        answered = done.candidate is not None
    else:
        from symbolic_cost.explore.search_table import search_sheet

        outcome = search_of(base, space, chosen, objective=objective, top=top)
        out.sheet(search_sheet(outcome, explain=explain))
        answered = bool(outcome.best)
    if not answered:
        nothing_fits()


@command("fit")
def fit(*, of: Searched, global_batch: int | None, symbols: str, out: Output) -> None:
    """Say whether MODEL fits on so many GPUs, and the largest length, microbatch or depth that do.

    Of what --choose leaves open, zero is 1 or 3 and sp is on. The exit code is 1 if it does not
    fit.

    For example: symbolic-cost fit llama-3-70b --system h100 --gpus 64
    """
    from symbolic_cost.explore.ask import fit
    from symbolic_cost.explore.search_table import fits_sheet

    gpus, batch = of.of_file(global_batch)
    problems = Problems()
    run, chosen = of.job(problems)
    problems.refuse()
    names = tuple(name.strip() for name in symbols.split(","))
    fits = fit(run, gpus, batch, symbols=names, choose=chosen)
    out.sheet(fits_sheet(fits))
    if not fits:
        nothing_fits()


@command("sweep")
def sweep(*, by: str, top: int | None, histogram: str, line: Line, out: Output) -> None:
    """Evaluate MODEL for every combination of the values of --vary.

    -o FILE.parquet (or .csv, .jsonl) writes the rows in base units: all that count, or the best
    with --top. A sweep that was interrupted goes on where it was. The exit code is 1 if nothing
    satisfies --where; what is nearest is told.

    For example: symbolic-cost sweep llama-3-70b --system h100 --gpus 1024 --global-batch 1024
    --vary tp=1:16:x2 pp=1:16:x2 l=2048,8192 --where "memory < 80 GiB" --top 20
    """
    from symbolic_cost.explore.lines import sweep_line

    if top is None and out.file is None and not histogram:
        top = 20
    done = sweep_line(line, by=by, top=top, out=out.file, histogram=histogram)
    if isinstance(done, str):
        click.echo(done)
    else:
        out.sheet(done)


@command("pareto")
def pareto(*, axes: tuple[str, ...], line: Line, out: Output) -> None:
    """Find the combinations that no other beats in both figures; -o FILE.svg draws them.

    The cost is in device seconds of one token. The exit code is 1 if nothing satisfies --where.

    For example: symbolic-cost pareto llama-3-70b --system h100 --global-batch 1024
    --vary gpus=256,512,1024 tp=1:8:x2 pp=1:16:x2 -o pareto.svg
    """
    from symbolic_cost.emit.front import draw
    from symbolic_cost.emit.sheet import stacked
    from symbolic_cost.explore.lines import pareto_lines

    fronts = pareto_lines(line, axes)
    if out.is_picture:
        out.draw(draw, fronts)
    else:
        both = stacked("front", {f"{one.x}, {one.y}": one.sheet for one in fronts})
        out.sheet(replace(both, title=f"{fronts[0].title}: what no other beats in both figures"))


_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3}
_OF_PROGRAMS = ("json", "csv")


@command("serve-plan")
def serve_plan(
    *,
    model: str,
    system: str,
    gpus: int,
    rate: str | None,
    ttft: str | None,
    itl: str | None,
    kv: str,
    chunk: str,
    cascade: bool,
    accepted: float,
    price: float | None,
    pareto: bool,
    out: Output,
    **asked: object,
) -> None:
    """Plan how to serve MODEL: engines, sequences in flight, throughput, TTFT, ITL, what binds.

    MODEL is a name or the path of a config.json: decoders, mixtures, Mamba and hybrids of both. The
    exit code is 1 if nothing meets the targets; what is nearest is told.

    For example: symbolic-cost serve-plan llama-3-70b --system h100 --gpus 8 --input 2000
    --output 500 --itl 50ms
    """
    from symbolic_cost.serving.plan import serve_plan

    problems = Problems()
    rates = None if rate is None else problems.attempt(_number, "rate", rate, {"": 1.0, "/s": 1.0})
    waits = {
        name: None if text is None else problems.attempt(_number, name, text, _UNITS)
        for name, text in (("ttft", ttft), ("itl", itl))
    }
    if price is not None and not 0 < price < float("inf"):
        problems.texts.append(f"price = {price}: a positive number is accepted")
    if pareto and rate is not None:
        problems.texts.append("--pareto is over all numbers of sequences: leave out --rate")
    if out.is_picture and not pareto:
        problems.texts.append(f"-o {out.file}: a picture is that of --pareto")
    options = {**asked, **waits, "rate": rates, "cache": kv, "acceptance": accepted}
    options["prefix_reading"] = "cascade" if cascade else "each"
    options["chunk"] = int(chunk) if re.fullmatch("[0-9]{1,9}", chunk) else chunk
    run = partial(serve_plan, model, system, gpus, **options)  # type: ignore[arg-type]  # of click
    try:
        plans = run()
    except NothingFitsError:
        problems.refuse()
        raise
    except InputError as error:
        problems.texts += error.problems
    problems.refuse()
    _output(plans, price, out, pareto=pareto)


def _output(plans: Plans, price: float | None, out: Output, *, pareto: bool) -> None:
    from symbolic_cost.emit.front import draw
    from symbolic_cost.serving.plan_table import plan_front, plan_sheet

    full = out.form in _OF_PROGRAMS
    if not pareto:
        out.sheet(plan_sheet(plans, price, full=full))
    elif out.is_picture:
        out.draw(draw, [plan_front(plans)])
    else:
        out.sheet(plan_front(plans, full=full).sheet)


def _number(name: str, text: str, units: dict[str, float]) -> float:
    """Read a positive number with a unit."""
    from symbolic_cost.errors import quote

    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?([a-z/]{0,3})", text.strip())
    if match is None or match[2] not in units or float(match[1]) == 0:
        accepted = " or ".join(f"0.5{unit}" for unit in units)
        raise InputError(f"--{name} {quote(text)}: {accepted} is accepted")
    return float(match[1]) * units[match[2]]
