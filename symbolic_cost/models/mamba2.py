"""Mamba-2: state-space layers whose scan runs in chunks of matrix products."""

from dataclasses import field, replace

from sympy import Expr, Integer, ceiling

from symbolic_cost import symbols
from symbolic_cost.axes import glossary
from symbolic_cost.layers import duality, tokens
from symbolic_cost.layers.duality import Duality, Form
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.mamba import biases, refuse_other_norms, state_space
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact


@dataclass(frozen=True)
class Mamba2:
    """Sizes and variants of a Mamba-2; every size is a symbol unless given.

    Args:
        b: microbatch [sequences].
        l: sequence length [tokens].
        e: embedding width.
        h: heads.
        q: head width.
        g: groups of heads that share a state projection.
        N: state size.
        K: kernel of the convolutions.
        C: chunk of the scan [tokens].
        V: vocabulary.
        tied: whether the output head is the token table.
    """

    b: Expr | int = symbols.b
    l: Expr | int = symbols.l
    e: Expr | int = symbols.e
    h: Expr | int = symbols.h
    q: Expr | int = symbols.q
    g: Expr | int = symbols.g
    N: Expr | int = symbols.N
    K: Expr | int = symbols.K
    C: Expr | int = symbols.C
    V: Expr | int = symbols.V
    n_layers: Expr | int = symbols.n_layers
    layer: Duality = field(default_factory=Duality)
    tied: bool = True
    name: str = "mamba2"

    def model(self) -> Model:
        """Declare the model."""
        return Model(
            self.name,
            state_space(self.layer.ops(), exact(self.n_layers), tied=self.tied),
            self.sizes(),
            source="dao-2024",
            axes=glossary(duality.AXES, tokens.AXES),
        )

    def sizes(self) -> dict[str, Expr]:
        """Return the size of every axis."""
        length, kernel, chunk = exact(self.l), exact(self.K), exact(self.C)
        chunks = ceiling(length / chunk)
        return {
            "b": exact(self.b),
            **dict.fromkeys(("r", "l"), length),
            # Convolutions run over their padding; a decode step computes two places.
            "p": length + (kernel - 1 if self.layer.form is Form.CHUNKED else 1),
            "e": exact(self.e),
            "h": exact(self.h),
            "d": exact(self.q),
            "g": exact(self.g),
            "s": exact(self.N),
            "k": kernel,
            "m": exact(self.h) * exact(self.q) + 2 * exact(self.g) * exact(self.N),
            "z": chunks,
            **dict.fromkeys(("i", "j"), chunk),
            **dict.fromkeys(("zo", "zi"), chunks + 1),
            "one": Integer(1),
            "v": exact(self.V),
        }


def mamba2_on(shape: Shape) -> Model:
    """Declare the family for a shape."""
    form = Form.STEPS if shape.by_steps else Form.CHUNKED
    return Mamba2(b=shape.b, l=shape.l, layer=Duality(form)).model()


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a configuration and declare the model.

    Raises:
        InputError: every problem of the fields.
    """
    width, heads = fields.size("hidden_size"), fields.size("num_heads", 128)
    head_width, groups = fields.size("head_dim", 64), fields.size("n_groups", 8)
    inner = fields.size("intermediate_size", width * fields.size("expand", 2))
    fields.require(
        holds=heads * head_width == inner,
        problem=f"{heads} heads of width {head_width} do not make the inner width {inner}",
        name="num_heads",
    )
    fields.require(
        holds=heads % groups == 0,
        problem=f"{groups} groups do not divide {heads} heads",
        name="n_groups",
    )
    numbers = {
        "e": width,
        "h": heads,
        "q": head_width,
        "g": groups,
        "N": fields.size("state_size", 128),
        "K": fields.size("conv_kernel", 4),
        "C": fields.size("chunk_size", 256),
        "V": fields.size("vocab_size"),
        "n_layers": fields.size("num_hidden_layers"),
    }
    model = Mamba2(
        b=shape.b,
        l=shape.l,
        layer=Duality(form=Form.STEPS if shape.by_steps else Form.CHUNKED, bias=biases(fields)),
        tied=fields.flag("tie_word_embeddings", default=False),
    )
    refuse_other_norms(fields)
    fields.ignore("time_step_rank", "norm_before_gate")
    fields.refuse()
    return replace(model.model(), bindings=numbers)
