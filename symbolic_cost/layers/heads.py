"""Heads of encoders and decoders: tokens behind a hidden layer, classes of a sequence or a token.

Axes: b sequences, r and l positions, e embedding, w width of a hidden layer, v vocabulary, z
classes, one a single position.
"""

from __future__ import annotations

from enum import Flag, StrEnum, auto

from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, einsum, scope, stored, unread, view
from symbolic_cost.ops.elementwise import cross_entropy, pointwise
from symbolic_cost.records import dataclass, replace

AXES = axes(
    "b batch, r token residual, l token query, e hidden, w hidden, w_t latent, v vocabulary, "
    "w_a hidden, z whole, one whole, n_x whole, sides whole"
)


class Take(StrEnum):
    """What of a sequence a head sees."""

    FIRST = "the first position"
    MEAN = "the mean of all positions"
    EACH = "each position"
    BOTH = "the first position and the mean of the others"


@dataclass(frozen=True)
class Hidden:
    """A hidden layer of a head.

    Args:
        function: the activation function; none if empty.
        biased: whether the product is.
        norm: after the activation, or None.
    """

    function: str = "tanh"
    biased: bool = True
    norm: Norm | None = None


class Output(Flag):
    """What a product with the vocabulary has."""

    NONE = 0
    TIE = auto()
    """The weight is the token table."""
    BIAS = auto()
    """The vocabulary has one."""
    SINGLE = auto()
    """The loss keeps logits in single precision."""
    CAP = auto()
    """Logits are squeezed by a tanh."""
    SPARE = auto()
    """A second bias is stored beside the one that is added."""


@dataclass(frozen=True)
class Predicted:
    """Tokens from x[b r e] to logits[b l v], and the loss.

    Args:
        hidden: before the logits, or None.
        width: axis of what the vocabulary is multiplied with: that of the token table.
        output: what that product has.
    """

    hidden: Hidden | None = None
    width: str = "e"
    output: Output = Output.TIE | Output.BIAS

    def ops(self) -> tuple[Op, ...]:
        weight = f"*{'@token' if Output.TIE in self.output else 'w'}[v {self.width}]"
        bias = " + *bias[v]" if Output.BIAS in self.output else ""
        capped = Output.CAP in self.output
        result = "large" if capped else "logits"
        cap = pointwise("cap", "large[b l v] -> logits[b l v]", "softcap")
        loss = "logits[b l v], !targets[b l]:index -> loss[b l]"
        return (
            *self._hidden(),
            einsum("logits", f"normed[b l {self.width}], {weight}{bias} -> {result}[b l v]"),
            *((cap,) if capped else ()),
            cross_entropy("loss", loss, row="v", single=Output.SINGLE in self.output),
            *((stored("spare", bias="v"),) if Output.SPARE in self.output else ()),
        )

    def having(self, part: Output, *, on: bool) -> Predicted:
        """Return the head with or without a part of its product."""
        return replace(self, output=self.output | part if on else self.output & ~part)

    def _hidden(self) -> tuple[Op, ...]:
        """Declare what the logits take; a hidden layer runs where positions rest."""
        if self.hidden is None:
            return (view("gather", "x[b r e] -> normed[b l e]"),)
        # A table as wide as the stream has an axis of its own here: the product sums over e.
        wide = "w" if self.width == "e" else self.width
        return (
            *hidden_layer("transform", self.hidden, "x[b r e]", f"y[b r {wide}]", "act"),
            view("gather", f"y[b r {wide}] -> normed[b l {self.width}]"),
        )


@dataclass(frozen=True)
class Classes:
    """Classes from x[b r e] to logits of sequences or tokens, and the loss.

    Args:
        take: what of a sequence it sees.
        before: norm of all positions, or None.
        hidden: layer before the classes, or None.
        after: norm of what is taken, or None.
    """

    take: Take = Take.FIRST
    before: Norm | None = None
    hidden: Hidden | None = None
    after: Norm | None = None

    def ops(self) -> tuple[Op, ...]:
        stream, ops = "x", []
        if self.before is not None:
            ops.append(self.before.op("norm", "x[b r e]", "normed[b r e]"))
            stream = "normed"
        rows = "b l" if self.take is Take.EACH else "b one"
        ops += _selected(self.take, stream)
        at, width = "taken", "e"
        if self.after is not None:
            ops.append(self.after.op("norm_taken", f"taken[{rows} e]", f"fine[{rows} e]", row="e"))
            at = "fine"
        if self.hidden is not None:
            ops += hidden_layer("dense", self.hidden, f"{at}[{rows} e]", f"pooled[{rows} w]")
            at, width = "pooled", "w"
        taken = f"{at}[{rows} {width}]"
        if self.take is Take.BOTH:
            return (*ops, *_first_and_mean(stream, taken))
        return (*ops, *classifier("classes", taken))


def _first_and_mean(stream: str, taken: str) -> tuple[Op, ...]:
    """Declare classes of a first position and of the mean of the others, side by side."""
    return (
        pointwise("mean", f"{stream}[b r e] -> mean[b one e]", "sum", sums="r"),
        einsum("classes", f"{taken}, *w[e z] + *bias[z] -> from_first[b one z]"),
        einsum("classes_mean", "mean[b one e], *w[e z] -> from_mean[b one z]"),
        pointwise("join", "from_first[b one z], from_mean[b one z] -> logits[b one z]", "add"),
        _loss("b one"),
    )


def _loss(rows: str, target: str = "targets") -> Op:
    loss = f"logits[{rows} z], !{target}[{rows}]:index -> loss[{rows}]"
    return cross_entropy("loss", loss, row="z", single=False)


@dataclass(frozen=True)
class Boxes:
    """Classes and boxes of the n_x further tokens of x[b r e], each behind two hidden layers."""

    hidden = None

    def ops(self) -> tuple[Op, ...]:
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            pointwise("take", "full[b l e] -> found[b n_x e]", "copy", laid="l"),
            *self._branch("class", "z"),
            *self._branch("box", "sides"),
        )

    def _branch(self, name: str, width: str) -> tuple[Op, ...]:
        rows = "b n_x"
        return (
            einsum(f"{name}1", f"found[{rows} e], *w[e w] + *bias[w] -> {name}_u[{rows} w]"),
            pointwise(f"{name}_act1", f"{name}_u[{rows} w] -> {name}_a[{rows} w]", "relu"),
            einsum(f"{name}2", f"{name}_a[{rows} w], *w[w e] + *bias[e] -> {name}_v[{rows} e]"),
            pointwise(f"{name}_act2", f"{name}_v[{rows} e] -> {name}_b[{rows} e]", "relu"),
            einsum(
                f"{name}3",
                f"{name}_b[{rows} e], *w[e {width}] + *bias[{width}] -> {name}[{rows} {width}]",
            ),
        )


@dataclass(frozen=True)
class Projected:
    """Features of the first position of x[b r e], brought to the width w_t of others.

    Args:
        hidden: layer before, or None.
        norm: of what is taken, or None.
        biased: whether the product is.
        take: the first position, or each, as ColBERT compares them.
    """

    hidden: Hidden | None = None
    norm: Norm | None = None
    biased: bool = False
    take: Take = Take.FIRST

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer; weights of a norm are those that the trunk stores."""
        norm = (
            ()
            if self.norm is None
            else (self.norm.op("norm", "taken[b one e]", "fine[b one e]", row="e"),)
        )
        at = "taken" if self.norm is None else "fine"
        weights = "*w[e w_t] + *bias[w_t]" if self.biased else "*w[e w_t]"
        rows = "b l" if self.take is Take.EACH else "b one"
        product = einsum("projection", f"{at}[{rows} e], {weights} -> features[{rows} w_t]")
        return (*_selected(self.take, "x"), *norm, product)


@dataclass(frozen=True)
class Averaged:
    """Classes of the mean of all positions of x[b r e], each brought to a width w_t before."""

    hidden: Hidden | None = None

    def ops(self) -> tuple[Op, ...]:
        return (
            einsum("projection", "x[b r e], *w[e w_t] + *bias[w_t] -> narrow[b r w_t]"),
            pointwise("mean", "narrow[b r w_t] -> taken[b one w_t]", "sum", sums="r"),
            *classifier("classes", "taken[b one w_t]"),
        )


@dataclass(frozen=True)
class Cells:
    """Logits of tokens of x[b r e] as cells and as parts of columns, and classes of the whole.

    As TAPAS answers (Herzig and others, 2020, section 3).

    Args:
        classes: axis of the classes, behind the pooler; without any it runs for nothing.
    """

    classes: str = "z"

    hidden = None

    def ops(self) -> tuple[Op, ...]:
        pooled = (
            *_selected(Take.FIRST, "x"),
            *hidden_layer("dense", Hidden(), "taken[b one e]", "pooled[b one w]"),
        )
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *(einsum(name, f"full[b l e], *w[e] -> {name}[b l]") for name in ("cells", "columns")),
            stored("kept", cells_bias="one", columns_bias="one"),
            *(pooled if self.classes else unread(pooled)),
            *(classifier("classes", "pooled[b one w]") if self.classes else ()),
        )


@dataclass(frozen=True)
class Asked:
    """Starts and ends of an answer in x[b r e], by what stands in the place of the question.

    As Splinter answers (Ram and others, 2021, section 3.2). Axes: w_a features of an answer.
    """

    hidden: Hidden | None = None

    def ops(self) -> tuple[Op, ...]:
        own = Hidden("gelu", norm=Norm.LAYER)
        ends = (
            *scope(
                "question", hidden_layer("dense", own, "x[b one e]", "y[b one w]"), x="x", y="q"
            ),
            *scope(
                "answer",
                hidden_layer("dense", own, "full[b l e]", "y[b l w_a]"),
                full="full",
                y="a",
            ),
            einsum("map", "q[b one w], *w[w w_a] -> m[b one w_a]"),
            einsum("logits", "m[b one w_a], a[b l w_a] -> logits[b one l]"),
        )
        return (
            view("first", "x[b r e] -> taken[b one e]"),
            view("gather", "x[b r e] -> full[b l e]"),
            *(op for end in ("start", "end") for op in scope(end, ends, x="taken", full="full")),
        )


@dataclass(frozen=True)
class Taught:
    """Classes of the class token and of a token that a teacher trains, and their mean."""

    hidden: Hidden | None = None

    def ops(self) -> tuple[Op, ...]:
        return (
            *_selected(Take.FIRST, "x"),
            einsum("classes", "taken[b one e], *w[e z] + *bias[z] -> own[b one z]"),
            view("gather", "x[b r e] -> full[b l e]"),
            pointwise("take", "full[b l e] -> second[b n_x e]", "copy", laid="l"),
            einsum("distilled", "second[b n_x e], *w[e z] + *bias[z] -> taught[b n_x z]"),
            pointwise(
                "mean", "own[b one z], taught[b n_x z] -> logits[b one z]", "add", sums="n_x"
            ),
            _loss("b one"),
        )


def classifier(name: str, taken: str, *, target: str = "targets") -> tuple[Op, ...]:
    """Declare the classes z of what is taken, as in "pooled[b one w]", and their loss."""
    tensor, _, inside = taken.removesuffix("]").partition("[")
    *rows, width = inside.split()
    at = " ".join(rows)
    return (
        einsum(name, f"{tensor}[{inside}], *w[{width} z] + *bias[z] -> logits[{at} z]"),
        _loss(at, target),
    )


def hidden_layer(
    name: str, layer: Hidden, taken: str, result: str, act: str = "activation"
) -> tuple[Op, ...]:
    """Declare a hidden layer from "first[b one e]" to "pooled[b one w]"."""
    rows, _, old = taken.partition("[")[2].removesuffix("]").rpartition(" ")
    new = result.removesuffix("]").rpartition(" ")[2]
    bias = f" + *bias[{new}]" if layer.biased else ""
    steps = [*((act,) if layer.function else ()), *(("norm",) if layer.norm is not None else ())]
    tensors = [f"u{i}[{rows} {new}]" for i in range(len(steps))] + [result]
    ops: list[Op] = [einsum(name, f"{taken}, *w[{old} {new}]{bias} -> {tensors[0]}")]
    for step, x, y in zip(steps, tensors, tensors[1:], strict=False):
        if step == act:
            ops.append(pointwise(step, f"{x} -> {y}", layer.function))
        elif layer.norm is not None:
            ops.append(layer.norm.op(step, x, y, row=new))
    return tuple(ops)


def _selected(take: Take, stream: str) -> tuple[Op, ...]:
    if take is Take.EACH:
        return (view("gather", f"{stream}[b r e] -> taken[b l e]"),)
    if take in {Take.FIRST, Take.BOTH}:
        return (view("first", f"{stream}[b r e] -> taken[b one e]"),)
    return (pointwise("mean", f"{stream}[b r e] -> taken[b one e]", "sum", sums="r"),)
