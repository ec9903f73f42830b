"""`symbolic-cost laws`: scaling laws, their optima, fits, and what a budget buys."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from symbolic_cost.cli import Group, options
from symbolic_cost.cli.options import Output
from symbolic_cost.errors import InputError, quote, refuse


class _Laws(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return ["fit", "allocate"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:  # noqa: ARG002
        """Return a command; any other name is a law's, or a TOML file."""
        own = {"fit": fit, "allocate": allocate}
        return own[cmd_name] if cmd_name in own else _of(cmd_name)


@options.command("laws", _Laws, invoke_without_command=True)
def command(*, out: Output) -> None:
    """List scaling laws; NAME shows one, and with --flops its best size and tokens.

    For example: symbolic-cost laws, symbolic-cost laws chinchilla --flops 1e24,
    symbolic-cost laws fit runs.csv --law chinchilla,
    symbolic-cost laws allocate --budget 1e6USD --days 30 --system h100 --model llama
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        from symbolic_cost.cli.sheets.laws import laws_sheet

        out.sheet(laws_sheet())
        return
    from symbolic_cost.cli.contradictions import read_line

    typed = {"form": "--format", "file": "-o"}
    unread = [typed[name] for name in read_line(ctx).typed & typed.keys()]
    if unread:
        raise InputError(
            f"{' and '.join(sorted(unread))} before {ctx.invoked_subcommand} is not read: "
            "write it at the end"
        )


def _of(name: str) -> click.Command:
    said = f"Show law {name}, or its best size and tokens."
    law: click.Command = options.command("laws NAME", help=said)(partial(_laws, name))
    law.name = name
    return law


def _laws(
    name: str,
    *,
    flops: tuple[float, ...],
    constants: tuple[str, ...],
    loss: float | None,
    settings: tuple[str, ...],
    family: str | None,
    rule: tuple[str, ...],
    out: Output,
) -> None:
    from symbolic_cost.cli.sheets import laws as sheets
    from symbolic_cost.scaling import laws

    law = laws.law(name)
    sets = constants or tuple(law.sets)
    for one in sets:
        law.constants(one)
    values = sheets.variables(settings, law)
    if loss is not None and (flops or family):
        raise InputError("--loss asks for the compute: --flops and --family are not read with it")
    if family is None and rule:
        raise InputError("--rule is of a --family: name one")
    if loss is not None:
        optima = [laws.cheapest(law, loss, one, **values) for one in sets]
        out.sheet(sheets.optima_sheet(law, optima, loss))
    elif flops and laws.FLOP in law.variables and family is None:
        out.sheet(sheets.points_sheet(name, law, values, flops, sets))
    elif flops:
        members = None if family is None else laws.Family(family, _rules(rule), counts=law.counts)
        optima = [
            laws.optimum(law, flop, one, family=members, **values) for one in sets for flop in flops
        ]
        out.sheet(sheets.optima_sheet(law, optima))
    elif family is not None:
        raise InputError("--family is read with --flops")
    elif values:
        out.sheet(sheets.point_sheet(law, values, sets))
    else:
        out.sheet(sheets.law_sheet(law, constants))


def _rules(texts: tuple[str, ...]) -> dict[str, str]:
    wrong = [text for text in texts if not all(text.partition("=")[::2])]
    if wrong:
        raise InputError([f"rule {quote(text)}: SIZE=FORMULA is accepted" for text in wrong])
    return {text.partition("=")[0].strip(): text.partition("=")[2].strip() for text in texts}


@options.command("laws fit")
def fit(
    *,
    runs: str,
    name: str,
    approach: int,
    delta: float,
    method: str,
    bootstrap: int,
    leave_out: bool,
    flops: tuple[float, ...],
    out: Output,
) -> None:
    """Fit a law to RUNS, a CSV file with columns such as N, D and loss; `group` joins runs.

    For example: symbolic-cost laws fit runs.csv --law chinchilla --bootstrap 100 --flops 1e24

    -o FILE.svg draws the best size and tokens over compute, with their standard errors as bands.
    """
    from symbolic_cost.cli.sheets import laws as sheets
    from symbolic_cost.scaling import laws

    if approach not in (1, 2, 3):
        raise InputError(f"--approach {approach}: 1, 2 or 3 is accepted")
    if not (0 < delta < float("inf") and 0 <= bootstrap <= _MOST):
        raise InputError(f"--delta above 0 and --bootstrap from 0 to {_MOST} are accepted")
    if approach != 3 and (bootstrap or leave_out or flops):  # noqa: PLR2004 - its name
        raise InputError("--bootstrap, --leave-out and --flops are of approach 3")
    if approach != 3:  # noqa: PLR2004 - its name
        if out.is_picture:
            raise InputError("a picture is of approach 3")
        out.sheet(sheets.power_sheet(laws.approach(approach, name, runs), name, approach))
        return
    line = laws.fit(name, runs, delta=delta, method=method, resampled=bootstrap, grouped=leave_out)
    if out.is_picture:
        from symbolic_cost.cli.sheets.laws import band_curves
        from symbolic_cost.emit.charts import draw_curves

        out.draw(draw_curves, band_curves(line))
        return
    out.sheet(sheets.fit_sheet(line, flops))


_MOST = 10_000


@options.command("laws allocate")
def allocate(
    *,
    budget: tuple[str, ...],
    system: str,
    name: str,
    rule: tuple[str, ...],
    grid: float | None,
    pue: float | None,
    out: Output,
    **asked: Any,
) -> None:
    """Choose the model of least loss for a budget: its sizes, tokens, step time, dollars, carbon.

    For example: symbolic-cost laws allocate --budget 1e6USD --days 30 --system h100 --model llama
    """
    from symbolic_cost.cli.sheets import laws as sheets
    from symbolic_cost.scaling import laws

    spent = _budget(budget)
    allocation = laws.allocate(
        name,
        system=system,
        rule=_rules(rule),
        usd=spent.get("USD"),
        kwh=spent.get("kWh"),
        grid="us" if grid is None else grid,
        pue="usual" if pue is None else pue,
        **asked,
    )
    out.sheet(sheets.allocation_sheet(allocation, name, system))


def _budget(texts: tuple[str, ...]) -> dict[str, float]:
    amounts: dict[str, float] = {}
    problems = []
    for text in texts:
        unit = next((unit for unit in ("USD", "kWh") if text.endswith(unit)), "")
        try:
            number = float(text.removesuffix(unit))
        except ValueError:
            number = -1.0
        if not unit or not 0 < number < float("inf"):
            problems.append(f"budget {quote(text)}: a number with USD or kWh is accepted: 1e6USD")
        elif unit in amounts:
            problems.append(f"budget {quote(text)}: a second one in {unit}")
        amounts[unit] = number
    refuse(problems)
    return amounts
