"""A tape in layers, as bytes: what derives programs keeps them so, and what evaluates reads them.

Steps of one kind whose operands are known are one layer, as `layered` runs them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from struct import pack

from symbolic_cost.cache import keep_bytes, kept_bytes
from symbolic_cost.program import scalars
from symbolic_cost.program.stored import FORMAT, number_text
from symbolic_cost.program.tape import Tape

KINDS = (
    *("add", "sub", "mul", "div", "max", "min", "ge", "gt", "inv", "ceil", "floor", "sqrt"),
    *("log2", "exp2", "select"),
)
"""Operations, by the number under which they are stored."""

MOST_OPERANDS = 3


def layers_of(tape: Tape) -> bytes:
    """Return a tape, whose outputs are "group|name", in layers: a line of JSON, then numbers."""
    first, layers = tape.first, list(_layers(tape))
    order = [one for _, own in layers for one in own]
    places = [*range(first + len(order))]
    for place, one in enumerate(order, first):
        places[first + one] = place
    taken = [tape.steps[one][1] for one in order]
    operands = [
        [places[own[row]] if row < len(own) else 0 for own in taken] for row in range(MOST_OPERANDS)
    ]
    split = [label.partition("|") for label in tape.outputs]
    names = {name: place for place, name in enumerate(dict.fromkeys(name for *_, name in split))}
    arrays: dict[str, list[list[int]]] = {
        "kinds": [[KINDS.index(kind) for kind, _ in layers]],
        "sizes": [[len(own) for _, own in layers]],
        "operands": operands,
        "order": [order],
        "outputs": [
            [int(group) for group, *_ in split],
            [names[name] for *_, name in split],
            [places[register] for register in tape.outputs.values()],
        ],
    }
    width = "<u2" if first + len(order) < 1 << 16 else "<u4"
    head = {
        "inputs": tape.inputs,
        "counts": tape.counts,
        "exact": [number_text(one) for one in tape.constants],
        "names": tuple(names),
        "width": width,
        "shapes": {
            name: [len(rows), len(rows[0])] if len(rows) > 1 else [len(rows[0])]
            for name, rows in arrays.items()
        },
    }
    body = [_packed("d", [scalars.rounded(one) for one in tape.constants])]
    body += [_packed("HI"[width == "<u4"], row) for rows in arrays.values() for row in rows]
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + b"".join(body)


def _packed(kind: str, numbers: Sequence[float]) -> bytes:
    return pack(f"<{len(numbers)}{kind}", *numbers)


def _layers(tape: Tape) -> Iterator[tuple[str, list[int]]]:
    """Yield steps of one kind that are ready, by their places: the kind that is most urgent.

    Urgent is what the longest chain of steps waits for. Kinds that may wait gather more steps, so
    that there are half as many layers as where every step is taken as soon as it is ready.
    """
    first, steps = tape.first, tape.steps
    users: list[list[int]] = [[] for _ in steps]
    missing = []
    for place, (_, taken) in enumerate(steps):
        own = {one - first for one in taken if one >= first}
        missing.append(len(own))
        for one in own:
            users[one].append(place)
    chain = [0] * len(steps)
    for place in reversed(range(len(steps))):
        chain[place] = max((1 + chain[one] for one in users[place]), default=0)
    ready: dict[str, list[int]] = {}
    urgent: dict[str, int] = {}
    free = [place for place, count in enumerate(missing) if not count]
    while free or ready:
        for place in free:
            kind = steps[place][0]
            ready.setdefault(kind, []).append(place)
            urgent[kind] = max(urgent.get(kind, 0), chain[place])
        chosen = max(ready, key=urgent.__getitem__)
        layer = sorted(ready.pop(chosen))
        del urgent[chosen]
        yield chosen, layer
        free = []
        for one in (one for place in layer for one in users[place]):
            missing[one] -= 1
            if not missing[one]:
                free.append(one)


def kept_layers(about: object) -> bytes | None:
    """Return the layers of what is described; none if none are kept."""
    return kept_bytes((FORMAT, about), ".layers")


def made_layers(about: object, make: Callable[[], Tape]) -> bytes:
    """Return the layers of a tape that is made, and keep them for what is described.

    Args:
        about: everything that decides what the tape is, as its repr tells it; the library's own
            version is added.
        make: the tape; its outputs are "group|name".
    """
    data = layers_of(make())
    keep_bytes((FORMAT, about), ".layers", data)
    return data
