"""The flow of tensors: where a tensor is not in the state that its user needs, something moves.

One pass forward finds the state of every tensor, one pass backward that of every gradient. Both
ask the same table (`moves`). A collective is booked on the op that produced what moves.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from symbolic_cost.algebra import mul
from symbolic_cost.conventions.questions import Role, Saved
from symbolic_cost.ledger import CollectiveKind, Phase
from symbolic_cost.ops.book import Book
from symbolic_cost.ops.moves import Move, moves
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand, is_tied
from symbolic_cost.ops.placement import Partial, Replicate, Shard, State
from symbolic_cost.ops.view import View


class Flow:
    """Books what moves in one part.

    Attributes:
        kept_as: the operand that is stored when a tensor is saved, by the tensor's name; views
            without a move share it, and so do gathered copies where only the shard is kept.
        gathers: the collectives that make a saved tensor whole again, by the tensor's name.
    """

    def __init__(self, book: Book) -> None:
        self.book = book
        self._placement = book.placement
        self.ops = book.part.ops
        self.ran = False
        self._uses = Counter(operand.tensor for op in self.ops for operand in op.inputs)
        self._partial: dict[str, set[str]] = {}
        self._producer: dict[str, Op] = {}
        self._partial_gradient: dict[str, set[str]] = {}
        self._consumer: dict[str, Op] = {}
        self.kept_as: dict[str, Operand] = {}
        self.gathers: dict[str, tuple[Move, ...]] = {}
        self._late: dict[str, frozenset[str]] = {}

    @cached_property
    def tied(self) -> frozenset[str]:
        """The weights that other parts may use as well."""
        return frozenset(w.tensor for op in self.ops for w in op.weights if is_tied(w))

    def run(self) -> None:
        """Go through the part forward, then backward; once."""
        if not self.ran:
            self._forward()
            self._backward()
        self.ran = True

    # Forward.

    def _forward(self) -> None:
        for op in self.ops:
            if isinstance(op, View):
                self._view_forward(op)
                continue
            for operand in op.inputs:
                self._resolve(operand, op)
            for operand in op.outputs:
                self._partial[operand.tensor] = self.left_partial(op, operand)
                self._producer[operand.tensor] = op
            for stage in op.stages:
                self._reduce_statistics(op, stage, Phase.FORWARD, stage.forward_reductions)
        for op in self.ops:
            for operand in op.outputs:
                if operand.tensor not in self._uses:
                    self._resolve(operand, op)

    def _resolve(self, operand: Operand, user: Op) -> None:
        """Sum a partial tensor before its first use."""
        waiting = self._partial.pop(operand.tensor, set())
        if waiting:
            need = self._placement.needs(operand.axes)
            self._move_forward(self._states(operand.axes, waiting), need, operand, user)

    def _view_forward(self, op: View) -> None:
        whole = op.inputs[0]
        if self._uses[whole.tensor] > 1:  # the sum is made once, for all users
            self._resolve(whole, op)
        waiting = self._partial.pop(whole.tensor, set())
        for part in op.outputs:
            self._producer[part.tensor] = self._producer.get(whole.tensor, op)
            if op.parts:
                self._partial[part.tensor] = waiting
                continue
            have = renamed(self._states(whole.axes, waiting), whole.axes, part.axes)
            need = self._placement.needs(part.axes)
            movements = self._move_forward(have, need, whole, op)
            saved = op.saved or self.book.conventions.saved
            kept_in_shards = saved is Saved.SHARD and movements
            if self._is_alike(whole, part) and (
                have == need
                or (
                    kept_in_shards
                    and all(move.kind is CollectiveKind.ALL_GATHER for move in movements)
                )
            ):
                self.kept_as[part.tensor] = self.kept_as.get(whole.tensor, whole)
                self.gathers[part.tensor] = self.gathers.get(whole.tensor, ()) + movements

    def _is_alike(self, whole: Operand, part: Operand) -> bool:
        """Whether a view makes nothing: slots of experts beyond the tokens that fill them are new.

        For example 6 experts that take every token make 6 of each of copied[b r a e].
        """
        counter = self.book.counter
        slots = any(axis in counter.slots for axis in part.axes)
        return not slots or counter.elements(whole.axes) == counter.elements(part.axes)

    def _move_forward(
        self, have: Mapping[str, State], need: Mapping[str, State], operand: Operand, user: Op
    ) -> tuple[Move, ...]:
        movements = self._moves(have, need, operand)
        source = self._producer.get(operand.tensor, user)
        for move in movements:
            self.book.move(source, Phase.FORWARD, move, operand)
            if self._moves_again(source, user):
                self.book.move(source, Phase.RECOMPUTE, move, operand)
        return movements

    def _moves_again(self, source: Op, user: Op) -> bool:
        """Return whether what moves before an op moves again when the op runs again.

        A region keeps what comes into it: shards that it gathers itself, but sums as they are.
        """
        region = self.book.region(user)
        inside = isinstance(user, View) or self.book.region(source) == region
        return region is not None and inside

    # Backward.

    def _backward(self) -> None:
        for op in reversed(self.ops):
            for operand in op.outputs:
                if operand.tensor not in self._uses:  # its gradient comes from outside, whole
                    self._partial_gradient[operand.tensor] = set()
            if isinstance(op, View):
                self._view_backward(op)
            else:
                self._op_backward(op)
        for op in self.ops:
            for operand in op.inputs:
                if operand.tensor not in self._producer:
                    self._resolve_gradient(operand, op)

    def _op_backward(self, op: Op) -> None:
        self._leave_to_weights(op)
        carried: set[str] = set()
        for operand in op.outputs:
            if op.repeats:  # the copies' gradients are added first
                carried |= self._partial_gradient.pop(operand.tensor, set())
            self._resolve_gradient(operand, op)
        flows = any(operand.needs_gradient for operand in op.inputs)
        for stage in op.stages if op.live and flows else ():
            self._reduce_statistics(op, stage, Phase.BACKWARD_INPUT, stage.backward_reductions)
        for operand in op.inputs:
            if operand.needs_gradient:
                waiting = self._partial_gradient.setdefault(operand.tensor, set())
                waiting |= self.left_partial(op, operand) | carried
                self._consumer[operand.tensor] = op

    def _leave_to_weights(self, op: Op) -> None:
        """Leave the sum of a gradient over ranks to the weights where nothing else uses it.

        A token lookup hands no gradient on: with its result's gradient x[b l e] a sum over tp,
        every rank adds its terms to its table, and the table's gradient is summed once per step
        instead of x in every microbatch. Not over an axis that splits the op as well: products of
        sums are no sum of products.
        """
        if any(operand.needs_gradient for operand in op.inputs):
            return
        for operand in op.outputs:
            waiting = self._partial_gradient.get(operand.tensor, set())
            late = {mesh for mesh in waiting if self._placement.split_axis(mesh, op.axes) is None}
            waiting -= late
            self._late[op.path] = self._late.get(op.path, frozenset()) | late

    def _resolve_gradient(self, operand: Operand, op: Op) -> None:
        """Sum a partial gradient once, after its consumers' terms are added locally."""
        waiting = self._partial_gradient.pop(operand.tensor, set())
        if waiting:
            need = self._placement.needs(operand.axes)
            self._move_backward(self._states(operand.axes, waiting), need, operand, op)

    def _view_backward(self, op: View) -> None:
        whole = op.inputs[0]
        partial = [part for part in op.outputs if part.tensor in self._partial_gradient]
        if not partial or whole.constant:
            return
        passed = self._partial_gradient.setdefault(whole.tensor, set())
        for part in partial:
            waiting = self._partial_gradient.pop(part.tensor, set())
            self._consumer[whole.tensor] = self._consumer.get(part.tensor, op)
            if op.parts:
                passed |= waiting
                continue
            have = self._states(part.axes, waiting)
            need = renamed(self._placement.needs(whole.axes), whole.axes, part.axes)
            for mesh in waiting:
                # A sum that is not scattered here is made once, where the tensor was produced.
                if isinstance(need[mesh], Replicate):
                    passed.add(mesh)
                    need[mesh] = Partial()
            self._move_backward(have, need, part, op)

    def _move_backward(
        self, have: Mapping[str, State], need: Mapping[str, State], operand: Operand, op: Op
    ) -> None:
        source = self._consumer.get(operand.tensor, op)
        for move in self._moves(have, need, operand):
            self.book.move(source, Phase.BACKWARD_INPUT, move, operand.gradient())

    # Both.

    def _moves(
        self, have: Mapping[str, State], need: Mapping[str, State], operand: Operand
    ) -> tuple[Move, ...]:
        elements = self.book.counter.elements(operand.axes)
        return moves(have, need, elements, self._placement) if have != need else ()

    def left_partial(self, op: Op, operand: Operand) -> set[str]:
        """Return the mesh axes over which an op leaves an operand a sum still to be made."""
        states = self._placement.states(operand.axes, op.summing_space(operand))
        left = {mesh for mesh, state in states.items() if isinstance(state, Partial)}
        return left | self._late.get(op.path, frozenset()) if operand.is_weight else left

    def _states(self, axes: tuple[str, ...], waiting: set[str]) -> dict[str, State]:
        """Return the states of a tensor of which some sums are still to be made."""
        states = self._placement.needs(axes)
        return {mesh: Partial() if mesh in waiting else state for mesh, state in states.items()}

    def _reduce_statistics(self, op: Op, stage: Op, phase: Phase, values: int) -> None:
        """Book the reduction of row statistics over the ranks that share a row."""
        meshes = tuple(mesh for axis in stage.row_axes for mesh in self._placement.meshes(axis))
        if meshes and values:
            first = stage.inputs[0]
            rows = tuple(axis for axis in first.axes if axis not in stage.row_axes)
            name = f"{first.tensor}.statistics"
            elements = mul(values, self.book.counter.elements(rows))
            move = Move(CollectiveKind.ALL_REDUCE, meshes, "", elements)
            self.book.move(op, phase, move, Operand(name, rows, Role.SINGLE))


def renamed(
    states: Mapping[str, State], old: tuple[str, ...], new: tuple[str, ...]
) -> dict[str, State]:
    """Name the axes of states as the other side of a view does, place by place."""
    names = dict(zip(old, new, strict=True))
    return {
        mesh: Shard(names[state.axis]) if isinstance(state, Shard) else state
        for mesh, state in states.items()
    }
