"""Builders of T5 and its kind: from a configuration to traits and sizes."""

from dataclasses import replace

from sympy import Integer, ceiling, floor

from symbolic_cost.layers import block_attention, series
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.block_attention import Blocks
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.series import Forecast, Marked
from symbolic_cost.models.encoder_decoders.config import (
    declared,
    routed_sizes,
    running,
    sparse_layers,
)
from symbolic_cost.models.encoder_decoders.families import SEQ2SEQ
from symbolic_cost.models.encoder_decoders.seq2seq import (
    ENCODER_ONLY,
    GENERATED,
    TOKENS_OF_SOURCE,
    Seq2Seq,
)
from symbolic_cost.models.encoder_decoders.sizes import Sizes, Source
from symbolic_cost.models.encoders.changes import Tables
from symbolic_cost.models.encoders.config import Numbers
from symbolic_cost.models.encoders.encoder import SPAN
from symbolic_cost.models.fields import Fields, shortened
from symbolic_cost.models.labels import span_of
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.declare import Model, axes
from symbolic_cost.ops.view import uncached


def t5_numbers(fields: Fields) -> tuple[Seq2Seq, Numbers]:
    """Read the sizes of a T5, and what its perceptron is."""
    family = running(fields, SEQ2SEQ[fields.family])
    names = ("relu", "gelu", "silu")
    accepted = (*names, *(f"gated-{name}" for name in names))
    projection = fields.text("feed_forward_proj", "relu", accepted)
    gated, function = projection.startswith("gated-"), projection.removeprefix("gated-")
    family = replace(family, perceptron=GatedMLP(function) if gated else MLP(function, Bias.NONE))
    layers = fields.size("num_hidden_layers")
    numbers = {
        "e": fields.size("hidden_size"),
        "f": fields.size("intermediate_size"),
        "h": fields.size("num_attention_heads"),
        "q": fields.size("d_kv"),
        "V": fields.size("vocab_size"),
        "n_layers": layers,
        "n_dec": fields.size("num_decoder_layers", layers),
        "n_rel": fields.size("relative_attention_num_buckets", 32),
    }
    _check_function(fields, projection)
    fields.ignore("relative_attention_max_distance")
    return family, numbers


def t5(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a configuration as T5's and declare the model."""
    family, numbers = t5_numbers(fields)
    layers = numbers["n_layers"]
    if fields.head.endswith(SPAN):
        span_of(fields)
    fields.need("tie_word_embeddings")  # null is no false: the head is tied then
    if fields.head.endswith((ENCODER_ONLY, TOKENS_OF_SOURCE)):
        masked = fields.flag("is_decoder", default=False)
        fields.require(holds=not masked, problem="only false is declared", name="is_decoder")
    else:
        problem = "keys of the source join those of the target then: true is accepted"
        both = fields.flag("is_encoder_decoder", default=True)
        fields.require(holds=both, problem=problem, name="is_encoder_decoder")
    if isinstance(family.near, Blocks):
        return _blocked(fields, shape, family, family.near, numbers)
    sparse = (0, 0)
    if family.experts:
        sparse = sparse_layers(fields, (layers, numbers["n_dec"]), _switched)
        numbers |= routed_sizes(fields, 1)
        most = fields.size("expert_capacity", 64)
        fields.require(
            holds=not shape.l.is_Integer or shape.l <= most,
            problem=f"an expert may drop tokens beyond it: at most {most} tokens are accepted",
            name="expert_capacity",
        )
    return declared(fields, shape, family, numbers, {}, sparse=sparse)


def _blocked(
    fields: Fields, shape: Shape, family: Seq2Seq, near: Blocks, numbers: Numbers
) -> Model:
    """Declare an encoder-decoder whose source attends in blocks, as LongT5."""
    kinds = ("local", "transient-global")
    summed = fields.text("encoder_attention_type", kinds[0], kinds) == kinds[1]
    block, width = fields.size("local_radius", 127) + 1, fields.size("global_block_size", 16)
    tokens = shape.c if shape.c != 0 else shape.l
    if numbers["q"] <= 1:
        fields.note("d_kv", "blocks of heads of one feature are multiplied by no product")
    if summed and tokens.is_Integer and tokens < width:
        fields.note("global_block_size", f"sequences of {width} tokens or more are accepted")
    sums = floor(tokens / width) if summed else Integer(0)
    sizes: Tables = {"n_k": ceiling(tokens / block), "x_k": block, "y_l": 3 * block}
    sizes |= {"y_k": 3 * block + sums, **({"g_k": sums} if summed else {})}
    near = replace(near, core=family.attention.core, sums="g_k" if summed else "")
    source = Source(tokens, sizes, block_attention.AXES)
    return declared(fields, shape, replace(family, near=near), numbers, {}, source=source)


def _switched(fields: Fields, side: str, layers: int) -> int:
    """Return how many layers of a Switch Transformer are sparse: the second of every so many.

    With 12 layers of which 6 are sparse, every second one: 1, 3, 5 ... of 0 to 11. Fewer layers
    than are asked to be sparse are all dense.
    """
    asked, key = fields.optional_size(f"num_sparse_{side}_layers", 3), f"{side}_sparse_step"
    step = layers // asked if asked else layers
    # Its class takes the step from its own layers, before another name says how many there are.
    named = side == "decoder" or fields.has("num_layers") or fields.has(key)
    fields.require(holds=named, problem=f"this or {key} is needed", name="num_layers")
    if step or fields.has(key):
        step = fields.size(key, step)
    if step == 0:
        return 0
    return layers if step == 1 else -(-(layers - 1) // step)


def _check_function(fields: Fields, projection: str) -> None:
    """Note where two keys contradict the one that names gate and function together."""
    gated = projection.startswith("gated-")
    function = projection.removeprefix("gated-")
    # A gated GELU is always the approximation by a tanh.
    names = ("gelu", "gelu_new") if function == "gelu" else (function,)
    fields.need("is_gated_act")  # null stands instead of what feed_forward_proj says
    answers = {"is_gated_act": (gated,), "dense_act_fn": names}
    for key, accepted in answers.items():
        value = fields.source.values.get(key)
        fields.ignore(key)
        if value is not None and value not in accepted:
            fields.note(key, f"{shortened(value)} contradicts feed_forward_proj = {projection!r}")


def chronos_bolt(fields: Fields, shape: Shape) -> Model:
    """Declare a Chronos-Bolt, which forecasts a series of l values from its patches at once.

    Source: amazon-science/chronos-forecasting, chronos_bolt.py.
    """
    part = fields.part("chronos_config") or fields.holding({})
    size, kinds = part.size("input_patch_size"), len(part.items("quantiles"))
    ahead, context = part.size("prediction_length"), part.size("context_length")
    marked = part.flag("use_reg_token", default=False)
    problem = f"only the {size} of input_patch_size is declared"
    step = part.size("input_patch_stride", size)
    part.require(holds=step == size, problem=problem, name="input_patch_stride")
    part.require(holds=kinds > 0, problem="one or more are accepted", name="quantiles")
    problem = f"{shape.l} values are counted, of which a run sees the last {context}"
    if shape.l.is_Integer and shape.l > context:
        fields.assume("context_length", problem)
    fields.problems += part.not_understood().values()
    # The class makes its own table, of a token that ends the patches and of one that begins.
    values = {**fields.source.values, "vocab_size": 1 + marked}
    fields.source = replace(fields.source, values=values)
    family, numbers = t5_numbers(fields)
    fields.ignore("reg_token_id", "chronos_pipeline_class")
    fields.refuse()
    function = family.perceptron.function
    patches = ceiling(shape.l / size)
    own: Tables = {"n_s": 2 * size, "s_h": numbers["f"], "n_v": max(kinds, 1) * ahead}
    own |= {"r_p": patches}
    source = Source(patches + int(marked), own, {**series.AXES, **axes("r_p token residual")})
    family = replace(
        family,
        entry=Marked(function, "r_p" if marked else "r"),
        heads={GENERATED: Forecast(function=function)},
    )
    sizes = Sizes(b=shape.b, l=source.frames, l_t=1, source=source)
    model = replace(family.declare(fields.family, sizes, GENERATED), bindings=numbers)
    return replace(
        model, parts=tuple(replace(part, ops=uncached(part.ops)) for part in model.parts)
    )
