"""Tower, connectors and language model as one model."""

from collections.abc import Mapping

from sympy import Expr, Integer

from symbolic_cost.errors import refuse
from symbolic_cost.layers import connector as connectors
from symbolic_cost.layers.connector import Connector, Trait, Wide
from symbolic_cost.models.count import TOWER_PORT
from symbolic_cost.models.nested.towers import tower
from symbolic_cost.ops.declare import Axis, Model, Op, Part, Role
from symbolic_cost.ops.part import retitled
from symbolic_cost.ops.unread import Unread, unread
from symbolic_cost.records import dataclass, field, replace
from symbolic_cost.symbols import exact

_IMAGE = "vision"


@dataclass(frozen=True)
class Joining:
    """How a tower and a language model are joined, in numbers.

    Args:
        model: the tower on the images of a batch.
        width: of the tower.
        merge: patches that a token joins.
        tokens: of an image.
        unread: last blocks of the tower that nothing reads.
        stages: further connectors.
        widths: of the hidden layer of the connector and of what it takes, where not the usual.
        weights: beside the connector.
        further: sizes of their axes.
    """

    model: Model
    connector: Connector
    width: int
    merge: int
    tokens: Expr
    unread: int
    stages: int
    widths: tuple[int, ...] = ()
    weights: tuple[Op, ...] = ()
    further: Mapping[str, Expr] = field(default_factory=dict)


def joined(name: str, text: Model, own: Joining) -> Model:
    """Declare tower, connectors and language model as one."""
    seen = tower(_halved(own.model, own.unread), _IMAGE)
    names = {"b": f"b_{_IMAGE}", "r": f"r_{_IMAGE}", "t_v": f"t_{_IMAGE}", "e_v": f"e_{_IMAGE}"}
    taken = (part.path for part in reversed(seen.parts) if not _unseen(part))
    source = next(taken)
    late = replace(own.connector, traits=own.connector.traits | Trait.LATE)
    further = [
        Part(
            f"deepstack{i}",
            retitled(late.ops(), names),
            takes={"x": f"{_IMAGE}.block"},
            joins=text.parts[0].path,
        )
        for i in range(own.stages)
    ]
    ops = retitled((*own.weights, *own.connector.ops()), names)
    joining = Part(TOWER_PORT, ops, takes={"x": source}, joins=text.parts[0].path)
    wide = text.sizes["e"] if own.connector.hidden is Wide.TEXT else Integer(own.merge * own.width)
    first, second = own.widths or (wide, own.width)
    sizes = {
        "n_i": own.tokens,
        "m_i": Integer(own.merge),
        "w_i": exact(first),
        "w_j": exact(second),
        **own.further,
    }
    # An axis of one name would silently have the length of the other in the text.
    refuse(
        f"axis {axis} is of the text, {text.sizes[axis]} long, and of what joins images, {size}"
        for axis, size in (*seen.sizes.items(), *sizes.items())
        if text.sizes.get(axis, size) != size
    )
    known = {axis: Axis(axis, Role.WHOLE) for axis in own.further} | {
        axis: entry for axis, entry in connectors.AXES.items() if axis in sizes
    }
    blind = seen.sizes[f"b_{_IMAGE}"] == 0
    return replace(
        text,
        name=name,
        notes=(*text.notes, *(("text alone: no image tokens are counted",) if blind else ())),
        parts=(*seen.parts, joining, *further, *text.parts),
        sizes={**text.sizes, **seen.sizes, **sizes},
        axes={**text.axes, **seen.axes, **known},
    )


def _unseen(part: Part) -> bool:
    return any(isinstance(op, Unread) for op in part.ops)


def _halved(model: Model, unread_blocks: int) -> Model:
    """Return a tower whose pooler and last blocks run, and are read by nothing."""
    parts: list[Part] = []
    for part in model.parts:
        if part.path == "pooler":
            parts.append(replace(part, ops=unread(part.ops)))
            continue
        if not part.is_block:
            parts.append(part)
            continue
        parts.append(replace(part, repeat=part.repeat - unread_blocks))
        if not unread_blocks:
            continue
        ops = unread(part.ops)
        parts += [
            replace(part, path=f"unread{i}", ops=ops, repeat=Integer(1))
            for i in range(unread_blocks)
        ]
    return replace(model, parts=tuple(parts))
