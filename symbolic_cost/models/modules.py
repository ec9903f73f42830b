"""What ops and weights are called: by paths of a model's tree, and by the modules of a graph."""

from collections.abc import Iterable

from symbolic_cost.layers.adapters import is_target
from symbolic_cost.models.paths import below
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.pattern import Operand, is_tied

GRAPHS = frozenset({"torch-export", "onnx"})
"""Sources of models whose paths are names of modules."""


def place(model: Model, part: Part, op: Op, weight: Operand) -> str:
    """Return the path of a weight; in a graph an op may take two whose last names are the same."""
    name = weight.tensor.removeprefix("@")
    leaf = name if model.source in GRAPHS else name.rpartition(".")[2]
    return f"{part.path}.{op.path}.{leaf}"


def called(model: Model, paths: Iterable[str], name: str) -> set[str]:
    """Return the paths that a name means; of a graph those of all modules called so.

    Some parts have names of ours: where a module is called `head`, the norm before it is none of
    it, though its path is `head.norm`.
    """
    listed = tuple(paths)
    if model.source in GRAPHS:
        modules = _modules(model)
        meant = {path for path in listed if any(f".{name}." in one for one in modules[path])}
        if meant:
            return meant
    return below(listed, name)


def _modules(model: Model) -> dict[str, set[str]]:
    """Return what the ops and weights of a graph are called by its modules, with dots around.

    A table that a head takes as well is a weight of both modules. What a module takes of another,
    as distances that a layer projects, is the other's alone.
    """
    names: dict[str, set[str]] = {}
    for part in model.parts:
        inside = f".{part.module}." if part.module else "."
        for op in part.ops:
            module = f"{inside}{op.path}."
            names[f"{part.path}.{op.path}"] = {module}
            for weight in op.weights:
                stem = "." if is_tied(weight) else inside
                own = f"{stem}{weight.tensor.removeprefix('@')}."
                meant = names.setdefault(place(model, part, op, weight), set())
                meant.add(own)
                home = own[:-1].rpartition(".")[0]
                if (is_target(op) or isinstance(op, Lookup)) and not module.startswith(f"{home}."):
                    meant.add(module)
    return names
