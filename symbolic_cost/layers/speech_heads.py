"""Heads of encoders of recordings: codes of what is heard, and voices."""

from symbolic_cost.ops.declare import Op, conv, einsum, pointwise, softmax, stored, view
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Quantized:
    """Positions x[b r e], and codes of features[b r a_q] before the blocks, of one width w_t.

    Axes: g_q groups of codes, n_q codes of one, w_q width of a code in a group.

    As wav2vec 2.0 is trained first (Baevski and others, 2020, section 3).
    """

    hidden = None

    def ops(self) -> tuple[Op, ...]:
        shares, chosen = "shares[b r g_q n_q]", "chosen[b r g_q n_q]"
        codes = f"{chosen}, *codes[g_q n_q w_q] -> codes[b r g_q w_q]"
        return (
            einsum("choose", f"features[b r a_q], *w[a_q g_q n_q] + *bias[g_q n_q] -> {shares}"),
            softmax("softmax", f"{shares} -> {chosen}", row="n_q"),
            pointwise("codes", codes, "mul", sums="n_q"),
            einsum("of_codes", "codes[b r g_q w_q], *w[g_q w_q w_t] + *bias[w_t] -> goal[b r w_t]"),
            einsum("of_positions", "x[b r e], *w[e w_t] + *bias[w_t] -> features_x[b r w_t]"),
        )


@dataclass(frozen=True)
class Voices:
    """A voice from x[b r e]: convolutions over time, their mean and spread, and two products.

    Axes: v_0 v_1 ... channels and p_1 p_2 ... positions behind every convolution, k_1 k_2 ... its
    kernel; x_v features of a voice.

    As x-vectors (Snyder and others, 2018, section 2).

    Args:
        layers: convolutions.
    """

    layers: int = 5

    hidden = None

    def ops(self) -> tuple[Op, ...]:
        """Declare the head; voices are told apart by weights that only the loss takes."""
        ops: list[Op] = [
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("project", "full[b l e], *w[e v_0] + *bias[v_0] -> a0[b l v_0]"),
        ]
        x = "a0[b l v_0]"
        for i in range(1, self.layers + 1):
            axes = f"[b p_{i} v_{i}]"
            weight = f"*w[v_{i - 1} v_{i} k_{i}] + *bias[v_{i}]"
            ops += [
                conv(f"conv{i}", f"{x}, {weight} -> u{i}{axes}"),
                pointwise(f"act{i}", f"u{i}{axes} -> a{i}{axes}", "relu"),
            ]
            x = f"a{i}{axes}"
        p, v = f"p_{self.layers}", f"v_{self.layers}"
        bias = {"mean": " + *bias[x_v]", "spread": ""}
        for name, added in bias.items():
            ops += [
                pointwise(name, f"{x} -> {name}[b one {v}]", "sum", sums=p),
                einsum(
                    f"of_{name}", f"{name}[b one {v}], *w[{v} x_v]{added} -> f_{name}[b one x_v]"
                ),
            ]
        return (
            *ops,
            pointwise("voice", "f_mean[b one x_v], f_spread[b one x_v] -> voice[b one x_v]", "add"),
            einsum("classes", "voice[b one x_v], *w[x_v y_v] + *bias[y_v] -> logits[b one y_v]"),
            stored("voices", w="y_v z"),
        )
