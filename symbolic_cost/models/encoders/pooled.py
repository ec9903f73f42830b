"""Encoders whose positions are pooled between blocks, and unpooled for what looks at each.

    tokens -> blocks -> half as many positions -> blocks -> ... -> as many again -> blocks -> a head

Axes: as in an encoder; those of the i-th halving end in _i (r_1, l_1, t_1), s_d_i are its
distances and s_m_i those to the positions before.

Source: dai-2020, section 2.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import Flag, auto

from sympy import Expr, Integer, ceiling

from symbolic_cost import symbols
from symbolic_cost.axes import Glossary
from symbolic_cost.layers import pooled_attention
from symbolic_cost.layers.embeddings import Words
from symbolic_cost.layers.heads import Classes, Hidden, Predicted, Take
from symbolic_cost.layers.pooled_attention import PooledAttention, Way
from symbolic_cost.models.build import Fields, Shape, is_size
from symbolic_cost.models.encoders.config import choosing, head_numbers, head_of, headed, running
from symbolic_cost.models.encoders.encoder import (
    ATTENTION,
    MULTIPLE,
    PAIRED,
    SEQUENCE,
    TRUNK,
    Encoder,
    Traits,
)
from symbolic_cost.models.encoders.sizes import Sizes
from symbolic_cost.ops.declare import Model, Op, Operand, Part, Place, pointwise, scope
from symbolic_cost.ops.op import OperandMap
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact

_SUMMED = (SEQUENCE, MULTIPLE)
"""Heads that look at what is pooled."""


class End(Flag):
    """Where stages begin and end."""

    NONE = 0
    QUERIES = auto()
    """Queries alone are pooled in the first layer of a stage, and not its keys."""
    BASE = auto()
    """The encoder ends with the last stage, whatever the head."""


@dataclass(frozen=True)
class Stages:
    """Blocks of as many positions.

    Args:
        sizes: layers of each.
        repeats: how often a layer of each runs.
        after: layers behind them, of all positions.
        ends: what holds of them.
    """

    sizes: tuple[int, ...]
    repeats: tuple[int, ...]
    after: int
    ends: End


@dataclass(frozen=True)
class Pooled(Encoder):
    """An encoder of several stages, each of half as many positions as the one before."""

    stages: Stages = Stages((4, 4, 4), (1, 1, 1), after=2, ends=End.QUERIES)

    def parts(self, layers: Expr, head: str = TRUNK, groups: int = 1) -> tuple[Part, ...]:  # noqa: ARG002
        """Return the parts of the model."""
        stages = tuple(self._stages())
        trunk = (Part("embedding", self.words.ops()), *stages)
        last = len(self.stages.sizes) - 1
        if End.BASE in self.stages.ends or head in _SUMMED:
            tail = [replace(p, ops=retitled(p.ops, _of(last))) for p in self._tail(head)]
        else:
            ends = {"x": self._end(0), "deep": stages[-1].path}
            trunk += (
                Part("unpool", _unpooled(last), takes=ends),
                Part(
                    "after.block",
                    self.block(),
                    Integer(self.stages.after),
                    {"x": "unpool"},
                    Place.BLOCK,
                ),
            )
            tail = list(self._tail(head))
        return (*trunk, *(replace(part, takes={"x": trunk[-1].path}) for part in tail))

    def _end(self, stage: int) -> str:
        """Return the path of the last part of a stage."""
        alone = stage and self.stages.sizes[stage] == 1
        name = f"stage{stage}." if stage else ""
        return f"{name}first" if alone else f"{name}block"

    def _stages(self) -> Iterator[Part]:
        yield Part(
            "block", self._layer(0), Integer(self.stages.sizes[0]), {"x": "embedding"}, Place.BLOCK
        )
        for stage, size in enumerate(self.stages.sizes[1:], 1):
            takes = {"x": self._end(stage - 1)}
            first = f"stage{stage}.first"
            yield Part(first, self._first(stage), Integer(1), takes, Place.BLOCK)
            if size > 1:
                rest = Integer(size - 1)
                path = f"stage{stage}.block"
                yield Part(path, self._layer(stage), rest, {"x": first}, Place.BLOCK)

    def _layer(self, stage: int) -> tuple[Op, ...]:
        """Declare a layer, as often as it runs."""
        return retitled(_again(self.block(), self.block(), self.stages.repeats[stage]), _of(stage))

    def _first(self, stage: int) -> tuple[Op, ...]:
        """Declare the first layer of a stage, on positions that are pooled before."""
        attention = self.attention
        if not isinstance(attention, PooledAttention):
            raise TypeError(attention)
        queries = End.QUERIES in self.stages.ends
        own = replace(attention, way=attention.way | Way.BEYOND) if queries else attention
        outside = {"memory": "x"} if queries else {}
        ops = (
            pointwise("pool", "x[b r_b e] -> pooled[b r e]", "add", laid="r_b"),
            *self.branch.around("attention", own.ops(), "pooled", "middle", **outside),
            *self.branch.around("mlp", self.perceptron.ops(), "middle", "y"),
        )
        before, axes = _of(stage - 1), _of(stage)
        wide = {f"{axis}_b": before.get(axis, axis) for axis in ("r", "l", "t")}
        distances = {"s_d": f"s_m_{stage}"} if queries else {}
        first = retitled(ops, {**axes, **wide, **distances})
        return _again(first, retitled(self.block(), axes), self.stages.repeats[stage])


def _of(stage: int) -> dict[str, str]:
    """Return the axes of positions of a stage, by those of the first."""
    return {axis: f"{axis}_{stage}" for axis in ("r", "l", "t", "s_d")} if stage else {}


def _again(first: tuple[Op, ...], layer: tuple[Op, ...], times: int) -> tuple[Op, ...]:
    """Return the ops of a layer that runs several times in a row, with the same weights."""
    ops: list[Op] = []
    for turn in range(times):
        name, ends = f"turn{turn}", {"x": f"y_{turn - 1}" if turn else "x"}
        ends["y"] = "y" if turn == times - 1 else f"y_{turn}"
        own = scope(name, layer, **ends) if turn else _ending(first, ends["y"])
        ops += (op.mapped(_shared(f"{name}.")) for op in own)
    return tuple(ops)


def _ending(ops: tuple[Op, ...], result: str) -> tuple[Op, ...]:
    return tuple(op.mapped(lambda o: o.renamed(result) if o.tensor == "y" else o) for op in ops)


def _shared(prefix: str) -> OperandMap:
    """Return what makes the weights of a later turn those of the first."""

    def own(operand: Operand) -> Operand:
        name = operand.tensor.removeprefix(prefix)
        return operand.renamed(name) if operand.is_weight else operand

    return own


def _unpooled(stage: int) -> tuple[Op, ...]:
    """Declare what is pooled for every position, beside the first stage's x[b r e]."""
    deep, axes = f"deep[b {_of(stage).get('r', 'r')} e]", "[b r e]"
    if not stage:
        return (pointwise("add", f"x{axes}, {deep} -> y{axes}", "add"),)
    laid = _of(stage)["r"]
    return (
        pointwise("repeat", f"{deep} -> repeated{axes}", "copy", laid=laid),
        pointwise("add", f"x{axes}, repeated{axes} -> y{axes}", "add"),
    )


FUNNEL = Encoder(
    words=Words(tables={}),
    attention=PooledAttention(core=ATTENTION.core),
    pooler=None,
    traits=Traits(
        function="gelu_new",
        dropouts=("attention_dropout", "hidden_dropout"),
        classes={PAIRED: 1, MULTIPLE: 1},
    ),
    source="dai-2020",
).headed(MASKED=Predicted(), PAIRED=Classes(Take.EACH, hidden=Hidden("gelu")))


def funnel(fields: Fields, shape: Shape) -> Model:
    """Declare a Funnel: its positions are halved from stage to stage."""
    family, stages = choosing(fields, running(fields, FUNNEL)), _stages(fields)
    kind = fields.text("attention_type", "relative_shift", ("relative_shift", "factorized"))
    fields.text("pooling_type", "mean", ("mean", "max"))
    head, numbers = head_of(fields, family), _numbers(fields)
    odd = numbers["e"] % 2 == 1  # waves are sines and cosines, half each
    fields.require(holds=not odd, problem="an even width is accepted", name="hidden_size")
    way = Way.FACTORIZED if kind == "factorized" else Way.NONE
    family = headed(fields, family.attended(way=way), head)
    hidden = Hidden(family.perceptron.function)
    family = family.headed(PAIRED=Classes(Take.EACH, hidden=hidden))
    numbers |= head_numbers(fields, family, head)
    own = _lengths(fields, len(stages.sizes), shape)
    fields.refuse()
    known = {**pooled_attention.AXES, **_glossary(len(stages.sizes))}
    sizes = Sizes(q=symbols.q, tables={**own, "two": 2}, known=known)
    model = Pooled(**vars(family), stages=stages).declare(fields.family, shape, sizes, head)
    return replace(model, bindings=numbers)


def _numbers(fields: Fields) -> dict[str, int]:
    heads, d = fields.size("num_attention_heads", 12), fields.size("d_head", 64)
    fields.require(holds=d > 1, problem="heads of one feature are not declared", name="d_head")
    numbers = {"e": fields.size("hidden_size", 768), "f": fields.size("d_inner", 3072), "q": d}
    return numbers | {"h": heads, "k": heads, "V": fields.size("vocab_size", 30522)}


def _stages(fields: Fields) -> Stages:
    sizes = _counts(fields, "block_sizes", (4, 4, 4))
    repeats = _counts(fields, "block_repeats", (1,) * len(sizes))
    problem = f"{len(repeats)} numbers for {len(sizes)} stages of block_sizes"
    fields.require(holds=len(repeats) == len(sizes), problem=problem, name="block_repeats")
    few = max(repeats) <= _MOST
    fields.require(holds=few, problem=f"numbers up to {_MOST} are accepted", name="block_repeats")
    queries = End.QUERIES if fields.flag("pool_q_only", default=True) else End.NONE
    return Stages(
        sizes,
        repeats,
        after=fields.size("num_decoder_layers", 2),
        ends=queries | (End.BASE if fields.head.endswith("BaseModel") else End.NONE),
    )


def _counts(fields: Fields, name: str, usual: tuple[int, ...]) -> tuple[int, ...]:
    items = fields.items(name, usual)
    fine = bool(items) and all(map(is_size, items)) and len(items) <= _MOST
    problem = f"a list of up to {_MOST} positive integers is accepted"
    fields.require(holds=fine, problem=problem, name=name)
    return items if fine else usual


_MOST = 16
"""Stages, and turns of a layer, beyond any model."""


def _lengths(fields: Fields, stages: int, shape: Shape) -> dict[str, Expr | int]:
    """Return the sizes of axes of positions, by stage."""
    apart = fields.flag("separate_cls", default=True)
    cut = fields.flag("truncate_seq", default=True)
    at: Expr = shape.l
    own: dict[str, Expr | int] = {"s_d": 2 * at}
    for stage in range(1, stages):
        least = 2 if apart else 1
        if at.is_Integer and at <= least:
            problem = f"{shape.l} tokens are too few to be pooled {stages - 1} times"
            fields.note("block_sizes", problem)
        before, at = at, exact(ceiling((at + (1 if apart and not cut else 0)) / 2))
        own |= dict.fromkeys((f"r_{stage}", f"l_{stage}", f"t_{stage}"), at)
        own |= {f"s_d_{stage}": 2 * at, f"s_m_{stage}": 2 * at + before}
    return own


def _glossary(stages: int) -> Glossary:
    """Return the roles of the positions of all stages."""
    plain = pooled_attention.AXES
    return {
        f"{axis}_{stage}": replace(plain[f"{axis}_b"], name=f"{axis}_{stage}")
        for stage in range(1, stages)
        for axis in ("r", "l", "t")
    }
