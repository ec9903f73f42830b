"""`symbolic-cost models`: what can be named."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output


@click.command("models")
@output
def command(*, out: Output) -> None:
    """List the named models, their sizes and sources."""
    from symbolic_cost.emit.sheet import Column, Sheet
    from symbolic_cost.models.catalog import CATALOG
    from symbolic_cost.references import REFERENCES

    rows = tuple(
        (
            preset.name,
            preset.family,
            ", ".join(f"{name}={size}" for name, size in preset.bindings.items()) or "symbolic",
            REFERENCES[preset.source].where,
            preset.note,
        )
        for preset in CATALOG.values()
    )
    headings = ("model", "family", "sizes", "source", "note")
    out.sheet(Sheet("Models", tuple(map(Column, headings)), rows))
