"""Mamba: state-space layers with a selective scan."""

from dataclasses import field, replace

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.axes import glossary
from symbolic_cost.layers import ssm, tokens
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch
from symbolic_cost.layers.ssm import SelectiveScan
from symbolic_cost.layers.tokens import Logits, Tokens
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model, Part, Place, scope
from symbolic_cost.ops.op import Op
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact


@dataclass(frozen=True)
class Mamba:
    """Sizes and variants of a Mamba; every size is a symbol unless given.

    Args:
        b: microbatch [sequences].
        l: sequence length [tokens].
        e: embedding width.
        J: inner width.
        N: state size.
        K: kernel of the convolution.
        r_dt: rank of the time step.
        V: vocabulary.
        tied: whether the output head is the token table.
        padded: whether the convolution runs over the padding, as in training and prefill; a step
            of one position computes that and the one before.
    """

    b: Expr | int = symbols.b
    l: Expr | int = symbols.l
    e: Expr | int = symbols.e
    J: Expr | int = symbols.J
    N: Expr | int = symbols.N
    K: Expr | int = symbols.K
    r_dt: Expr | int = symbols.r_dt
    V: Expr | int = symbols.V
    n_layers: Expr | int = symbols.n_layers
    layer: SelectiveScan = field(default_factory=SelectiveScan)
    tied: bool = True
    padded: bool = True
    name: str = "mamba"

    def model(self) -> Model:
        """Declare the model."""
        return Model(
            self.name,
            state_space(self.layer.ops(), exact(self.n_layers), tied=self.tied),
            self.sizes(),
            source="gu-2023",
            axes=glossary(ssm.AXES, tokens.AXES),
        )

    def sizes(self) -> dict[str, Expr]:
        """Return the size of every axis."""
        state, rank, kernel = exact(self.N), exact(self.r_dt), exact(self.K)
        return {
            "b": exact(self.b),
            **dict.fromkeys(("r", "l"), exact(self.l)),
            "p": exact(self.l) + (kernel - 1 if self.padded else 1),
            "e": exact(self.e),
            "j": exact(self.J),
            "s": state,
            "k": kernel,
            "low": rank,
            "mixed": rank + 2 * state,
            "two": Integer(2),
            "one": Integer(1),
            "v": exact(self.V),
        }


def state_space(layer: tuple[Op, ...], n_layers: Expr, *, tied: bool) -> tuple[Part, ...]:
    """Declare embedding, layers with a norm before and a residual around, and output head."""
    block = Branch(Norm.RMS).around("mixer", layer)
    head = (
        *scope("norm", (Norm.RMS.op("norm", "x[b r e]", "y[b r e]"),), x="x", y="normed"),
        *scope("output", Logits("@token" if tied else "w").ops(), x="normed"),
    )
    return (
        Part("embedding", Tokens().ops()),
        Part("block", block, n_layers, place=Place.BLOCK),
        Part("head", head),
    )


def mamba_on(shape: Shape) -> Model:
    """Declare the family for a shape."""
    return Mamba(b=shape.b, l=shape.l, padded=not shape.by_steps).model()


def biases(fields: Fields) -> Bias:
    """Return which products of a state-space layer have a bias."""
    outer = Bias.OUTPUT if fields.flag("use_bias", default=False) else Bias.NONE
    return outer | (Bias.INNER if fields.flag("use_conv_bias", default=True) else Bias.NONE)


def refuse_other_norms(fields: Fields) -> None:
    """Note a configuration whose norms are not root-mean-square norms."""
    fields.require(
        holds=fields.flag("rms_norm", default=True),
        problem="only root-mean-square norms are declared",
        name="rms_norm",
    )


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a configuration and declare the model.

    Raises:
        InputError: every problem of the fields.
    """
    width = fields.size("hidden_size")
    inner = fields.size("intermediate_size", width * fields.size("expand", 2))
    numbers = {
        "e": width,
        "J": inner,
        "N": fields.size("state_size", 16),
        "K": fields.size("conv_kernel", 4),
        "r_dt": fields.size("time_step_rank", -(-width // 16)),
        "V": fields.size("vocab_size"),
        "n_layers": fields.size("num_hidden_layers"),
    }
    model = Mamba(
        b=shape.b,
        l=shape.l,
        layer=SelectiveScan(biases(fields)),
        tied=fields.flag("tie_word_embeddings", default=True),
        padded=not shape.by_steps,
    )
    refuse_other_norms(fields)
    fields.ignore("fused_add_norm", "pad_vocab_size_multiple")
    fields.refuse()
    return replace(model.model(), bindings=numbers)
