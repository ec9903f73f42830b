"""A plain multi-layer perceptron: linear layers with an activation between them."""

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.errors import refuse
from symbolic_cost.layers.conv import Activation, Linear, Maps, Trail
from symbolic_cost.models.fields import is_size
from symbolic_cost.ops.declare import Model, Part, cross_entropy
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact


@dataclass(frozen=True)
class Perceptron:
    """Sizes of a perceptron.

    Args:
        widths: of the input, of every hidden layer and of the result, in order.
        b: samples.
        function: the activation function.
        bias: whether the layers have one.
    """

    widths: tuple[int, ...]
    b: Expr | int = symbols.b
    function: str = "relu"
    bias: bool = True
    name: str = "mlp"

    def model(self) -> Model:
        """Declare the model and its loss.

        Raises:
            InputError: fewer than two widths, or one that is not a positive integer.
        """
        problems = [
            f"width {width!r} is not accepted: a positive integer is"
            for width in self.widths
            if not is_size(width)
        ]
        if len(self.widths) < len(("input", "result")):
            problems.append(f"widths {self.widths!r} are not accepted: give input and result")
        refuse(problems)
        first, *inner, last = self.widths
        sizes = {"b": exact(self.b), "c0": Integer(first)}
        trail = Trail(Maps("x", ("b", "c0"), constant=True), sizes)
        for place, width in enumerate(inner, 1):
            Linear(width, self.bias).declare(f"fc{place}", trail)
            Activation(self.function).declare(f"act{place}", trail)
        Linear(last, self.bias).declare(f"fc{len(inner) + 1}", trail)
        row = trail.at.axes[1]
        loss = cross_entropy("loss", f"{trail.at}, !targets[b]:index -> loss[b]", row=row)
        return Model(self.name, (Part(self.name, (*trail.ops, loss)),), sizes, axes=trail.glossary)
