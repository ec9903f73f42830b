"""Terms of the FLOP of a token: every weight, the products of positions, and what states cost."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from sympy import Add, Expr, Integer, Mul, Rational

from symbolic_cost.axes import At, Role
from symbolic_cost.conventions.answers import CAUSAL, CAUSAL_WINDOW
from symbolic_cost.conventions.per_token import TokenConventions
from symbolic_cost.conventions.token_questions import (
    Causal,
    Core,
    Perceptron,
    Routed,
    Tied,
    Weights,
    Width,
    Window,
)
from symbolic_cost.errors import InputError
from symbolic_cost.extrema import Min
from symbolic_cost.grouping import grouped
from symbolic_cost.models.count import ROUTED
from symbolic_cost.models.token_flop.states import (
    Held,
    as_wide,
    is_perceptron,
    state_flop,
    states_of,
    weight_kind,
)
from symbolic_cost.ops.declare import Model, Op, Operand, Part
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Term:
    """One part of the FLOP of a token.

    Args:
        name: class of weights, or "attention" or "softmax".
        answer: of the conventions, which makes it what it is.
        flop: per token, in the model's symbols; zero if it is not counted.
        paths: of the ops that it comes from.
    """

    name: str
    answer: str
    flop: Expr
    paths: tuple[str, ...]


def with_assumed_heads(model: Model, answers: TokenConventions) -> Model:
    """Return the model whose heads are as wide as the conventions take them to be."""
    kind, _ = model.work
    if kind != "tokens" or not model.axes:
        raise InputError(
            f"model {model.name!r} works off {kind}: frameworks and papers count FLOP per token of "
            f"models of tokens alone; formula flops {model.name} --conventions model-flop has "
            "those of a microbatch"
        )
    if answers.routed is Routed.REFUSED and model.placed(ROUTED):
        raise InputError(
            f"model {model.name!r}: the conventions have no formula for experts in models of "
            f"family {model.family}"
        )
    model = as_wide(model, answers)
    if answers.heads is Width.DECLARED:
        return model
    widths: dict[str, Expr] = {}
    for _, op in _products(model):
        heads = _size(model, _of(model, op.result.axes, Role.HEAD, Role.GROUP))
        if op.result.axes and set(op.pairs) <= set(op.result.axes):
            for axis in _of(model, op.axes, Role.WIDTH):
                widths[axis] = _hidden(model) / heads
    return replace(model, sizes={**model.sizes, **widths})


def _products(model: Model) -> Iterator[tuple[Part, Einsum]]:
    for part in model.parts:
        for op in (stage for whole in part.ops for stage in whole.stages):
            if isinstance(op, Einsum) and op.pairs:
                yield part, op


def _of(model: Model, names: Iterable[str], *roles: Role) -> tuple[str, ...]:
    return tuple(name for name in names if model.axes[name].role in roles)


def _size(model: Model, names: Iterable[str]) -> Expr:
    return Mul(*(model.sizes[name] for name in names))


def _hidden(model: Model) -> Expr:
    wide = [a for a in model.axis_names if model.axes[a].role is Role.HIDDEN]
    if not wide:
        raise InputError(
            f"model {model.name!r}: no axis was found to be hidden, which is asked for"
        )
    return model.sizes[wide[0]]


@dataclass(frozen=True)
class TokenTerms:
    """Terms of a model under the answers for its family."""

    model: Model
    answers: TokenConventions

    def terms(self) -> Iterator[Term]:
        """Yield every class of weights that the model has, and its attention."""
        found = grouped((kind, (path, flop)) for kind, path, flop in self._weights())
        for kind in Weights:
            if kind in found:
                places = tuple(dict.fromkeys(path for path, _ in found[kind]))
                flop = Add(*(flop for _, flop in found[kind]))
                said = self._deciding_answer(kind) if flop else f"not counted: {kind.meaning}"
                yield Term(kind.value, said, flop, places)
        yield from self._attention()
        yield from self._states()

    def _deciding_answer(self, kind: Weights) -> str:
        if not self.answers.counts(kind):
            return f"not counted: {kind.meaning}"
        if kind is Weights.EXPERTS:
            return f"{self.answers.routed.value} experts"
        if kind in (Weights.TABLE, Weights.HEAD) and self._is_tied:
            return f"tied: {self.answers.tied.value}"
        if kind is Weights.HEAD_NORMS and self.answers.head_norm is Width.HIDDEN:
            return "as wide as the embedding"
        return f"{2 * self.answers.passes} per weight"

    @property
    def _is_tied(self) -> bool:
        uses = [w.tensor for _, op in self._ops() for w in op.weights if w.tensor.startswith("@")]
        return len(uses) != len(set(uses))

    def _ops(self) -> Iterator[tuple[Part, Op]]:
        for part in self.model.parts:
            for whole in part.ops:
                yield from ((part, stage) for stage in whole.stages)

    def _weights(self) -> Iterator[tuple[Weights, str, Expr]]:
        seen: set[str] = set()
        _, tokens = self.model.work
        for part, op in self._ops():
            for weight in op.weights:
                kind = weight_kind(
                    self.model, self._recurrent_states.get(part.path, ()), op, weight
                )
                again = self.answers.tied is Tied.TABLE and weight.tensor in seen
                counts = self._counts(part, kind) and not again
                seen |= {weight.tensor} if weight.tensor.startswith("@") else set()
                times = Mul(part.repeat, self._met(op), 1 / tokens, self._gated(part, op))
                flop = Mul(2 * self.answers.passes, times, self._elements(weight, kind))
                yield kind, f"{part.path}.{op.path}", flop if counts else Integer(0)

    def _counts(self, part: Part, kind: Weights) -> bool:
        """Tell whether a kind counts; convolutions may count beside some states alone."""
        if kind is Weights.CONVOLUTIONS:
            kinds = {one.kind for one in self._recurrent_states.get(part.path, ()) if one.kind}
            rules = [rule for of, rule in self.answers.states.items() if of in kinds]
            if any(rule.convolutions == "not counted" for rule in rules):
                return False
        return self.answers.counts(kind)

    @cached_property
    def _recurrent_states(self) -> Mapping[str, tuple[Held, ...]]:
        return states_of(self.model)

    def _gated(self, part: Part, op: Op) -> Expr:
        if self.answers.perceptron is Perceptron.DECLARED or not is_perceptron(self.model, op):
            return Integer(1)
        layer = op.path.rpartition(".")[0]
        stages = (stage for whole in part.ops for stage in whole.stages)
        products = [o for o in stages if o.path.rpartition(".")[0] == layer]
        return Rational(3, sum(is_perceptron(self.model, one) for one in products))

    def _elements(self, weight: Operand, kind: Weights) -> Expr:
        if kind is Weights.HEAD_NORMS and self.answers.head_norm is Width.HIDDEN:
            return _hidden(self.model)
        return _size(self.model, weight.axes)

    def _met(self, op: Op) -> Expr:
        """Return how many tokens a weight meets; of experts each meets those sent to it.

        For example of E experts, E_t for a token: b l E_t / E tokens meet one expert. A pooler
        that takes the first token of a sequence meets b.
        """
        routed = {axis.name for axis in self.model.placed(ROUTED)}
        experts = any(routed & set(weight.axes) for weight in op.weights)
        if experts and self.answers.routed is Routed.ALL:
            return self.model.work[1]
        batch = _of(self.model, op.axes, Role.BATCH)
        positions = _of(self.model, op.axes, Role.TOKEN)
        positions = positions or _of(self.model, op.axes, Role.KEY_TOKEN)
        rows = _size(self.model, batch) if batch else self.model.size(_BATCH)
        return Mul(rows, *(self.model.sizes[name] for name in positions[:1]))

    def _attention(self) -> Iterator[Term]:
        """Yield the FLOP of scores and weighted sums, and of the softmax between."""
        products, scores, paths = [], [], []
        _, tokens = self.model.work
        for part, op in _products(self.model):
            pairs = self._pairs(op)
            inner = [a for a in op.axes if a not in op.pairs and a != op.window]
            rows = _size(self.model, _of(self.model, inner, Role.BATCH))
            width = _size(self.model, (a for a in inner if self.model.axes[a].role != Role.BATCH))
            if self.answers.core is Core.HIDDEN:
                width = _hidden(self.model)
            times = Mul(part.repeat, rows, pairs, 1 / tokens)
            products.append(Mul(2 * self.answers.passes, times, width))
            paths.append(f"{part.path}.{op.path}")
            if set(op.pairs) <= set(op.result.axes):
                heads = _size(self.model, _of(self.model, inner, Role.HEAD, Role.GROUP))
                scores.append(Mul(self.answers.softmax * self.answers.passes, times, heads))
        if not paths:
            return
        counted = self.answers.core is not Core.NONE
        flop = Add(*products) if counted else Integer(0)
        yield Term("attention", self._pairs_said(), flop, tuple(paths))
        if self.answers.softmax:
            said = f"{self.answers.softmax} per score and pass"
            yield Term("softmax", said, Add(*scores), tuple(paths))

    def _states(self) -> Iterator[Term]:
        parts = [
            (part, one)
            for part in self.model.parts
            for one in self._recurrent_states.get(part.path, ())
        ]
        charged = [state_flop(self.model, one, self.answers) for _, one in parts]
        flop = (
            Mul(self.answers.passes, part.repeat, each)
            for (part, _), (each, _) in zip(parts, charged, strict=True)
        )
        if parts:
            said = "; ".join(dict.fromkeys(answer for _, answer in charged))
            paths = tuple(path for _, one in parts for path in one.paths)
            yield Term("states", said, Add(*flop), paths)

    def _pairs(self, op: Einsum) -> Expr:
        """Return the pairs of a query and a key that count, of one sequence."""
        queries, keys = (self.model.sizes[axis] for axis in op.pairs)
        window = self.model.sizes[op.window] if op.window else None
        exactly = self.answers.causal is Causal.EXACT
        if window is None or self.answers.window is Window.IGNORED or not op.masked:
            if op.masked and exactly:
                return CAUSAL(queries, keys)
            return self._halved(op, queries * keys)
        if self.answers.window is Window.EXACT or exactly:
            return CAUSAL_WINDOW(queries, keys, window)
        return self._halved(op, queries * Min(keys, window))

    def _halved(self, op: Einsum, pairs: Expr) -> Expr:
        return pairs / 2 if op.masked and self.answers.causal is Causal.HALF else pairs

    def _pairs_said(self) -> str:
        answers = self.answers
        if answers.core is Core.NONE:
            return "not counted: products of queries, keys and values"
        wide = "" if answers.core is Core.DECLARED else ", heads together as wide as the embedding"
        windows = any(op.window for _, op in _products(self.model))
        window = f", window {answers.window.value}" if windows else ""
        masked = any(op.masked for _, op in _products(self.model))
        pairs = f"{answers.causal.value} pairs" if masked else "full pairs, no mask"
        return f"{pairs}{window}{wide}"


_BATCH = At(Role.BATCH, ("",))
