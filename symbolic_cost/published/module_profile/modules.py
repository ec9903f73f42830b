"""Trees of modules: which ops of a declared model each module runs.

A module runs the ops whose paths start with one of its own, unless a longer path of another
module matches. What no module names, the top module runs itself. data/NAME_modules.txt has the
modules of a bare BERT, by the names of Hugging Face ("bert"), and of a Megatron-LM GPT-2, whose
layers are split in two ("gpt2").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from typing import Any, TypeAlias

from sympy import Expr, Integer

from symbolic_cost.ops.declare import Model, Op
from symbolic_cost.published.contract import printed_data
from symbolic_cost.published.module_profile.numbers import Span
from symbolic_cost.records import dataclass

Count: TypeAlias = Any
"""A formula, or the integer that it stands for."""


@dataclass(frozen=True)
class Module:
    """One module, with its totals once they are counted.

    Args:
        extra: its own description, with sizes of axes in braces.
        children: the modules inside; of repeated groups the first.
        repeat: how often the children occur, one group after the other, named by numbers.
        path: dotted names from the top; empty for the top.
        params: parameters; one that is shared inside counts once [element].
        macs: multiply-accumulates of one forward pass.
        latency: of one forward pass [s], if known.
        together: latency of all its occurrences, if known.
    """

    name: str
    cls: str
    ops: tuple[str, ...] = ()
    extra: str = ""
    children: tuple[Module, ...] = ()
    repeat: Count = Integer(1)
    path: str = ""
    params: Count = Integer(0)
    macs: Count = Integer(0)
    flop: Count = Integer(0)
    latency: Span | None = None
    together: Span | None = None

    def walk(self, depth: int = 0, times: Count = 1) -> Iterator[tuple[int, Count, Module]]:
        """Go through the module and those inside: depth, occurrences, module."""
        yield depth, times, self
        for child in self.children:
            yield from child.walk(depth + 1, times * self.repeat)


def tree(modules: str, repeat: Expr) -> Module:
    """Return the modules of indented lines `name: class * <- op op | description`.

    Args:
        modules: NAME of data/NAME_modules.txt; what stands inside a module marked * is repeated.
        repeat: how often.
    """
    waiting: list[tuple[int, Module]] = []
    for line in reversed(
        printed_data(f"{modules}_modules.txt").splitlines()
    ):  # the inner come first
        depth = len(line) - len(line.lstrip())
        inside = [module for at, module in reversed(waiting) if at > depth]
        waiting = [(at, module) for at, module in waiting if at <= depth]
        head, _, extra = line.strip().partition(" | ")
        head, _, ops = head.partition(" <- ")
        name, _, cls = head.partition(": ")
        cls, *mark = cls.split()
        module = Module(name, cls, tuple(ops.split()), extra, tuple(inside))
        waiting.append((depth, replace(module, repeat=repeat) if mark else module))
    return waiting[0][1]


_CLASSES = {
    "einsum": "Linear",
    "rms_norm": "RMSNorm",
    "batch_norm": "BatchNorm2d",
    "conv": "Conv2d",
    "max_pool": "MaxPool2d",
    "avg_pool": "AvgPool2d",
    "relu": "ReLU",
    "relu6": "ReLU6",
}
"""Classes of PyTorch by the kind of an op; else the kind itself."""


@dataclass
class _Node:
    """A place in the tree of paths, while it grows."""

    op: Op | None = None
    repeat: Expr = Integer(1)
    children: dict[str, _Node] = field(default_factory=dict)


def declared_modules(model: Model) -> Module:
    """Return the paths of any model as modules; views, which run nothing, are left out."""
    root = _Node()
    single = len(model.parts) == 1
    for part in model.parts:
        place = root if single else _grown(root, part.path.split("."))
        place.repeat = part.repeat
        for op in part.ops:
            if op.kernels():
                _grown(place, op.path.split(".")).op = op
    return _module("", model.name, root, model.parts[0].path if single else "")


def _grown(node: _Node, segments: Iterable[str]) -> _Node:
    for segment in segments:
        node = node.children.setdefault(segment, _Node())
    return node


def _module(name: str, cls: str, node: _Node, path: str) -> Module:
    children = tuple(
        _module(own, _class_of(own), child, f"{path}.{own}" if path else own)
        for own, child in node.children.items()
    )
    if node.op is not None:
        kind = node.op.kind if node.op.weights or node.op.kind != "einsum" else "matmul"
        cls = _CLASSES.get(kind, _class_of(kind))
        return Module(name, cls, (path,), node.op.pattern.text, children)
    if node.repeat != 1:
        block = Module("", cls, children=children)
        return Module(name, "ModuleList", children=(block,), repeat=node.repeat)
    return Module(name, cls, children=children)


def _class_of(name: str) -> str:
    """Write a name as a class: "cross_entropy" is CrossEntropy."""
    return name.title().replace("_", "")
