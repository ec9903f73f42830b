"""Recomputation: what runs again in backward; only what comes into it is kept.

A policy is a set of ops, by the names that frameworks give it: attention cores, whole blocks,
modules joined by "+", or all of a block but for ops whose results are kept (recompute.toml).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from sympy import Expr, Integer

from symbolic_cost.algebra import add
from symbolic_cost.conditions import Least
from symbolic_cost.errors import InputError, UnknownNameError, quote, unknown
from symbolic_cost.lazy import Recent
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass

if TYPE_CHECKING:
    from symbolic_cost.ops.graph import Model
    from symbolic_cost.ops.op import Op
    from symbolic_cost.ops.part import Part

_LATENTS = ("attention.kv_down", "attention.layer.q_down")
"""Ops that only attention through latents has."""

_MARKS: Mapping[str, Callable[[Op, Part], bool]] = {
    "core": lambda op, _: bool(op.core),
    "weights": lambda op, _: bool(op.weights),
    "experts": lambda _, part: _routes(part),
    "dense": lambda _, part: not _routes(part),
    "latent": lambda _, part: any(op.path in _LATENTS for op in part.ops),
}
"""Whether a word goes for an op of a part."""


def _routes(part: Part) -> bool:
    return any(op.path.startswith("mlp.experts.") for op in part.ops)


@dataclass(frozen=True, slots=True)
class Ops:
    """Some ops of a block: all that is said of them holds.

    Args:
        paths: patterns of their paths; any unless given.
        but: patterns of paths of others.
        kinds: theirs; any unless given.
        marks: words that go for them, see `_MARKS`.
        every: of these in order every n-th, the first among them.
    """

    paths: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    every: int = 1

    def of(self, part: Part) -> tuple[str, ...]:
        """Return the paths of those of a part."""
        return tuple(op.path for op in part.ops if self._means(op, part))[:: self.every]

    def _means(self, op: Op, part: Part) -> bool:
        return (
            (not self.paths or _matches(op, self.paths))
            and not _matches(op, self.but)
            and (not self.kinds or op.kind in self.kinds)
            and all(_MARKS[mark](op, part) for mark in self.marks)
        )


def _matches(op: Op, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(op.path, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Module:
    """What runs again as one.

    Args:
        meaning: one line.
        ops: of it.
        output: "kept" where something else needs it, or "dropped" and made anew for that.
        source: key of a reference.
    """

    name: str
    meaning: str
    ops: Ops
    output: str
    source: str


_AS_DECLARED: Mapping[str, str] = {}


@dataclass(frozen=True)
class Recompute:
    """A policy.

    Args:
        what: runs again, in words for errors; empty for nothing.
        modules: that run again, of two with a common op the first.
        kept: of whole blocks that run again, ops whose results stay; None without blocks.
        every: regions in a row of which only the first one's inputs are kept.
        runs: "all" that is not kept, or what is "needed" by backward.
        source: key of a reference.
    """

    name: str
    meaning: str
    what: str = ""
    modules: tuple[Module, ...] = field(default=(), hash=False)
    kept: tuple[Ops, ...] | None = field(default=None, hash=False)
    every: Expr = Integer(1)
    runs: str = "all"
    source: str = "definition"

    def region(self, part: Part, op: Op, kept_as: Mapping[str, str] = _AS_DECLARED) -> str | None:
        """Return the path of the region that an op belongs to, or None.

        Nothing runs again where no gradient flows back: a frozen tower, say.

        Args:
            part: of the op.
            op: that may run again.
            kept_as: of conventions: functions that save what another one does.
        """
        return self._again(part, kept_as).get(op.path) if self.what else None

    def regions(self, model: Model) -> dict[str, str | None]:
        """Return the region of every op of a model, both by path."""
        return {
            f"{part.path}.{op.path}": self.region(part, op)
            for part in model.parts
            for op in part.ops
        }

    def conditions(self, model: Model) -> tuple[Least, ...]:
        """Return what the number of blocks must meet: the inputs of N make one that is kept."""
        if self.every == 1:
            return ()
        blocks = add(*(part.repeat for part in model.parts if part.is_block))
        because = f"recompute {self.name} keeps the input of one block in {self.every}"
        return (Least("blocks of the model", blocks, self.every, because),)

    def drops(self, region: str | None) -> bool:
        """Tell whether what a region hands on is made anew, and not kept, for those who need it."""
        if region is None:
            return False
        if self.kept is not None:
            return bool(self.kept) or self.runs == "needed"
        name = region.rpartition(".")[2]
        return any(one.name == name and one.output == "dropped" for one in self.modules)

    def _again(self, part: Part, kept_as: Mapping[str, str]) -> Mapping[str, str]:
        """Return the region of every op of a part that runs again."""
        again = _AGAIN.of(
            (self.name, id(part.ops), part.path, id(kept_as)),
            lambda: (part.ops, kept_as, self._regions(part, kept_as)),
        )
        same = again[0] is part.ops and again[1] is kept_as
        return again[2] if same else self._regions(part, kept_as)

    def _regions(self, part: Part, kept_as: Mapping[str, str]) -> Mapping[str, str]:
        if self.kept is not None:
            whole = part.is_block and part.live
            return dict.fromkeys(self._rerun(part, kept_as) if whole else (), part.path)
        cores = {op.path: op.core for op in part.ops}
        return {
            path: f"{part.path}.{cores[path] if module.ops == _CORES else module.name}"
            for module in reversed(self.modules)
            for path in module.ops.of(part)
            if next(op for op in part.ops if op.path == path).live
        }

    def _rerun(self, part: Part, kept_as: Mapping[str, str]) -> Iterator[str]:
        """Yield the ops of a block that run again.

        What backward needs of them are tensors that ops save, and what these are made of.
        """
        kept_paths = {path for ops in self.kept or () for path in ops.of(part)}
        needed = {operand.tensor for op in part.ops for operand in op.counted_as(kept_as).saves()}
        for op in reversed(part.ops):
            written = {operand.tensor for operand in op.outputs}
            if op.path not in kept_paths and (self.runs == "all" or written & needed):
                needed |= {operand.tensor for operand in op.inputs}
                yield op.path


_AGAIN: Recent[Any] = Recent(512)
_CORES = Ops(marks=("core",))


def _ops(record: Mapping[str, Any]) -> Ops:
    words = {key: tuple(record[key]) for key in ("paths", "but", "kinds", "marks") if key in record}
    return Ops(**words, every=record.get("every", 1))


def _modules() -> dict[str, Module]:
    return {
        name: Module(name, own["meaning"], _ops(own), own.get("output", "kept"), own["source"])
        for name, own in package_data("ops/recompute.toml")["modules"].items()
    }


MODULES: Mapping[str, Module] = _modules()
"""Modules that run again, by name; policies join them by "+"."""

KEEP_ALL = Recompute("none", "every activation that backward needs is kept")
SELECTIVE = Recompute(
    "selective", "attention cores run again in backward", "attention core", (MODULES["core_attn"],)
)
FULL = Recompute("full", "whole blocks run again; full/N keeps every N-th input", "block", kept=())

POLICIES = {policy.name: policy for policy in (KEEP_ALL, SELECTIVE, FULL)} | {
    name: Recompute(
        name,
        f"whole blocks run again; {own['meaning']}",
        "block",
        kept=tuple(map(_ops, own["ops"])),
        runs=own.get("runs", "all"),
        source=own["source"],
    )
    for name, own in package_data("ops/recompute.toml")["kept"].items()
}
"""Every policy by name that is no list of modules."""


def recompute_policy(name: str) -> Recompute:
    """Return a policy by name; "full/4" keeps the inputs of every fourth block.

    >>> recompute_policy("moe_act+core_attn").meaning
    'attention cores; activation functions of routed experts run again'

    Raises:
        UnknownNameError: no such policy.
        InputError: what follows the slash is not a positive integer.
    """
    base, slash, every = name.partition("/")
    words = name.split("+")
    if not slash and words and MODULES.keys() >= set(words):
        twice = sorted({word for word in words if words.count(word) > 1})
        if twice:
            raise InputError(f"recompute policy {quote(name)}: {', '.join(twice)} stands twice")
        own = tuple(module for module in MODULES.values() if module.name in words)
        meaning = "; ".join(module.meaning for module in own)
        return Recompute(name, f"{meaning} run again", " or ".join(words), own)
    if base not in POLICIES or (slash and base != FULL.name):
        accepted = [*POLICIES, "full/4", *MODULES, "moe_act+layernorm"]
        raise UnknownNameError(unknown("recompute policy", name, accepted))
    if not slash:
        return POLICIES[base]
    if not re.fullmatch(r"[0-9]{1,9}", every) or int(every) < 1:
        raise InputError(
            f"recompute policy {quote(name)}: {quote(every)} is not a positive integer"
        )
    return replace(FULL, name=name, every=Integer(every))
