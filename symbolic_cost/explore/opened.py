"""Options of a job as numbers of a program: the order of ranks, overlap, and what is on the host.

These change no rows, so that a structure has one program for all of them. An order is told by which
of two mesh axes lies inside of the other, [inside tp dp]; overlap and offload by shares up to 1.

For example with dp inside of tp neighbours on tp are dp ranks apart: 1 + (dp - 1) [inside dp tp].
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr, Integer

from symbolic_cost.algebra import Space, mul
from symbolic_cost.explore.choices import CONTEXT, HOST, OFFLOADED, OPEN, OPENED
from symbolic_cost.extrema import Choice
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.parallel.degrees import KEY_COPIES
from symbolic_cost.records import replace
from symbolic_cost.symbols import Active
from symbolic_cost.systems.overlap import NONE, Overlap, partial
from symbolic_cost.systems.setting import usually_hidden


def opened(setup: Setup, options: Mapping[str, str], space: Space) -> Setup:
    """Return the setup of a structure with terms for the options that are open."""
    methods, training = setup.methods, setup.training
    mesh = setup.structure.reduced.mesh
    if options.get("order") == OPEN:
        methods = replace(methods, strides=_strides(mesh, space))
    if options.get("overlap") == OPEN:
        names = [name for name in (*mesh, HOST) if f"hidden {name}" in OPENED]
        hidden = usually_hidden(methods.stack, setup.trained.pipeline.schedule)
        policies = {name: partial(_hidden(name, hidden, space)) for name in names}
        methods = replace(methods, overlaps=policies)
    if options.get("offload") == OPEN:
        shares = {name: _term(space, f"hosted {name}") for name in OFFLOADED}
        training = replace(training, offload=frozenset(OFFLOADED), shares=shares)
    if methods is setup.methods and training is setup.training:
        return setup
    return replace(setup, methods=methods, training=training)


def _hidden(name: str, usual: Mapping[str, Overlap], space: Space) -> Expr:
    """Return the share of a mesh axis's communication that may be hidden: as said, or as usual."""
    said = _term(space, f"hidden {name}")
    own = usual.get(name, usual.get("cp", NONE) if name in CONTEXT else NONE)
    return Choice(Active(said), own.share or Integer(0), said)


def _term(space: Space, name: str) -> Expr:
    term: Expr = space.symbol(name)
    return term


def _strides(mesh: Mapping[str, Expr], space: Space) -> dict[str, Expr]:
    """Return the ranks between neighbours on each mesh axis; copies of heads lie inside of tp."""
    strides = {}
    for name in mesh:
        inner = [
            Choice(_inside(other, name, space), degree, 1)
            for other, degree in mesh.items()
            if other != name
        ]
        strides[name] = mul(*inner) if inner else space.term(1)
    return strides


def _inside(one: str, other: str, space: Space) -> Expr:
    """Return one where a mesh axis lies inside of another, else zero."""
    if {one, other} == {KEY_COPIES, "tp"}:
        inside: Expr = space.term(int(one == KEY_COPIES))
        return inside
    one, other = ("tp" if name == KEY_COPIES else name for name in (one, other))
    name = f"inside {one} {other}"
    return _term(space, name) if name in OPENED else 1 - _term(space, f"inside {other} {one}")
