"""A job priced once for all its numbers: step, memory and legality as one program.

What changes which rows exist is structure, and has a program of its own; degrees, microbatches and
sizes are numbers of it. A program is kept on disk, so that the next search need not derive it.

For example the step of tp=8,dp=4 and that of tp=2,dp=64 are one program in m1 and dp; that of
dp=64 alone is another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from math import prod

from sympy import Expr

from symbolic_cost.errors import InputError
from symbolic_cost.explore.described import described
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.lazy import Recent
from symbolic_cost.ledger import Condition, Split
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.memory import moments
from symbolic_cost.program.graph import Graph
from symbolic_cost.program.lowering import Lowering
from symbolic_cost.program.program import Program, of_graph
from symbolic_cost.program.stored import kept
from symbolic_cost.symbols import GLOSSARY, exact, named
from symbolic_cost.systems.step import RESULTS, STEP_PARTS

MEMORY = "memory"
"""Output: the most that one rank of any stage holds at any moment [byte]."""

TIMES = tuple(dict.fromkeys((*RESULTS, *STEP_PARTS)))
"""Outputs of a step: parts [s], rates, and shares."""

LEGAL = "legal: "
"""Outputs that begin so are one where a condition is met; the rest of the name says which."""


@dataclass(frozen=True)
class Priced:
    """The program of one structure.

    Args:
        setup: degrees as symbols.
        program: outputs TIMES where the setup names a machine, MEMORY, and conditions.
    """

    setup: Setup
    program: Program

    @property
    def conditions(self) -> tuple[str, ...]:
        """What numbers must meet, in words."""
        return tuple(n.removeprefix(LEGAL) for n in self.program.outputs if n.startswith(LEGAL))


def priced(setup: Setup, free: Collection[str] = ()) -> Priced:
    """Return the program of a setup's structure.

    Args:
        setup: its degrees count as symbols, but for those that are a class of their own (1, and 2
            stages).
        free: names of symbols that stay symbols though the setup has numbers for them.

    Raises:
        InputError: names without a symbol, or a strategy that does not go with the model.
    """
    own = structure_of(setup)
    numbers = bound_numbers(own, free)
    about = about_setup(own, numbers)
    make = partial(_derived, own, numbers)
    return Priced(own, make() if about is None else kept(about, make))


def structure_of(setup: Setup) -> Setup:
    """Return a setup with a symbol for every degree and count whose number is no structure."""
    degrees = {
        s.name for d in setup.placed.degrees.values() for e in d for s in exact(e).free_symbols
    }
    numbers = {
        name: number for name, number in setup.numbers.items() if name not in {*degrees, "M", "B"}
    }
    training = replace(setup.trained, microbatches=exact(GLOSSARY["M"].symbol))
    return replace(
        setup,
        strategy=setup.placed,
        numbers=numbers,
        training=training,
        global_batch=None,
        precise=True,
    )


def bound_numbers(setup: Setup, free: Collection[str]) -> dict[str, int | Fraction]:
    """Return the numbers of a setup, but for those that stay symbols."""
    return {name: number for name, number in setup.values.items() if name not in free}


_MODELS: Recent[tuple[Model, str | None]] = Recent(8)


def about_setup(setup: Setup, numbers: Mapping[str, int | Fraction]) -> str | None:
    """Describe everything that a program rests on; none where a user's function does."""
    model = setup.model
    make = partial(described, (model.parts, model.axes))
    _, declared = _MODELS.of(id(model), lambda: (model, _digest(make())))
    held = described(
        (
            model.sizes,
            model.padded,
            model.means,
            setup.strategy,
            numbers,
            setup.training,
            setup.machine,
            setup.methods,
            setup.conventions,
            setup.attention,
        )
    )
    return None if declared is None or held is None else declared + held


def _digest(text: str | None) -> str | None:
    return None if text is None else blake2b(text.encode(), digest_size=16).hexdigest()


def _derived(setup: Setup, numbers: Mapping[str, int | Fraction]) -> Program:
    graph = new_graph()
    return of_graph(graph, outputs_of(graph, setup, numbers))


def new_graph() -> Graph:
    """Return a graph of all symbols of the glossary, that they may have in common."""
    return Graph({name: entry.integer for name, entry in GLOSSARY.items()})


def outputs_of(graph: Graph, setup: Setup, numbers: Mapping[str, int | Fraction]) -> dict[str, int]:
    """Derive a structure and return the nodes of its outputs.

    Args:
        graph: to add to.
        setup: the structure, as `structure_of` gives it.
        numbers: of symbols that stay none.

    Raises:
        InputError: the strategy does not go with the model.
    """
    timed = None if setup.machine is None else Timed(setup)
    chain = None if timed is None else timed.step.chain
    memory = setup.stages_memory if timed is None else timed.memory
    stages = {stage: memory.table(stage) for stage in setup.structure.stages}
    conditions = dict.fromkeys(c for table in stages.values() for c in table.conditions)
    low = Lowering(graph, numbers)
    nodes: dict[str, int] = {}
    for name, expr in ({} if chain is None else chain.definitions).items():
        nodes[name] = low.known[named(name)] = low.node(expr)
    outputs = {name: nodes[name] for name in TIMES if name in nodes}
    peaks = [low.node(size) for table in stages.values() for size in moments(table).values()]
    outputs[MEMORY] = graph.extremum("max", peaks)
    for label, node in _legal(low, conditions):
        outputs[LEGAL + label] = node
    if low.refused:
        raise InputError([f"{text} has no place in a program" for text in low.refused])
    return outputs


def _legal(low: Lowering, conditions: Collection[Condition]) -> Iterator[tuple[str, int]]:
    """Yield what numbers must meet, in words, and the node that is one where they do."""
    graph = low.graph
    for one in conditions:
        if isinstance(one, Split):
            degree = prod((exact(d) for _, d in one.degrees), start=exact(1))
            node = _whole(low, exact(one.size), degree)
            by = " and ".join(mesh for mesh, _ in one.degrees)
            label = f"{one.path}: {one.axis} is divisible by {by}" if by else f"{one.axis} is whole"
        else:
            node = graph.at_least(low.node(one.size), low.node(one.least))
            label = f"{one.what}: {one.because}"
        if graph.value(node) != 1:
            yield label, node


def _whole(low: Lowering, size: Expr, degree: Expr) -> int:
    """Return the node that is one where a quotient is a whole number."""
    graph = low.graph
    quotient = graph.over(low.node(size), low.node(degree))
    return graph.at_least(graph.floor(quotient), quotient)
