"""Rules of what a module writes out of several operators, and of rotations."""

from collections.abc import Sequence

from symbolic_cost.models.traced.acts import Ref, Use, under
from symbolic_cost.models.traced.rules.pointwise import matched, norm
from symbolic_cost.models.traced.trace import Rule, Trace, rule


def rms_norm(function: str, tensor: str, weight: str | None) -> Rule:
    """Return the rule of a root-mean-square norm that is written out."""

    def meaning(t: Trace) -> None:
        ref = t.value(tensor)
        scale = t.value(weight) if weight else None
        if ref is not None:
            t.bind(norm(t, ref, (scale,), function, ref.dims[-1]))

    return meaning


def rotation(tensor: str, *tables: str, of_pairs: bool = False) -> Rule:
    """Return the rule of a rotation that is written out: by tables of cosines and sines.

    Args:
        tensor: what is turned.
        tables: of cosines and of sines; of complex numbers where it turns pairs.
        of_pairs: whether the last dimension of the tensor is the two parts of complex numbers.
    """

    def meaning(t: Trace) -> None:
        ref = t.value(tensor)
        if ref is None:
            return
        refs = [t.value(name) for name in tables]
        if of_pairs:
            refs = [under(one, (*one.dims, ref.dims[-1])) for one in refs if one]
        _rotate(t, ref, refs)

    return meaning


@rule("onnx.rotary")
def rotated(t: Trace) -> None:
    """A rotation by tables."""
    _rotate(t, t.arg("input"), [t.arg("cos"), t.arg("sin")])


def _rotate(t: Trace, ref: Ref, tables: Sequence[Ref | None]) -> None:
    angles = [Use(table, matched(table.dims, ref.dims)) for table in tables if table]
    t.bind(t.pointwise("rotary", [ref, *angles], ref.dims, "rotary"))


def normed_weight(direction: str, lengths: str) -> Rule:
    """Return the rule of a weight that is written as its direction and its lengths."""

    def meaning(t: Trace) -> None:
        one, other = t.value(direction), t.value(lengths)
        if one is not None and other is not None:
            t.notes["computed from weights alone, element by element: not costed"] += 1
            t.folded.add(other.tensor.weight)
            t.bind(one)

    return meaning


def passed(tensor: str) -> Rule:
    """Return the rule of what changes nothing that is costed."""

    def meaning(t: Trace) -> None:
        ref = t.value(tensor)
        if ref is not None:
            t.bind(ref)

    return meaning
