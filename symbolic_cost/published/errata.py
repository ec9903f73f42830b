"""Slips of publications: what each prints, what follows instead, and why."""

from __future__ import annotations

from symbolic_cost.published.contract import MODULES, publication
from symbolic_cost.published.results import Erratum


def errata(*names: str) -> list[Erratum]:
    """Return the slips of publications, each with its place, print, value and proof.

    Args:
        names: of publications; all of them unless any is named.

    Raises:
        UnknownNameError: no such publication.
    """
    works = (publication(name) for name in names or MODULES)
    return [slip for work in works for slip in getattr(work, "errata", list)()]
