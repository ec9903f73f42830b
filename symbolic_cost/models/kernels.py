"""Kernels of the attention core: what runs, whatever a convention counts.

A layer declares its core op by op: scores, softmax, weighted sum. A flash kernel runs the same ops
as one: scores and probabilities never touch memory, backward computes them again from queries,
keys, values and one logarithm per row, and keys need no copies for the query heads that share them.
So the fused form is derived from the declaration, by finding the ops between the two products of
query and key positions. For example, in a block of GPT

    scores[b h l t] = q keys, p = softmax(scores), dropped = dropout(p), context = dropped values

become one op from q, keys and values to context, which saves these, the context and [b h l].
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from symbolic_cost.conventions.answers import CAUSAL, CAUSAL_WINDOW
from symbolic_cost.conventions.questions import FULL_SQUARE, Conventions, Role
from symbolic_cost.errors import looked_up
from symbolic_cost.lazy import Recent
from symbolic_cost.ops.declare import Model, Op, Part
from symbolic_cost.ops.fused import Fused
from symbolic_cost.ops.pattern import Operand, Pattern
from symbolic_cost.records import dataclass, field, replace


class Attention(StrEnum):
    """How attention cores run."""

    FLASH = "flash"
    EAGER = "eager"


MEANINGS: Mapping[Attention, str] = {
    Attention.FLASH: "one kernel that skips masked blocks and recomputes scores in backward",
    Attention.EAGER: "op by op, the whole square of scores in memory",
}


@dataclass(frozen=True, slots=True)
class Running:
    """A model as its kernels run it.

    Args:
        model: its attention cores fused where asked.
        cores: how each kind of core runs, by path of the core.
        declared: the model as its layers declare it.
    """

    model: Model
    cores: Mapping[str, Attention]
    declared: Model = field(repr=False)

    @property
    def attention(self) -> str:
        """How attention runs, in a word; empty without attention."""
        return " and ".join(dict.fromkeys(self.cores.values()))

    def executed(self, conventions: Conventions) -> Conventions:
        """Return conventions that count what the kernels compute.

        A flash kernel leaves out masked blocks; where some core runs op by op, the whole square
        is computed.
        """
        flash = set(self.cores.values()) <= {Attention.FLASH}
        return replace(
            conventions,
            attention_pairs=CAUSAL if flash else FULL_SQUARE,
            window_pairs=CAUSAL_WINDOW if flash else None,
            unmasked_pairs=FULL_SQUARE,
            fused_recompute=True,
        )


def kernel(name: str) -> Attention:
    """Return a kernel by name.

    Raises:
        UnknownNameError: no such kernel.
    """
    return looked_up("attention", name, {one.value: one for one in Attention})


def running(model: Model, wanted: Attention | None) -> Running:
    """Return a model with its attention cores as they are asked to run, or as declared.

    A core that takes more than queries, keys and values (a bias on its scores) has no flash kernel
    and stays op by op; one that its layer declares as a kernel stays one.
    """
    remembered = _RUNNING.of((id(model), wanted), lambda: _running(model, wanted))
    return remembered if remembered.declared is model else _running(model, wanted)


def _running(model: Model, wanted: Attention | None) -> Running:
    cores: dict[str, Attention] = {}
    parts = []
    for part in model.parts:
        ops: list[Op] = []
        for group in _groups(part):
            own = _runs_as(group, wanted)
            if own is not None:
                cores[f"{part.path}.{group[0].core}"] = own
            fuses = own is Attention.FLASH and len(group) > 1
            ops += _flash(part, group, ops) if fuses else group
        parts.append(replace(part, ops=tuple(ops)))
    return Running(replace(model, parts=tuple(parts)), cores, model)


def _groups(part: Part) -> Iterator[tuple[Op, ...]]:
    """Yield every core as the ops from its scores to its weighted sum, and other ops alone."""
    core: list[Op] = []
    for op in part.ops:
        if core or op.pairs:
            core.append(op)
        if not core:
            yield (op,)
        elif op.pairs and len(core) > 1:
            yield tuple(core)
            core = []
    yield from ((op,) for op in core)


def _runs_as(group: Sequence[Op], wanted: Attention | None) -> Attention | None:
    """Return how a core runs; None for what is no core."""
    if len(group) == 1:
        (op,) = group
        attends = any(stage.pairs for stage in op.stages if stage is not op)
        return Attention.FLASH if attends else None
    inside = {written.tensor for op in group for written in op.outputs}
    extra = [o for op in group[1:-1] for o in op.inputs if o.tensor not in inside]
    return Attention.EAGER if extra or wanted is None else wanted


def _flash(part: Part, core: tuple[Op, ...], before: list[Op]) -> tuple[Op, ...]:
    """Fuse a core; copies of keys and values for the heads that share them are not made."""
    taken = {o.tensor for op in core for o in op.inputs}
    sources = {}
    for op in tuple(before):
        result = op.outputs[0] if op.repeats else None
        if result and result.tensor in taken and len(_users(part, result.tensor)) == 1:
            sources[result.tensor] = op.inputs[0]
            before.remove(op)
    ops = tuple(op.retaken(sources) for op in core)
    inside = {written.tensor for op in ops for written in op.outputs}
    inputs = tuple(dict.fromkeys(o for op in ops for o in op.inputs if o.tensor not in inside))
    weights = tuple(dict.fromkeys(o for op in ops for o in op.weights))
    saved = (*inputs, ops[-1].outputs[0], *_row_sums(ops))
    pattern = Pattern(f"flash {core[0].core}", inputs + weights, (), ops[-1].outputs)
    again = tuple(op.path for op in ops[:-1])
    # One kernel makes all gradients, whatever needs them.
    ops = tuple(op.mapped(lambda o: o if o.is_weight else replace(o, constant=False)) for op in ops)
    return (Fused(core[0].core, pattern, ops, saved, again, core=core[0].core),)


def _users(part: Part, tensor: str) -> list[Op]:
    return [op for op in part.ops if tensor in {operand.tensor for operand in op.inputs}]


def _row_sums(ops: Sequence[Op]) -> Iterator[Operand]:
    """Yield what backward needs of every softmax besides its operands: a logarithm per row."""
    for op in ops:
        if op.kind == "softmax":
            rows = tuple(axis for axis in op.outputs[0].axes if axis not in op.row_axes)
            yield Operand(f"{op.outputs[0].tensor}.logsumexp", rows, Role.STATISTIC)


_RUNNING: Recent[Running] = Recent(8)
"""The jobs of a search run one model, and share what is derived of its parts."""
