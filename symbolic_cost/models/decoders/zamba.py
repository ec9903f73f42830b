"""Zamba: blocks of attention that layers share stand before some of its state-space layers.

A shared block sees the stream beside the embeddings; what each of its uses adds to it are a
projection of its own and, in Zamba 2, products of low rank (Glorioso et al. 2024). Axes: as in a
decoder; e_g embeddings beside the stream, e_c both, r_a rank of what a use adds, r_q that to
queries.
"""

from symbolic_cost.layers.attention import Attention, Bias, CacheKind, Projection
from symbolic_cost.layers.attention_core import GROUPED
from symbolic_cost.models.decoders.decoder import CORE, Decoder, path_of
from symbolic_cost.models.decoders.kinds import Kind
from symbolic_cost.models.decoders.layouts import LINEAR
from symbolic_cost.ops.declare import Glossary, Operand, Part, axes, einsum, pointwise, scope, view
from symbolic_cost.ops.op import Op, OperandMap
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass

_STREAM, _BOTH = "[b r e]", "[b r e_c]"
_WIDE = {"e": "e_c"}
SHARED = "hybrid"

ATTENTION = Attention(GROUPED, Projection.SEPARATE, Bias.NONE, cache=CacheKind.HEADS, core=CORE)


@dataclass(frozen=True)
class Zamba(Decoder):
    """A Zamba; `lengths` has "e_c", "r_a" if uses add to perceptrons, and "r_q" to queries too."""

    @property
    def own_axes(self) -> Glossary:
        return axes("e_g hidden, e_c hidden, r_a latent, r_q latent")

    def blocks(self, kinds: tuple[Kind, ...]) -> tuple[Part, ...]:
        """Declare the blocks; those that are shared take the embeddings too."""
        parts: list[Part] = []
        for kind in kinds:
            first = {"first": "embedding"} if kind.mixer.startswith(SHARED) else {}
            takes = {"x": "" if parts else "embedding", **first}
            path = path_of(kind, kinds)
            parts.append(Part(path, self.block(kind), kind.count, takes, kind.place))
        return tuple(parts)

    def block(self, kind: Kind) -> tuple[Op, ...]:
        """Declare one layer from x to y: a shared block adds to what its mixer sees."""
        if not kind.mixer.startswith(SHARED):
            return super().block(kind)
        norm, mixer = self.branch.norm, self.mixers[LINEAR].ops()
        return (
            view("given", f"first{_STREAM} -> given[b r e_g]"),
            pointwise("beside", f"x{_STREAM}, given[b r e_g] -> both{_BOTH}", "copy", laid="e e_g"),
            *self._shared(f"@{kind.mixer}."),
            einsum("linear", f"mixed{_STREAM}, *w[e n_e] -> added[b r n_e]"),
            view("stream", f"added[b r n_e] -> brought{_STREAM}"),
            pointwise("bring", f"x{_STREAM}, brought{_STREAM} -> seen{_STREAM}", "add"),
            norm.op("norm", f"seen{_STREAM}", f"entry{_STREAM}"),
            *scope("mixer", mixer, x="entry", y="outcome"),
            pointwise("residual", f"x{_STREAM}, outcome{_STREAM} -> y{_STREAM}", "add"),
        )

    def _shared(self, name: str) -> tuple[Op, ...]:
        """Declare attention and perceptron, whose own weights all uses share."""
        norm = self.branch.norm
        *before, project, scatter = retitled(self.attention.ops(), _WIDE)
        narrow = retitled((project, scatter), {"e_c": "e"})
        ops = (
            norm.op("norm_both", f"both{_BOTH}", f"entered{_BOTH}", row="e_c"),
            *scope("attention", (*self._added(before), *narrow), x="entered", y="attended"),
            norm.op("norm_mlp", f"attended{_STREAM}", f"fine{_STREAM}"),
            *scope("mlp", self._perceptron(), x="fine", y="mixed"),
        )
        return tuple(op if _OWN in op.path else op.mapped(_all_uses(name)) for op in ops)

    def _added(self, ops: list[Op]) -> tuple[Op, ...]:
        """Return ops of attention with what a use adds to queries, keys and values."""
        if "r_q" not in self.lengths:
            return tuple(ops)
        every: list[Op] = []
        for op in ops:
            every += _raised(op, "full[b l e_c]", "e_c", "r_q") if op.path in {*"qkv"} else (op,)
        return tuple(every)

    def _perceptron(self) -> tuple[Op, ...]:
        """Declare a gated perceptron from x to y, with what a use adds, if it does."""
        if "r_a" not in self.lengths:
            return self.perceptron.ops()
        wide, full = "[b l f]", "full[b l e]"
        function = self.perceptron.function
        both = (
            *_raised(einsum("gate", f"{full}, *w[e f] -> g{wide}"), "", "", ""),
            *_raised(einsum("up", f"{full}, *w[e f] -> u{wide}"), "", "", ""),
        )
        return (
            view("gather", f"x{_STREAM} -> {full}"),
            einsum(f"low{_OWN}", f"{full}, *w[e r_a] -> low[b l r_a]"),
            *both,
            pointwise("act", f"g{wide} -> a{wide}", function),
            pointwise("mul", f"a{wide}, u{wide} -> product{wide}", "mul"),
            einsum("down", f"product{wide}, *w[f e] -> summed[b l e]"),
            view("scatter", f"summed[b l e] -> y{_STREAM}"),
        )


_OWN = "_own"
"""Ends the names of ops whose weights a use has for itself."""


def _raised(op: Op, taken: str, width: str, rank: str) -> tuple[Op, ...]:
    """Return a product of `taken` and what a use adds to it, by a product of low rank.

    Without a rank of its own, that of the perceptron, which was declared before, is raised.
    """
    (result,) = op.outputs
    inside = f"[{' '.join(result.axes)}]"
    name, wide = op.path, " ".join(result.axes[2:])
    plain = op.mapped(lambda o: o.renamed(f"{name}_plain") if o == result else o)
    low, more = f"low[b l {rank or 'r_a'}]", f"{name}_more{inside}"
    first: tuple[Op, ...] = ()
    if rank:
        low = f"{name}_{low}"
        first = (einsum(f"{name}_low{_OWN}", f"{taken}, *w[{width} {rank}] -> {low}"),)
    summed = f"{name}_plain{inside}, {more} -> {result.tensor}{inside}"
    return (
        plain,
        *first,
        einsum(f"{name}_more{_OWN}", f"{low}, *w[{rank or 'r_a'} {wide}] -> {more}"),
        pointwise(f"{name}_sum", summed, "add"),
    )


def _all_uses(name: str) -> OperandMap:
    """Return what makes the weights of an op those of all uses of a block."""

    def own(operand: Operand) -> Operand:
        plain = operand.is_weight and not operand.tensor.startswith("@")
        return operand.renamed(f"{name}{operand.tensor}") if plain else operand

    return own
