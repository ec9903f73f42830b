"""Errata: what publications print, what follows from their own terms, and why.

Writes Markdown to standard output; `make reports` approves it.
"""

from __future__ import annotations

import symbolic_cost as sc


def report() -> str:
    """Return the report as Markdown."""
    rows = [
        (one.publication, one.place, one.printed, one.computed, one.proof) for one in sc.errata()
    ]
    head = "# Errata\n\nEach contradicts what is printed or declared beside it.\n\n"
    return head + sc.markdown(("publication", "place", "printed", "follows", "proof"), rows)


if __name__ == "__main__":
    print(report(), end="")
