"""Ops from drafts: operands with names of their part, kinds by what makes them."""

from collections import Counter
from collections.abc import Callable, Mapping

from symbolic_cost.conventions.questions import Role
from symbolic_cost.errors import PatternError
from symbolic_cost.models.traced.acts import Nature, Tensor
from symbolic_cost.models.traced.placing import Draft
from symbolic_cost.models.traced.placing import Operand as Drafted
from symbolic_cost.ops.conv import Conv, Pool, TransposedConv
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.elementwise import Elementwise
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.ops.op import Kernel, Op
from symbolic_cost.ops.pattern import Operand, Pattern
from symbolic_cost.ops.view import View

Names = Callable[[Tensor, tuple[str, ...]], str]


def op(draft: Draft, path: str, names: Names) -> Op:
    """Return the op of a draft.

    Args:
        draft: with the path of the whole model.
        path: of the op in its part.
        names: gives a tensor, as it is used, its name in the part.
    """

    def operand(drafted: Drafted) -> Operand:
        tensor, axes = drafted
        role = Role.WEIGHT if tensor.weight else Role.VALUE if tensor.floating else Role.INDEX
        return Operand(
            names(tensor, axes), axes, role, tensor.constant or Nature.FROZEN in tensor.nature
        )

    inputs = tuple(map(operand, draft.inputs))
    biases = tuple(map(operand, draft.biases))
    results = map(operand, draft.outputs)
    outputs = tuple(Operand(one.tensor, one.axes, one.role) for one in results)
    pattern = Pattern(_text(inputs, biases, outputs), inputs, biases, outputs)
    return _MAKERS[draft.maker](path, pattern, draft)


def _text(
    inputs: tuple[Operand, ...], biases: tuple[Operand, ...], outputs: tuple[Operand, ...]
) -> str:
    """Return a pattern as it would be declared."""

    def shown(operand: Operand) -> str:
        mark = "*" if operand.is_weight else "!" if operand.constant else ""
        return f"{mark}{operand.tensor}[{' '.join(operand.axes)}]"

    added = "".join(f" + {shown(bias)}" for bias in biases)
    return f"{', '.join(map(shown, inputs))}{added} -> {', '.join(map(shown, outputs))}"


def _einsum(path: str, pattern: Pattern, draft: Draft) -> Op:
    counted = Counter(axis for o in pattern.inputs + pattern.outputs for axis in o.axes)
    lonely = [a for a, times in counted.items() if times == 1 and a not in draft.options["units"]]
    if lonely:
        raise PatternError(
            f"{draft.path}: {pattern.text}: {', '.join(lonely)} stands in one tensor only"
        )
    return Einsum(path, pattern, draft.options["pairs"], draft.options["masked"], core=draft.core)


def _pointwise(path: str, pattern: Pattern, draft: Draft) -> Op:
    values = [operand for operand in pattern.inputs if not operand.is_weight]
    if not values:  # a copy of a weight: the weight is what is read
        return UnusedWeight(path, pattern)
    rows = draft.options.get("row", ())
    return Elementwise(
        path,
        pattern,
        draft.options["function"],
        rows,
        draft.options.get("sums", ()),
        draft.options.get("laid", ()),
        core=draft.core,
    )


_MAKERS: Mapping[str, Callable[[str, Pattern, Draft], Op]] = {
    "einsum": _einsum,
    "pointwise": _pointwise,
    "lookup": lambda path, pattern, draft: Lookup(path, pattern),  # noqa: ARG005 - one signature
    "conv": lambda path, pattern, draft: Conv(path, pattern),  # noqa: ARG005
    "transposed_conv": lambda path, pattern, draft: TransposedConv(path, pattern),  # noqa: ARG005
    "pool": lambda path, pattern, draft: Pool(
        path, pattern, draft.options["function"], draft.options["window"]
    ),
    "view": lambda path, pattern, draft: View(path, pattern),  # noqa: ARG005
    "split": lambda path, pattern, draft: View(path, pattern, parts=True),  # noqa: ARG005
}


class UnusedWeight(Op):
    """A weight that is kept, and copied at most: a mask token, a scale folded into another."""

    @property
    def kind(self) -> str:
        """It copies."""
        return "copy"

    @property
    def bulk(self) -> bool:
        """Nothing is computed."""
        return False

    def kernels(self) -> tuple[Kernel, ...]:
        """Return none."""
        return ()

    def saves(self) -> tuple[Operand, ...]:
        """Return none."""
        return ()
