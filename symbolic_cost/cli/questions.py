"""Commands that ask a question of a model's formulas: where, how large, why, and what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from symbolic_cost.cli.options import Choices, Output, command, typed_options
from symbolic_cost.errors import InputError, Problems, quote

if TYPE_CHECKING:
    from symbolic_cost.emit.sheet import Sheet
    from symbolic_cost.jobs.subject import CostRequest


@command("crossover")
def crossover(
    *,
    model: str,
    left: str,
    right: str,
    by: str,
    cost: str,
    choices: Choices,
    trained: dict[str, object],
    out: Output,
) -> None:
    """Say where LEFT and RIGHT of MODEL are equal: in closed form, and as an exact integer.

    LEFT and RIGHT are parts (attention, mlp, block.attention.core), named costs, memory, or times:
    step, exposed (communication that a step waits for), computing (the rest but the bubble).
    Padded sizes are taken as quotients in the closed form, and exactly in the integer.

    For example: symbolic-cost crossover gpt attention.core mlp --in l --conventions model-flop,
    or crossover llama-3-8b exposed computing --in l --strategy tp=16 --system h100 --set M=1
    """
    from symbolic_cost.jobs.questions import crossing

    if "precision" not in choices.typed:  # the bytes of costs are then those of the conventions
        trained = {**trained, "precision": None}
    make = lambda run: crossing(run, left, right, by, cost).sheet()  # noqa: E731 - one use
    out.sheet(choices.sheet(model, make, **trained))


@command("optimum")
def optimum(
    *,
    model: str,
    of: str,
    by: str,
    span: str,
    choices: Choices,
    trained: dict[str, object],
    out: Output,
) -> None:
    """Say where a quantity of MODEL is least in a symbol: in closed form, and among integers.

    For example: symbolic-cost optimum gpt3-175b --of comm --in m1 --strategy tp,sp --set b=1
    """
    from symbolic_cost.jobs.best_size import best_size
    from symbolic_cost.numeric.assignments import integers

    candidates = integers(span)
    make = lambda run: best_size(run, of, by, candidates).sheet()  # noqa: E731 - one use
    out.sheet(choices.sheet(model, make, **trained))


@command("sensitivity")
def sensitivity(*, model: str, of: str, by: str | None, choices: Choices, out: Output) -> None:
    """Tabulate the per cent of each cost of MODEL per per cent of each symbol, at its numbers.

    With --branches, the derivative of one quantity as formulas, each with where it holds.

    For example: symbolic-cost sensitivity gpt3-175b --strategy tp=8,sp --set b=1
    """
    from symbolic_cost.jobs.questions import branch_sheet, sensitivity_sheet

    names = tuple(name.strip() for name in of.split(",") if name.strip())
    if by is None:
        out.sheet(choices.sheet(model, lambda run: sensitivity_sheet(run, names)))
    elif len(names) != 1:
        raise click.UsageError("--branches is of one quantity: --of memory")
    else:
        out.sheet(choices.sheet(model, lambda run: branch_sheet(run, names[0], by)))


@command("dominance")
def dominance(
    *,
    model: str,
    parts: tuple[str, ...],
    cost: str,
    over: tuple[str, str] | None,
    choices: Choices,
    out: Output,
) -> None:
    """Say where each of PARTS of MODEL takes most of a cost, as inequalities; -o FILE.svg draws it.

    For example: symbolic-cost dominance llama-3-8b attention.core mlp head --set b=1
    --over l=512:1000000 e=512:32768 -o map.svg
    """
    from symbolic_cost.jobs.questions import dominance_picture, dominance_sheet

    if not out.is_picture:
        if over is not None:
            raise click.UsageError("--over are the axes of a picture: -o FILE.svg draws it")
        out.sheet(choices.sheet(model, lambda run: dominance_sheet(run, parts, cost)))
        return
    if over is None:
        raise click.UsageError("a picture needs its axes: --over l=512:1000000 e=512:32768")
    from symbolic_cost.costs import named_cost
    from symbolic_cost.emit.charts import draw_regions

    across, up = map(_axis, over)
    if across[0] == up[0]:
        raise click.UsageError(f"--over {quote(across[0])} is given twice: a picture has two axes")
    map_ = dominance_picture(choices.job(model), parts, cost, across, up)
    out.draw(draw_regions, map_, f"What takes most of the {named_cost(cost).meaning} of {model}")


def _axis(text: str) -> tuple[str, tuple[int, int]]:
    from symbolic_cost.numeric.assignments import integers
    from symbolic_cost.symbols import symbol

    name, equals, span = text.partition("=")
    if not equals:
        raise InputError(
            f"--over {quote(text)}: SYMBOL=LEAST:MOST is accepted, as in l=512:1000000"
        )
    values = integers(span)
    return symbol(name.strip()).name, (values[0], values[-1])


@command("solve")
def solve(
    *, question: str, model: str, by: str, choices: Choices, trained: dict[str, object], out: Output
) -> None:
    """Answer QUESTION of MODEL for a symbol: a formula, the exact integer, and what binds.

    QUESTION compares a quantity (memory, step, exposed, computing, a named cost) with a number and
    its unit.

    For example: symbolic-cost solve "memory == 80 GiB" llama-3-70b --in l --strategy tp=8,sp
    --set b=1
    """
    from symbolic_cost.explore.solve import solve

    out.sheet(choices.sheet(model, lambda run: solve(question, run, by).sheet(), **trained))


@command("check")
def check(*, formula: str, model: str, cost: str, asked: CostRequest, out: Output) -> None:
    """Say whether FORMULA is the cost of MODEL: equal, equal to leading order, or how it differs.

    Products may be written without signs, powers with ^; max, min, ceil, floor, sqrt and
    log2 are functions. FORMULA may be a number. The exit code is 1 unless the two are equal, if
    only at the sizes of MODEL.

    For example: symbolic-cost check "s*b*h*(34 + 5*a*s/h)" --cost saved gpt --path block
    --strategy "" --notation megatron
    """
    from symbolic_cost.jobs.check import check

    verdict = check(formula, cost, model, **asked)
    out.sheet(verdict.sheet())
    if not verdict:
        click.get_current_context().exit(1)


@command("derive")
def derive(*, model: str, cost: str, asked: CostRequest, out: Output, **step: Any) -> None:
    """Explain a cost of MODEL: each coefficient by op, tensor and answer of the conventions.

    A notation that is named says which sizes are assumed, such as f = 4 e, too; of the family gpt
    they are Megatron's without one.

    --of step explains the time of a step: the chain of its parts, and the figures of the
    machine, each of a datasheet, calibrated or assumed, with the interval that follows.

    For example: symbolic-cost derive gpt --of saved --path block, where does the 34 come from
    """
    from symbolic_cost.jobs.derivation import derive

    if cost == "step":
        out.sheet(_step(model, asked, step))
        return
    if typed_options(**step):
        raise click.UsageError("--system and --global-batch are of --cost step alone")
    out.sheet(derive(model, cost, **asked).sheet())


def _step(model: str, asked: CostRequest, step: dict[str, Any]) -> Sheet:
    """Return where the time of a step comes from."""
    from symbolic_cost.jobs.job import job
    from symbolic_cost.jobs.provenance import step_sheet
    from symbolic_cost.jobs.subject import RUN
    from symbolic_cost.jobs.tied import tied

    unread = {"phase": "--phase", "path": "--path", "notation_name": "--notation"}
    stray = [option for name, option in unread.items() if asked.get(name) is not None]
    if stray:
        raise click.UsageError(f"--cost step is of a whole job: {', '.join(stray)} unread")
    run = job(
        tied(model, asked["ties"]) if asked["ties"] else model,
        asked["strategy"],
        asked["numbers"],
        conventions=asked["conventions"] or "standard",
        **typed_options(**{name: one for name, one in asked.items() if name in RUN}),
        **step,
    )
    return step_sheet(run)


@command("diff")
def diff(*, settings: tuple[str, ...], global_batch: int | None, out: Output, **asked: Any) -> None:
    """Subtract one count of MODEL from another, term by term as formulas with their sources.

    For example: symbolic-cost diff llama-3-70b --conventions torchtitan verl, or
    symbolic-cost diff llama-3-70b --strategy tp=8 tp=8,sp, or --system a100-80gb h100, or --train
    all lora:r=16,q,v, or two models.
    """
    from symbolic_cost.jobs.diff import diff
    from symbolic_cost.jobs.numbers import degree_names
    from symbolic_cost.numeric.assignments import parse_assignments

    numbers = parse_assignments(settings, degree_names())
    said = typed_options(**asked, numbers=numbers, global_batch=global_batch)
    out.sheet(diff(**said).sheet())


@command("flops-per-token")
def flops_per_token(
    *,
    model: str,
    seq: int | None,
    batch: str | None,
    conventions: str,
    settings: tuple[str, ...],
    out: Output,
) -> None:
    """Count the training FLOP of one token of MODEL as frameworks and papers do.

    One convention is shown term by term with its answers; several with what each has more than
    the next lower one, as formulas. A file of your own holds meaning, source, counted (kinds of
    weights) and, where they differ from the defaults, tied, routed, core, heads, causal, window,
    passes and softmax.

    For example: symbolic-cost flops-per-token qwen3-30b-a3b --seq 8192 --conventions all
    """
    from symbolic_cost.jobs.tables.per_token import batch_sheet, per_token_sheet
    from symbolic_cost.numeric.assignments import parse_assignments

    if seq is not None and batch is not None:
        raise click.UsageError("--seq and --batch both give lengths: give one of them")
    problems = Problems()
    numbers = problems.attempt(parse_assignments, settings)
    lengths = [] if batch is None else problems.attempt(_lengths, batch)
    problems.refuse()
    if batch is not None:
        out.sheet(batch_sheet(model, lengths, conventions, numbers))
        return
    out.sheet(per_token_sheet(model, seq, conventions, numbers))


def _lengths(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    wrong = [
        part
        for part in parts
        if not (part.isascii() and part.isdigit() and len(part) <= _MOST_DIGITS)
    ]
    if wrong:
        texts = ", ".join(map(quote, wrong[:5]))
        raise InputError(f"--batch: {texts}: lengths are positive integers, as in 512,1024,2048")
    return [int(part) for part in parts]


_MOST_DIGITS = 12


@command("mfu")
def mfu(*, model: str, rate: float, settings: tuple[str, ...], out: Output, **asked: Any) -> None:
    """Turn a measured throughput of MODEL into MFU, with the reason of every gap as a formula.

    For example: symbolic-cost mfu llama-3-70b --tokens-per-second 412 --system h100 --seq 8192
    """
    from symbolic_cost.jobs.mfu import mfu
    from symbolic_cost.numeric.assignments import parse_assignments

    out.sheet(mfu(model, rate, **asked, numbers=parse_assignments(settings)).sheet())
