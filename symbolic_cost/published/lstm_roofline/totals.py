"""Total time, parameters, memory and the time that a step may take."""

from collections.abc import Mapping

from sympy import And, Expr, Integer, Piecewise, floor

from symbolic_cost.published.lstm_roofline.definitions import IB, ZERO, Definitions, Sizes
from symbolic_cost.published.lstm_roofline.inputs import CR, RC, term
from symbolic_cost.published.lstm_roofline.parts import HIDDEN, PROJECTION, SOFTMAX, WIDTH, P, b
from symbolic_cost.symbols import B, V, e, l, n_layers, named, s
from symbolic_cost.units import IEC, SI

SECONDS_PER_DAY = Integer(86400)


def total_time(found: Definitions) -> None:
    """Define the time of a step: the layers as a pipeline, and what is outside of them [s]."""
    forward, backward, reduced = named("sum.Cf"), named("sum.Cb"), named("sum.R")
    stages = term("schedule", "hlp")
    depth = found.define("layers_per_stage", n_layers / stages)
    moving = Piecewise((ZERO, term("schedule", "lp") <= 1), (s * b * e / IB, True))
    moving = found.define("time.between_layers", moving)
    late = backward >= reduced
    filled = moving * (stages - 1)
    waiting = (l + stages - 2) * moving
    steps = n_layers + depth * (l - 1)
    overlapped = (n_layers + depth * (l - 2) + 1) * backward + depth * reduced
    # Branches: moving is hidden forward and backward; in neither; backward only.
    hidden, shown = moving <= forward * depth, moving >= backward * depth
    found.define(
        "time.forward",
        Piecewise((steps * forward + filled, hidden), (n_layers * forward + waiting, True)),
    )
    waits = n_layers * backward + waiting + reduced
    waits_less = (n_layers - depth + 1) * backward + waiting + depth * reduced
    not_hidden = And(moving > forward * depth, shown)
    found.define(
        "time.backward",
        Piecewise(
            (waits, And(not_hidden, late)),
            (waits_less, not_hidden),
            (steps * backward + filled + reduced, late),
            (overlapped, True),
        ),
    )
    outside = "sum.softmax_f sum.softmax_b sum.embedding_f sum.embedding_b grad.Softmax.time"
    if found.structure.projected or not found.keeps("projection left out"):
        outside += " sum.projection_f sum.projection_b grad.Projection.time"
    base = found.define("time.outside", sum(map(named, outside.split()), ZERO))
    found.define("time.total", base + named("time.forward") + named("time.backward"))


def parameters(found: Definitions) -> None:
    """Define the number of parameters, in billions."""
    weights = V * e + n_layers * HIDDEN.weights + PROJECTION.weights + SOFTMAX.weights
    found.define("params.billion", weights / SI["G"])


def step_limit(found: Definitions) -> None:
    """Define the time of a step with which the data take a day [s]."""
    own = found.keeps("batch of the time limit")
    batch = term("time_limit", "batch_size") if own else B
    data = term("time_limit", "data_scale") * term("time_limit", "tokens_per_unit_data_scale")
    steps = floor(data / (batch * term("time_limit", "seq_len")))
    day = SECONDS_PER_DAY * term("time_limit", "day_limit")
    found.define("time.time_per_step_limit", day / (term("time_limit", "num_epochs") * steps))


def memory(found: Definitions) -> None:
    """Define what a data shard and a model shard of it need [GiB], and how much is too much."""
    summed = P if found.keeps("width of the softmax weight") else e
    whole = {"hidden": (b, 2 * e, WIDTH), "softmax": (b, summed, V), "projection": (b, e, P)}
    _needs(found, "data_shard", n_layers, whole, (b, V * e))
    first, second = (term("schedule", f"kp_embedding_dim{place}") for place in (1, 2))
    nodes = first if found.structure.kind("embedding") == CR else first * second
    table = V * e if found.keeps("whole embedding") else V * e / nodes
    spread = {part: _spread(found, part, sizes) for part, sizes in whole.items()}
    _needs(found, "model_shard", named("layers_per_stage"), spread, (b / nodes, table))
    if found.keeps("memory of a model shard"):
        for kind in _KINDS:
            found[f"mem.model_shard.{kind}"] = named(f"mem.data_shard.{kind}")


_KINDS = ("weight", "activation", "pointwise")


def _needs(
    found: Definitions,
    shard: str,
    layers: Expr,
    held: Mapping[str, Sizes],
    lookup: tuple[Expr, Expr],
) -> None:
    """Define what one shard needs, by part and by kind: weights, activations, elementwise memory.

    It holds layers, products of rows, inner width and columns by part, and looks up rows per token
    in a table of elements.
    """
    (rows, inputs, width), (words, summed, vocabulary), (lines, wide, narrow) = held.values()
    cell, scores, projected = rows * inputs * l * layers, words * l * vocabulary, lines * l * narrow
    looked_up, table = lookup
    elements = {
        "embedding": (table, looked_up * l * e, ZERO),
        "hidden": ((inputs + 1) * width * layers, cell, cell / 2 * 9),
        "softmax": ((summed + 1) * vocabulary, scores, 2 * scores + words * l),
        "projection": ((wide + 1) * narrow, projected, projected),
    }
    for part, sizes in elements.items():
        found.define(f"mem.{shard}.{part}", s * sum(sizes, ZERO) / IEC["Gi"])
    total = sum((named(f"mem.{shard}.{part}") for part in elements), ZERO)
    total = found.define(f"mem.{shard}.total", total)
    found.define(f"mem.{shard}.total_again", total)
    for kind, sizes in zip(_KINDS, zip(*elements.values(), strict=True), strict=True):
        found.define(f"mem.{shard}.{kind}", s * sum(sizes, ZERO) / IEC["Gi"])
    found.define(f"mem.{shard}.overflow_rate", total * IEC["Gi"] / named("capacity.memory"))


def _spread(found: Definitions, part: str, sizes: Sizes) -> Sizes:
    """Return rows, inner width and columns of one node; only RC leaves the inner width whole."""
    rows, inner, columns = sizes
    first, second = (term("schedule", f"kp_{part}_dim{place}") for place in (1, 2))
    if found.structure.kind(part) == RC:
        return rows / first, inner, columns / second
    return rows, inner / first, columns
