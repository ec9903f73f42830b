"""Roles of axes, found in what acts do with them, each with its reason."""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import prod

from symbolic_cost.axes import Role
from symbolic_cost.models.traced.acts import Act, Ref
from symbolic_cost.models.traced.forest import Axis, Dim, Dims
from symbolic_cost.models.traced.trace import Trace
from symbolic_cost.records import dataclass


@dataclass(frozen=True, slots=True)
class AxisRole:
    """What an axis counts.

    Args:
        copy: tells axes of one role apart; "" for positions, whose copies follow from the op.
        reason: why.
    """

    role: Role
    copy: str = ""
    reason: str = ""


NOT_TOLD = AxisRole(Role.WHOLE, "", "nothing tells what it counts")


class Roles:
    """Finds the role of every axis of a trace.

    Attributes:
        known: by axis; others count what nothing tells.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._flat, self._axes = trace.forest.flat, trace.forest.axes
        self.known: dict[Axis, AxisRole] = {}
        self._columns: dict[Axis, Act] = {}
        self._summed: dict[Axis, Act] = {}
        self._sums: dict[Axis, set[str]] = {}
        self._collect()
        self._inputs()
        self._attention()
        self._vocabulary()
        self._experts()
        self._hidden()
        self._positions()
        self._inside()
        moved = set(self._flat(trace.forest.moved))
        for axis, known in self.known.items():
            if axis in moved and known.role is not Role.KEY_TOKEN:
                self.known[axis] = AxisRole(Role.WHOLE, "", "its elements change places")

    def of(self, axis: Axis) -> AxisRole:
        """Return what an axis counts."""
        return self.known.get(axis, NOT_TOLD)

    def role(self, axis: Axis) -> Role:
        """Return the role of an axis."""
        return self.of(axis).role

    def _set(self, dim: Iterable[Axis], role: Role, reason: str, copy: str = "") -> None:
        for axis in self._flat(dim):
            self.known.setdefault(axis, AxisRole(role, copy, reason))

    def _products(self) -> Iterator[tuple[Act, list[tuple[Ref, dict[str, Dim]]], dict[str, Dim]]]:
        for act in self._trace.acts:
            if act.kind == "einsum":
                letters = act.options["letters"]
                operands = [
                    (use.ref, self._lettered(names, use.want))
                    for use, names in zip(act.uses, letters, strict=False)
                ]
                yield act, operands, self._lettered(act.options["result"], act.outs[0].dims)

    def _lettered(self, letters: str, dims: Dims) -> dict[str, Dim]:
        pairs = zip(letters, dims, strict=True)
        return {letter: self._flat(dim) for letter, dim in pairs if letter != "1"}

    def _collect(self) -> None:
        """Note which axes a product with a weight makes, and over which it sums."""
        for act, operands, result in self._products():
            for ref, dims in operands:
                if not ref.tensor.weight:
                    continue
                others = {n for other, ds in operands if other is not ref for n in ds}
                for name, dim in dims.items():
                    place = self._summed if name not in result else self._columns
                    if name not in result or name not in others:
                        for axis in dim:
                            place.setdefault(axis, act)
                            if name not in result:
                                self._sums.setdefault(axis, set()).add(act.path)

    def _inputs(self) -> None:
        for name in self._trace.graph.inputs:
            ref = self._trace.value(name)
            if ref is not None and ref.dims:
                self._set(ref.dims[0], Role.BATCH, f"first dimension of the input {name}")
                self._made_of(ref.dims[0], name)

    def _made_of(self, first: Dim, name: str) -> None:
        """Take for a batch what is as long in constants that are made of an input: it padded."""
        size = prod(axis.size for axis in first)
        if not getattr(size, "is_Symbol", False):
            return
        for act in self._trace.acts:
            for use in act.uses:
                if use.ref.tensor.constant and use.want:
                    same = (axis for axis in self._flat(use.want[0]) if axis.size == size)
                    self._set(same, Role.BATCH, f"as many as the input {name} has first")

    def _attention(self) -> None:
        for act, operands, result in self._products():
            if act.pairs is None:
                continue
            where = f"in {act.path}"
            query, key = act.pairs
            self._set(self._unmade(query), Role.TOKEN, f"positions of queries {where}")
            self._set(self._unmade(key), Role.KEY_TOKEN, f"positions of keys {where}")
            self._heads(where, operands, result)

    def _heads(
        self, where: str, operands: list[tuple[Ref, dict[str, Dim]]], result: dict[str, Dim]
    ) -> None:
        """Tell heads, groups and widths of a product of attention apart."""
        (_, left), (key, right) = operands
        for name, dim in left.items():
            if name not in result:
                wide = (axis for axis in dim if self.role(axis) is Role.WHOLE)
                self._set(wide, Role.WIDTH, f"summed {where}")
        owned = set(self._axes(key.tensor.dims))
        for name in (n for n in left if n in result and n not in {"m", "d"}):
            dim = left[name]
            for axis in dim:
                if axis not in self._columns or axis in self.known:
                    continue
                shared = axis not in owned and any(a in owned and a in self._columns for a in dim)
                role = Role.GROUP if shared else Role.HEAD
                what = "query heads of one key head" if shared else "heads"
                self.known[axis] = AxisRole(role, "", f"{what} {where}")
        for name, dim in right.items():
            if name in result and name not in left:
                columns = (axis for axis in dim if axis in self._columns)
                self._set(columns, Role.WIDTH, f"width of values {where}")

    def _unmade(self, dim: Dim) -> Dim:
        """Return the axes of a dimension that no weight makes."""
        return tuple(axis for axis in self._flat(dim) if axis not in self._columns)

    def _vocabulary(self) -> None:
        for act in self._trace.acts:
            if act.kind == "lookup" and act.uses[0].ref.tensor.is_input:
                table = act.uses[1]
                name = table.ref.tensor.weight
                self._set(table.want[0], Role.VOCABULARY, f"rows of {name} by given ids")
                self._set(table.want[1], Role.HIDDEN, f"columns of {name}")
        made = self._columns.keys() - self._summed.keys()
        entries = [axis for axis, known in self.known.items() if known.role is Role.VOCABULARY]
        for act, _, result in self._products():
            last = self._flat(act.outs[0].dims[-1]) if act.outs[0].dims else ()
            if len(last) != 1 or not result or last[0] not in made:
                continue
            same = [axis for axis in entries if axis.count == last[0].count]
            if same and last[0] not in entries:
                reason = f"made by {act.path}, as long as the vocabulary"
                self.known[last[0]] = AxisRole(Role.VOCABULARY, "", reason)

    def _experts(self) -> None:
        for act in self._trace.acts:
            if act.kind == "pointwise" and act.function == "choice":
                self._set(act.row, Role.EXPERT, f"the best are chosen in {act.path}", "scored")
                old = {axis for use in act.uses for axis in self._axes(use.want)}
                new = (axis for axis in self._axes(act.outs[0].dims) if axis not in old)
                self._set(new, Role.SLOT, f"chosen in {act.path}")
        for act, _, result in self._products():
            means = [
                axis for dim in result.values() for axis in dim if axis in self._trace.forest.means
            ]
            if means and "x" in result:
                where = f"rows are sorted by expert in {act.path}"
                self._set(result["x"], Role.EXPERT, where)
                self._set(means, Role.TOKEN, where, "routed")
                self._set(result["u"], Role.BATCH, where, "routed")

    def _hidden(self) -> None:
        """Features of the residual stream: rows of norms that are added to what passed by."""
        rows: Counter[Axis] = Counter()
        added: Counter[Axis] = Counter()
        for act in self._trace.acts:
            if act.kind != "pointwise":
                continue
            if "norm" in act.function:
                rows.update(self._flat(act.row))
            moving = [
                use for use in act.uses if not use.ref.tensor.constant and not use.ref.tensor.weight
            ]
            if act.function == "add" and len(moving) > 1:
                added.update(self._axes(act.outs[0].dims))
        for axis in rows:
            if axis in added and axis not in self.known:
                reason = "normalised, and added to the residual stream"
                self.known[axis] = AxisRole(Role.HIDDEN, "", reason)

    def _positions(self) -> None:
        """Beside features of the residual stream stand samples and positions.

        What convolutions make before a model that attends are patches, or frames of a sound.
        """
        attends = any(act.pairs is not None for act in self._trace.acts)
        for act in self._trace.acts:
            if act.kind == "conv" and attends:
                later = self._axes(act.outs[0].dims[act.options["made"] + 1 :])
                self._set(later, Role.TOKEN, f"positions made by {act.path}", "patch")
        made = {*self._columns, *self._summed}
        for act in self._trace.acts:
            for tensor in act.outs:
                axes = self._axes(tensor.dims)
                if any(self.role(axis) is Role.HIDDEN for axis in axes):
                    where = f"beside the residual features in {act.path}"
                    self._set((axis for axis in axes if axis not in made), Role.TOKEN, where)

    def _inside(self) -> None:
        """Features that one product makes and another sums; normed in between they are latents.

        What is made of such features or of heads is a latent too: ranks that split one sum all of
        the other. Of products a -> b -> c -> d, b is inner and c latent.
        """
        rows = {
            axis
            for act in self._trace.acts
            if act.kind == "pointwise" and act.row and act.function not in ("batch_norm", "choice")
            for axis in self._flat(act.row)
        }
        for axis, act in self._columns.items():
            if axis in self.known or axis not in self._summed:
                continue
            reason = f"made by {act.path}, summed by {self._summed[axis].path}"
            of_split = any(
                self.role(one) in (Role.INNER, Role.HEAD)
                for one, places in self._sums.items()
                if act.path in places
            )
            role = Role.LATENT if axis in rows or of_split else Role.INNER
            more = ", normalised between" if axis in rows else ", a sum" if of_split else ""
            self.known[axis] = AxisRole(role, "", reason + more)
