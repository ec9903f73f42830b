"""Commands about one model: what it costs, run this way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from symbolic_cost.cli.options import Choices, Output, command, typed_options

if TYPE_CHECKING:
    from symbolic_cost.costs import NamedCost
    from symbolic_cost.emit.sheet import Sheet
    from symbolic_cost.jobs.job import Job


@command("table")
def table(
    *, model: str, columns: str, only: str | None, choices: Choices, out: Output, **placed: Any
) -> None:
    """Tabulate the costs of MODEL per op: formulas, and values where sizes are known.

    LaTeX is tables that fit their page (amsmath, array, booktabs), collectives by kind, with the
    macros of all symbols. For example: symbolic-cost table gpt3-175b --strategy tp --set tp=4
    """
    from symbolic_cost.jobs.tables.per_op import flat_sheet, grouped_sheet, named_costs

    costs = named_costs(columns)
    if out.form == "latex":
        out.text(_float(choices.job(model), costs, only, **placed))
        return
    unread = [f"--{name.replace('_', '-')}" for name, value in placed.items() if value]
    if unread:
        raise click.UsageError(f"{', '.join(unread)} not read: of --format latex alone")
    make = grouped_sheet if out.form == "table" else flat_sheet
    out.sheet(choices.sheet(model, lambda job: make(job, costs, only)))


def _float(
    work: Job,
    costs: Sequence[NamedCost],
    only: str | None,
    *,
    caption: str | None,
    label: str | None,
    width: str | None,
    two_column: bool,
    cite: bool,
) -> str:
    """Return the LaTeX of the tables of a job."""
    from symbolic_cost.emit.document import sheets_as_latex
    from symbolic_cost.emit.latex import Float
    from symbolic_cost.emit.page import page
    from symbolic_cost.errors import InputError, quote
    from symbolic_cost.jobs.tables.paper import citations, op_sheets

    if label is not None and not re.fullmatch(r"[A-Za-z0-9:._-]{1,60}", label):
        raise InputError(
            f"label {quote(label)}: letters, digits and : . _ - are accepted, up to 60"
        )
    place = Float(
        page(width or "article", columns=1 + two_column),
        caption or "",
        label or "",
        citations(work) if cite else (),
    )
    return sheets_as_latex(op_sheets(work, costs, only), place)


@command("formula")
def formula(
    *,
    cost: str,
    model: str,
    phase: str | None,
    path: str | None,
    written: str,
    choices: Choices,
    out: Output,
) -> None:
    """Print the total COST of MODEL as a formula.

    For example: symbolic-cost formula flops gpt --phase fwd --format latex
    """
    from symbolic_cost.jobs.tables.totals import total_latex, total_sheet

    if out.form == "latex":
        out.text(total_latex(choices.job(model), cost, phase, path, written))
        return
    out.sheet(choices.sheet(model, lambda job: total_sheet(job, cost, phase, path, written)))


@command("tree")
def tree(*, model: str, cost: str, phase: str | None, choices: Choices, out: Output) -> None:
    """Nest the totals of a cost by the parts of MODEL, with their shares.

    For example: symbolic-cost tree gpt3-175b --of flops
    """
    from symbolic_cost.jobs.tables.totals import nested_sheet

    out.sheet(choices.sheet(model, lambda job: nested_sheet(job, cost, phase)))


@command("scale")
def scale(
    *, cost: str, model: str, by: str, point: str | None, choices: Choices, out: Output
) -> None:
    """Derivative, elasticity and leading term of a cost, and where attention meets the MLP.

    For example: symbolic-cost scale flops_train gpt --in l --at gpt3-175b

    -o FILE.svg draws the cost over the symbol, with its formula and those of its powers:
    symbolic-cost scale flops_train gpt3-175b --in l -o curve.svg
    """
    if out.is_picture:
        from symbolic_cost.emit.charts import draw_curves
        from symbolic_cost.jobs.tables.pictures import scaling_curves

        if point is not None:
            raise click.UsageError("--at is not read: a curve goes around the numbers of the model")
        out.draw(draw_curves, scaling_curves(choices.job(model), cost, by))
        return
    from symbolic_cost.jobs.tables.growth import scaling_sheet

    out.sheet(choices.sheet(model, lambda job: scaling_sheet(job, cost, by, point)))


@command("memory")
def memory(
    *,
    model: str,
    offload: str,
    against: tuple[str, ...],
    view: str,
    choices: Choices,
    trained: dict[str, Any],
    out: Output,
) -> None:
    """Tabulate the memory of one rank of MODEL: states, activations, and the peak of a step.

    With --system it says whether every stage fits. For example: symbolic-cost memory gpt3-175b
    --strategy tp=8,sp,pp=8,dp=8,zero=1 --precision bf16-mixed --recompute selective --set M=8

    --as smi adds by name what surrounds the tensors: workspaces, fragmentation, NCCL, the context.
    -o FILE.svg draws what is held at the peak, by strategy: memory llama-3-8b --set b=1
    --strategy tp=8 --against tp=8,sp -o memory.svg
    """
    trained |= typed_options(offload=offload)
    if out.is_picture:
        if view:
            from symbolic_cost.errors import InputError

            raise InputError("--as is not drawn: leave it out, or the picture")
        from symbolic_cost.emit.charts import draw_bars
        from symbolic_cost.jobs.tables.pictures import memory_bars

        jobs = choices.jobs(model, against, **trained)
        out.draw(draw_bars, memory_bars([job.memory().setup for job in jobs]))
        return

    def sheet(job: Job) -> Sheet:
        return job.device_memory(view).sheet if view else job.memory().sheet

    out.sheet(choices.sheet(model, sheet, **trained))


@command("comm")
def comm(
    *,
    model: str,
    node_size: int,
    groups: bool,
    order: str,
    scattered: bool,
    per_op: bool,
    choices: Choices,
    trained: dict[str, Any],
    out: Output,
) -> None:
    """Tabulate the collectives of one rank of MODEL and step, with totals per rank and cluster.

    For example: symbolic-cost comm gpt3-175b --strategy tp=8,sp,pp=8,dp=8 --set M=64
    """
    if groups and per_op:
        raise click.UsageError("--groups and --per-op are two tables: give one of them")
    if groups and scattered:
        raise click.UsageError("--scattered is not read: --groups lists ranks, not what they send")
    from symbolic_cost.jobs.tables.traffic import communication_sheet, groups_sheet

    def make(run: Job) -> Sheet:
        return groups_sheet(run, node_size) if groups else communication_sheet(run, per_op=per_op)

    out.sheet(choices.sheet(model, make, **trained, order=order, scattered=scattered))


@command("time")
def time(
    *,
    model: str,
    against: tuple[str, ...],
    ops: bool,
    by: str | None,
    explain: bool,
    choices: Choices,
    trained: dict[str, Any],
    out: Output,
    **methods: Any,
) -> None:
    """Time one training step of MODEL on a machine: its parts, MFU and HFU, or its ops.

    For example: symbolic-cost time gpt3-175b --system a100-80gb --strategy tp=8,sp,pp=8
    --global-batch 64 --recompute selective

    -o FILE.svg draws the parts of the step, by strategy: time llama-3-8b --global-batch 16
    --strategy tp=8 --against tp=4,dp=2 -o step.svg
    """
    tables = ops + explain + (by is not None)
    if out.is_picture and tables:
        drawn = "-o draws the parts of a step"
        raise click.UsageError(f"--ops, --explain and --in are tables: {drawn}")
    if tables > 1:
        raise click.UsageError("--ops, --explain and --in are three tables: give one of them")
    from symbolic_cost.jobs.tables.explained import explained_sheet
    from symbolic_cost.jobs.tables.seconds import briefly, derivative_sheet, ops_sheet

    trained |= typed_options(**methods)
    if trained["system"] is None:
        trained["system"] = "a100-80gb"
    if out.is_picture:
        from symbolic_cost.emit.charts import draw_bars
        from symbolic_cost.jobs.tables.pictures import time_bars

        jobs = choices.jobs(model, against, **trained)
        out.draw(draw_bars, time_bars([job.time() for job in jobs]))
        return
    run = choices.job(model, **trained)
    if by is not None:
        out.sheet(derivative_sheet(run, by))
        return
    answer = run.time()
    make = explained_sheet if explain else ops_sheet
    if ops or explain:
        out.sheet(make(answer.timed))
    else:
        out.sheet(briefly(answer.sheet) if out.form == "table" else answer.sheet)


@command("roofline")
def roofline(*, model: str, system: str, precision: str, choices: Choices, out: Output) -> None:
    """Place the ops of MODEL by arithmetic intensity and rate; -o FILE.svg draws them.

    For example: symbolic-cost roofline gpt3-175b --system h100 -o roofline.svg
    """
    from symbolic_cost.emit.roofline import draw, points_sheet
    from symbolic_cost.jobs.header import header
    from symbolic_cost.systems.records import find_machine
    from symbolic_cost.systems.rooflines import roofline_points

    work = choices.job(model, system=system)
    device = find_machine(system).device(precision)
    points = roofline_points(work.bound, device)
    title = f"{model} on {system}, {precision}"
    if out.is_picture:
        out.draw(draw, points, device, title)
    else:
        out.sheet(points_sheet(points, device, title, header(work, "roofline")))


@command("count")
def count(
    *, config: str, batch: int, seq: int | None, conventions: str, out: Output, **more: Any
) -> None:
    """Count parameters, FLOP, cache and saved activations of CONFIG, a config.json.

    For example: symbolic-cost count path/to/config.json --batch 1 --seq 4096

    CONFIG may be a folder, a file of weights (.safetensors, its index, .gguf), an exported graph
    (.pt2, .onnx), or a name on the Hub (hub:org/name, the extra hub): of weights the header is
    read, and told where it is not as declared.

    A model that sees images counts them with the tokens that they take, here 576 of 1024:
    symbolic-cost count llava.json --image-tokens 576
    """
    from symbolic_cost.cli.sheets.counts import count_sheet, refuse_length
    from symbolic_cost.jobs.counts import count, counted_length

    tokens = counted_length(config) if seq is None else seq
    counts = count(config, batch, tokens, conventions, **more)
    if seq is not None and not counts["kv_cache_elements"]:  # with a cache there are tokens
        refuse_length(config, seq)
    if out.form == "json":
        import json

        out.text(json.dumps(counts, indent=1))
        return
    out.sheet(count_sheet(config, counts, batch, tokens, conventions))


@command("profile")
def profile(
    *, model: str, batch: int, seq: int | None, latencies: str | None, profiler: str, out: Output
) -> None:
    """Profile MODEL, a name or a config.json: parameters, MACs and FLOP of every module.

    For example: symbolic-cost profile bert-base --batch 4 --seq 128
    """
    from symbolic_cost.published.module_profile.figures import profile_sheet, profile_text
    from symbolic_cost.published.module_profile.profile import named_profile

    measured = named_profile(model, batch, seq, latencies, profiler)
    if out.form == "table":
        out.text(profile_text(measured))
    else:
        out.sheet(profile_sheet(model, measured))
