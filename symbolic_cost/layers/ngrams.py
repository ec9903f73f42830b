"""Features of the last few tokens, added to copies of the residual stream in some layers.

Every one of a few hashes of the last two, three ... tokens is a row of a table of its own. Layers
take theirs of all rows, copies open them, and a convolution brings positions together (Qwen4-Exp,
Qwen4ExpTextPLELayer, which pads rows up to a multiple).

Axes: b sequences, l and r positions, e embedding, n_o copies, n_v rows of all tables, n_y layers
that have them, n_g hashes, i_n tokens that all layers keep for them, d_y width of a row, k_n the
kernel, n_w positions that it keeps.
"""

from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, cache, conv, einsum, lookup, pointwise, split, view

AXES = axes(
    "b batch, l token query, r token residual, e hidden, n_o latent, n_v vocabulary, n_y whole, "
    "n_g whole, i_n whole, d_y latent, k_n whole, n_w whole"
)

_COPIES, _AT = "[b r n_o e]", "[b l n_o e]"


def rows() -> tuple[Op, ...]:
    """Declare the rows of all layers, grams[b r n_y n_g d_y]."""
    return (
        cache("context", "!ids[b l]:index -> known[b l]:index", kept="b i_n"),
        pointwise("hash", "!known[b l]:index -> hashes[b l n_y n_g]:index", "copy"),
        lookup(
            "gram", "!hashes[b l n_y n_g]:index, *table[n_v d_y] -> plain_grams[b l n_y n_g d_y]"
        ),
        view("scatter", "plain_grams[b l n_y n_g d_y] -> grams[b r n_y n_g d_y]"),
    )


def added() -> tuple[Op, ...]:
    """Declare what a layer makes of its rows of grams, from x[b r n_o e] to y[b r n_o e]."""
    norm = Norm.RMS_SHIFTED
    return (
        split("own", "grams[b r n_y n_g d_y] -> own[b r n_g d_y]"),
        einsum("key", f"own[b r n_g d_y], *w[n_g d_y n_o e] -> plain_keys{_COPIES}"),
        norm.op("norm_key", f"plain_keys{_COPIES}", f"keys{_COPIES}", row="e", scale="n_o e"),
        einsum("value", "own[b r n_g d_y], *w[n_g d_y e] -> value[b r e]"),
        norm.op("norm_query", f"x{_COPIES}", f"query{_COPIES}", row="e", scale="n_o e"),
        pointwise("match", f"keys{_COPIES}, query{_COPIES} -> match[b r n_o]", "mul", sums="e"),
        pointwise("open", "match[b r n_o] -> opened[b r n_o]", "sigmoid"),
        pointwise("mul", f"opened[b r n_o], value[b r e] -> gated{_COPIES}", "mul"),
        norm.op("norm_conv", f"gated{_COPIES}", f"even{_COPIES}", row="e", scale="n_o e"),
        view("gather", f"even{_COPIES} -> full{_AT}"),
        cache("window", f"full{_AT} -> window{_AT}", kept="b n_w n_o e"),
        conv("conv", f"window{_AT}, *w[n_o e k_n] -> near{_AT}"),
        pointwise("act", f"near{_AT} -> acted{_AT}", "silu"),
        view("return", f"acted{_AT} -> around{_COPIES}"),
        pointwise("sum", f"gated{_COPIES}, around{_COPIES} -> added{_COPIES}", "add"),
        pointwise("residual", f"x{_COPIES}, added{_COPIES} -> y{_COPIES}", "add"),
    )
