"""What lives while a backward pass runs: gradients on their way, and what is still kept for it.

Backward takes the ops of a part from the last to the first. What an op keeps goes when its own
backward is done; the gradient of a tensor comes with the last op that takes the tensor, and goes
with the op that made it. Of these moments the one with most in it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost.algebra import mul
from symbolic_cost.conventions.frameworks import PARTS_OF_LOSS
from symbolic_cost.conventions.questions import Conventions, Role
from symbolic_cost.grouping import grouped
from symbolic_cost.ledger import Phase, Quantity, Row
from symbolic_cost.ops.derive import PartCosts
from symbolic_cost.ops.elementwise import KINDS, PLAIN, Elementwise, Kind
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.recompute import Recompute
from symbolic_cost.ops.view import View
from symbolic_cost.parallel.amounts import Amount, amount, as_one_term, times, total
from symbolic_cost.parallel.software import IN_PLACE, LOSS, Making, Software
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Backward:
    """What one instance of a part holds while its backward pass runs [byte].

    Args:
        costs: of the part.
        executed: the same with nothing recomputed, in which stands what a region makes again.
    """

    costs: PartCosts
    executed: PartCosts
    conventions: Conventions
    policy: Recompute
    software: Software

    @property
    def runs(self) -> bool:
        """Whether there is any."""
        return bool(self._size or self._made)

    @property
    def by_unit(self) -> bool:
        """Whether gradients of weights are reduced unit by unit: FSDP."""
        return self.software.making is Making.REDUCED

    @cached_property
    def saved(self) -> Amount:
        """What an instance keeps for it."""
        return total(*self._kept.values())

    @cached_property
    def gradient(self) -> Amount:
        """Gradients of the weights of an instance, as they stay."""
        return total(*self._stays.values())

    @cached_property
    def grown(self) -> Amount:
        """The same without weights that all instances share: their sum is there with the last."""
        rows = self._rows(Quantity.WEIGHT_GRADIENT)
        return total(*_by_path(row for row in rows if not is_shared(row.tensor)).values())

    def most(
        self, together: Expr, growing: Expr = Integer(0), at: str = "computing"
    ) -> list[Amount]:
        """Return sums of which the greatest is what it holds.

        Args:
            together: instances that run again at once.
            growing: share of the gradients of weights that counts as they are made; none where
                they are there before.
            at: all of it, or the "loss", which is what stands behind the last of its "weights".
        """
        key = (together, growing, at)
        if key not in self._most:
            last = max((place for place, op in enumerate(self._ops) if op.weights), default=-1)
            behind = {self._path(op) for op in self._ops[last + 1 :]}
            self._most[key] = as_one_term(
                total(live, own, times(growing, made)) if growing != 0 else total(live, own)
                for path, live, own, made in self._moments(together)
                if at == "computing" or (path in behind) == (at == "loss")
            )
        return self._most[key]

    @cached_property
    def _most(self) -> dict[object, list[Amount]]:
        return {}

    @cached_property
    def tied(self) -> Mapping[str, Amount]:
        """Gradients of the weights that the whole model shares, where they are made apart."""
        return {
            weight.tensor: amount(self._made[self._path(op), weight.gradient().tensor])
            for op in self._ops
            for weight in op.weights
            if self._apart and weight.tensor.startswith("@")
            if (self._path(op), weight.gradient().tensor) in self._made
        }

    def _moments(self, together: Expr) -> Iterator[tuple[str, Amount, Amount, Amount]]:
        """Yield paths of ops, and what lives: activations, new gradients of weights, old ones."""
        kept, again = self._below(self._kept), self._below(self._again)
        made: Amount = {}
        whole: Amount = {}
        for op, flowing in self._gradients():
            path, region = self._path(op), self._region(op)
            often = together if region == self.costs.part.path else self.policy.every
            others = self._others(region, often)
            own = [self._made.get((path, w.gradient().tensor)) for w in op.weights]
            new = amount(*(size for size in own if size is not None and not self._fused))
            yield path, total(flowing, kept[path], again[path], others, whole), new, made
            made = made if self.by_unit else total(made, self._stays.get(path, {}))
            whole = total(whole, new) if self._together else whole

    def _others(self, region: str | None, often: Expr) -> Amount:
        """Return what other instances of a region make again beside this one, inputs as well."""
        if region is None or often == 1:
            return {}
        inside = [self._path(op) for op in self._ops if self._region(op) == region]
        whole = total(*(of.get(path, {}) for of in (self._again, self._kept) for path in inside))
        return total(times(often, whole), times(-1, whole))

    def _below(self, rows: Mapping[str, Amount]) -> Mapping[str, Amount]:
        """Return what is there of rows until an op's backward is done, regions each their own."""
        sums_of: dict[str | None, Amount] = {}
        there = {}
        for op in self._ops:
            path = self._path(op)
            region = self._region(op) if rows is self._again else None
            sums_of[region] = total(sums_of.get(region, {}), rows.get(path, {}))
            there[path] = sums_of[region]
        return there

    def _gradients(self) -> Iterator[tuple[Op, Amount]]:
        """Yield every op that has a backward pass, last first, and the gradients that are there."""
        makers: dict[str, int] = {}
        for place, op in enumerate(self._ops):
            for operand in op.outputs:
                makers.setdefault(self._alias[operand.tensor], place)
        taken = {operand.tensor for op in self._ops for operand in op.inputs}
        alive = {
            self._alias[operand.tensor]
            for op in self._ops
            for operand in op.outputs
            if operand.tensor not in taken
        }
        for place in reversed(range(len(self._ops))):
            op = self._ops[place]
            results = {self._alias[operand.tensor] for operand in op.outputs}
            new = [
                operand.tensor
                for operand in dict.fromkeys(op.inputs)
                if operand.tensor in self._size and self._alias[operand.tensor] not in results
            ]
            there = [self._sizes_of(one) for one in sorted(alive - self._wide(op, results))]
            yield op, amount(*there, *self._made_of(op, new))
            alive |= {self._alias[tensor] for tensor in new}
            alive -= {one for one in results if makers[one] == place}

    def _wide(self, op: Op, results: set[str]) -> set[str]:
        """Return results whose gradients are cast before an op's own pass, and gone by then."""
        return results if self._kind_of(op).held else set()

    def _made_of(self, op: Op, new: list[str]) -> list[Expr]:
        """Return the gradients that an op makes; in single precision those of what runs in it."""
        if self.software.loss == IN_PLACE and op.kind == LOSS:
            return []
        kind, sizes = self._kind_of(op), self.conventions.sizes
        if kind.held and new:
            size = sizes.single if kind.is_single else sizes.value
            return [mul(kind.held * size / sizes.value, self._size[new[0]])]
        return [self._size[tensor] for tensor in new]

    def _kind_of(self, op: Op) -> Kind:
        """Return what runs for an elementwise op; of others nothing is said."""
        if not isinstance(op, Elementwise):
            return PLAIN
        function = self.conventions.kept_as.get(op.function, op.function)
        apart = self.software.loss == "apart"
        return KINDS[PARTS_OF_LOSS.get(function, function) if apart else function]

    @cached_property
    def _alias(self) -> Mapping[str, str]:
        """The tensor whose gradient is that of another one, by the other one's name.

        A view's is that of what it shows, an addition hands on its own to all that it added; unless
        ranks hold other parts of them.
        """
        names: dict[str, str] = {}

        def root(tensor: str) -> str:
            while names.setdefault(tensor, tensor) != tensor:
                tensor = names[tensor]
            return tensor

        for op in self._ops:
            sums_up = isinstance(op, Elementwise) and op.function == "add" and not op.weights
            shows = isinstance(op, View) and not op.parts
            for operand in (*op.inputs, *op.outputs):
                root(operand.tensor)
            for operand in op.inputs if sums_up or shows else ():
                result = op.outputs[0].tensor
                sizes = [self._size.get(one) for one in (operand.tensor, result)]
                if sizes[0] == sizes[1] or (shows and None in sizes):
                    names[root(operand.tensor)] = root(result)
        return {tensor: root(tensor) for tensor in names}

    def _sizes_of(self, root: str) -> Expr:
        own = (size for tensor, size in self._size.items() if self._alias[tensor] == root)
        return next(own, Integer(0))

    @cached_property
    def gradients(self) -> Mapping[str, Amount]:
        """Gradients of the weights of an instance as products make them, by name."""
        sizes = grouped((tensor, size) for (_, tensor), size in self._made.items())
        return {tensor: amount(*own) for tensor, own in sizes.items()}

    @property
    def wider(self) -> Expr:
        """How many times as wide gradients are where ranks reduce them."""
        sizes = self.conventions.sizes
        return sizes.moved(Role.WEIGHT_GRADIENT) / sizes.value

    @cached_property
    def beginning(self) -> Amount:
        """What is there before an instance begins: all it keeps, and gradients of its results."""
        taken = {o.tensor for op in self._ops for o in op.inputs}
        made = {o.tensor for op in self._ops for o in op.outputs} - taken
        results = sorted({self._alias[tensor] for tensor in made})
        return total(self.saved, amount(*(self._sizes_of(root) for root in results)))

    @cached_property
    def entering(self) -> Amount:
        """The gradients that an instance hands to the parts before it."""
        made = {operand.tensor for op in self._ops for operand in op.outputs}
        taken = {o.tensor for op in self._ops for o in op.inputs if o.tensor in self._size} - made
        return amount(*(self._sizes_of(root) for root in sorted({self._alias[t] for t in taken})))

    @property
    def _fused(self) -> bool:
        return self.software.making.adds

    @property
    def _together(self) -> bool:
        return self.software.making in {Making.CAST, Making.REDUCED}

    @property
    def _apart(self) -> bool:
        return self.software.making in {Making.APART, Making.CAST}

    @property
    def _ops(self) -> tuple[Op, ...]:
        return self.costs.part.ops

    def _path(self, op: Op) -> str:
        return f"{self.costs.part.path}.{op.path}"

    def _region(self, op: Op) -> str | None:
        return self.policy.region(self.costs.part, op, self.conventions.kept_as)

    @cached_property
    def _size(self) -> Mapping[str, Expr]:
        """The bytes of the gradient of an activation, by the tensor's name."""
        names = {
            o.gradient().tensor: o.tensor for op in self._ops for o in (*op.inputs, *op.outputs)
        }
        return {
            names[row.tensor]: row.expr
            for row in self._rows(Quantity.ACTIVATION_GRADIENT)
            if row.tensor in names
        }

    @cached_property
    def _kept(self) -> Mapping[str, Amount]:
        """What every instance keeps, by op; what all share stays."""
        once = self.costs.part.repeat != 1
        rows = self._rows(Quantity.SAVED)
        return _by_path(row for row in rows if not (once and row.count == 1))

    @cached_property
    def _again(self) -> Mapping[str, Amount]:
        """What regions make again that is not kept, by op."""
        kept = {row.tensor for row in self._rows(Quantity.SAVED)}
        again = {self._path(op) for op in self._ops if self._region(op) is not None}
        return _by_path(
            row
            for row in (self.executed.once if again else ())
            if row.quantity is Quantity.SAVED and row.path in again and row.tensor not in kept
        )

    @cached_property
    def _stays(self) -> Mapping[str, Amount]:
        return _by_path(self._rows(Quantity.WEIGHT_GRADIENT))

    @cached_property
    def _made(self) -> Mapping[tuple[str, str], Expr]:
        """The gradient of a weight as its product makes it, by op and tensor."""
        sizes = self.conventions.sizes
        return {
            (row.path, row.tensor): mul(sizes.value / sizes.weight_gradient, row.expr)
            for row in self._rows(Quantity.WRITE)
            if row.phase is Phase.BACKWARD_WEIGHT
        }

    def _rows(self, quantity: Quantity) -> Iterator[Row]:
        return (row for row in self.costs.once if row.quantity is quantity)


def is_shared(tensor: str) -> bool:
    """Tell whether a weight of this name, or a gradient, is one for all parts and repetitions."""
    return tensor.startswith(("@", "d@"))


def _by_path(rows: Iterable[Row]) -> Mapping[str, Amount]:
    sizes = grouped((row.path, row.expr) for row in rows)
    return {path: amount(*own) for path, own in sizes.items()}
