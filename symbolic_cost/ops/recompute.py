"""Recomputation: ops below a path segment run again in backward, and only their inputs are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sympy import Expr, Integer

from symbolic_cost.errors import InputError, UnknownNameError, shown, unknown


@dataclass(frozen=True, slots=True)
class Recompute:
    """A policy.

    Args:
        name: of the policy.
        meaning: one line.
        segment: path segment that marks the regions; empty for none.
        every: regions in a row of which only the first one's inputs are kept.
    """

    name: str
    meaning: str
    segment: str
    every: Expr = Integer(1)

    def region(self, path: str) -> str | None:
        """Return the path of the region that an op belongs to, or None."""
        segments = path.split(".")
        if self.segment not in segments:
            return None
        return ".".join(segments[: segments.index(self.segment) + 1])


KEEP_ALL = Recompute("none", "every activation that backward needs is kept", "")
SELECTIVE = Recompute("selective", "attention cores run again in backward", "core")
FULL = Recompute("full", "whole blocks run again; full/N keeps every N-th input", "block")

POLICIES = {policy.name: policy for policy in (KEEP_ALL, SELECTIVE, FULL)}
"""Every policy by name: nothing, the attention core, whole blocks."""


def recompute_policy(name: str) -> Recompute:
    """Return a policy by name; "full/4" keeps the inputs of every fourth block.

    Raises:
        UnknownNameError: no such policy.
        InputError: what follows the slash is not a positive integer.
    """
    base, slash, every = name.partition("/")
    if base not in POLICIES or (slash and base != FULL.name):
        raise UnknownNameError(unknown("recompute policy", name, [*POLICIES, "full/4"]))
    if not slash:
        return POLICIES[base]
    if not re.fullmatch(r"[0-9]{1,9}", every) or int(every) < 1:
        raise InputError(
            f"recompute policy {shown(name)}: {shown(every)} is not a positive integer"
        )
    return Recompute(name, FULL.meaning, FULL.segment, Integer(every))
