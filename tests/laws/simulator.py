"""Arrays on every rank of a mesh: ops run locally, and only booked collectives move elements.

Nothing here asks the package what should move; it only reads where the placement puts each axis,
runs the collectives that the rows of a table name, and checks that every op finds the right
elements of its operands.
"""

from dataclasses import dataclass
from itertools import product
from string import ascii_letters

import numpy as np
from sympy import Rational

from symbolic_cost.ledger import Phase, Quantity


def ranks_of(placement):
    """Coordinates of every rank, by mesh axis."""
    degrees = {mesh: int(degree) for mesh, degree in placement.degrees.items()}
    for values in product(*map(range, degrees.values())):
        yield dict(zip(degrees, values, strict=True))


def indices(axis, sizes, placement, rank):
    """The indices of an axis that a rank holds: blocks, the first mesh axis innermost."""
    block, blocks = 0, 1
    for mesh in reversed(placement.meshes(axis)):
        degree = int(placement.degrees[mesh])
        block, blocks = block * degree + rank[mesh], blocks * degree
    width = int(sizes[axis]) // blocks
    return tuple(range(block * width, (block + 1) * width))


def places(axes, sizes, placement, rank):
    """The indices of every axis of a tensor that a rank holds."""
    return tuple(indices(axis, sizes, placement, rank) for axis in axes)


def taken(values, part, have=None):
    """The part of an array at some indices, of an array that holds the indices `have`."""
    if have is not None:
        part = [
            [mine.index(one) for one in wanted] for mine, wanted in zip(have, part, strict=True)
        ]
    return values[np.ix_(*part)]


def array(axes, sizes, seed):
    shape = tuple(int(sizes[axis]) for axis in axes)
    return np.random.default_rng(seed).integers(-9, 10, size=shape)


def contract(result, factors):
    """A sum of products, axes by name."""
    names = dict.fromkeys(axis for axes, _ in factors for axis in axes)
    letter = dict(zip(names, ascii_letters, strict=False))
    text = ",".join("".join(letter[axis] for axis in axes) for axes, _ in factors)
    made = "".join(letter[axis] for axis in result)
    return np.einsum(f"{text}->{made}", *(values for _, values in factors))


# Ops on local arrays. The square stands for any function of elements, and of rows not split.

SQUARES = ("gelu", "softmax", "dropout")


def forward(op, local, with_bias):
    """Results of an op by tensor, of local operands by tensor."""
    if op.kind == "view":
        (whole,) = op.inputs
        place = next(i for i, axis in enumerate(whole.axes) if axis not in op.outputs[0].axes)
        return {
            part.tensor: np.take(local[whole.tensor], i, axis=place)
            for i, part in enumerate(op.outputs)
        }
    (made,) = op.outputs
    factors = [(o.axes, local[o.tensor]) for o in op.pattern.inputs]
    if op.kind in SQUARES:
        values = local[op.inputs[0].tensor] ** 2
    elif op.kind == "add":
        values = sum(widened(made.axes, [factor], factors) for factor in factors)
    else:
        values = contract(made.axes, factors)
        for bias in op.pattern.biases if with_bias else ():
            values = values + widened(
                made.axes, [(bias.axes, local[bias.tensor])], [(made.axes, values)]
            )
    return {made.tensor: values}


def widened(axes, factors, shapes):
    """A product repeated along the axes that it lacks."""
    size = {axis: n for names, v in shapes for axis, n in zip(names, v.shape, strict=True)}
    return contract(axes, [*factors, (axes, np.ones([size[axis] for axis in axes], dtype=int))])


def backward(op, local, gradients):
    """Gradients of an op's operands as (operand, array), of those of its results by tensor."""
    if op.kind == "view":
        (whole,) = op.inputs
        place = next(i for i, axis in enumerate(whole.axes) if axis not in op.outputs[0].axes)
        return [(whole, np.stack([gradients[part.tensor] for part in op.outputs], axis=place))]
    (made,) = op.outputs
    given = (made.axes, gradients[made.tensor])
    factors = [(o.axes, local[o.tensor]) for o in op.pattern.inputs]
    found = []
    for place, operand in enumerate(op.pattern.inputs):
        others = factors[:place] + factors[place + 1 :]
        if op.kind in SQUARES:
            found.append((operand, 2 * factors[0][1] * given[1]))
        elif op.kind == "add":
            found.append((operand, contract(operand.axes, [given])))
        else:
            found.append((operand, contract(operand.axes, [given, *others])))
    return found + [(bias, contract(bias.axes, [given])) for bias in op.pattern.biases]


def renames(op):
    """Whether an op only renames axes."""
    return op.kind == "view" and not op.parts


# Collectives.


@dataclass
class Held:
    """What every rank holds of a tensor: indices, elements, and the sums not made yet."""

    parts: list
    values: list
    waiting: frozenset = frozenset()

    def covers(self, wanted, axis):
        """Whether every rank has what it wants along one axis."""
        pairs = zip(self.parts, wanted, strict=True)
        return all(set(want[axis]) <= set(have[axis]) for have, want in pairs)

    def cropped(self, wanted):
        """The wanted indices of every rank, or None where a rank lacks some."""
        if not all(self.covers(wanted, axis) for axis in range(len(wanted[0]))):
            return None
        rows = zip(self.values, wanted, self.parts, strict=True)
        return Held(list(wanted), [taken(*row) for row in rows], self.waiting)


def groups(ranks, meshes):
    """For every rank the places of those that differ from it along some mesh axes only."""
    for rank in ranks:
        fixed = [mesh for mesh in rank if mesh not in meshes]
        yield [j for j, o in enumerate(ranks) if all(o[mesh] == rank[mesh] for mesh in fixed)]


def trimmed(held, wanted, meshes, ranks):
    """Drop what no rank wants of those that a rank may exchange elements with."""
    covered = [held.covers(wanted, axis) for axis in range(len(wanted[0]))]
    parts = []
    for have, group in zip(held.parts, groups(ranks, meshes), strict=True):
        kept = list(have)
        for axis, enough in enumerate(covered):
            if enough:
                union = {i for j in group for i in wanted[j][axis]}
                kept[axis] = tuple(i for i in have[axis] if i in union)
        parts.append(tuple(kept))
    return held.cropped(parts)


def moved(held, row, axes, wanted, ranks):
    """Run the collective of a row; the words that a rank sends must be those charged.

    After a reduce-scatter over one mesh axis a rank keeps what any rank wants with which it has
    still to add up terms over another, not only what it wants itself.
    """
    move = row.collective
    meshes = set(move.meshes)
    later = list(groups(ranks, held.waiting - meshes))
    place = axes.index(move.axis) if move.axis else None
    result = Held([], [], held.waiting)
    for i, group in enumerate(groups(ranks, meshes)):
        assert len(group) == move.ranks
        size, others = held.values[i].size, len(group) - 1
        parts = [(held.parts[j], held.values[j]) for j in group]
        join = reduced if move.kind in ("all-reduce", "reduce-scatter") else joined
        have, values = join(parts)
        if move.kind in ("reduce-scatter", "all-to-all"):
            kept = tuple(
                tuple(j for j in h if any(j in wanted[o][axis] for o in later[i]))
                if axis == place
                else h
                for axis, h in enumerate(have)
            )
            have, values = kept, taken(values, kept, have)
        sent = {
            # Scattered in p-1 steps, gathered in p-1 steps, a chunk each.
            "all-reduce": 2 * others * Rational(size, len(group)),
            "reduce-scatter": others * values.size,
            "all-gather": others * size,
            "all-to-all": others * Rational(size, len(group)),
        }[move.kind]
        assert row.expr == 2 * sent, f"charged {row.expr} bytes, sent {sent} words of two"
        result.parts.append(have)
        result.values.append(values)
    if move.kind in ("all-reduce", "reduce-scatter"):
        assert meshes <= held.waiting, "a sum that nobody waits for"
        result.waiting = held.waiting - meshes
    return result


def reduced(parts):
    assert len({have for have, _ in parts}) == 1, "ranks add different elements"
    return parts[0][0], sum(values for _, values in parts)


def joined(parts):
    """Put the parts of a tensor together where their indices say."""
    axes = range(len(parts[0][0]))
    whole = tuple(tuple(sorted({j for have, _ in parts for j in have[axis]})) for axis in axes)
    values = np.zeros([len(some) for some in whole], dtype=int)
    for have, mine in parts:
        at = [[all_of.index(j) for j in h] for h, all_of in zip(have, whole, strict=True)]
        values[np.ix_(*at)] = mine
    assert values.size == sum(mine.size for _, mine in parts), "parts overlap or leave gaps"
    return whole, values


# The run.


class Run:
    """One forward and backward pass of a part, on one rank and on all, compared everywhere."""

    def __init__(self, ops, sizes, placement, table):
        self.ops, self.sizes, self.placement = ops, sizes, placement
        self.ranks = list(ranks_of(placement))
        rows = table.select(Quantity.COMMUNICATION)
        self.rows = {"forward": list(rows.select(phase=Phase.FORWARD))}
        self.rows["backward"] = [row for row in rows if row not in self.rows["forward"]]
        self.whole, self.whole_gradients = {}, {}
        self.held, self.gradients, self.saved = {}, {}, {}

    def check(self):
        """Run both passes; no collective may be missing, and none superfluous."""
        self._one_rank()
        self._one_rank_backward()
        for op in self.ops:
            self._forward(op)
        for operand in self._unused():
            self._bring(operand)
        for op in reversed(self.ops):
            self._backward(op)
        for operand in self._inputs():
            if operand.tensor in self.gradients:
                self._finish(operand)
        left = [row for rows in self.rows.values() for row in rows]
        assert not left, f"booked but not needed: {left}"

    # One rank.

    def _one_rank(self):
        for op in self.ops:
            for operand in (*op.inputs, *op.weights):
                if operand.tensor not in self.whole:
                    values = array(operand.axes, self.sizes, seed=len(self.whole))
                    self.whole[operand.tensor] = values
                    self.held[operand.tensor] = self._dealt(operand, values)
            if renames(op):
                self.whole[op.outputs[0].tensor] = self.whole[op.inputs[0].tensor]
            else:
                self.whole |= forward(op, self.whole, with_bias=True)

    def _one_rank_backward(self):
        gradients = self.whole_gradients
        for operand in self._unused():
            gradients[operand.tensor] = array(operand.axes, self.sizes, seed=len(self.whole))
            self.gradients[operand.tensor] = [self._dealt(operand, gradients[operand.tensor])]
        for op in reversed(self.ops):
            if not all(operand.tensor in gradients for operand in op.outputs):
                continue
            if renames(op):
                found = [(op.inputs[0], gradients[op.outputs[0].tensor])]
            else:
                found = backward(op, self.whole, gradients)
            for operand, values in found:
                if operand.constant:
                    continue
                gradients[operand.tensor] = gradients.get(operand.tensor, 0) + values

    def _unused(self):
        used = {operand.tensor for op in self.ops for operand in op.inputs}
        return [o for op in self.ops for o in op.outputs if o.tensor not in used]

    def _inputs(self):
        made = {operand.tensor for op in self.ops for operand in op.outputs}
        found = {o.tensor: o for op in self.ops for o in op.inputs if o.tensor not in made}
        return list(found.values())

    # All ranks.

    def _wanted(self, operand):
        return [places(operand.axes, self.sizes, self.placement, rank) for rank in self.ranks]

    def _dealt(self, operand, whole):
        wanted = self._wanted(operand)
        return Held(wanted, [taken(whole, part) for part in wanted])

    def _next(self, phase, tensor, why):
        rows = self.rows[phase]
        found = next((row for row in rows if row.tensor == tensor), None)
        assert found is not None, f"{tensor}: {why}, and no collective is booked"
        rows.remove(found)
        return found

    def _has(self, phase, tensor):
        return any(row.tensor == tensor for row in self.rows[phase])

    def _bring(self, operand):
        """Sum a partial tensor where it is used first."""
        held = self.held[operand.tensor]
        wanted = self._wanted(operand)
        while held.waiting:
            row = self._next("forward", operand.tensor, "used while partial")
            held = self.held[operand.tensor] = moved(held, row, operand.axes, wanted, self.ranks)
        local = held.cropped(wanted)
        assert local is not None, f"{operand.tensor}: a rank lacks elements"
        for part, mine in zip(wanted, local.values, strict=True):
            np.testing.assert_array_equal(mine, taken(self.whole[operand.tensor], part))
        return local.values

    def _forward(self, op):
        if renames(op):
            self._rename(op)
            return
        if op.kind == "view":
            (whole,) = op.inputs
            if self._used_again(whole):
                self._bring(whole)
            held = self.held[whole.tensor]
            place = next(i for i, a in enumerate(whole.axes) if a not in op.outputs[0].axes)
            made = [forward(op, {whole.tensor: mine}, with_bias=False) for mine in held.values]
            kept = [have[:place] + have[place + 1 :] for have in held.parts]
            for part in op.outputs:
                mine = [values[part.tensor] for values in made]
                self.held[part.tensor] = Held(kept, mine, held.waiting)
            return
        local = [{} for _ in self.ranks]
        for operand in op.inputs:
            for mine, values in zip(local, self._bring(operand), strict=True):
                mine[operand.tensor] = values
        for operand in op.weights:
            for mine, part in zip(local, self._wanted(operand), strict=True):
                mine[operand.tensor] = taken(self.whole[operand.tensor], part)
        self.saved[op.path] = local
        (made,) = op.outputs
        waiting = self._summed(op.axes, made)
        values = []
        for rank, mine in zip(self.ranks, local, strict=True):
            first = not any(rank[mesh] for mesh in waiting)
            values.append(forward(op, mine, with_bias=first)[made.tensor])
        self.held[made.tensor] = Held(self._wanted(made), values, waiting)

    def _summed(self, axes, operand):
        """Mesh axes that split an axis of a space which an operand lacks."""
        return frozenset(
            mesh
            for axis in axes
            if axis not in operand.axes
            for mesh in self.placement.meshes(axis)
        )

    def _used_again(self, operand):
        return sum(operand.tensor == o.tensor for op in self.ops for o in op.inputs) > 1

    def _trimmed(self, held, wanted, operand):
        meshes = {mesh for axis in operand.axes for mesh in self.placement.meshes(axis)}
        return trimmed(held, wanted, meshes | held.waiting, self.ranks)

    def _rename(self, op):
        whole, part = op.inputs[0], op.outputs[0]
        wanted = self._wanted(part)
        held = self.held[whole.tensor]
        while held.waiting or held.cropped(wanted) is None:
            row = self._next("forward", whole.tensor, "not as the view needs it")
            if row.collective.kind == "all-reduce" and self._used_again(whole):
                held = moved(held, row, whole.axes, wanted, self.ranks)
                self.held[whole.tensor] = held  # the whole sum serves every user
            else:
                held = moved(self._trimmed(held, wanted, whole), row, part.axes, wanted, self.ranks)
        self.held[part.tensor] = held.cropped(wanted)
        self._bring(part)

    # Backward.

    def _sum(self, operand):
        """Add the gradients from all users; what is whole on all ranks of a sum counts once."""
        terms = self.gradients.pop(operand.tensor)
        waiting = frozenset().union(*(term.waiting for term in terms))
        wanted = self._wanted(operand)
        values = [np.zeros([len(some) for some in part], dtype=int) for part in wanted]
        for term in terms:
            local = term.cropped(wanted)
            assert local is not None, f"d{operand.tensor}: a rank lacks elements"
            for i, rank in enumerate(self.ranks):
                if not any(rank[mesh] for mesh in waiting - term.waiting):
                    values[i] = values[i] + local.values[i]
        return Held(wanted, values, waiting)

    def _finish(self, operand, held=None, late=frozenset()):
        """Make the sums of a gradient, which then is that of one rank."""
        held = held or self._sum(operand)
        wanted = self._wanted(operand)
        while self._has("backward", f"d{operand.tensor}"):
            row = self._next("backward", f"d{operand.tensor}", "")
            held = moved(held, row, operand.axes, wanted, self.ranks)
        assert held.waiting <= late, f"d{operand.tensor} is used while partial"
        if not held.waiting:
            for part, mine in zip(wanted, held.values, strict=True):
                whole = self.whole_gradients[operand.tensor]
                np.testing.assert_array_equal(mine, taken(whole, part))
        return held

    def _backward(self, op):
        if not all(operand.tensor in self.gradients for operand in op.outputs):
            return
        if op.kind == "view":
            self._view_backward(op)
            return
        (made,) = op.outputs
        # Where only weights have gradients, a sum may be left to them.
        inner = any(operand.needs_gradient for operand in op.inputs)
        late = frozenset() if inner else frozenset(self.placement.degrees)
        held = self._finish(made, late=late)
        locals_ = [
            backward(op, mine, {made.tensor: given})
            for mine, given in zip(self.saved[op.path], held.values, strict=True)
        ]
        for place, (operand, _) in enumerate(locals_[0]):
            space = made.axes if operand in op.pattern.biases else op.axes
            waiting = self._summed(space, operand) | held.waiting
            values = [found[place][1] for found in locals_]
            term = Held(self._wanted(operand), values, waiting)
            if operand.constant:
                continue
            if operand.is_weight:
                self._finish(operand, term)
            else:
                self.gradients.setdefault(operand.tensor, []).append(term)

    def _view_backward(self, op):
        whole = op.inputs[0]
        if whole.constant:
            return
        parts = [self._sum(part) for part in op.outputs]
        if renames(op):
            (held,), (part,) = parts, op.outputs
            held = self._trimmed(held, self._wanted(whole), part)
            while self._has("backward", f"d{part.tensor}"):
                row = self._next("backward", f"d{part.tensor}", "")
                held = moved(held, row, part.axes, self._wanted(whole), self.ranks)
        else:
            waiting = frozenset().union(*(part.waiting for part in parts))
            values = []
            for i, rank in enumerate(self.ranks):
                mine = {
                    operand.tensor: part.values[i]
                    * (not any(rank[mesh] for mesh in waiting - part.waiting))
                    for operand, part in zip(op.outputs, parts, strict=True)
                }
                values.append(backward(op, {}, mine)[0][1])
            held = Held(self._wanted(whole), values, waiting)
        self.gradients.setdefault(whole.tensor, []).append(held)
