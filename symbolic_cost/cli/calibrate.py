"""`symbolic-cost calibrate`: efficiencies of a machine from measured step times."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output


@click.command("calibrate")
@click.option("--system", default="a100-80gb", show_default=True, help="A machine, or a TOML file.")
@click.option(
    "--rows",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="CSV of measured runs; each file counts as much as any other.",
)
@output
def command(*, system: str, files: tuple[str, ...], out: Output) -> None:
    """Fit the efficiencies of a machine to measured steps; -o FILE.toml writes its record.

    Rows are runs with columns global_batch, micro_batch, e, h, n_layers, l, tp, dp, pp and
    iteration_time_ms: symbolic-cost calibrate --system a100-80gb --rows runs.csv -o my-a100.toml
    """
    from symbolic_cost.cli.sheets.calibrate import fitted, fitted_sheet
    from symbolic_cost.systems.calibration import record

    found = fitted(system, files)
    if out.file is not None and out.file.endswith(".toml"):
        out.text(record(found.machine))
    else:
        out.sheet(fitted_sheet(found))
