"""Five published systems: every printed number beside the computed one.

Writes Markdown to standard output; `make reports` approves it.
"""

from __future__ import annotations

import symbolic_cost as sc

SYSTEMS = {
    "transformer-tables": "FLOP, traffic, collectives and times of a transformer's blocks",
    "korthikanti-2022": "activation memory and recomputation of Megatron-LM",
    "narayanan-2021": "FLOP, parameters and days of training at scale",
    "megatron-report": "a training report: parameters, activations, memory, communication",
    "ulysses-prefill": "prefill of long contexts under tensor and sequence parallelism",
}


def report() -> str:
    """Return the report as Markdown."""
    parts, counts = [], []
    for name, about in SYSTEMS.items():
        rows = sc.publication(name).reproduce()
        agree = sum(row.match is True for row in rows)
        compared = sum(row.match is not None for row in rows)
        counts.append((name, about, f"{agree} of {compared}"))
        cells = [(row.key, row.published, row.computed, row.note) for row in rows]
        table = sc.markdown(("number", "printed", "computed", "note"), cells)
        parts.append(f"\n## {name}\n\n{table}")
    head = "# Five published systems\n\nPrinted numbers, and what the declared models give.\n\n"
    return head + sc.markdown(("publication", "of", "agree"), counts) + "".join(parts)


if __name__ == "__main__":
    print(report(), end="")
