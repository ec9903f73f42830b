"""`symbolic-cost import`: model and strategy from the launch files of training frameworks."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output


@click.command("import")
@click.argument("files", nargs=-1, required=True)
@output
def command(*, files: tuple[str, ...], out: Output) -> None:
    """Read model and strategy from FILES, with where each value came from.

    Megatron-LM launch scripts, DeepSpeed configurations, nanotron and NeMo YAML, Calculon and
    llm-analysis JSON: symbolic-cost import run.sh ds_config.json
    """
    from symbolic_cost.cli.sheets.import_ import recipe_sheet
    from symbolic_cost.importers.launch import recipe

    out.sheet(recipe_sheet(recipe(*files)))
