"""A whole model acted out on every rank of a mesh, across its parts, forward and backward.

Every rank computes ops on its own elements (see `interpreter`); elements move only through the
collectives that the table books, which must send the words that it charges; every value and every
gradient must be that of one rank; what backward read must be what the table says is saved.

A rank's part of a tensor is an array of the whole shape in which what it has not is not a number:
so blocks, renamed axes and views to other shapes need no bookkeeping.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from zlib import crc32

import numpy as np
from sympy import Integer, Rational

from symbolic_cost.conventions.presets import preset
from symbolic_cost.conventions.questions import ElementSizes, Saved
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.ops.placement import WHOLE
from symbolic_cost.ops.view import View
from tests.laws.interpreter import Local, backward, forward
from tests.laws.simulator import groups, indices, ranks_of

ONE = Integer(1)
WORDS = replace(
    preset("standard"),
    name="words",
    sizes=ElementSizes(*(ONE,) * 8, buffer=ONE, moment=ONE),
)
"""Every element is one word; only shards of what is gathered are saved."""

COPIES = replace(WORDS, name="copies", saved=Saved.GATHERED)
"""The same, but gathered copies are saved."""

CLOSE = 1e-8  # of the greatest element: sums of float64 in another order


FLOOR = 1e-5  # what vanishes in exact numbers (the gradient of a key's bias) is noise


@dataclass
class Held:
    """What every rank has of a tensor, and over which mesh axes it is a sum still to be made."""

    arrays: list
    waiting: frozenset = frozenset()


REFERENCES = {}
"""Runs on one rank, by the model that they run, which is held so that no other takes its place."""


class Acted:
    """One pass of a model under a placement; without one, the reference on one rank."""

    def __init__(self, model, placement=WHOLE, conventions=WORDS, reference=None):
        self.model, self.placement, self.reference = model, placement, reference
        self.ranks = list(ranks_of(placement))
        table = cost(model, conventions, placement)
        self.saving_shards = conventions.saved is Saved.SHARD
        self.parts = [PartRun(self, part, table) for part in model.parts]
        self.values, self.gradients, self.tied = {}, {}, {}

    def run(self):
        """Run forward and backward; nothing booked may be left."""
        for part in self.parts:
            part.forward()
        for part in reversed(self.parts):
            part.backward()
        for uses in self.tied.values():
            owner, operand, first = uses[-1]  # the last in backward keeps it
            terms = [part.returned(use, operand, term, first) for part, use, term in uses[:-1]]
            owner.finish_weight(operand, owner.added(operand, [*terms, first]))
        for part in self.parts:
            part.check()
        return self

    def source(self, part, operand):
        """The earlier part that hands on a tensor of these axes, and its name there."""
        for earlier in reversed(self.parts[: self.parts.index(part)]):
            for handed in reversed(earlier.results):
                if handed.axes == operand.axes and handed.role == operand.role:
                    if operand.tensor.startswith("@") and handed.tensor != operand.tensor:
                        continue
                    return earlier, handed
        return None

    def places(self, axes, rank):
        return [indices(axis, self.model.sizes, self.placement, rank) for axis in axes]

    def wanted(self, axes):
        """Which elements of a tensor every rank needs."""
        masks = []
        for rank in self.ranks:
            mask = np.zeros(self.shape(axes), dtype=bool)
            mask[np.ix_(*self.places(axes, rank))] = True
            masks.append(mask)
        return masks

    def shape(self, axes):
        return tuple(int(self.model.sizes[axis]) for axis in axes)

    def random(self, name, axes):
        """Any values, the same on every run."""
        generator = np.random.default_rng(crc32(name.encode()))
        return generator.uniform(-0.5, 0.5, size=self.shape(axes))

    def local(self, whole, axes):
        """The part of every rank as a dense array."""
        return [whole[np.ix_(*self.places(axes, rank))] for rank in self.ranks]

    def dealt(self, whole, axes):
        return Held([np.where(mask, whole, np.nan) for mask in self.wanted(axes)])

    def split(self, axes):
        """Mesh axes that split one of some axes."""
        return frozenset(mesh for axis in axes for mesh in self.placement.meshes(axis))


class PartRun:
    """One part of a run."""

    def __init__(self, run, part, table):
        self.run, self.part, self.ops = run, part, part.ops
        own = {f"{part.path}.{op.path}" for op in part.ops}
        rows = [row for row in table if row.path in own]
        moved = [row for row in rows if row.quantity is Quantity.COMMUNICATION]
        self.rows = {
            "forward": [row for row in moved if row.phase is Phase.FORWARD],
            "backward": [row for row in moved if row.phase is not Phase.FORWARD],
        }
        self.saved_rows = Counter()
        for row in rows:
            if row.quantity is Quantity.SAVED:
                self.saved_rows[row.tensor] += int(row.expr)
        used = Counter(operand.tensor for op in part.ops for operand in op.inputs)
        self.used = used
        self.results = [o for op in part.ops for o in op.outputs if o.tensor not in used]
        self.held, self.local, self.made = {}, {}, {}
        self.stored_as, self.gathers = {}, {}
        self.terms, self.handed, self.read = defaultdict(list), defaultdict(list), {}
        self.producer = {o.tensor: op for op in part.ops for o in op.outputs}
        self.inputs = {
            o.tensor: o for op in part.ops for o in op.inputs if o.tensor not in self.producer
        }

    # Collectives.

    def booked(self, tensor, phase="backward"):
        return [row for row in self.rows[phase] if row.tensor == tensor]

    def moved(self, held, wanted, rows):
        """Run collectives one after the other; each rank drops what nobody wants any more."""
        later = [self._meshes(rows[place:]) for place in range(len(rows) + 1)]
        for row, (now, then) in zip(rows, pairwise(later), strict=True):
            held = self._collective(self._trimmed(held, wanted, now), row, wanted, then)
        return held

    def _meshes(self, rows):
        return {mesh for row in rows for mesh in row.collective.meshes}

    def _trimmed(self, held, wanted, meshes):
        arrays = [
            np.where(np.any([wanted[j] for j in group], axis=0), values, np.nan)
            for values, group in zip(held.arrays, groups(self.run.ranks, meshes), strict=True)
        ]
        return Held(arrays, held.waiting)

    def _collective(self, held, row, wanted, then):
        move, meshes = row.collective, self._meshes([row])
        sums = move.kind in ("all-reduce", "reduce-scatter")
        assert not sums or meshes <= held.waiting, f"{row.tensor}: a sum that nobody waits for"
        assert sums or not meshes & held.waiting, f"{row.tensor}: parts of a sum are gathered"
        arrays = []
        for group in groups(self.run.ranks, meshes):
            members = [held.arrays[j] for j in group]
            have = [~np.isnan(values) for values in members]
            if sums:
                assert all(np.array_equal(have[0], other) for other in have), f"{row.tensor}: sums"
                arrays.append(np.sum(members, axis=0))
            else:
                assert np.sum(have, axis=0).max() <= 1, f"{row.tensor}: parts overlap"
                arrays.append(
                    np.nansum(members, axis=0) + np.where(np.any(have, axis=0), 0, np.nan)
                )
        waiting = held.waiting - meshes if sums else held.waiting
        result = self._trimmed(Held(arrays, waiting), wanted, then)
        for before, after in zip(held.arrays, result.arrays, strict=True):
            self._charged(row, count(before), count(after))
        return result

    def _charged(self, row, before, after):
        """Words that a rank sends: a ring in p-1 steps, each of a p-th part."""
        p, others = row.collective.ranks, row.collective.ranks - 1
        sent = {
            "all-reduce": 2 * others * Rational(before, p),
            "reduce-scatter": others * Rational(before, p),
            "all-gather": others * before,
            "all-to-all": others * Rational(before, p),
        }[row.collective.kind]
        assert row.expr == sent, f"{row.path} {row.tensor}: charged {row.expr}, sent {sent} words"
        if row.collective.kind == "reduce-scatter":
            assert after * p == before, f"{row.tensor}: {before} words scattered to {after}"

    def _brought(self, held, wanted, tensor):
        """Run as few of the booked collectives as make everything wanted arrive."""
        rows = self.booked(tensor, "forward")
        for number in range(len(rows) + 1):
            try:
                result = self.moved(held, wanted, rows[:number])
            except AssertionError:
                if number == len(rows):
                    raise
                continue
            if not result.waiting and has(result, wanted):
                for row in rows[:number]:
                    self.rows["forward"].remove(row)
                return result, rows[:number]
        raise AssertionError(f"{self.part.path}: {tensor} does not arrive by what is booked")

    # Forward.

    def forward(self):
        """Run every op; sums that nobody uses are made as well."""
        for op in self.ops:
            for operand in op.inputs:
                self._take(operand)
            if isinstance(op, View):
                self._view(op)
            else:
                self._op(op)
        for operand in self.results:
            self._bring(operand)

    def _take(self, operand):
        """A tensor from outside: what an earlier part hands on, else any values."""
        if operand.tensor in self.held or operand.role in ("index", "buffer"):
            return
        source = self.run.source(self, operand)
        if source is None:
            whole = self.run.random(f"{self.part.path}.{operand.tensor}", operand.axes)
            self.held[operand.tensor] = self.run.dealt(whole, operand.axes)
            return
        part, handed = source
        held, wanted = part.held[handed.tensor], self.run.wanted(operand.axes)
        assert has(held, wanted), f"{self.part.path}: {operand.tensor} is handed on otherwise"
        self.held[operand.tensor] = cropped(held, wanted)
        self.handed[operand.tensor] = [(part, handed)]

    def _bring(self, operand):
        """A tensor as an op takes it, summed; its values are those of one rank."""
        if operand.role in ("index", "buffer") and operand.tensor not in self.held:
            return [None for _ in self.run.ranks]
        wanted = self.run.wanted(operand.axes)
        held = self.held[operand.tensor]
        if held.waiting:
            held, _ = self._brought(held, wanted, operand.tensor)
            self.held[operand.tensor] = held
        assert has(held, wanted), f"{self.part.path}: a rank lacks elements of {operand.tensor}"
        self._compare("values", operand, cropped(held, wanted))
        return self._dense(held, operand.axes)

    def _dense(self, held, axes):
        pairs = zip(held.arrays, self.run.ranks, strict=True)
        return [values[np.ix_(*self.run.places(axes, rank))] for values, rank in pairs]

    def _compare(self, kind, operand, held, name=None):
        key = (name or self.part.path, operand.tensor, operand.axes)
        known = getattr(self.run, kind)
        if self.run.reference is None:
            known[key] = held.arrays[0]
            return
        whole = getattr(self.run.reference, kind)[key]
        scale = np.abs(whole).max() + FLOOR
        for values in held.arrays:
            wrong = np.nanmax(np.abs(values - whole), initial=0) / scale
            assert wrong < CLOSE, f"{kind} of {key} differ by {wrong}"

    def _note(self, operand):
        """Keep what one rank makes for the others to compare with, used or not."""
        if self.run.reference is None:
            self._compare("values", operand, self.held[operand.tensor])

    def _view(self, op):
        whole = op.inputs[0]
        if self.used[whole.tensor] > 1 and self.held[whole.tensor].waiting:
            self._bring(whole)
        held = self.held[whole.tensor]
        if op.parts:
            place = next(i for i, a in enumerate(whole.axes) if a not in op.outputs[0].axes)
            for number, part in enumerate(op.outputs):
                arrays = [np.take(values, number, axis=place) for values in held.arrays]
                self.held[part.tensor] = Held(arrays, held.waiting)
                self._note(part)
            return
        (part,) = op.outputs
        sizes = self.run.model.sizes
        wanted = self.run.wanted(part.axes)
        if shorter(whole, part, sizes):  # all of it moves, then what is needed is taken
            masks = [widened(mask, whole, part, sizes) for mask in wanted]
            held, rows = self._brought(held, masks, whole.tensor)
            seen = result = Held([viewed(v, whole, part, sizes) for v in held.arrays])
        else:
            seen = Held([viewed(v, whole, part, sizes) for v in held.arrays], held.waiting)
            result, rows = self._brought(seen, wanted, whole.tensor)
        self.held[part.tensor] = cropped(result, wanted)
        only_gathers = all(row.collective.kind == "all-gather" for row in rows)
        shards = self.run.saving_shards if op.saved is None else op.saved is Saved.SHARD
        in_shards = shards and rows and only_gathers
        if in_shards or (not rows and same(seen, wanted)):
            self.stored_as[part.tensor] = self.stored_as.get(whole.tensor, whole)
            self.gathers[part.tensor] = [*self.gathers.get(whole.tensor, ()), *rows]
        self._bring(part)

    def _op(self, op):
        local = [{} for _ in self.run.ranks]
        for operand in op.inputs:
            for values, mine in zip(local, self._bring(operand), strict=True):
                values[operand.tensor] = mine
        for weight in op.weights:
            self._gather_weight(weight, "forward")
            for values, mine in zip(local, self._weight(weight), strict=True):
                values[weight.tensor] = mine
        made = op.outputs[0]
        waiting = self._waiting(op, made)
        for rank, values in zip(self.run.ranks, local, strict=True):
            values["*first"] = not any(rank[mesh] for mesh in waiting)
        runs = [forward(op, *pair) for pair in zip(self._at(), local, strict=True)]
        results = self._lockstep(op, runs, "forward")
        for operand in op.outputs:
            mine = [values[operand.tensor] for values in results]
            self.held[operand.tensor] = self._spread(operand, mine, waiting)
            self._note(operand)
        self.local[id(op)] = local
        self.made[id(op)] = [values.pop("*made", {}) for values in local]

    def _at(self):
        run = self.run
        return [
            Local(
                lambda axis, r=rank: indices(axis, run.model.sizes, run.placement, r),
                run.model.sizes,
            )
            for rank in run.ranks
        ]

    def _spread(self, operand, mine, waiting):
        """Local arrays in arrays of the whole shape."""
        arrays = []
        for rank, values in zip(self.run.ranks, mine, strict=True):
            whole = np.full(self.run.shape(operand.axes), np.nan)
            whole[np.ix_(*self.run.places(operand.axes, rank))] = values
            arrays.append(whole)
        return Held(arrays, waiting)

    def _waiting(self, op, operand):
        """Mesh axes over which a result, or a gradient, is a sum: they split what it lacks."""
        space = set(op.axes)
        if operand in op.outputs:
            space -= set(op.row_axes)
            if isinstance(op, Lookup):
                space = {*operand.axes, *op.weights[0].axes}
        if operand in op.pattern.biases:
            space = set(op.outputs[0].axes)
        return self.run.split(space - set(operand.axes))

    def _lockstep(self, op, runs, phase):
        """Run an op on all ranks; sums of split rows are made by the collective booked for it."""
        meshes = self.run.split(op.row_axes)
        answers = [None for _ in runs]
        while True:
            asked, results = [], []
            for one, answer in zip(runs, answers, strict=True):
                try:
                    asked.append(one.send(answer))
                except StopIteration as stop:
                    results.append(stop.value)
            if results:
                assert not asked
                return results
            answers = [[values for _, values in sums] for sums in asked]
            if not meshes:
                continue
            (row, *_) = self.booked(f"{op.inputs[0].tensor}.statistics", phase)
            self.rows[phase].remove(row)
            assert self._meshes([row]) == meshes
            for sums in answers:
                self._charged(row, sum(values.size for values in sums), 0)
            answers = [
                [
                    ufunc.reduce([answers[j][place] for j in group])
                    for place, (ufunc, _) in enumerate(asked[0])
                ]
                for group in groups(self.run.ranks, meshes)
            ]

    # Weights.

    def _weight(self, weight):
        tied = weight.tensor.startswith("@")
        name = weight.tensor if tied else f"{self.part.path}.{weight.tensor} {weight.axes}"
        return self.run.local(self.run.random(name, weight.axes), weight.axes)

    def _gather_weight(self, weight, phase):
        """Bring the shards of a weight together before it is read."""
        meshes = self.run.placement.stored_over("weight", weight.axes)
        if meshes:
            mine = self._weight(weight)[0].size
            rows = self.booked(weight.tensor, phase)
            if rows and rows[0].collective.kind == "all-to-all":  # kept as another use cuts it
                shard = Rational(mine, self.run.placement.degree(meshes))
                turn, *rows = rows
                self.rows[phase].remove(turn)
                self._charged(turn, shard, shard)
            assert rows, f"{weight.tensor} is read in {phase} and not gathered"
            self.rows[phase].remove(rows[0])
            assert self._meshes(rows[:1]) == set(meshes)
            self._charged(rows[0], Rational(mine, self.run.placement.degree(meshes)), mine)

    def finish_weight(self, weight, held):
        """Sum a gradient over the ranks that have terms of it.

        Scattered, it is cut as one array whose pieces need not be blocks: every rank keeps the
        whole sum here, and the words of what follows are those of a piece.
        """
        pieces = 1
        for row in self.booked(f"d{weight.tensor}"):
            if row.phase is Phase.STEP or not self._meshes([row]) <= held.waiting:
                continue
            self.rows["backward"].remove(row)
            held = self._summed(held, row, pieces)
            if row.collective.kind == "reduce-scatter":
                pieces = pieces * row.collective.ranks
        assert not held.waiting, f"d{weight.tensor}: not summed over {set(held.waiting)}"
        tied = weight.tensor.startswith("@")
        self._compare("gradients", weight, held, name="tied" if tied else None)

    def returned(self, use, operand, term, first):
        """A term of a tied weight's gradient, cut as the use that keeps the weight cuts it."""
        wanted = self.run.wanted(operand.axes)
        pieces, rows = 1, self.booked(f"d{use.tensor}")
        if has(term, wanted):
            return term
        for row in rows:
            self.rows["backward"].remove(row)
            if row.collective.kind == "reduce-scatter":
                term = self._summed(term, row, pieces)
                pieces = pieces * row.collective.ranks
                continue
            for values in term.arrays:
                self._charged(row, Rational(count(values), pieces), 0)
            arrays = [None for _ in term.arrays]
            for place, group in enumerate(groups(self.run.ranks, self._meshes([row]))):
                members = [np.nan_to_num(term.arrays[j]) for j in group]
                arrays[place] = np.where(wanted[place], np.sum(members, axis=0), np.nan)
            term = Held(arrays, term.waiting)
        if has(term, wanted):
            return term
        # A block of what is kept whole is a term of the sum that the first use waits for.
        cut = self.run.split(use.axes) & first.waiting
        arrays = [
            np.where(mask, np.nan_to_num(values), np.nan)
            for mask, values in zip(wanted, term.arrays, strict=True)
        ]
        return Held(arrays, term.waiting | cut)

    def _summed(self, held, row, pieces):
        meshes, p = self._meshes([row]), row.collective.ranks
        times = {"all-reduce": 2, "reduce-scatter": 1}[row.collective.kind]
        for values in held.arrays:
            sent = times * (p - 1) * Rational(count(values), p * pieces)
            assert row.expr == sent, f"{row.tensor}: charged {row.expr}, sent {sent} words"
        arrays = [
            np.sum([held.arrays[j] for j in group], axis=0)
            for group in groups(self.run.ranks, meshes)
        ]
        return Held(arrays, held.waiting - meshes)

    # Backward.

    def backward(self):
        """Run every op backward, then make the sums of what came from outside."""
        for operand in self.results:
            self._begin(operand)
        for op in reversed(self.ops):
            if isinstance(op, View):
                self._view_back(op)
            else:
                self._op_back(op)
        for operand in self.inputs.values():
            if operand.tensor in self.terms:
                held = self._finish(operand)
                for part, handed in self.handed[operand.tensor]:
                    part.terms[handed.tensor].append(held)

    def _begin(self, operand):
        """The gradient of a result: from later parts, else any values."""
        op = self.producer[operand.tensor]
        needed = any(o.needs_gradient for o in (*op.inputs, *op.weights))
        if operand.tensor in self.terms or operand.role in ("index", "buffer") or not needed:
            return
        whole = self.run.random(f"{self.part.path}.d{operand.tensor}", operand.axes)
        held = self.run.dealt(whole, operand.axes)
        # Of a table that all sequences use, the ranks that split these have terms.
        users = self.run.split(op.axes) - self.run.split(operand.axes)
        if isinstance(op, Lookup) and not self._waiting(op, operand):
            share = 1 / np.prod([int(self.run.placement.degrees[mesh]) for mesh in users])
            held = Held([values * share for values in held.arrays], frozenset(users))
        self.terms[operand.tensor].append(held)

    def added(self, operand, terms):
        """Add the terms of a gradient; what is whole on all ranks of a sum counts once."""
        waiting = frozenset().union(*(term.waiting for term in terms))
        wanted = self.run.wanted(operand.axes)
        arrays = [np.where(mask, 0.0, np.nan) for mask in wanted]
        for term in terms:
            assert has(term, wanted), f"d{operand.tensor}: a rank lacks elements"
            for place, rank in enumerate(self.run.ranks):
                if not any(rank[mesh] for mesh in waiting - term.waiting):
                    arrays[place] = arrays[place] + term.arrays[place]
        return Held(arrays, waiting)

    def _finish(self, operand):
        """Make the sums of a gradient that are booked; a whole one is that of one rank."""
        held = self.added(operand, self.terms.pop(operand.tensor))
        wanted = self.run.wanted(operand.axes)
        rows = self.booked(f"d{operand.tensor}")
        held = self.moved(held, wanted, rows)
        for row in rows:
            self.rows["backward"].remove(row)
        if not held.waiting:
            self._compare("gradients", operand, cropped(held, wanted))
        return held

    def _view_back(self, op):
        whole = op.inputs[0]
        parts = [part for part in op.outputs if part.tensor in self.terms]
        if not parts or whole.constant:
            return
        if op.parts:
            self.terms[whole.tensor].append(self._stacked(op))
            return
        (part,) = parts
        held = self.added(part, self.terms.pop(part.tensor))
        if not held.waiting:
            self._compare("gradients", part, held)
        sizes = self.run.model.sizes
        back = [unviewed(values, whole, part, sizes) for values in held.arrays]
        rows = self.booked(f"d{part.tensor}")
        moved = self.moved(Held(back, held.waiting), self.run.wanted(whole.axes), rows)
        for row in rows:
            self.rows["backward"].remove(row)
        self.terms[whole.tensor].append(moved)

    def _stacked(self, op):
        whole = op.inputs[0]
        place = next(i for i, a in enumerate(whole.axes) if a not in op.outputs[0].axes)
        parts = [self.added(part, self.terms.pop(part.tensor)) for part in op.outputs]
        waiting = frozenset().union(*(part.waiting for part in parts))
        arrays = []
        for i, rank in enumerate(self.run.ranks):
            mine = [
                part.arrays[i] * (not any(rank[mesh] for mesh in waiting - part.waiting))
                for part in parts
            ]
            arrays.append(np.stack(mine, axis=place))
        return Held(arrays, waiting)

    def _op_back(self, op):
        outputs = [o for o in op.outputs if o.tensor in self.terms]
        unread = getattr(op, "function", "") in ("order", "angles")
        if not outputs and not unread:
            return
        held = {o.tensor: self._finish(o) for o in outputs}
        waiting = frozenset().union(*(each.waiting for each in held.values()))
        runs = []
        for place, at in enumerate(self._at()):
            given = {o.tensor: self._dense(held[o.tensor], o.axes)[place] for o in outputs}
            runs.append(backward(op, at, Kept(self, op, place), given))
        results = self._lockstep(op, runs, "backward")
        for place, (operand, _) in enumerate(results[0]):
            if operand.constant:
                continue
            mine = [terms[place][1] for terms in results]
            term = self._spread(operand, mine, self._waiting(op, operand) | waiting)
            if not operand.is_weight:
                self.terms[operand.tensor].append(term)
            elif operand.tensor.startswith("@"):
                self.run.tied.setdefault(operand.tensor, []).append((self, operand, term))
            else:
                self.finish_weight(operand, term)

    # What was saved.

    def note(self, name, axes, copies):
        """Note that backward reads a tensor; one kept in shards is gathered again, once."""
        if name in self.read or (name.startswith("@") and name not in self.producer):
            return
        self.read[name] = (axes, copies)
        again = [row.collective for row in self.gathers.get(name, ())]
        for move in again:
            rows = [row for row in self.booked(name) if row.collective == move]
            assert rows, f"{name} is saved in shards, read and not gathered again"
            self.rows["backward"].remove(rows[0])

    def check(self):
        """Nothing booked is left, and what was read is what is saved."""
        left = [
            f"{row.path} {row.phase} {row.collective.kind} {row.tensor}"
            for rows in self.rows.values()
            for row in rows
            if row.phase is not Phase.STEP
        ]
        assert not left, f"booked and not needed: {left}"
        kept = {}
        for name, (axes, copies) in self.read.items():
            stored = self.stored_as.get(name)
            at, size = (name, axes) if stored is None else (stored.tensor, stored.axes)
            kept[at] = copies * int(
                np.prod([len(p) for p in self.run.places(size, self.run.ranks[0])])
            )
        assert kept == dict(self.saved_rows), f"{self.part.path}: read, and booked as saved, differ"


class Kept:
    """What backward of one op reads on one rank."""

    def __init__(self, part, op, place):
        self._part, self._op, self._place = part, op, place
        self.made = part.made[id(op)][place]

    def __getitem__(self, operand):
        """A weight, or a value of the forward pass, which is noted as read."""
        if operand.is_weight:
            if self._place == 0 and self._part.run.placement.stored:
                self._part._gather_weight(operand, "backward")  # noqa: SLF001 - one class in two
            return self._part._weight(operand)[self._place]  # noqa: SLF001
        self.read(operand.tensor, operand.axes)
        values = self._part.local[id(self._op)][self._place]
        if operand.tensor in values:
            return values[operand.tensor]
        held = self._part.held[operand.tensor]
        return self._part._dense(held, operand.axes)[self._place]  # noqa: SLF001

    def read(self, name, axes, copies=1):
        """Note a tensor as read."""
        self._part.note(name, axes, copies)

    def inside(self, values, made):
        """The same for an op inside a fused group, whose values never touch memory."""
        return Inside(values, made)


class Inside:
    """Values inside a fused group."""

    def __init__(self, values, made):
        self._values, self.made = values, made

    def __getitem__(self, operand):
        return self._values[operand.tensor]

    def read(self, name, axes, copies=1):
        """Nothing: it is computed again."""


def count(values):
    return int((~np.isnan(values)).sum())


def has(held, wanted):
    pairs = zip(held.arrays, wanted, strict=True)
    return all(not np.isnan(values[mask]).any() for values, mask in pairs)


def same(held, wanted):
    pairs = zip(held.arrays, wanted, strict=True)
    return all(np.array_equal(~np.isnan(values), mask) for values, mask in pairs) or all(
        count(values) >= mask.sum() and values.shape != mask.shape
        for values, mask in zip(held.arrays, wanted, strict=True)
    )


def cropped(held, wanted):
    pairs = zip(held.arrays, wanted, strict=True)
    return Held([np.where(mask, values, np.nan) for values, mask in pairs], held.waiting)


# Views to other shapes: axes whose sizes change are joined, cut off, and parted again.


def changed(whole, part, sizes):
    pairs = zip(whole.axes, part.axes, strict=True)
    return [place for place, (old, new) in enumerate(pairs) if sizes[old] != sizes[new]]


def shorter(whole, part, sizes):
    lengths = [int(np.prod([sizes[axis] for axis in o.axes])) for o in (whole, part)]
    return lengths[1] < lengths[0]


def widened(mask, whole, part, sizes):
    """What a rank needs of a tensor of which it takes a part: all of the axes that change."""
    places = changed(whole, part, sizes)
    first, last = places[0], places[-1] + 1
    shape = [int(sizes[axis]) for axis in whole.axes]
    rows = mask.any(axis=tuple(range(first, last)), keepdims=True)
    return np.broadcast_to(rows, shape)


def viewed(values, whole, part, sizes):
    places = changed(whole, part, sizes)
    if not places:
        return values
    first, last = places[0], places[-1] + 1
    new = [int(sizes[axis]) for axis in part.axes]
    flat = values.reshape(*values.shape[:first], -1, *values.shape[last:])
    length = int(np.prod(new[first:last]))
    return np.take(flat, range(length), axis=first).reshape(new)


def unviewed(values, whole, part, sizes):
    """The adjoint: what was cut off has gradient zero."""
    places = changed(whole, part, sizes)
    if not places:
        return values
    first, last = places[0], places[-1] + 1
    old = [int(sizes[axis]) for axis in whole.axes]
    flat = values.reshape(*values.shape[:first], -1, *values.shape[last:])
    missing = int(np.prod(old[first:last])) - flat.shape[first]
    rest = np.take(flat, [0] * missing, axis=first) * 0
    return np.concatenate([flat, rest], axis=first).reshape(old)


def act_out(model, strategy, conventions=WORDS):
    """Run a model under a strategy beside the same on one rank."""
    own = strategy.model(model)
    placement = strategy.placement(own)
    key = (id(own), conventions.name)
    if own is not model or key not in REFERENCES:
        REFERENCES[key] = own, Acted(own, WHOLE, conventions).run()
    return Acted(own, placement, conventions, REFERENCES[key][1]).run()
