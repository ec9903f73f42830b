"""Which engines are looked at where none is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from symbolic_cost.errors import refuse
from symbolic_cost.models.count import ROUTED
from symbolic_cost.models.inference import Declare
from symbolic_cost.models.shape import TRAINING
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.systems.machines import Machine


def strategies(declare: Declare, machine: Machine, gpus: int) -> Iterator[Strategy]:
    """Yield engines of up to so many GPUs: tensor-parallel in a domain, stages beyond, experts."""
    domain = machine.links[0].ranks
    inside = gpus if domain is None else min(gpus, int(domain.value))
    routed = bool(declare(TRAINING).placed(ROUTED))
    for tp in _powers(inside):
        words = [f"tp={tp}"] * (tp > 1)
        yield parse_strategy(",".join(words))
        if routed:
            for dp in _powers(gpus // tp):
                if dp > 1:
                    yield parse_strategy(",".join([*words, f"dp={dp}", f"ep={dp}"]))
    widest = _powers(inside)[-1]
    for pp in _powers(gpus // widest):
        if pp > 1:
            yield parse_strategy(f"tp={widest},pp={pp}" if widest > 1 else f"pp={pp}")


def refuse_symbols(strategy: Strategy) -> None:
    """Refuse a strategy with degrees that are no numbers.

    Raises:
        InputError: every degree without a number.
    """
    problems = [
        f"strategy: {name} has no number: give one, as in {name}=8"
        for name, degrees in strategy.degrees.items()
        if not all(degree.is_Integer for degree in degrees)
    ]
    refuse(problems)


def _powers(most: int) -> list[int]:
    return [2**i for i in range(most.bit_length())]


def strategy_name(strategy: Strategy) -> str:
    """Return the name of a strategy, that of one rank too."""
    return str(strategy) or "one GPU"
