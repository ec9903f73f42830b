"""Names of axes: by role, one for all axes of one role and size that never meet in an op.

Positions have two names: r in the residual stream and l inside layers (with heads, inner features
or the vocabulary), so that sequence parallelism splits the first alone; t are those of keys.
"""

from collections.abc import Iterable

from symbolic_cost.axes import Axis as Named
from symbolic_cost.axes import Role
from symbolic_cost.errors import PatternError
from symbolic_cost.models.traced.acts import Act
from symbolic_cost.models.traced.forest import Axis, Dim, Dims
from symbolic_cost.models.traced.roles import AxisRole, Roles
from symbolic_cost.models.traced.trace import Trace

INSIDE = frozenset(
    {Role.HEAD, Role.GROUP, Role.WIDTH, Role.INNER, Role.VOCABULARY, Role.LATENT, Role.KEY_TOKEN}
)
_AS_MANY = "rows of a table, one for each position"
_LETTERS = {
    Role.BATCH: "b", Role.HIDDEN: "e", Role.HEAD: "h", Role.GROUP: "g", Role.WIDTH: "d",
    Role.INNER: "f", Role.VOCABULARY: "v", Role.EXPERT: "x", Role.SLOT: "a", Role.LATENT: "w",
    Role.WHOLE: "n", Role.TOKEN: "p", Role.KEY_TOKEN: "t",
}  # fmt: skip


class Naming:
    """Gives axes names.

    Attributes:
        axes: what each name stands for.
    """

    def __init__(self, trace: Trace, roles: Roles) -> None:
        self.trace, self.roles = trace, roles
        self.axes: dict[str, tuple[Named, Axis]] = {}
        self._flat, self._axes = trace.forest.flat, trace.forest.axes
        self._names: dict[Axis, str] = {}
        self._taken: dict[tuple[str, int], list[Axis]] = {}
        self._positions: dict[Axis, str] = {}
        self._beside: dict[Axis, set[Axis]] = {}
        self._neighbours()

    def _neighbours(self) -> None:
        """Note which axes stand in one op, so that they get names of their own."""
        for act in self.trace.acts:
            dims = [d for use in act.uses for d in (*use.want, use.ref.tensor.units)]
            dims += [d for tensor in act.outs for d in (*tensor.dims, tensor.units)]
            dims += [act.options.get("window", ()), *(act.pairs or ())]
            together = set(self._axes(dims))
            for use in act.uses:
                together |= set(self._axes(use.ref.tensor.dims))
            for axis in together:
                self._beside.setdefault(axis, set()).update(together)

    def name(self, axis: Axis, *, inside: bool) -> str:
        """Return the name of an axis in an op inside a layer or on the residual stream."""
        known = self.roles.of(axis)
        if known.role in (Role.TOKEN, Role.KEY_TOKEN) and not known.copy:
            return self._position(axis, known.role, inside=inside)
        if axis not in self._names:
            stem = _LETTERS[known.role]
            key = (f"{stem}/{known.copy}", axis.count)
            names = self._taken.setdefault(key, [])
            # Axes of one role and size share a name unless they meet in an op.
            for other in dict.fromkeys(self._names[one] for one in names):
                holders = [one for one in names if self._names[one] == other]
                if not any(one in self._beside.get(axis, ()) for one in holders):
                    self._names[axis] = other
                    break
            else:
                self._names[axis] = self._fresh(stem)
                self.axes[self._names[axis]] = (
                    Named(self._names[axis], known.role, known.copy),
                    axis,
                )
            names.append(axis)
        return self._names[axis]

    def _fresh(self, stem: str) -> str:
        number = sum(name.rstrip("0123456789") == stem for name in self.axes) + 1
        return stem if number == 1 else f"{stem}{number}"

    def _position(self, axis: Axis, role: Role, *, inside: bool) -> str:
        """Return r, l or t of some positions, numbered where there are several."""
        root = self.trace.forest.origin(axis) or axis
        if root not in self._positions:
            holders: dict[str, list[Axis]] = {}
            for known, name in self._positions.items():
                holders.setdefault(name, []).append(known)
            same = [
                name
                for name, ones in holders.items()
                if all(one.count == root.count and self._distinct(root, one) for one in ones)
            ]
            taken = set(holders)
            fresh = next(n for n in range(1, len(taken) + 2) if str(n) not in taken)
            self._positions[root] = same[0] if same else str(fresh)
        number = self._positions[root]
        letter, copy = ("l", "query") if inside else ("r", "residual")
        if role is Role.KEY_TOKEN:
            letter, copy = "t", ""
        number = "" if number == "1" else number
        name = f"{letter}{number}"
        self.axes.setdefault(name, (Named(name, role, copy), axis))
        return name

    def _distinct(self, one: Axis, other: Axis) -> bool:
        return other not in self._beside.get(one, ()) and one not in self._beside.get(other, ())

    def _inside(self, act: Act) -> bool:
        dims = [d for use in act.uses for d in use.want] + [d for t in act.outs for d in t.dims]
        axes = self._axes(dims)
        roles = {self.roles.role(axis) for axis in axes}
        return bool(roles & INSIDE) or roles >= {Role.SLOT, Role.HIDDEN}

    def names(self, dims: Iterable[Dim], *, inside: bool) -> tuple[str, ...]:
        """Return the names of dimensions, one after the other."""
        flat = self._axes(dims)
        names = tuple(self.name(axis, inside=inside) for axis in flat)
        if len(set(names)) < len(names):
            raise PatternError(f"a tensor has the axes [{' '.join(names)}], one of them twice")
        return names

    def apart(self, dims: Dims) -> tuple[str, ...]:
        """Return the names of the dimensions of a weight that no op takes."""
        flat = self._axes(dims)
        for axis in flat:
            self._beside.setdefault(axis, set()).update(flat)
        return self.names(dims, inside=False)

    def _another(self, axis: Axis, role: Role | None = None) -> Axis:
        """Return a second axis for what is made of as many as are summed; or of another role."""
        other = self.trace.forest.copy(axis, role or "made")
        known = self.roles.of(axis) if role is None else AxisRole(role, "", _AS_MANY)
        self.roles.known.setdefault(other, known)
        self._beside.setdefault(other, set()).update({axis, *self._beside.get(axis, ())})
        self._beside.setdefault(axis, set()).add(other)
        return other
