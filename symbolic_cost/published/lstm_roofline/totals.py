"""Total time, parameters, memory and the time that a step may take."""

from collections.abc import Mapping

from sympy import And, Expr, Integer, Piecewise, floor

from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.published.lstm_roofline.definitions import IB, ZERO, Definitions, Sizes
from symbolic_cost.published.lstm_roofline.inputs import CR, RC, Counted, term
from symbolic_cost.published.lstm_roofline.parts import HIDDEN, PROJECTION, SOFTMAX, WIDTH, P, b
from symbolic_cost.symbols import T_B, T_F, T_W, B, V, e, l, n_layers, named, s
from symbolic_cost.systems.overlap import FULL
from symbolic_cost.units import IEC, SI

SECONDS_PER_DAY = Integer(86400)


def total_time(to: Definitions) -> None:
    """Define the time of a step: the layers as a pipeline, and what is outside of them [s].

    Steps of the sequence pass the stages as microbatches do. Sending between stages hides behind
    the computing of the next step as far as that lasts, but for the first time; gradients of a
    stage's layers are reduced beside the computing of the next one.
    """
    forward, backward, reduced = named("sum.Cf"), named("sum.Cb"), named("sum.R")
    stages = term("schedule", "hlp")
    depth = to.define("layers_per_stage", n_layers / stages)
    moving = Piecewise((ZERO, term("schedule", "lp") <= 1), (s * b * e / IB, True))
    moving = to.define("time.between_layers", moving)
    filling, plan = moving * (stages - 1), Pipeline("gpipe", l)
    step = plan.of(plan.schedule.step_time, stages).xreplace({T_B: ZERO, T_W: ZERO})
    there, back = (step.xreplace({T_F: depth * once}) + filling for once in (forward, backward))
    shown = moving > forward * depth
    waits = Piecewise(((l - 1) * (moving - depth * forward), shown), (ZERO, True))
    to.define("time.forward", there + waits)
    shown = And(shown, moving >= backward * depth)
    waits = Piecewise(
        ((l - 1) * (moving - depth * backward), shown),
        # Gradients that take longer than a step are said to hide the filling of the links too.
        (-filling, backward < reduced),
        (ZERO, True),
    )
    gradients = FULL.in_turn(reduced, backward, depth)
    to.define("time.backward", back + waits + gradients)
    outside = "sum.softmax_f sum.softmax_b sum.embedding_f sum.embedding_b grad.Softmax.time"
    if Counted.PROJECTION in to.structure.counts or not to.keeps("projection left out"):
        outside += " sum.projection_f sum.projection_b grad.Projection.time"
    base = to.define("time.outside", sum(map(named, outside.split()), ZERO))
    to.define("time.total", base + named("time.forward") + named("time.backward"))


def parameters(to: Definitions) -> None:
    """Define the number of parameters, in billions."""
    weights = V * e + n_layers * HIDDEN.weights + PROJECTION.weights + SOFTMAX.weights
    to.define("params.billion", weights / SI["G"])


def step_limit(to: Definitions) -> None:
    """Define the time of a step with which the data take a day [s]."""
    own = to.keeps("batch of the time limit")
    batch = term("time_limit", "batch_size") if own else B
    data = term("time_limit", "data_scale") * term("time_limit", "tokens_per_unit_data_scale")
    steps = floor(data / (batch * term("time_limit", "seq_len")))
    day = SECONDS_PER_DAY * term("time_limit", "day_limit")
    to.define("time.time_per_step_limit", day / (term("time_limit", "num_epochs") * steps))


def memory(to: Definitions) -> None:
    """Define what a data shard and a model shard of it need [GiB], and how much is too much."""
    summed = P if to.keeps("width of the softmax weight") else e
    whole = {"hidden": (b, 2 * e, WIDTH), "softmax": (b, summed, V), "projection": (b, e, P)}
    _needs(to, "data_shard", n_layers, whole, (b, V * e))
    first, second = (term("schedule", f"kp_embedding_dim{place}") for place in (1, 2))
    nodes = first if to.structure.kind("embedding") == CR else first * second
    table = V * e if to.keeps("whole embedding") else V * e / nodes
    spread = {part: _spread(to, part, sizes) for part, sizes in whole.items()}
    _needs(to, "model_shard", named("layers_per_stage"), spread, (b / nodes, table))
    if to.keeps("memory of a model shard"):
        for kind in _KINDS:
            to[f"mem.model_shard.{kind}"] = named(f"mem.data_shard.{kind}")


_KINDS = ("weight", "activation", "pointwise")


def _needs(
    to: Definitions, shard: str, layers: Expr, held: Mapping[str, Sizes], lookup: tuple[Expr, Expr]
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
        to.define(f"mem.{shard}.{part}", s * sum(sizes, ZERO) / IEC["Gi"])
    total = sum((named(f"mem.{shard}.{part}") for part in elements), ZERO)
    total = to.define(f"mem.{shard}.total", total)
    to.define(f"mem.{shard}.total_again", total)
    for kind, sizes in zip(_KINDS, zip(*elements.values(), strict=True), strict=True):
        to.define(f"mem.{shard}.{kind}", s * sum(sizes, ZERO) / IEC["Gi"])
    to.define(f"mem.{shard}.overflow_rate", total * IEC["Gi"] / named("capacity.memory"))


def _spread(to: Definitions, part: str, sizes: Sizes) -> Sizes:
    """Return rows, inner width and columns of one node; only RC leaves the inner width whole."""
    rows, inner, columns = sizes
    first, second = (term("schedule", f"kp_{part}_dim{place}") for place in (1, 2))
    if to.structure.kind(part) == RC:
        return rows / first, inner, columns / second
    return rows, inner / first, columns
