"""Coverage: after placement, all work is divided, or it is named.

A mesh axis divides an op if it splits one of the op's axes. What it leaves whole, all of its ranks
do alike: elementwise work between the layers, and what an entry of the catalogue exempts by name.
Anything else that has weights, multiplies matrices or scans positions would silently cost as much
on every rank as on one, so the strategy is refused for the model.

What works on the result of a divided product, and not on its terms, is not divided with it: a bias
added to a sum over ranks, rows found in a split table. `coverage` names it apart, so that the work
of one rank times the ranks is the whole and what is named.

For example, tp splits heads, MLP width and vocabulary. A norm runs on residual positions and is
exempt (sp splits them); an LSTM's cell has batch, positions and features that recur, so nothing
that tp could split: every rank would run all of it, and tp is refused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from symbolic_cost.axes import At, Axis, Role
from symbolic_cost.checking import checked
from symbolic_cost.errors import PlacementError
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Contraction, Correlation, Op, Work
from symbolic_cost.ops.placement import Placement
from symbolic_cost.records import dataclass


@checked
@dataclass(frozen=True, slots=True)
class Exempt:
    """Work that the ranks of a mesh axis repeat on purpose.

    Args:
        test: whether an op with these axes is such work.
    """

    name: str
    meaning: str
    test: Callable[[tuple[Axis, ...]], bool]


_PRODUCTS = (Contraction, Correlation)


def _has(*places: At) -> Callable[[tuple[Axis, ...]], bool]:
    return lambda axes: any(axis in place for axis in axes for place in places)


def _pooled(axes: tuple[Axis, ...]) -> bool:
    roles = {axis.role for axis in axes}
    return Role.HIDDEN in roles and not roles & {Role.TOKEN, Role.KEY_TOKEN}


def _projects_one_head(axes: tuple[Axis, ...]) -> bool:
    made = {Role.HIDDEN, Role.WIDTH}
    roles = {axis.role for axis in axes}
    return made <= roles <= made | {Role.BATCH, Role.TOKEN, Role.KEY_TOKEN}


def _lacks(*roles: Role) -> Callable[[tuple[Axis, ...]], bool]:
    return lambda axes: all(axis.role not in roles for axis in axes)


RESIDUAL = Exempt(
    "residual stream",
    "norms, routers, positions and patches outside the layers; sp divides most of them",
    _has(At(Role.TOKEN, ("residual", "patch"))),
)
PATCHES = Exempt(
    "patches",
    "an image cut into patches, before its positions and the class token's are split",
    _has(At(Role.TOKEN, ("patch",))),
)
LATENTS = Exempt(
    "latents", "projections to a narrow width, which every rank needs whole", _has(At(Role.LATENT))
)
POOLED = Exempt("pooled", "heads on one position of a sequence", _pooled)
BATCH_FREE = Exempt(
    "shared by sequences",
    "what is computed once for all sequences: tables of positions and distances",
    _lacks(Role.BATCH),
)
SHARED_HEADS = Exempt(
    "shared key/value heads",
    "keys and values of heads that several ranks need",
    lambda axes: any(axis.role is Role.HEAD for axis in axes),
)
SINGLE_HEADS = Exempt(
    "one key/value head",
    "keys and values of one head, which the query heads of all ranks need",
    _projects_one_head,
)
ELEMENTWISE = Exempt(
    "elementwise",
    "activations, sums and dropouts between the layers, without weights",
    lambda _: True,
)
RESULTS = Exempt(
    "results of divided products",
    "biases of results that are sums over ranks, and rows found in a split table",
    lambda _: True,
)


@dataclass(frozen=True, slots=True)
class Repeated:
    """Work that all ranks of a mesh axis do alike.

    Args:
        work: all of the op's, or what is left of it where its products are divided.
    """

    path: str
    mesh: str
    reason: Exempt
    work: tuple[Work, ...]


def coverage(
    model: Model, placement: Placement, leaves: Mapping[tuple[str, str], Iterable[Exempt]]
) -> tuple[Repeated, ...]:
    """Return the ops that ranks repeat, each with what exempts it.

    Args:
        model: with the axes of the strategy.
        placement: of these.
        leaves: what may be repeated, by strategy and mesh axis.

    Raises:
        PlacementError: work that is neither divided nor exempt, with what would divide it.
    """
    repeated: list[Repeated] = []
    refused: dict[tuple[str, str], list[str]] = {}
    for path, op in _work(model):
        for (name, mesh), accepted in leaves.items():
            work = tuple(
                work
                for kernel in op.kernels()
                for work in kernel.work
                if not any(mesh in placement.meshes(axis) for axis in work.space)
            )
            if not work:
                continue
            axes = tuple(model.axes[name] for name in op.axes if name in model.axes)
            divided = any(mesh in placement.meshes(axis) for axis in op.axes)
            multiplies = any(isinstance(each, _PRODUCTS) for each in work)
            rest = divided and not multiplies
            reason = RESULTS if rest else _exemption(op, axes, accepted)
            if reason is None:
                labels = ", ".join(map(str, axes)) or "no axis with a role"
                refused.setdefault((name, mesh), []).append(f"{path} [{labels}]")
            else:
                repeated.append(Repeated(path, mesh, reason, work))
    if refused:
        raise PlacementError(
            [_refusal(model, placement, *key, ops) for key, ops in refused.items()]
        )
    return tuple(repeated)


def _exemption(op: Op, axes: tuple[Axis, ...], accepted: Iterable[Exempt]) -> Exempt | None:
    if not op.bulk:
        return ELEMENTWISE
    return next((exempt for exempt in accepted if exempt.test(axes)), None)


def _work(model: Model) -> Iterator[tuple[str, Op]]:
    for part in model.parts:
        for op in part.ops:
            idle = any(model.sizes.get(axis) == 0 for axis in op.axes)  # of no images
            if op.kernels() and not idle:
                yield f"{part.path}.{op.path}", op


def _refusal(model: Model, placement: Placement, name: str, mesh: str, ops: list[str]) -> str:
    shown, more = "; ".join(ops[:3]), len(ops) - 3
    split = ", ".join(axis for axis in model.axis_names if mesh in placement.meshes(axis))
    place = name if mesh == name else f"mesh axis {mesh} of {name}"
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"{name}: every rank would do all the work of {shown}{rest} of model {model.name!r}; "
        f"{place} splits {split or 'nothing'} here, and each needs one of these axes"
    )


def meeting(model: Model, own: Iterable[Axis], others: Iterable[Axis]) -> str:
    """Say which op is the first with an axis of each of two groups; empty if none has both."""
    names = {axis.name for axis in own} - model.unseen
    beside = {axis.name for axis in others} - names - model.unseen
    for part in model.parts:
        for op in part.ops:
            for space in op.index_spaces:
                first = next((axis for axis in space if axis in names), "")
                second = next((axis for axis in space if axis in beside), "")
                if first and second:
                    both = f"{model.axes[first]} beside {model.axes[second]}"
                    return f"{part.path}.{op.path} of model {model.name!r} has {both}"
    return ""
