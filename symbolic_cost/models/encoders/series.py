"""Builder of PatchTST: every channel of a series is a sequence of patches, as many as there fit."""

from dataclasses import replace

from symbolic_cost.layers import series
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Outcome, Placing
from symbolic_cost.layers.series import Channels, Foretold, Span
from symbolic_cost.models.audio.recordings import recorded, sizes_of
from symbolic_cost.models.encoder_decoders.sizes import Source
from symbolic_cost.models.encoders.changes import Tables
from symbolic_cost.models.encoders.config import head_of, running
from symbolic_cost.models.encoders.encoder import ATTENTION, Encoder, Traits
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import exact

FORECAST, REGRESSION = "ForPrediction", "ForRegression"
PATCHTST = Encoder(
    Channels(),
    ATTENTION,
    branch=Branch(Norm.BATCH, outcome=Outcome.DROP),
    pooler=None,
    heads={
        FORECAST: Foretold(),
        "ForPretraining": Foretold(Span.EACH),
        REGRESSION: Foretold(Span.CHANNELS),
        "ForClassification": Foretold(Span.CHANNELS),
    },
    traits=Traits(dropouts=("attention_dropout", "path_dropout")),
    source="nie-2022",
)
_PARAMETERS = {"student_t": 3, "normal": 2, "negative_binomial": 2}
"""Parameters of distributions."""


def patchtst(fields: Fields, shape: Shape) -> Model:
    """Declare a PatchTST, whose configuration gives the length of its series."""
    family, numbers = running(fields, PATCHTST), sizes_of(fields)
    channels, patch = fields.size("num_input_channels", 1), fields.size("patch_length", 1)
    whole, step = fields.size("context_length", 32), fields.size("patch_stride", 1)
    problem = f"more than the {patch} of patch_length is accepted"
    fields.require(holds=whole > patch, problem=problem, name="context_length")
    patches = max((whole - patch) // step + 1, 1)
    shared = fields.flag("share_embedding", default=True) or channels == 1
    places = fields.text("positional_encoding_type", "sincos", ("sincos", "random"))
    kinds = {"batchnorm": Norm.BATCH, "layernorm": Norm.LAYER}
    first = fields.flag("pre_norm", default=True)
    bias = Bias.BOTH if fields.flag("bias", default=True) else Bias.NONE
    told, head = _told(fields, family, patch)
    family = replace(
        family,
        words=Channels(places, "" if shared else "n_o"),
        perceptron=replace(family.perceptron, bias=bias),
        branch=replace(
            family.branch,
            norm=kinds[fields.text("norm_type", "batchnorm", tuple(kinds))],
            placing=Placing.PRE if first else Placing.POST,
        ),
        heads=head,
    )
    beside = patches if fields.head.endswith(FORECAST) else channels
    sizes: Tables = {"n_s": patch, "n_o": max(channels - 1, 1), "p": patches, "n_v": told}
    sizes |= {"b_s": shape.b, "e_c": beside * numbers["e"]}
    source = Source(exact(patches), sizes, series.AXES)
    return recorded(fields, replace(shape, b=shape.b * channels), family, numbers, source)


def _told(fields: Fields, family: Encoder, patch: int) -> tuple[int, dict[str, Foretold]]:
    """Read how many values are foretold, and by which head."""
    end, values = head_of(fields, family), fields.source.values
    own = family.heads.get(end)
    pools = isinstance(own, Foretold) and own.span is not Span.EACH
    whole = end == FORECAST and values.get("pooling_type", "mean") is None
    if pools and not whole:
        fields.text("pooling_type", "mean", ("mean",))
    read = ("pooling_type", "prediction_length", "num_targets", "loss", "distribution_output")
    told = patch
    if pools:
        lengths = ("prediction_length", 24) if end == FORECAST else ("num_targets", 1)
        told = fields.size(*lengths)
    fields.ignore(*read)
    if not isinstance(own, Foretold):
        return 1, {}
    if end in {FORECAST, REGRESSION} and values.get("loss", "mse") != "mse":
        kind = fields.text("distribution_output", "student_t", tuple(_PARAMETERS))
        own = replace(own, products=_PARAMETERS[kind])
    return told, {end: replace(own, span=Span.ALL) if whole else own}
