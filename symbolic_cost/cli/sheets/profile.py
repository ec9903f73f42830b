"""The modules of a profile as a table."""

from __future__ import annotations

from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.published.module_profile.profile import Profile


def profile_sheet(name: str, made: Profile) -> Sheet:
    """Return one row per module; latencies in seconds, where they are known."""
    rows = tuple(
        (
            module.path or module.cls,
            module.cls,
            times,
            module.params,
            module.macs,
            module.flop,
            None if module.latency is None else module.latency.value,
        )
        for _, times, module in made.top.walk()
    )
    numbers = ("occurs", "params", "MACs", "FLOP", "latency")
    columns = (Column("module"), Column("class"), *(Column(text, "right") for text in numbers))
    notes = (f"conventions {made.version.flop.name}: {made.version.flop.meaning}",)
    return Sheet(f"Profile of {name}", columns, rows, notes)
