"""Decoders: one declaration, assembled from parts that differ by family.

    tokens -> blocks of attention and perceptron -> norm -> logits

Blocks of one kind are one part with a repeat count, so depth and experts cost nothing to declare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from sympy import Expr

from symbolic_cost.axes import axes, glossary
from symbolic_cost.layers import core, gated, grouped, latent, mlp, moe, rotary, tokens
from symbolic_cost.layers.chain import Step, chain
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.rotary import angles
from symbolic_cost.layers.tokens import Logits, Tokens
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import dropout, pointwise
from symbolic_cost.ops.graph import Model, Part, scope
from symbolic_cost.ops.op import Op

AXES = glossary(
    core.AXES,
    gated.AXES,
    grouped.AXES,
    latent.AXES,
    mlp.AXES,
    moe.AXES,
    rotary.AXES,
    tokens.AXES,
    axes("n_e hidden"),
)


class Layer(Protocol):
    """What maps x[b r e] to y[b r e]."""

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""


class Placing(StrEnum):
    """Where the norms of a residual branch stand."""

    PRE = "before the layer"
    POST = "after the residual sum"
    SANDWICH = "before and after the layer"
    RESULT = "after the layer"


@dataclass(frozen=True)
class Block:
    """A kind of block and how often it occurs.

    Args:
        name: of the kind; empty if there is only one.
        attention: maps x[b r e] to y[b r e].
        mlp: the same.
        count: of blocks.
    """

    name: str
    attention: Layer
    mlp: Layer
    count: Expr

    @property
    def path(self) -> str:
        """Path of the part; its last segment is what recomputation goes by."""
        return f"{self.name}.block" if self.name else "block"


@dataclass(frozen=True)
class Decoder:
    """A decoder.

    Args:
        name: of the model.
        sizes: by axis.
        tokens: the embedding.
        blocks: kinds of block.
        norm: kind of all norms over the embedding.
        placing: of the norms of a branch.
        parallel_norms: norms of a block whose branches run side by side; 0 if they do not.
        dropout: whether branches are dropped out.
        rotated: axis of the rotated width; empty without rotation.
        final_norm: whether a norm follows the blocks.
        head: the output head, or None.
        predicted: further tokens predicted, each by one more block.
    """

    name: str
    sizes: Mapping[str, Expr]
    tokens: Tokens
    blocks: tuple[Block, ...]
    norm: Norm = Norm.RMS
    placing: Placing = Placing.PRE
    parallel_norms: int = 0
    dropout: bool = False
    rotated: str = ""
    final_norm: bool = True
    head: Logits | None = None
    predicted: Expr | int = 0

    def model(self) -> Model:
        """Declare the model."""
        rotation = (Part("rotation", (angles(self.rotated),)),) if self.rotated else ()
        blocks = tuple(Part(kind.path, self.block(kind), kind.count) for kind in self.blocks)
        return Model(
            self.name,
            (
                Part("embedding", self.tokens.ops()),
                *rotation,
                *blocks,
                *self._head(),
                *self._predictions(),
            ),
            self.sizes,
            padded=("v",),
            means=("z",),
            axes=AXES,
        )

    def block(self, kind: Block) -> tuple[Op, ...]:
        """Declare one block from x[b r e] to y[b r e]."""
        if self.parallel_norms:
            return self._parallel(kind)
        return (
            *self._branch("attention", kind.attention, "x", "middle"),
            *self._branch("mlp", kind.mlp, "middle", "y"),
        )

    def _branch(self, path: str, layer: Layer, x: str, y: str) -> tuple[Op, ...]:
        """Declare a residual branch and its norms."""
        before = self.placing in (Placing.PRE, Placing.SANDWICH)
        taken = f"{path}_normed" if before else x
        summed = f"{path}_summed" if self.placing is Placing.POST else y
        steps: list[Step] = []
        if self.placing in (Placing.SANDWICH, Placing.RESULT):
            steps.append(lambda a, b: self._norm("norm_after", a, b))
        if self.dropout:
            steps.append(lambda a, b: dropout("dropout", f"{a}[b r e] -> {b}[b r e]"))
        steps.append(
            lambda a, b: pointwise("residual", f"x[b r e], {a}[b r e] -> {b}[b r e]", "add")
        )
        last = (self._norm("norm_after", "sum", "y"),) if self.placing is Placing.POST else ()
        return (
            *(scope(path, (self._norm("norm", "x", "y"),), x=x, y=taken) if before else ()),
            *scope(path, layer.ops(), x=taken, y=f"{path}_branch"),
            *scope(
                path, chain("branch", steps, "summed"), x=x, branch=f"{path}_branch", summed=summed
            ),
            *scope(path, last, sum=summed, y=y),
        )

    def _parallel(self, kind: Block) -> tuple[Op, ...]:
        """Declare a block whose two branches read the same x."""
        shared = self.parallel_norms == 1
        second = "attention_normed" if shared else "mlp_normed"
        norm = (self._norm("norm", "x", "y"),)
        return (
            *scope("attention", norm, x="x", y="attention_normed"),
            *self._side("attention", kind.attention, "attention_normed", "attended"),
            *(() if shared else scope("mlp", norm, x="x", y=second)),
            *self._side("mlp", kind.mlp, second, "processed"),
            pointwise("join", "attended[b r e], processed[b r e] -> joined[b r e]", "add"),
            pointwise("residual", "x[b r e], joined[b r e] -> y[b r e]", "add"),
        )

    def _side(self, path: str, layer: Layer, x: str, y: str) -> tuple[Op, ...]:
        """Declare one of two branches side by side."""
        if not self.dropout:
            return scope(path, layer.ops(), x=x, y=y)
        drop = dropout("dropout", "branch[b r e] -> y[b r e]")
        return (
            *scope(path, layer.ops(), x=x, y=f"{path}_branch"),
            *scope(path, (drop,), branch=f"{path}_branch", y=y),
        )

    def _norm(self, name: str, x: str, y: str) -> Op:
        return self.norm.op(name, f"{x}[b r e]", f"{y}[b r e]")

    def _head(self) -> tuple[Part, ...]:
        norm = scope("norm", (self._norm("norm", "x", "y"),), x="x", y="normed")
        tensor = "normed" if self.final_norm else "x"
        logits = scope("output", self.head.ops(), x=tensor) if self.head else ()
        ops = (*(norm if self.final_norm else ()), *logits)
        return (Part("head", ops),) if ops else ()

    def _predictions(self) -> tuple[Part, ...]:
        """Declare the blocks that predict further tokens from a token and the last state."""
        if self.predicted == 0:
            return ()
        join = (
            self._norm("norm_token", "token", "normed_token"),
            self._norm("norm_state", "state", "normed_state"),
            einsum("project_token", "normed_token[b r e], *w[e n_e] -> from_token[b r n_e]"),
            einsum("project_state", "normed_state[b r e], *w[e n_e] -> from_state[b r n_e]"),
            pointwise("join", "from_token[b r n_e], from_state[b r n_e] -> joined[b r n_e]", "add"),
        )
        return (
            Part("prediction.join", (*self.tokens.ops("token"), *join), self.predicted),
            *(
                replace(part, path=f"prediction.{part.path}", repeat=self.predicted)
                for part in (Part("block", self.block(self.blocks[-1])), *self._head())
            ),
        )
