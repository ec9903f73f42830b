"""A tape in layers: steps of one kind whose operands are known run as one array operation.

A search prices many small programs at a few hundred points each: calls, not numbers, take its time,
and layers need a tenth of the calls. Every bit is that of the steps one by one.

For example of x = a b, y = a + x, z = c d, both products are one layer and the sum is the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.program.arrays import run_of
from symbolic_cost.program.layering import KINDS, kept_layers, layers_of, made_layers
from symbolic_cost.program.stored import number_of
from symbolic_cost.program.tape import Tape
from symbolic_cost.records import dataclass

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Narrow = NDArray[np.int64 | np.uint16 | np.uint32]

_ARITY = {"select": 3, **dict.fromkeys(("inv", "ceil", "floor", "sqrt", "log2", "exp2"), 1)}
_MOST = 128
"""Points evaluated at a time; fewer stay in a smaller cache, but calls take longer than memory."""


@dataclass(frozen=True, eq=False)
class Layered:
    """Steps by layers; registers are those of inputs, constants and steps, in this order.

    Args:
        inputs: names of the symbols that are needed.
        counts: whether each counts something.
        exact: constants as integers and fractions, which are read when a tape is asked for.
        constants: the same as floats.
        kinds: number in `KINDS` of every layer's operation.
        sizes: steps of every layer.
        operands: registers that steps take, in three rows; 0 where an operation takes fewer. They
            are most of what a search holds: in 16 bits where these suffice, until layers run.
        order: place of every step on the tape, as narrow.
        names: of outputs.
        outputs: group, place in `names` and register of every output, in three rows.
    """

    inputs: tuple[str, ...]
    counts: tuple[bool, ...]
    exact: tuple[int | str | None, ...]
    constants: Floats
    kinds: Places
    sizes: Places
    operands: Narrow
    order: Narrow
    names: tuple[str, ...]
    outputs: Places

    @property
    def first(self) -> int:
        """Register of the first step."""
        return len(self.inputs) + len(self.constants)

    @property
    def moved(self) -> Places:
        """Register on the tape of every register."""
        moved = np.arange(self.first + len(self.order))
        moved[self.first :] = self.first + self.order
        return moved

    @cached_property
    def tape(self) -> Tape:
        """The tape, outputs as "group|name", in the order in which it was recorded."""
        count, moved = len(self.order), self.moved
        kinds: list[str] = [""] * count
        taken: list[tuple[int, ...]] = [()] * count
        layers = np.repeat(self.kinds, self.sizes).tolist()
        for place, kind, three in zip(
            self.order.tolist(), layers, moved[self.operands].T.tolist(), strict=True
        ):
            kinds[place] = KINDS[kind]
            taken[place] = tuple(three[: _ARITY.get(KINDS[kind], 2)])
        masks = [1 << place for place in range(len(self.inputs))] + [0] * len(self.constants)
        for own in taken:
            mask = 0
            for one in own:
                mask |= masks[one]
            masks.append(mask)
        listed = zip(*self.outputs.tolist(), strict=True)
        places = moved.tolist()
        return Tape(
            inputs=self.inputs,
            counts=self.counts,
            constants=tuple(map(number_of, self.exact)),
            steps=tuple(zip(kinds, taken, strict=True)),
            outputs={f"{group}|{self.names[name]}": places[one] for group, name, one in listed},
            masks=tuple(masks),
        )

    def only(self, chosen: NDArray[np.bool_]) -> Layered:
        """Return some of the outputs, with the steps that these need."""
        outputs, first = self.outputs[:, chosen], self.first
        needed = np.zeros(first + len(self.order), dtype=bool)
        needed[outputs[2]] = True
        ends = first + np.cumsum(self.sizes)
        for kind, size, end in zip(self.kinds[::-1], self.sizes[::-1], ends[::-1], strict=True):
            own = needed[end - size : end]
            taken = self.operands[: _ARITY.get(KINDS[kind], 2), end - size - first : end - first]
            needed[taken[:, own]] = True
        places = np.maximum(np.cumsum(needed) - 1, 0)  # 0 where an operation takes fewer
        inside, count = needed[first:], len(self.inputs)
        starts = ends - self.sizes - first
        sizes = np.add.reduceat(inside, starts, dtype=np.int64) if len(starts) else self.sizes
        constants = np.flatnonzero(needed[count:first])
        inputs = np.flatnonzero(needed[:count]).tolist()
        return Layered(
            inputs=tuple(self.inputs[one] for one in inputs),
            counts=tuple(self.counts[one] for one in inputs),
            exact=tuple(self.exact[one] for one in constants.tolist()),
            constants=self.constants[constants],
            kinds=self.kinds[sizes > 0],
            sizes=sizes[sizes > 0],
            operands=places[self.operands[:, inside]].astype(self.operands.dtype),
            order=np.argsort(np.argsort(self.order[inside])).astype(self.order.dtype),
            names=self.names,
            outputs=np.stack([outputs[0], outputs[1], places[outputs[2]]]),
        )

    def run(self, columns: Mapping[str, Floats], count: int) -> Floats:
        """Return the outputs of many points, one in a row.

        Args:
            columns: numbers by input; arrays of one length.
            count: that length.
        """
        results = np.empty((self.outputs.shape[1], count))
        rows = (self.first + len(self.order), *3 * (int(self.sizes.max(initial=0)),))
        with np.errstate(all="ignore"):  # cases that are not chosen
            for start in range(0, count, _MOST):
                stop = min(start + _MOST, count)
                own, *taken = _buffers(rows, stop - start)
                for place, name in enumerate(self.inputs):
                    own[place] = columns[name][start:stop]
                own[len(self.inputs) : self.first] = self.constants[:, None]
                self._fill(own, taken)
                np.take(own, self.outputs[2], 0, results[:, start:stop])
        return results

    def _fill(self, registers: Floats, buffers: Sequence[Floats]) -> None:
        first = end = self.first
        for kind, size in zip(self.kinds.tolist(), self.sizes.tolist(), strict=True):
            start, end = end, end + size
            name = KINDS[kind]
            taken = self.operands[: _ARITY.get(name, 2), start - first : end - first]
            own = [buffer[:size] for buffer in buffers[: len(taken)]]
            for places, buffer in zip(taken, own, strict=True):
                registers.take(places, 0, buffer, "clip")  # which checks nothing, and is fast
            run_of(name, own, registers[start:end])


_OWN = local()


def _buffers(rows: Sequence[int], width: int) -> list[Floats]:
    """Return arrays of so many rows each; those of a thread serve every run."""
    size = sum(rows) * width
    if not hasattr(_OWN, "buffer") or _OWN.buffer.size < size:
        _OWN.buffer = np.empty(size)
    whole = _OWN.buffer[:size].reshape(-1, width)
    ends = np.cumsum(rows).tolist()
    return [whole[end - own : end] for own, end in zip(rows, ends, strict=True)]


def layered(tape: Tape) -> Layered:
    """Return a tape, whose outputs are "group|name", in layers."""
    return read(layers_of(tape))


def cached(about: object, make: Callable[[], Tape]) -> Layered:
    """Return the tape of what is described in layers: from the folder, else made and put there.

    Arguments are those of `made_layers`.
    """
    data = kept_layers(about)
    if data is not None:
        with suppress(ValueError, KeyError, TypeError):
            return read(data)
    return read(made_layers(about, make))


_NARROW = frozenset({"operands", "order"})


def read(data: bytes) -> Layered:
    """Return the layers that bytes hold.

    Raises:
        ValueError: they hold none.
        KeyError: a part is missing.
    """
    head, _, body = data.partition(b"\n")
    told = json.loads(head)
    count = len(told["exact"])
    constants = np.frombuffer(body, "<f8", count).astype(np.float64)
    arrays = dict(_arrays(body[8 * count :], told["width"], told["shapes"]))
    parts: dict[str, Any] = {n: tuple(told[n]) for n in ("inputs", "counts", "exact", "names")}
    own = Layered(constants=constants, **{**parts, **arrays})
    taken = max(int(array.max(initial=0)) for array in (own.operands, own.outputs[2]))
    if int(own.sizes.sum()) != len(own.order) or taken > max(own.first + len(own.order) - 1, 0):
        raise ValueError("no layers of a tape")
    return own


def _arrays(
    body: bytes, width: str, shapes: Mapping[str, list[int]]
) -> Iterator[tuple[str, Places]]:
    start = 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        array = np.frombuffer(body, width, size, start).reshape(shape)
        start += array.nbytes
        yield name, array if name in _NARROW else array.astype(np.int64)
