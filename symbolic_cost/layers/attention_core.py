"""The attention core: scores, softmax, weighted sum.

Axes: b sequences, l query positions, t key/value positions (or other names of both), h heads; where
they are grouped k key/value heads and g query heads of one key/value head; d head width of queries
and keys, `value` head width of values.
"""

from __future__ import annotations

from enum import Flag, StrEnum, auto

from symbolic_cost.ops.declare import Op, axes, einsum, pointwise, scope, softmax
from symbolic_cost.ops.fused import fused
from symbolic_cost.records import dataclass, replace

AXES = axes(
    "b batch, l token query, t key-token, near key-token sliding, window whole, h head, k head, "
    "g group, d width, d_v width, r_kv latent"
)


class Core(StrEnum):
    """How the attention core runs."""

    EAGER = "op by op"
    SINGLE = "op by op, all of it in single precision"
    FLASH = "one fused kernel that recomputes the scores"
    SDPA = "the same; a window is a mask by sequence, with keys and values for every query head"


class Step(Flag):
    """What an attention core does besides its two products and the softmax."""

    NONE = 0
    MASK = auto()
    """A query sees the keys up to its own position only."""
    DROP = auto()
    """Probabilities are dropped out."""
    CAST = auto()
    """The softmax runs in single precision."""
    SINK = auto()
    """Every query head has a learned logit besides the keys'."""
    CAP = auto()
    """Scores are squeezed by a tanh."""
    ARRANGE = auto()
    """A fused kernel's result is copied to the order that the output projection takes."""
    WHOLE = auto()
    """Values are a part of one projection, which a fused kernel that saves them holds whole."""
    COPY = auto()
    """Unless fused, keys and values are copied to every query head first."""


@dataclass(frozen=True)
class Positions:
    """Names of the axes of positions.

    Args:
        residual: of the residual stream.
        key: of keys and values.
        kept: of keys and values in the cache.
        window: axis whose size is how many keys a query sees at most, if any.
    """

    residual: str = "r"
    query: str = "l"
    key: str = "t"
    kept: str = "m"
    window: str = ""


FULL = Positions()
"""Every query meets all keys, as far as the mask allows."""

SLIDING = Positions(key="near", kept="m_near", window="window")
"""A query meets the keys of its window."""


@dataclass(frozen=True)
class Heads:
    """Axes of heads.

    Args:
        key: of keys and values; empty where all heads share them.
    """

    query: str
    key: str


PLAIN = Heads("h", "h")
"""Every head has keys and values of its own."""

GROUPED = Heads("k g", "k")
"""The g heads of a group share keys and values."""


_OWN = ("keys", "values")
"""Keys and values that are not copied to every query head."""


@dataclass(frozen=True)
class AttentionCore:
    """Attention from q, keys and values to context.

    Args:
        steps: what it does besides.
        position: tensor of biases by pair of positions and head that is added to scores, if any.
        chosen: tensor that says by pair of positions which scores remain, if any.
        apart: axis of heads that have choices of their own; empty where all share one.
        mask: operand of terms that are made of values and added to scores, if any, such as
            "decay[b t r_d]"; its last axis lies along the heads.
    """

    kernel: Core = Core.EAGER
    steps: Step = Step.MASK | Step.DROP
    position: str = ""
    chosen: str = ""
    apart: str = ""
    mask: str = ""

    def ops(
        self, heads: Heads = PLAIN, at: Positions = FULL, *, value: str = "d"
    ) -> tuple[Op, ...]:
        """Declare the core from q[b l h d], keys[b t h d] and values[b t h value].

        Args:
            heads: axes of heads, as they are at hand.
            at: axes of positions.
            value: axis of the width of values.
        """
        eager = self.kernel not in {Core.FLASH, Core.SDPA}
        masked = self.kernel is Core.SDPA and at.window
        copied = (eager or masked) and Step.COPY in self.steps and heads.key != heads.query
        names = ("many_keys", "many_values") if copied else _OWN
        have = heads.query if copied else heads.key
        shape = _Shape(heads.query, have, at, value, names)
        if not eager:
            return (*(_copies(heads, at, value) if copied else ()), *self._arranged(shape))
        ops = self._single(shape) if self.kernel is Core.SINGLE else self._ops(shape)
        outside = {
            name: name
            for name in ("q", *names, "context", self.position, self.chosen, self._mask)
            if name
        }
        core = (replace(op, core="core") for op in scope("core", ops, **outside))
        before = _copies(heads, at, value) if copied else ()
        return (*(replace(op, core="core") for op in before), *core)

    def _arranged(self, shape: _Shape) -> tuple[Op, ...]:
        """Declare the fused kernel and, if its result is not in order, the copy that is."""
        if Step.ARRANGE not in self.steps:
            return (self._fused(shape),)
        unordered = replace(shape, result="unordered")
        copy = pointwise("arrange", f"{unordered.context} -> {shape.context}", "copy")
        return (self._fused(unordered), copy)

    def _fused(self, shape: _Shape) -> Op:
        ops = self._ops(shape)
        border = ", ".join((*shape.operands, *((self.mask,) if self.mask else ())))
        sinks = f", *softmax.sinks[{shape.query}]" if Step.SINK in self.steps else ""
        rows = f"b {shape.at.query}"
        projected = f"projected_q[{rows} {shape.query} d], projected_k[{rows} {shape.key} d]"
        statistic = f"logsumexp[b {shape.at.query} {shape.query}]:statistic"
        masked = self.kernel is Core.SDPA and shape.at.window
        mask = f", mask[{rows} {shape.at.key}]" if masked else ""
        whole = Step.WHOLE in self.steps and shape.names == _OWN
        kernel = fused(
            "core",
            f"{border}{sinks} -> {shape.context}",
            ops,
            saves=f"{border}, {shape.context}, {statistic}{mask}",
            recompute=tuple(op.path for op in ops if op.path != "attend"),
            holds=projected if whole else "",
        )
        return replace(kernel, core="core")

    def _single(self, shape: _Shape) -> tuple[Op, ...]:
        """Declare the core between a cast to single precision and one back."""
        plain, wide = shape.operands, replace(shape, precision=":single")
        names = (operand.partition("[")[0] for operand in plain)
        return (
            *(
                pointwise(f"cast_{name}", f"{operand} -> {cast}", "copy")
                for name, operand, cast in zip(names, plain, wide.operands, strict=True)
            ),
            *self._ops(wide),
            pointwise("cast", f"{wide.context} -> {shape.context}", "copy"),
        )

    def _ops(self, shape: _Shape) -> tuple[Op, ...]:
        q, keys, values = shape.operands
        square, steps = shape.square, self.steps
        pairs, window = f"{shape.at.query} {shape.at.key}", shape.at.window
        masked = Step.MASK in steps
        sinks = f", *sinks[{shape.query}]" if Step.SINK in steps else ""
        scored = (
            "biased"
            if self.position or self.chosen or self.mask
            else "capped"
            if Step.CAP in steps
            else "scores"
        )
        weights = "dropped" if Step.DROP in steps else "p"
        return (
            einsum("scores", f"{q}, {keys} -> scores{square}", pairs, masked=masked, window=window),
            *self._bias(shape),
            *self._cap(shape),
            softmax(
                "softmax",
                f"{scored}{square}{sinks} -> p{square}",
                row=shape.at.key,
                single=Step.CAST in steps and not shape.precision,
            ),
            *self._dropout(shape),
            einsum(
                "attend",
                f"{weights}{square}, {values} -> {shape.context}",
                pairs,
                masked=masked,
                window=window,
            ),
        )

    def _bias(self, shape: _Shape) -> tuple[Op, ...]:
        if self.chosen:
            axes = f"b {self.apart} {shape.at.query} {shape.at.key}"
            remains = f"!{self.chosen}[{' '.join(axes.split())}]:index"
            pattern = f"scores{shape.square}, {remains} -> biased{shape.square}"
            return (pointwise("choose", pattern, "add"),)
        if self.mask:
            pattern = f"scores{shape.square}, {self.mask} -> biased{shape.square}"
            laid = self.mask.rstrip("]").rpartition(" ")[2]
            return (pointwise("bias", pattern, "add", laid=laid),)
        if not self.position:
            return ()
        # Constant here: its gradient is summed over all blocks where it is made.
        bias = f"!{self.position}[{shape.at.query} {shape.at.key} {shape.query}]"
        pattern = f"scores{shape.square}, {bias} -> biased{shape.square}"
        return (pointwise("bias", pattern, "add"),)

    @property
    def _mask(self) -> str:
        """Name of the tensor of the mask that is made of values."""
        return self.mask.partition("[")[0]

    def _cap(self, shape: _Shape) -> tuple[Op, ...]:
        if Step.CAP not in self.steps:
            return ()
        pattern = f"scores{shape.square} -> capped{shape.square}"
        return (pointwise("cap", pattern, "softcap"),)

    def _dropout(self, shape: _Shape) -> tuple[Op, ...]:
        if Step.DROP not in self.steps:
            return ()
        function = "dropout_noise" if shape.precision else "dropout"
        return (pointwise("dropout", f"p{shape.square} -> dropped{shape.square}", function),)


@dataclass(frozen=True)
class _Shape:
    """Names and axes of what goes in and comes out.

    Args:
        key: axes of the heads of keys and values at hand.
        at: axes of positions.
        value: axis of the width of values.
        precision: ":single" for copies in single precision.
    """

    query: str
    key: str
    at: Positions
    value: str
    names: tuple[str, str]
    precision: str = ""
    result: str = "context"

    @property
    def operands(self) -> tuple[str, str, str]:
        keys, values = self.names
        return (
            self._written("q", f"{self.at.query} {self.query} d"),
            self._written(keys, f"{self.at.key} {self.key} d"),
            self._written(values, f"{self.at.key} {self.key} {self.value}"),
        )

    @property
    def context(self) -> str:
        return self._written(self.result, f"{self.at.query} {self.query} {self.value}")

    @property
    def square(self) -> str:
        return f"[b {self.query} {self.at.query} {self.at.key}]{self.precision}"

    def _written(self, name: str, axes: str) -> str:
        prefix = "single_" if self.precision else ""
        return f"{prefix}{name}[b {axes}]{self.precision}"


def _copies(heads: Heads, at: Positions, value: str) -> tuple[Op, ...]:
    return tuple(
        pointwise(
            f"copy_{name}",
            f"{name}[b {at.key} {heads.key} {width}] -> "
            f"many_{name}[b {at.key} {heads.query} {width}]",
            "copy",
        )
        for name, width in (("keys", "d"), ("values", value))
    )
