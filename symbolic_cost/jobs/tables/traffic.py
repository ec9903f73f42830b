"""What moves between ranks in one step, and who talks to whom."""

from __future__ import annotations

from sympy import Add

from symbolic_cost.analysis.forms import factored
from symbolic_cost.emit.sheet import Cell, Column, Sheet, headed
from symbolic_cost.jobs.header import header, lacking
from symbolic_cost.jobs.letters import lettered
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.tables.placement import numbered_mesh
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.parallel.communication import Traffic, communication_rows
from symbolic_cost.parallel.groups import Group, rank_groups

_SHOWN = 8
"""Groups of one mesh axis that are listed; the rest are counted."""


_SENT = "comm"


def communication_sheet(work: Setup, *, per_op: bool) -> Sheet:
    """Tabulate what one rank sends in a step, then what rank and cluster send in all."""
    work = lettered(work)
    work.bound  # noqa: B018 - refuses numbers that do not fit
    totals = {"sent by one rank": work.sent_by_rank, "sent by the cluster": work.sent_by_cluster}
    alike: dict[tuple[object, ...], list[Traffic]] = {}
    for entry in communication_rows(work.rows, work.training.microbatches):
        place = (entry.path, entry.message) if per_op else ()
        alike.setdefault((entry.meshes, entry.phase, entry.kind, *place), []).append(entry)
    met = [*dict.fromkeys(meshes for meshes, *_ in alike)]
    order = alike if per_op else sorted(alike, key=lambda what: met.index(what[0]))
    rows = [_row(work, entries, per_op=per_op) for entries in [alike[what] for what in order]]
    width = len(_columns(per_op=per_op))
    for label, sent in totals.items():
        for mesh, total in {**sent, "all": Add(*sent.values())}.items():
            known = number(work.value(total))
            shown = factored(total) if per_op or known is None else None
            named = ("all", None, label, mesh) if per_op else (mesh, "all", label)
            rows.append((*named, *[None] * (width - len(named) - 2), shown, known))
    title = f"Communication of {work.share.name} in one step"
    alone = () if any(totals.values()) else ("one rank sends nothing: --strategy names several",)
    sums = (total for sent in totals.values() for total in sent.values())
    notes = (*alone, *lacking(work, sums), *header(work, _SENT))
    return Sheet(title, _columns(per_op=per_op), tuple(rows), notes, work.names)


def groups_sheet(work: Setup, node_size: int) -> Sheet:
    """List the rank groups of every mesh axis, and whether they cross nodes."""
    mesh = numbered_mesh(work, "groups need")
    rows: list[tuple[Cell, ...]] = []
    for axis in mesh:
        groups = rank_groups(mesh, axis, node_size)
        shown = enumerate(groups[:_SHOWN])
        rows += [(axis, place, str(group), _reach(group)) for place, group in shown]
        if len(groups) > _SHOWN:
            rows.append((axis, None, f"... {len(groups)} groups in all", None))
    columns = headed("mesh axis, group>, ranks, reach")
    title = f"Rank groups, {node_size} GPUs per node"
    alone = () if rows else ("one rank is no group: --strategy names several",)
    return Sheet(title, columns, tuple(rows), (*alone, *header(work, _SENT)))


def _reach(group: Group) -> str:
    return f"crosses {len(group.nodes)} nodes" if group.crosses_nodes else "inside a node"


def _columns(*, per_op: bool) -> tuple[Column, ...]:
    first = "op, pass, collective, group" if per_op else "group, pass, collective"
    message = ", message, message value> [byte]" if per_op else ""
    return headed(f"{first}, ranks>, calls>{message}, sent, sent value> [byte]")


def _row(work: Setup, entries: list[Traffic], *, per_op: bool) -> tuple[Cell, ...]:
    first = entries[0]
    sent = Add(*(entry.sent for entry in entries))
    message = (factored(first.message), number(work.value(first.message)))
    return (
        first.path if per_op else first.group,
        first.phase.value.replace("_", " "),
        first.kind.value,
        *((first.group,) if per_op else ()),
        work.value(first.ranks),
        work.value(Add(*(entry.calls for entry in entries))),
        *(message if per_op else ()),
        factored(sent),
        number(work.value(sent)),
    )
