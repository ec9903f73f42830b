"""`symbolic-cost serve-plan`: engines that serve a load, and what they reach."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from symbolic_cost.cli import options as declared
from symbolic_cost.cli.options import Output

if TYPE_CHECKING:
    from symbolic_cost.serving.plan import Plans

_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3}
_OF_PROGRAMS = ("json", "csv")


@declared.command("serve-plan")
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
    if pareto and rate is not None:
        problems.texts.append("--pareto is over all numbers of sequences: leave out --rate")
    if out.is_picture and not pareto:
        problems.texts.append(f"-o {out.file}: a picture is that of --pareto")
    options = {**asked, **waits, "rate": rates, "cache": kv, "acceptance": accepted}
    options["prefix_reading"] = "cascade" if cascade else "each"
    options["chunk"] = int(chunk) if re.fullmatch("[0-9]{1,9}", chunk) else chunk
    run = partial(serve_plan, model, system, gpus, **options)  # type: ignore[arg-type]  # of click
    plans = problems.attempt(run)
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
    from symbolic_cost.errors import InputError, quote

    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?([a-z/]{0,3})", text.strip())
    if match is None or match[2] not in units or float(match[1]) == 0:
        accepted = " or ".join(f"0.5{unit}" for unit in units)
        raise InputError(f"--{name} {quote(text)}: {accepted} is accepted")
    return float(match[1]) * units[match[2]]
