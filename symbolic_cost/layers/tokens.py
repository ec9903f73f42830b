"""What stands before and after the blocks of a decoder.

Axes: b sequences, l and r positions, v vocabulary, p learned positions, e embedding, w width of
the token table where it is not the embedding's, n_z classes, one a single position.
"""

from enum import Flag, StrEnum, auto

from symbolic_cost.axes import axes
from symbolic_cost.layers.chain import Step, chain
from symbolic_cost.layers.heads import Hidden, hidden_layer
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, cross_entropy, dropout, einsum, lookup, pointwise, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, v vocabulary, p whole, e hidden, w latent, "
    "n_z whole, one whole"
)


class Entry(Flag):
    """What happens to embeddings."""

    NONE = 0
    SCALE = auto()
    """They are multiplied by a constant."""
    POSITION = auto()
    """Learned positions are added."""
    COUNTED = auto()
    """Positions are counted for every sequence apart, as its padding begins where it may."""
    DROP = auto()
    """They are dropped out."""
    COMPUTED = auto()
    """Positions that are computed are added."""


class Exit(Flag):
    """What happens to logits."""

    NONE = 0
    BIAS = auto()
    """The vocabulary has a bias."""
    CAP = auto()
    """They are squeezed by a tanh."""
    LOSS = auto()
    """The cross-entropy follows."""


@dataclass(frozen=True)
class Tokens:
    """Embedding from ids to x[b r e], or another result.

    Args:
        width: axis of the width of the token table; "w" is projected to e.
        steps: what happens to embeddings.
        norm: of the sum, or None.
    """

    width: str = "e"
    steps: Entry = Entry.NONE
    norm: Norm | None = None

    def ops(self, result: str = "x") -> tuple[Op, ...]:
        """Declare the layer; the token table is shared with a tied output head."""
        rows = "b r" if Entry.COUNTED in self.steps else "r"
        places = lookup("position", f"!places[{rows}]:index, *table[p e] -> positions[{rows} e]")
        token, *rest = chain("ids", self._steps(), result)
        return (token, *((places,) if Entry.POSITION in self.steps else ()), *rest)

    def _steps(self) -> list[Step]:
        width, norm = self.width, self.norm
        rows = "b r" if Entry.COUNTED in self.steps else "r"
        steps: list[Step] = [
            lambda x, y: lookup("token", f"!{x}[b l]:index, *@token[v {width}] -> {y}[b l {width}]")
        ]
        if width != "e":
            steps.append(
                lambda x, y: einsum("project", f"{x}[b l {width}], *w[{width} e] -> {y}[b l e]")
            )
        steps.append(lambda x, y: view("scatter", f"{x}[b l e] -> {y}[b r e]"))
        if Entry.SCALE in self.steps:
            steps.append(lambda x, y: pointwise("scale", f"{x}[b r e] -> {y}[b r e]", "scale"))
        if Entry.POSITION in self.steps:
            steps.append(
                lambda x, y: pointwise(
                    "add", f"{x}[b r e], positions[{rows} e] -> {y}[b r e]", "add"
                )
            )
        if Entry.COMPUTED in self.steps:
            waves = "!waves[r e]"
            steps.append(lambda x, y: pointwise("add", f"{x}[b r e], {waves} -> {y}[b r e]", "add"))
        if norm is not None:
            steps.append(lambda x, y: norm.op("norm", f"{x}[b r e]", f"{y}[b r e]"))
        if Entry.DROP in self.steps:
            steps.append(lambda x, y: dropout("dropout", f"{x}[b r e] -> {y}[b r e]"))
        return steps


class Judged(StrEnum):
    """What the loss of classes is of."""

    LAST = "the last position of a sequence, though all are computed"
    EACH = "each position"
    MEAN = "the mean of all positions, of which alone scores are computed"


@dataclass(frozen=True)
class Scores:
    """Classes from x[b r e] to scores[b l n_z], and their loss, in place of logits.

    Args:
        judged: what the loss is of.
        biased: whether the product is.
        width: axis of the width of the token table; "w" is projected from e.
        steps: the loss, or nothing.
        hidden: layer before them, or None.
    """

    judged: Judged = Judged.LAST
    biased: bool = False
    width: str = "e"
    steps: Exit = Exit.LOSS
    hidden: Hidden | None = None

    def ops(self) -> tuple[Op, ...]:
        width, bias = self.width, " + *bias[n_z]" if self.biased else ""
        steps: list[Step] = []
        before, start = _transformed(self.hidden)
        if width != "e":
            steps.append(
                lambda x, y: einsum("project", f"{x}[b r e], *w[e {width}] -> {y}[b r {width}]")
            )
        # Few classes: positions are judged where they rest, so that sp divides them.
        mean, at = self.judged is Judged.MEAN, "r"
        if mean:
            at, pooled = "one", f"{{}}[b r {width}] -> {{}}[b one {width}]"
            steps.append(lambda x, y: pointwise("mean", pooled.format(x, y), "sum", sums="r"))
        steps.append(
            lambda x, y: einsum(
                "scores", f"{x}[b {at} {width}], *w[{width} n_z]{bias} -> {y}[b {at} n_z]"
            )
        )
        if not mean:
            steps.append(lambda x, y: view("gather", f"{x}[b r n_z] -> {y}[b l n_z]"))
        rows = "b l" if self.judged is Judged.EACH else "b one"
        if self.judged is Judged.LAST:
            steps.append(lambda x, y: view("last", f"{x}[b l n_z] -> {y}[b one n_z]"))
        loss = cross_entropy(
            "loss", f"judged[{rows} n_z], !targets[{rows}]:index -> loss[{rows}]", row="n_z"
        )
        last = (loss,) if Exit.LOSS in self.steps else ()
        return (*before, *chain(start, steps, "judged"), *last)


def _transformed(layer: Hidden | None) -> tuple[tuple[Op, ...], str]:
    if layer is None:
        return (), "x"
    transformed = "transformed[b r n_e]"
    hidden = hidden_layer("transform", layer, "x[b r e]", transformed)
    return (*hidden, view("stream", f"{transformed} -> stream[b r e]")), "stream"


@dataclass(frozen=True)
class Logits:
    """Output head from x[b r e] to logits[b l v], and the loss.

    Args:
        weight: "@token" if tied, "@head" if shared by several heads, else its own.
        width: axis of the width of the token table; "w" is projected from e.
        steps: what happens to logits.
        hidden: layer before them, or None.
    """

    weight: str = "@token"
    width: str = "e"
    steps: Exit = Exit.LOSS
    hidden: Hidden | None = None

    def ops(self) -> tuple[Op, ...]:
        loss = "logits[b l v], !targets[b l]:index -> loss[b l]"
        last = (cross_entropy("loss", loss, row="v"),) if Exit.LOSS in self.steps else ()
        before, start = _transformed(self.hidden)
        return (*before, *chain(start, self._steps(), "logits"), *last)

    def _steps(self) -> list[Step]:
        width, bias = self.width, " + *bias[v]" if Exit.BIAS in self.steps else ""
        weight = f"*{self.weight}[v {width}]"
        steps: list[Step] = [lambda x, y: view("gather", f"{x}[b r e] -> {y}[b l e]")]
        if width != "e":
            steps.append(
                lambda x, y: einsum("project", f"{x}[b l e], *w[e {width}] -> {y}[b l {width}]")
            )
        steps.append(
            lambda x, y: einsum("logits", f"{x}[b l {width}], {weight}{bias} -> {y}[b l v]")
        )
        if Exit.CAP in self.steps:
            steps.append(lambda x, y: pointwise("cap", f"{x}[b l v] -> {y}[b l v]", "softcap"))
        return steps
