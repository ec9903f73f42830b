"""Drafts of ops, and the views between them.

A view stands wherever a tensor goes from the residual stream into a layer or back, or is wanted
under other axes than its own; what is laid out anew is copied.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from symbolic_cost.axes import Role
from symbolic_cost.models.traced.acts import Act, Tensor, Use
from symbolic_cost.models.traced.forest import Axis, Dim
from symbolic_cost.models.traced.names import INSIDE, Naming
from symbolic_cost.models.traced.roles import Roles
from symbolic_cost.models.traced.trace import Trace
from symbolic_cost.records import dataclass

Operand = tuple[Tensor, tuple[str, ...]]
"""A tensor and the names of its axes; weights are told by their names in the state dict."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An op to be: what makes it, its path, its operands and its options.

    Args:
        biases: weights that are added to the result of a product.
    """

    maker: str
    path: str
    inputs: tuple[Operand, ...]
    biases: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    options: Mapping[str, Any]
    core: str = ""


def block_of(path: str) -> tuple[str, int] | None:
    """Return the list of modules that a path goes through, and the place in it.

    >>> block_of("model.layers.3.mlp.up_proj"), block_of("model.norm")
    (('model.layers', 3), None)
    """
    parts = path.split(".")
    for place, part in enumerate(parts):
        if part.isdigit() and place:
            return ".".join(parts[:place]), int(part)
    return None


class Placing(Naming):
    """Writes drafts, and the views that their operands need.

    Attributes:
        drafts: in order.
    """

    def __init__(self, trace: Trace, roles: Roles) -> None:
        super().__init__(trace, roles)
        self.drafts: list[Draft] = []
        self._segment: tuple[str, int] | None = None
        self._views: dict[tuple[Tensor, tuple[str, ...], str], Tensor] = {}
        self._own: dict[Tensor, tuple[str, ...]] = {}
        self._stands: dict[Tensor, Tensor] = {}
        others = (act for act in trace.acts if act.kind != "pointwise")
        self._multiplied = {use.ref.tensor.weight for act in others for use in act.uses}

    def _operand(self, use: Use, act: Act, *, inside: bool) -> Operand:
        """Return a tensor and its axes as an op takes it, after the views that this needs."""
        tensor = use.ref.tensor
        units = tuple(self.name(axis, inside=inside) for axis in tensor.units)
        if tensor.weight or tensor not in self._own:
            have = self.names([self._unplaced(use)], inside=inside)
            repeated = self.names([self._lacked(use)], inside=inside)
            if repeated and tensor.weight and act.kind == "einsum":
                return self._copied(tensor, have, (*have, *repeated), act)
            return tensor, have
        tensor = self._stands.get(tensor, tensor)
        wanted = self._axis_names(use, inside=inside)
        own = self._own[tensor]
        if wanted is None:
            return self._relaid(use, act, inside=inside)
        names, repeated = wanted
        target = _among(names, units, own)
        if target != own:
            tensor = self._viewed(tensor, target, act)
        if repeated and act.kind == "einsum":
            return self._copied(tensor, target, (*target, *repeated), act)
        return tensor, target

    def _unplaced(self, use: Use) -> Dim:
        """Return the axes under which an op takes what no op makes.

        Those of a weight stand in the weight's own order, so that all of its uses agree.
        """
        tensor = use.ref.tensor
        owned = self._axes(tensor.dims)
        pairs = [
            pair
            for have, want in zip(use.ref.dims, use.want, strict=True)
            for pair in self._pairs(have, want)
        ]
        usable = [(w, a) for w, a in pairs if a is None or a in owned or tensor.constant]
        if tensor.weight and all(a in owned for _, a in usable):
            usable.sort(key=lambda pair: owned.index(pair[1]))
        axes = tuple(w for w, _ in usable)
        return self._rows(axes) if tensor.weight and tensor.weight not in self._multiplied else axes

    def _rows(self, dim: Dim) -> Dim:
        """Return the axes of a table with those of its rows, one for each position.

        Ranks that split positions hold it whole, as they do one that is looked up.
        """
        places = (Role.TOKEN, Role.KEY_TOKEN)
        rows = tuple(
            self._another(axis, Role.WHOLE) if self.roles.role(axis) in places else axis
            for axis in dim
        )
        for axis in rows:
            self._beside.setdefault(axis, set()).update(rows)
        return rows

    def _lacked(self, use: Use) -> Dim:
        owned = self._axes(use.ref.tensor.dims)
        pairs = zip(use.ref.dims, use.want, strict=True)
        both = [pair for have, want in pairs for pair in self._pairs(have, want)]
        return tuple(want for want, have in both if have is not None and have not in owned)

    def _pairs(self, have: Dim, want: Dim) -> list[tuple[Axis, Axis | None]]:
        """Return wanted axes with those in their places; with none where the places differ."""
        left, right = self._flat(have), self._flat(want)
        if len(left) == len(right):
            return [*zip(right, left, strict=True)]
        return [(axis, None) for axis in right]

    def _axis_names(
        self, use: Use, *, inside: bool
    ) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Return the names wanted for a tensor's own axes, and those of axes that it lacks.

        None if the two cannot be told place by place.
        """
        asked: dict[Axis, Axis] = {}
        extra: list[Axis] = []
        owned = self._axes(use.ref.tensor.dims)
        for have, want in zip(use.ref.dims, use.want, strict=True):
            left, right = self._flat(have), self._flat(want)
            if len(left) != len(right):
                return None
            for mine, theirs in zip(left, right, strict=True):
                if mine in owned:
                    asked[mine] = theirs
                else:
                    extra.append(theirs)
        if any(axis not in asked for axis in owned) or len(set(asked.values())) < len(asked):
            return None
        names = tuple(self.name(asked[axis], inside=inside) for axis in owned)
        if len(set(names)) < len(names):
            return None
        return names, tuple(self.name(axis, inside=inside) for axis in extra)

    def _viewed(self, tensor: Tensor, target: tuple[str, ...], act: Act) -> Tensor:
        key = (tensor, target, f"view {self._segment}")
        if key not in self._views:
            viewed = Tensor(tensor.dims, nature=tensor.nature, units=tensor.units)
            self._views[key] = viewed
            taken = (tensor, self._own[tensor])
            self._add("view", f"{act.path}.placed", [taken], [(viewed, target)])
        return self._views[key]

    def _copied(
        self, tensor: Tensor, have: tuple[str, ...], target: tuple[str, ...], act: Act
    ) -> Operand:
        key = (tensor, target, f"copy {self._segment}")
        if key not in self._views:
            self._views[key] = Tensor(tensor.dims, nature=tensor.nature)
            self._copy(f"{act.path}.repeat", (tensor, have), (self._views[key], target))
        return self._views[key], target

    def _relaid(self, use: Use, act: Act, *, inside: bool) -> Operand:
        tensor = self._stands.get(use.ref.tensor, use.ref.tensor)
        target = self.names(use.want, inside=inside)
        relaid = Tensor(use.want, nature=tensor.nature)
        self._copy(f"{act.path}.relaid", (tensor, self._own[tensor]), (relaid, target))
        return relaid, target

    def _copy(self, path: str, taken: Operand, made: Operand) -> None:
        """Write a copy; axes that it has no more are laid out within others."""
        laid = tuple(axis for axis in taken[1] if axis not in made[1])
        self._add("pointwise", path, [taken], [made], function="copy", laid=laid)

    def _add(
        self,
        maker: str,
        path: str,
        inputs: Sequence[Operand],
        outputs: Sequence[Operand],
        core: str = "",
        **options: object,
    ) -> None:
        """Write a draft; with a bias, the last input is it."""
        biases = tuple(inputs[-1:]) if options.pop("bias", False) else ()
        plain = tuple(inputs[:-1]) if biases else tuple(inputs)
        self.drafts.append(Draft(maker, path, plain, biases, tuple(outputs), options, core))
        for tensor, axes in outputs:
            self._own[tensor] = axes
            if maker in ("einsum", "lookup"):
                self._scattered(tensor, axes, path)

    def _scattered(self, tensor: Tensor, axes: tuple[str, ...], path: str) -> None:
        """Let what a layer hands to the residual stream be placed as the stream is."""
        roles = [self.axes[name][0].role for name in axes]
        if INSIDE & set(roles) or Role.TOKEN not in roles or Role.HIDDEN not in roles:
            return
        target = tuple(self._residual(name) for name in axes)
        if target != axes:
            scattered = Tensor(tensor.dims, nature=tensor.nature, units=tensor.units)
            self._add("view", f"{path}.scatter", [(tensor, axes)], [(scattered, target)])
            self._stands[tensor] = scattered

    def _residual(self, name: str) -> str:
        named, axis = self.axes[name]
        return self.name(axis, inside=False) if named.role is Role.TOKEN else name


def _among(names: tuple[str, ...], units: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of a tensor's axes, with those of size 1 where it has them.

    >>> _among(("b", "e"), ("one",), ("b", "one", "e"))
    ('b', 'one', 'e')
    """
    rest = iter(names)
    return tuple(name if name in units else next(rest) for name in own)
