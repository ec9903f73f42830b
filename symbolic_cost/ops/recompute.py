"""Recomputation: ops below a path segment run again in backward, and only their inputs are kept."""

from __future__ import annotations

from dataclasses import dataclass

from symbolic_cost.errors import UnknownNameError, unknown


@dataclass(frozen=True, slots=True)
class Recompute:
    """A policy.

    Args:
        name: of the policy.
        segment: path segment that marks the regions; empty for none.
    """

    name: str
    segment: str

    def region(self, path: str) -> str | None:
        """Return the path of the region that an op belongs to, or None."""
        segments = path.split(".")
        if self.segment not in segments:
            return None
        return ".".join(segments[: segments.index(self.segment) + 1])


KEEP_ALL = Recompute("none", "")
SELECTIVE = Recompute("selective", "core")
FULL = Recompute("full", "block")

POLICIES = {policy.name: policy for policy in (KEEP_ALL, SELECTIVE, FULL)}
"""Every policy by name: nothing, the attention core, whole blocks."""


def recompute_policy(name: str) -> Recompute:
    """Return a policy by name.

    Raises:
        UnknownNameError: no such policy.
    """
    if name not in POLICIES:
        raise UnknownNameError(unknown("recompute policy", name, POLICIES))
    return POLICIES[name]
