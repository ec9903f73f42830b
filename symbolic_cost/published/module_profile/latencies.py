"""Latencies that a profile is given: nothing here can be derived from a declaration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from symbolic_cost.errors import InputError, unknown
from symbolic_cost.published.module_profile.numbers import Span, latency

_GROUPS = ("modules", "classes", "run")
_PASSES = ("fwd", "bwd", "step")


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured of a whole step, and on how many devices; each may be unknown.

    Args:
        fwd: forward pass, as the training loop saw it [s].
        bwd: backward pass [s].
        step: update of the weights [s].
        world: devices.
        mp: devices that hold one model.
        batch: samples per device and step.
    """

    fwd: Span | None = None
    bwd: Span | None = None
    step: Span | None = None
    world: int | None = None
    mp: int = 1
    batch: int | None = None


@dataclass
class Latencies:
    """Latencies [s] by what they were measured of.

    Args:
        modules: one call of a module, by its path; of repeated modules the first.
        classes: all modules of a class at a depth together, by (depth, class).
        run: whole passes by name.
        problems: what was refused.
    """

    modules: dict[str, Span] = field(default_factory=dict)
    classes: dict[tuple[int, str], Span] = field(default_factory=dict)
    run: dict[str, Span] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Latencies:
        """Read latencies, in seconds or as text like "4.4 ms".

        For example {"modules": {"": "135.52 ms", "encoder": 0.13411},
        "classes": {"4": {"BertAttention": "60.64 ms"}}, "run": {"fwd": "1.89 s"}}.
        """
        made = cls()
        made.problems += [
            unknown("group of latencies", name, _GROUPS) for name in given if name not in _GROUPS
        ]
        made.modules = made._spans(given.get("modules", {}), "module")
        made.run = made._spans(given.get("run", {}), "pass")
        made.problems += [unknown("pass", name, _PASSES) for name in made.run.keys() - _PASSES]
        for depth, classes in made._group(given.get("classes", {}), "classes").items():
            if not str(depth).isdecimal():
                made.problems.append(f"depth {depth!r} of latencies is not a number from 0")
                continue
            spans = made._spans(classes, f"depth {depth}, class")
            made.classes |= {(int(depth), name): span for name, span in spans.items()}
        return made

    def check(self, paths: Iterable[str]) -> None:
        """Raise if a latency was refused or belongs to no module.

        Raises:
            InputError: every such latency.
        """
        known = set(paths)
        lost = [unknown("module", path, known) for path in self.modules if path not in known]
        if self.problems or lost:
            raise InputError([*self.problems, *lost])

    def joined(self, run: Run) -> Run:
        """Return facts of a run with the latencies of its passes."""
        measured = {name: self.run.get(name, getattr(run, name)) for name in _PASSES}
        return Run(**measured, world=run.world, mp=run.mp, batch=run.batch)

    def _spans(self, given: object, where: str) -> dict[str, Span]:
        found = {}
        for name, text in self._group(given, where).items():
            try:
                found[name] = latency(text, f"{where} {name!r}")
            except InputError as error:
                self.problems += error.problems
        return found

    def _group(self, given: object, where: str) -> Mapping[str, Any]:
        if isinstance(given, Mapping):
            return given
        self.problems.append(f"latencies by {where} are {given!r}: an object is accepted")
        return {}
