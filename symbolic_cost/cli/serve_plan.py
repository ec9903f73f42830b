"""`symbolic-cost serve-plan`: engines that serve a load, and what they reach."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import click

from symbolic_cost.cli.options import Output, output

if TYPE_CHECKING:
    from symbolic_cost.errors import Problems
    from symbolic_cost.serving.plan import Plans

_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3}
_OF_PROGRAMS = ("json", "csv")


@click.command("serve-plan")
@click.argument("model")
@click.option("--system", required=True, help="A machine whose kernels are on record, or like one.")
@click.option("--gpus", type=int, required=True, help="That may be used.")
@click.option("--input", "prompt", type=int, required=True, help="Tokens of a prompt.")
@click.option("--output", "answer", type=int, required=True, help="Tokens of an answer.")
@click.option("--rate", metavar="4/s", help="Requests per second; the most unless given.")
@click.option("--ttft", metavar="1s", help="Time to the first token at most.")
@click.option("--itl", metavar="50ms", help="Time between tokens at most.")
@click.option(
    "--weights", default="bf16", show_default=True, help="bf16, fp16, fp8, int8, int4; stored."
)
@click.option("--kv", default="bf16", show_default=True, help="Of the cache: bf16, fp16 or fp8.")
@click.option("--strategy", default="", help="Of one engine, as tp=8; every one unless given.")
@click.option(
    "--chunk",
    metavar="2048|none",
    default="best",
    help="Prompt tokens of a step at most; the best unless given.",
)
@click.option("--shared-prefix", type=int, default=0, help="Tokens that all prompts begin with.")
@click.option("--cascade", is_flag=True, help="One kernel reads the shared prefix for all.")
@click.option("--draft", type=int, default=0, help="Tokens drafted per step, and checked.")
@click.option("--accepted", type=float, default=0.0, help="Share of drafted tokens, as 0.8.")
@click.option(
    "--draft-model", default="", help="That drafts; mtp: one more block of MODEL; none: no time."
)
@click.option("--split", is_flag=True, help="Engines that prefill may stand apart.")
@click.option("--prefill-strategy", default="", help="Of one of these; as --strategy if none.")
@click.option(
    "--price", type=float, help="Of one GPU for an hour [USD]; that on record unless given."
)
@click.option("--pareto", is_flag=True, help="Speed per user against speed per GPU.")
@partial(output, names=("-o", "--file"))
def command(
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

    MODEL is a name or the path of a config.json: decoders, mixtures, Mamba and hybrids of both.

    For example: symbolic-cost serve-plan llama-3-70b --system h100 --gpus 8 --input 2000
    --output 500 --itl 50ms
    """
    from symbolic_cost.errors import Problems
    from symbolic_cost.serving.plan import serve_plan

    problems = Problems()
    rates = None if rate is None else problems.attempt(_number, "rate", rate, {"": 1.0, "/s": 1.0})
    waits = {
        name: None if text is None else problems.attempt(_number, name, text, _UNITS)
        for name, text in (("ttft", ttft), ("itl", itl))
    }
    if price is not None and not 0 < price < float("inf"):
        problems.texts.append(f"price = {price}: a positive number is accepted")
    _refuse_pictures(problems, out.file, pareto=pareto, rate=rate)
    options = {**asked, **waits, "rate": rates, "cache": kv, "acceptance": accepted}
    options["prefix_reading"] = "cascade" if cascade else "each"
    options["chunk"] = int(chunk) if re.fullmatch("[0-9]{1,9}", chunk) else chunk
    run = partial(serve_plan, model, system, gpus, **options)  # type: ignore[arg-type]  # of click
    plans = problems.attempt(run)
    problems.refuse()
    _told(plans, price, out, pareto=pareto)


def _told(plans: Plans, price: float | None, out: Output, *, pareto: bool) -> None:
    """Print or draw plans."""
    from symbolic_cost.emit.front import draw
    from symbolic_cost.emit.plots import drawn, is_picture
    from symbolic_cost.serving.told import plan_front, plan_sheet

    full = out.form in _OF_PROGRAMS
    if not pareto:
        out.sheet(plan_sheet(plans, price, full=full))
    elif is_picture(out.file):
        drawn(out.file, lambda figure: draw(figure, [plan_front(plans)]))
    else:
        out.sheet(plan_front(plans, full=full).sheet)


def _refuse_pictures(
    problems: Problems, file: str | None, *, pareto: bool, rate: str | None
) -> None:
    from symbolic_cost.emit.plots import is_picture

    if pareto and rate is not None:
        problems.texts.append("--pareto is over all numbers of sequences: leave out --rate")
    if is_picture(file) and not pareto:
        problems.texts.append(f"-o {file}: a picture is that of --pareto")


def _number(name: str, text: str, units: dict[str, float]) -> float:
    """Read a positive number with a unit.

    Raises:
        InputError: not a number, or a unit that is not accepted.
    """
    from symbolic_cost.errors import InputError, shown

    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?([a-z/]{0,3})", text.strip())
    if match is None or match[2] not in units or float(match[1]) == 0:
        accepted = " or ".join(f"0.5{unit}" for unit in units)
        raise InputError(f"--{name} {shown(text)}: {accepted} is accepted")
    return float(match[1]) * units[match[2]]
