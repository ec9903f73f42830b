"""Recurrent layers: plain, GRU and LSTM.

Axes: b sequences, l positions, i inputs, o hidden width, m the same width one step before,
n gates.
"""

from enum import StrEnum

from symbolic_cost.ops.declare import Op, axes, einsum, pointwise, split
from symbolic_cost.ops.scan import recurrence

AXES = axes("b batch, l token query, i hidden, o hidden, m hidden, n whole")

_GATES = ("first", "second", "third", "fourth")


class Cell(StrEnum):
    """Kinds of recurrent cells, by the name of their elementwise part."""

    RNN = "rnn_cell"
    GRU = "gru_cell"
    LSTM = "lstm_cell"

    @property
    def gates(self) -> int:
        """How many products of the width a step makes."""
        return {Cell.RNN: 1, Cell.GRU: 3, Cell.LSTM: 4}[self]

    @property
    def states(self) -> int:
        """How many vectors of the width a step takes from the one before."""
        return 2 if self is Cell.LSTM else 1

    def op(self, name: str = "cell") -> Op:
        """Declare the layer from x[b l i] to y[b l o], one kernel over all steps."""
        gates = _GATES[: self.gates]
        sums = [f"{source}_{gate}[b l o]" for gate in gates for source in ("input", "hidden")]
        step = (
            *_product("input", "x[b l i]", "i", gates),
            *_product("hidden", "before[b l m]", "m", gates),
            pointwise("cell", f"{', '.join(sums)} -> y[b l o]", self.value),
        )
        weights = ", ".join(
            f"*{source}.w[{axis} n o], *{source}.bias[n o]"
            for source, axis in (("input", "i"), ("hidden", "m"))
        )
        return recurrence(
            name,
            f"x[b l i], {weights} -> y[b l o]",
            step,
            saves=f"x[b l i], y[b l o]{self._states}",
            along="l",
        )

    @property
    def _states(self) -> str:
        """What is saved besides input and result: activated gates, and the LSTM's memory."""
        states = {
            Cell.RNN: "",
            Cell.GRU: ", gates[n b l o], candidate[b l o]",
            Cell.LSTM: ", gates[n b l o], memory[b l o]",
        }
        return states[self]


def _product(source: str, tensor: str, axis: str, gates: tuple[str, ...]) -> tuple[Op, ...]:
    parts = ", ".join(f"{source}_{gate}[b l o]" for gate in gates)
    pattern = f"{tensor}, *w[{axis} n o] + *bias[n o] -> {source}[n b l o]"
    return (einsum(source, pattern), split(f"{source}_gates", f"{source}[n b l o] -> {parts}"))
