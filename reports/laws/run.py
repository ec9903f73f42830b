"""Scaling laws: what there is, and the derived optimum of 1e24 FLOP under each.

Writes Markdown to standard output; `make reports` approves it.
"""

from __future__ import annotations

from collections.abc import Iterator

import symbolic_cost as sc

BUDGET = 1e24


def report() -> str:
    """Return the report as Markdown."""
    laws = [sc.laws.law(name) for name in sc.laws.names()]
    listed = [(law.name, law.meaning, law.value.text, ", ".join(law.sets)) for law in laws]
    lines = [
        "# Scaling laws",
        "",
        "A law is declared by its formula; optimum, exponents and price are derived from it.",
        "",
        sc.markdown(("law", "meaning", "formula", "constants"), listed),
        f"## The best of {BUDGET:.0e} FLOP, of laws with compute",
        "",
        sc.markdown(("law", "constants", "parameters", "tokens", "loss"), list(_best())),
    ]
    return "\n".join(lines)


def _best() -> Iterator[tuple[str, ...]]:
    for name in sc.laws.names():
        law = sc.laws.law(name)
        for constants in law.sets if law.compute is not None else ():
            (best,) = sc.laws.frontier_of(name, [BUDGET], constants)
            yield name, constants, *(f"{best.values[one]:.4g}" for one in ("N", "D", "loss"))


if __name__ == "__main__":
    print(report(), end="")
