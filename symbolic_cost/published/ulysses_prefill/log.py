"""What the logs print, step by step, as data/ulysses_logs.toml says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from symbolic_cost.published.printed import printed_data


class Tensor(NamedTuple):
    """One printed tensor: name and dimensions as printed, unit of its size, true dimensions."""

    name: str
    dims: str
    unit: str
    true: str


class Step(NamedTuple):
    """One step of the program; fields as the data file explains them."""

    name: str
    tensors: tuple[Tensor, ...]
    events: str = ""
    flops: tuple[str, ...] = ()
    contiguous: bool = False
    printed: tuple[str, ...] = ("peak",)


def _step(name: str, record: Mapping[str, Any]) -> Step:
    tensors = tuple(
        Tensor(one, dims, (rest or ["MB"])[0], (*rest[1:], dims)[0])
        for names, dims, *rest in record.get("tensors", ())
        for one in names.split()
    )
    return Step(name, **{**record, "tensors": tensors})


_DATA = {
    log: tuple(_step(name, record) for name, record in steps.items())
    for log, steps in printed_data("ulysses_logs.toml").items()
}
LOGS: Mapping[str, tuple[Step, ...]] = {
    "3b1a699": _DATA["published"],
    "d7a62c8": (*_DATA["published"][:-1], *_DATA["later"]),
    "5e270bf": _DATA["earlier"],
}
"""Steps by the commit of the log: as published, with the perceptron's FLOP, attention alone."""
