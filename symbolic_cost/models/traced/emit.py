"""Acts as drafts of ops of this library."""

from collections.abc import Sequence

from symbolic_cost.axes import Role
from symbolic_cost.models.traced.acts import Act, Nature, Tensor, Use, put
from symbolic_cost.models.traced.forest import Apart, Dim, Dims
from symbolic_cost.models.traced.placing import Draft, Operand, Placing, block_of

_BESIDE = frozenset({Role.BATCH, Role.TOKEN, Role.KEY_TOKEN})

_LONGEST_CORE = 12
"""Acts from scores to the sum of values, at most."""


class Emitter(Placing):
    """Writes acts as drafts."""

    def run(self) -> list[Draft]:
        """Write all acts."""
        for place, act in enumerate(self.trace.acts):
            self._segment = block_of(act.path)
            if act.core and act.pairs is not None:
                self._before(act, self.trace.acts[place + 1 : place + _LONGEST_CORE])
            getattr(self, f"_{act.kind}")(act)
        return self.drafts

    def _before(self, scores: Act, following: Sequence[Act]) -> None:
        """Place the values of attention before its scores, so that no view stands between."""
        attend = next((a for a in following if a.core == scores.core and a.pairs is not None), None)
        if attend is not None:
            inside = self._inside(attend)
            for use in attend.uses[1:]:
                if use.ref.tensor in self._own:
                    self._operand(use, attend, inside=inside)

    def _out(self, tensor: Tensor, *, inside: bool) -> tuple[str, ...]:
        return (
            *self.names(tensor.dims, inside=inside),
            *(self.name(a, inside=inside) for a in tensor.units),
        )

    def _einsum(self, act: Act) -> None:
        """Write a product; an axis that is summed and made gets another name as the result's."""
        inside, bias, (out,) = self._inside(act), act.options["bias"], act.outs
        other = self._twice(act)
        operands = [
            self._operand(Use(use.ref, _replaced(use.want, names, other)), act, inside=inside)
            for use, names in zip(act.uses, act.options["letters"], strict=False)
        ]
        dims = _replaced(out.dims, act.options["result"], other)
        if bias:
            operands.append((act.uses[-1].ref.tensor, self.names((dims[-1],), inside=inside)))
        product = Tensor(dims, nature=out.nature, units=out.units) if other else out
        made = (product, self._out(product, inside=inside))
        both = [self.names((dim,), inside=inside) for dim in act.pairs or ()]
        pairs = tuple(one[0] for one in both) if all(len(one) == 1 for one in both) else ()
        taken = [axis for use in act.uses for axis in use.ref.tensor.units]
        self._add(
            "einsum", act.path, operands, [made], act.core, bias=bias, pairs=pairs,
            masked=act.options["masked"], units=[self.name(a, inside=inside) for a in taken],
        )  # fmt: skip
        if other:
            official = self._out(out, inside=inside)
            self._add("view", f"{act.path}.renamed", [made], [(out, official)])
            self._scattered(out, official, act.path)

    def _twice(self, act: Act) -> dict[str, Dim]:
        """Return second axes, by letter, for what a product has in its result and sums as well."""
        made = act.options["result"]
        summed = {
            axis
            for use, names in zip(act.uses, act.options["letters"], strict=False)
            for letter, dim in zip(names, use.want, strict=True)
            if letter not in made
            for axis in self._flat(dim)
        }
        return {
            letter: tuple(map(self._another, self._flat(dim)))
            for letter, dim in zip(made, act.outs[0].dims, strict=True)
            if not summed.isdisjoint(self._flat(dim))
        }

    def _pointwise(self, act: Act) -> None:
        # Keys that all heads share have no heads, and are rotated by the table of those that have.
        inside = self._inside(act) or act.function == "rotary"
        operands = [self._operand(use, act, inside=inside) for use in act.uses]
        if act.function == "rotary":
            self._angles([one for one in operands if one[0].constant])
        result = self._out(act.outs[0], inside=inside)
        row = self.names((act.row,), inside=inside)
        taken = dict.fromkeys(axis for _, axes in operands for axis in axes)
        gone = tuple(axis for axis in taken if axis not in result and axis not in row)
        role = {"sums": gone} if act.function == "sum" else {"laid": gone}
        made = (act.outs[0], result)
        about = {"function": act.function, "row": row, **role, **act.options}
        self._add("pointwise", act.path, operands, [made], act.core, **about)

    def _angles(self, tables: Sequence[Operand]) -> None:
        """Write the op that makes the tables of a rotation, which all layers share."""
        if not tables or tables[0][0].shared or isinstance(self.trace.forest, Apart):
            return
        number = sum(draft.path.endswith(".angles") for draft in self.drafts)
        for (tensor, _), name in zip(tables, ("@cos", "@sin"), strict=False):
            tensor.shared = name + (str(number + 1) if number else "")
        places = Tensor((), nature=Nature.CONSTANT | Nature.INDICES)
        positions = tuple(n for n in tables[0][1] if self.axes[n][0].role in _BESIDE)
        draft = Draft(
            "pointwise", f"rotation{number or ''}.angles", ((places, positions),), (),
            tuple(tables), {"function": "angles"},
        )  # fmt: skip
        self.drafts.insert(0, draft)

    def loss(self, tensor: Tensor) -> bool:
        """Write the cross-entropy of a result over the vocabulary; tell whether it is one."""
        axes = self._own.get(tensor, ())
        rows = tuple(name for name in axes if self.axes[name][0].role is Role.VOCABULARY)
        if len(rows) != 1 or not tensor.floating:
            return False
        left = tuple(name for name in axes if name not in rows)
        targets = Tensor((), nature=Nature.CONSTANT | Nature.GIVEN | Nature.INDICES)
        self._add(
            "pointwise", "loss.loss", [(tensor, axes), (targets, left)], [(Tensor(()), left)],
            function="cross_entropy", row=rows,
        )  # fmt: skip
        return True

    def _lookup(self, act: Act) -> None:
        inside = self._inside(act)
        operands = [(use.ref.tensor, self.names(use.want, inside=inside)) for use in act.uses]
        made = (act.outs[0], self._out(act.outs[0], inside=inside))
        self._add("lookup", act.path, operands, [made])

    def _view(self, act: Act) -> None:
        inside = self._inside(act)
        (use,) = act.uses
        tensor, axes = self._operand(use, act, inside=inside)
        old, new = act.options["from"], act.options["to"]
        before, after = (self.name(self._flat((axis,))[0], inside=inside) for axis in (old, new))
        after_axes = tuple(after if axis == before else axis for axis in axes)
        if len(self._flat((old,))) > 1 or before not in axes or len(self._flat((new,))) > 1:
            made = (act.outs[0], self._out(act.outs[0], inside=inside))
            self._copy(act.path, (tensor, axes), made)
        else:
            self._add("view", act.path, [(tensor, axes)], [(act.outs[0], after_axes)])

    def _detach(self, act: Act) -> None:
        taken = self._operand(act.uses[0], act, inside=self._inside(act))
        self._add("view", act.path, [taken], [(act.outs[0], taken[1])])

    def _split(self, act: Act) -> None:
        inside = self._inside(act)
        (use,) = act.uses
        tensor, axes = self._operand(use, act, inside=inside)
        lost = self.names((act.options["lost"],), inside=inside)
        rest = tuple(axis for axis in axes if axis not in lost)
        if len(lost) != 1 or lost[0] not in axes:
            for out in act.outs:
                self._copy(act.path, (tensor, axes), (out, self._out(out, inside=inside)))
        else:
            self._add("split", act.path, [(tensor, axes)], [(out, rest) for out in act.outs])

    def _conv(self, act: Act) -> None:
        kernel, place = act.uses[1], act.options["made"]
        summed, outer = set(self._flat(act.options["summed"])), self._flat(act.outs[0].dims[place])
        other = tuple(self._another(axis) if axis in summed else axis for axis in outer)
        column = 1 if act.options["turned"] else 0
        renamed = dict(zip(outer, other, strict=True))
        want = tuple(
            tuple(renamed.get(axis, axis) for axis in self._flat(dim)) if i == column else dim
            for i, dim in enumerate(kernel.want)
        )
        operands = [self._operand(act.uses[0], act, inside=False)]
        operands.append((kernel.ref.tensor, self.names(want, inside=False)))
        if act.options["bias"]:
            operands.append((act.uses[2].ref.tensor, self.names((other,), inside=False)))
        out = act.outs[0]
        maker = "transposed_conv" if act.options["turned"] else "conv"
        again = other != outer
        product = Tensor(put(out.dims, place, other), nature=out.nature) if again else out
        made = (product, self._out(product, inside=False))
        self._add(maker, act.path, operands, [made], bias=act.options["bias"])
        if again:
            official = self._out(out, inside=False)
            self._add("view", f"{act.path}.renamed", [made], [(out, official)])

    def _pool(self, act: Act) -> None:
        tensor, axes = self._operand(act.uses[0], act, inside=False)
        window = self.names((act.options["window"],), inside=False)
        result = self._out(act.outs[0], inside=False)
        taken, made = (tensor, axes), (act.outs[0], result)
        self._add("pool", act.path, [taken], [made], function=act.function, window=window)


def _replaced(dims: Dims, letters: str, other: dict[str, Dim]) -> Dims:
    return tuple(other.get(letter, dim) for letter, dim in zip(letters, dims, strict=True))
