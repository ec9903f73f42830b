"""What a device holds beside the tensors of a step: context, workspaces, buffers of collectives.

A job fits where its tensors and these do. What the allocator keeps of freed tensors is not among
them: it gives that back before memory runs out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul
from symbolic_cost.extrema import AtLeast, Choice
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active, exact
from symbolic_cost.systems.kernel_records import kind_of
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.stacks import UNKNOWN, Stack, has_kernels

BESIDE = ("context", "cublas", "engine", "buckets")
"""Facts of what is there whatever the ranks are."""

_CAPABLE = ("h100", "h200", "h800", "b200", "b300", "gb200", "gb300")
"""Beginnings of the names of devices of compute capability 9 and above."""


@dataclass(frozen=True)
class Surroundings:
    """What surrounds the tensors of a stack's step on a machine.

    A machine that a publication made up has none, unless a stack is named. What XLA reserves is no
    part of the memory that a record calls usable.

    Args:
        stack: None for no stack in particular.
    """

    machine: Machine
    stack: Stack | None

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The numbers of the stack that runs, as { value, source }."""
        data = package_data("systems/device_memory.toml")
        own = self.stack is not None or has_kernels(self.machine)
        if not own or kind_of(self.machine) != "gpu":
            return {}
        facts = dict(data["every"])
        for name in reversed((UNKNOWN,) if self.stack is None else self.stack.family):
            facts |= data.get(name, {})
        return facts

    def fact(self, name: str) -> Any:  # noqa: ANN401 - an integer, or a share
        """Return a number of the stack, none where it has no such term."""
        number = self.facts.get(name, {"value": 0})["value"]
        return number if isinstance(number, int) else str(number)

    def source(self, name: str) -> str:
        """Return where a fact stands; empty for what is derived."""
        record = self.facts.get(name)
        sources: Mapping[str, str] = package_data("systems/device_memory.toml")["sources"]
        return "" if record is None else sources[record["source"]]

    def of_device(self, name: str) -> str:
        """Return the name of a fact for the generation of the device."""
        own = f"{name}9"
        return own if self.machine.name.startswith(_CAPABLE) and own in self.facts else name

    def size(self, mesh: Mapping[str, Expr]) -> Expr:
        """Return all of it [byte].

        Args:
            mesh: ranks by mesh axis, innermost first.
        """
        whole = sum(self.fact(self.of_device(name)) for name in BESIDE)
        return add(Integer(whole), self.buffers(mesh))

    def buffers(self, mesh: Mapping[str, Expr]) -> Expr:
        """Return the buffers of communicators [byte]: one per mesh axis, and one of all ranks."""
        domain = self.machine.links[0].ranks if self.machine.links else None
        near, connections = Integer(1), []
        for ranks in mesh.values():
            near = mul(near, exact(ranks))
            connections.append(self._connections(exact(ranks), near, domain and domain.value))
        connections.append(self._connections(near, near, domain and domain.value))
        return mul(Integer(self.fact("connection")), add(*connections))

    def _connections(self, ranks: Expr, near: Expr, domain: Expr | None) -> Expr:
        """Return the connections of a communicator, none of one rank."""
        inside, outside = Integer(self.fact("inside")), Integer(self.fact("outside"))
        if domain is None:
            return Active(ranks) * inside
        return Active(ranks) * Choice(AtLeast(domain, near), inside, outside)
