"""Communication of one step: collectives by group with counts, messages and bytes."""

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.algebra import mul, sums
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import CollectiveKind, CostTable, Phase, Quantity
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.table import Divided
from symbolic_cost.records import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """Collectives of one rank and step that are alike.

    Args:
        path: of the op that what moves belongs to.
        meshes: mesh axes of the group, innermost first.
        axis: axis of the tensor that is gathered or scattered.
        message: of one collective [byte].
        sent: by one rank in one step, as the conventions charge it [byte].
    """

    path: str
    phase: Phase
    tensor: str
    kind: CollectiveKind
    meshes: tuple[str, ...]
    axis: str
    ranks: Expr
    message: Expr
    calls: Expr
    sent: Expr

    @property
    def group(self) -> str:
        """The mesh axes as they are printed: "cp+dp"."""
        return "+".join(self.meshes)


def communication_rows(table: CostTable, microbatches: Expr = symbols.M) -> tuple[Traffic, ...]:
    """Return what one rank communicates in one step."""
    rows_out = []
    for row in table.select(Quantity.COMMUNICATION):
        move = row.collective
        if move is None:
            continue
        times = mul(row.count, Integer(1) if row.per_step else microbatches)
        rows_out.append(
            Traffic(
                path=row.path,
                phase=row.phase,
                tensor=row.tensor,
                kind=move.kind,
                meshes=move.meshes,
                axis=move.axis,
                ranks=move.ranks,
                message=move.message,
                calls=mul(times, move.calls),
                sent=mul(times, row.expr),
            )
        )
    return tuple(rows_out)


def sent_by_rank(table: CostTable, microbatches: Expr = symbols.M) -> dict[str, Expr]:
    """Return what one rank sends in one step [byte], by the mesh axes of the group as printed."""
    return sums((one.group, one.sent) for one in communication_rows(table, microbatches))


def sent_by_cluster(
    model: Model,
    strategy: Strategy,
    conventions: Conventions,
    recompute: Recompute = KEEP_ALL,
    *,
    microbatches: Expr = symbols.M,
    pipeline: Pipeline | None = None,
) -> dict[str, Expr]:
    """Return what all ranks together send in one step [byte], by the mesh axes of the group.

    The first and the last stage of a pipeline differ from those between them.
    """
    divided = Divided(model, strategy, conventions, pipeline or Pipeline())
    every = sums(
        (group, mul(divided.structure.alike(stage), sent))
        for stage in divided.structure.stages
        for group, sent in sent_by_rank(divided.table(stage, recompute), microbatches).items()
    )
    per_stage = divided.ranks.ranks / divided.stages
    return {group: mul(per_stage, sent) for group, sent in every.items()}
