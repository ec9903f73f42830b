"""Heads of transducers: every frame of a recording beside every token that is written so far.

Axes: l frames, y_t tokens written so far, u_t features of both; o_0 o_1 ... width of every layer of
the LSTM over the tokens and m_0 m_1 ... the same one step before, n_t its gates; v vocabulary,
v_t what is told of a pair: tokens, and how many frames they last.

Source: graves-2012, section 2.
"""

from symbolic_cost.axes import Glossary, axes
from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import cross_entropy, pointwise
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import retitled, scope
from symbolic_cost.ops.view import view
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Transduced:
    """From frames x[b r e] to logits[b l y_t v_t] of every frame and every token, and the loss.

    Args:
        layers: of the LSTM over tokens.
        function: of the sum of a frame and a token.
    """

    layers: int = 2
    function: str = "relu"

    hidden = None

    def ops(self) -> tuple[Op, ...]:
        pair, told = "[b l y_t u_t]", "logits[b l y_t v_t]"
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("project", "full[b l e], *w[e u_t] + *bias[u_t] -> heard[b l u_t]"),
            *self._written(),
            pointwise("meet", f"heard[b l u_t], said[b y_t u_t] -> both{pair}", "add"),
            pointwise("act", f"both{pair} -> a{pair}", self.function),
            einsum("logits", f"a{pair}, *w[u_t v_t] + *bias[v_t] -> {told}"),
            cross_entropy(
                "loss", f"{told}, !targets[b l y_t]:index -> loss[b l y_t]", row="v_t", single=False
            ),
        )

    def _written(self) -> tuple[Op, ...]:
        """Declare what is known of the tokens written so far, said[b y_t u_t]."""
        ops: list[Op] = [lookup("tokens", "!ids[b y_t]:index, *w[v o_0] -> y0[b y_t o_0]")]
        for i in range(self.layers):
            names = {"l": "y_t", "i": f"o_{i}", "o": f"o_{i + 1}", "m": f"m_{i + 1}", "n": "n_t"}
            cell = retitled((Cell.LSTM.op(),), names)
            ops += scope(f"lstm{i}", cell, x=f"y{i}", y=f"y{i + 1}")
        last = f"o_{self.layers}"
        known = f"y{self.layers}[b y_t {last}], *w[{last} u_t] + *bias[u_t]"
        return (*ops, einsum("say", f"{known} -> said[b y_t u_t]"))

    def axes(self) -> Glossary:
        """Return the roles of its axes; tokens are read one after the other, so stay whole."""
        wide = ", ".join(f"o_{i} latent, m_{i} latent" for i in range(self.layers + 1))
        return axes(f"y_t whole, u_t latent, n_t whole, v_t vocabulary, {wide}")
