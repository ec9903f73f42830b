"""Many ranks in one process: every rank holds arrays and sends words, which are counted.

Collectives are the textbook ring algorithms, step by step, between ranks of one mesh axis (or of
several, joined by "+"). Nothing here knows about the package.
"""

from collections import Counter
from itertools import product
from math import prod

import numpy as np


class Ranks:
    """Ranks at the points of a mesh, and the words that each of them has sent.

    Args:
        mesh: ranks by mesh axis.
    """

    def __init__(self, **mesh):
        self.mesh = mesh
        self.points = [
            dict(zip(mesh, point, strict=True)) for point in product(*map(range, mesh.values()))
        ]
        self.all = range(len(self.points))
        self.sent = [Counter() for _ in self.all]
        self.phase = "forward"

    def each(self, function):
        """Compute something on every rank."""
        return [function(rank) for rank in self.all]

    def at(self, rank, axes):
        """Position of a rank in its group along some mesh axes, and the size of the group."""
        index, size = 0, 1
        for axis in axes.split("+"):
            index += size * self.points[rank][axis]
            size *= self.mesh[axis]
        return index, size

    def groups(self, axes):
        """Ranks of each group along some mesh axes, in order."""
        names = axes.split("+")
        found = {}
        for rank in self.all:
            rest = tuple(value for name, value in self.points[rank].items() if name not in names)
            found.setdefault(rest, []).append(rank)
        return [sorted(group, key=lambda rank: self.at(rank, axes)[0]) for group in found.values()]

    def cut(self, array, dim, rank, axes):
        """The block of an array that belongs to a rank."""
        index, size = self.at(rank, axes)
        return np.split(array, size, axis=dim)[index].copy()

    def _send(self, rank, axes, array):
        name = "+".join(axis for axis in axes.split("+") if self.mesh[axis] > 1)
        self.sent[rank][self.phase, name] += array.size
        return array.copy()

    def all_gather(self, values, axes, dim):
        """Ring: every rank passes on what it received last."""
        result = [None] * len(values)
        for group in self.groups(axes):
            size = len(group)
            have = {rank: {i: values[rank]} for i, rank in enumerate(group)}
            for step in range(size - 1):
                moving = [
                    ((i - step) % size, self._send(rank, axes, have[rank][(i - step) % size]))
                    for i, rank in enumerate(group)
                ]
                for i, (block, array) in enumerate(moving):
                    have[group[(i + 1) % size]][block] = array
            for rank in group:
                result[rank] = np.concatenate([have[rank][i] for i in range(size)], axis=dim)
        return result

    def reduce_scatter(self, values, axes, dim):
        """Ring: a block collects the terms of all ranks on its way home."""
        result = [None] * len(values)
        for group in self.groups(axes):
            size = len(group)
            blocks = {rank: np.split(values[rank], size, axis=dim) for rank in group}
            for step in range(size - 1):
                moving = [
                    (
                        (i - step - 1) % size,
                        self._send(rank, axes, blocks[rank][(i - step - 1) % size]),
                    )
                    for i, rank in enumerate(group)
                ]
                for i, (block, array) in enumerate(moving):
                    target = group[(i + 1) % size]
                    blocks[target][block] = blocks[target][block] + array
            for i, rank in enumerate(group):
                result[rank] = blocks[rank][i]
        return result

    def all_reduce(self, values, axes):
        """Reduce-scatter and all-gather of the flat array."""
        shape = values[0].shape
        flat = self.reduce_scatter([value.reshape(-1) for value in values], axes, 0)
        return [value.reshape(shape) for value in self.all_gather(flat, axes, 0)]

    def all_to_all(self, values, axes, scatter, gather):
        """Every rank sends every other its block along `scatter`; blocks join along `gather`."""
        result = [None] * len(values)
        for group in self.groups(axes):
            blocks = {rank: np.split(values[rank], len(group), axis=scatter) for rank in group}
            for i, rank in enumerate(group):
                arrived = [
                    blocks[rank][i] if other == rank else self._send(other, axes, blocks[other][i])
                    for other in group
                ]
                result[rank] = np.concatenate(arrived, axis=gather)
        return result

    def broadcast(self, values, axes, root):
        """Chain from the root through the group."""
        result = [None] * len(values)
        for group in self.groups(axes):
            array = values[group[root]]
            for hop in range(len(group)):
                rank = group[(root + hop) % len(group)]
                result[rank] = array
                if hop < len(group) - 1:
                    array = self._send(rank, axes, array)
        return result

    def reduce(self, values, axes, root):
        """Chain through the group that ends at the root; None elsewhere."""
        result = [None] * len(values)
        for group in self.groups(axes):
            total = 0
            for hop in range(1, len(group) + 1):
                rank = group[(root + hop) % len(group)]
                total = total + values[rank]
                if hop < len(group):
                    total = self._send(rank, axes, total)
            result[group[root]] = total
        return result

    def pass_on(self, values, axes):
        """Every rank sends to the next of its ring."""
        result = [None] * len(values)
        for group in self.groups(axes):
            for i, rank in enumerate(group):
                result[group[(i + 1) % len(group)]] = self._send(rank, axes, values[rank])
        return result

    def words(self):
        """Words sent by a rank, by phase and mesh axes; the same for all ranks."""
        counts = [Counter({key: n for key, n in sent.items() if n}) for sent in self.sent]
        assert all(count == counts[0] for count in counts), "ranks send differently"
        return dict(counts[0])


def full(parts, ranks, axes_of_dims):
    """The whole array from the shards of all ranks; equal where several hold the same block."""
    sizes = [prod(ranks.mesh[a] for a in axes.split("+")) if axes else 1 for axes in axes_of_dims]
    shape = [n * size for n, size in zip(parts[0].shape, sizes, strict=True)]
    whole = np.full(shape, np.nan)
    for rank, part in enumerate(parts):
        starts = [
            ranks.at(rank, axes)[0] * n if axes else 0
            for axes, n in zip(axes_of_dims, part.shape, strict=True)
        ]
        block = tuple(slice(start, start + n) for start, n in zip(starts, part.shape, strict=True))
        there = whole[block]
        assert np.isnan(there).all() or np.allclose(there, part), "ranks disagree"
        whole[block] = part
    return whole
