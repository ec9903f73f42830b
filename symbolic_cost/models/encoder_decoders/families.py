"""The encoder-decoder families, as values: a family that mixes known parts is one entry."""

from collections.abc import Mapping
from dataclasses import replace

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Attention, Bias, HeadNorm, Projection, Rotated
from symbolic_cost.layers.attention_core import GROUPED, AttentionCore, Step
from symbolic_cost.layers.block_attention import Blocks
from symbolic_cost.layers.embeddings import COMPUTED, PLACES, Change, Words
from symbolic_cost.layers.foreseeing import Ahead, Foreseeing, Foreseen
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.heads import Output, Predicted
from symbolic_cost.layers.local_attention import Neighbours
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts, Shares, Trait
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.relative import Distances
from symbolic_cost.layers.residual import Branch, Outcome, Placing
from symbolic_cost.models.encoder_decoders.seq2seq import (
    GENERATED,
    HEADS,
    WORDS,
    Merged,
    Reads,
    Seq2Seq,
)
from symbolic_cost.models.encoders.encoder import ATTENTION

_POST = Branch(placing=Placing.POST, outcome=Outcome.DROP)
_BARE_WORDS = replace(WORDS, norm=None)
_TWO = Reads(offset=2)

BART = Seq2Seq(branch=_POST, last=None, reads=_TWO)
PEGASUS = Seq2Seq(words=_BARE_WORDS)
T5 = Seq2Seq(
    Words(tables={}, norm=None),
    perceptron=MLP("relu", Bias.NONE),
    branch=Branch(Norm.RMS, outcome=Outcome.DROP),
    last=Norm.RMS,
    last_dropped=True,
    distances=Distances.ONCE,
    reads=Reads(dropouts=("dropout_rate", "dropout_rate"), function="relu", untied=True),
    attention=replace(ATTENTION, bias=Bias.NONE),
    heads={**HEADS, GENERATED: Predicted(output=Output.TIE | Output.SINGLE)},
    source="raffel-2019",
)

_SOFT = Step.CAST | Step.COPY | Step.CAP
T5GEMMA = Seq2Seq(
    Words(tables={}, norm=None, changes=Change.DROP | Change.SCALE),
    attention=Attention(
        GROUPED,
        Projection.SEPARATE,
        Bias.NONE,
        rotated=Rotated.WHOLE,
        core=AttentionCore(steps=_SOFT),
    ),
    perceptron=GatedMLP("gelu_tanh"),
    branch=Branch(Norm.RMS_SHIFTED, Placing.SANDWICH),
    last=Norm.RMS_SHIFTED,
    tables=("@source", "@token"),
    heads={**HEADS, GENERATED: Predicted(output=Output.TIE | Output.CAP)},
)
T5GEMMA2 = Merged(
    **{
        **vars(T5GEMMA),
        "tables": ("@token", "@token"),
        "attention": replace(
            T5GEMMA.attention,
            norm=Norm.RMS_SHIFTED,
            head_norm=HeadNorm.HEAD,
            core=AttentionCore(steps=Step.CAST | Step.COPY),
        ),
    }
)

SEQ2SEQ: Mapping[str, Seq2Seq] = {
    **dict.fromkeys(("bart", "mvp", "plbart"), BART),
    "mbart": replace(BART, branch=Branch(outcome=Outcome.DROP), last=Norm.LAYER),
    **dict.fromkeys(("pegasus", "blenderbot"), PEGASUS),
    "bigbird_pegasus": replace(PEGASUS, attention=replace(PEGASUS.attention, bias=Bias.NONE)),
    "marian": replace(PEGASUS, branch=_POST, last=None),
    "blenderbot-small": replace(BART, reads=Reads()),
    "led": replace(BART, reads=Reads(), near=Neighbours(**vars(BART.attention))),
    # Positions are computed as far as they are needed, and stored as parameters.
    "fsmt": replace(
        PEGASUS,
        words=replace(PEGASUS.words, tables={"place": PLACES}),
        branch=_POST,
        last=None,
        tables=("@source", "@token"),
        reads=Reads(offset=1, function="relu", untied=True),
    ),
    "prophetnet": replace(
        BART,
        reads=Reads(),
        far=Foreseeing(**vars(BART.attention)),
        ahead=Ahead(),
        heads={GENERATED: Foreseen()},
    ),
    "m2m_100": replace(PEGASUS, words=replace(_BARE_WORDS, tables={"position": COMPUTED})),
    **dict.fromkeys(("t5", "mt5", "pop2piano", "chronos_bolt"), T5),
    "longt5": replace(T5, near=Blocks(**vars(T5.attention))),
    "nllb-moe": replace(
        PEGASUS,
        words=replace(_BARE_WORDS, tables={"position": COMPUTED}),
        experts=MixtureOfExperts("relu", Bias.INNER, traits=Trait.PLAIN),
        # Transformers computes a token for every expert, chosen or not.
        capacity=symbols.E / symbols.E_t,
        reads=Reads(function="relu"),
    ),
    "switch_transformers": replace(
        T5,
        experts=MixtureOfExperts("relu", shares=Shares.PLAIN, traits=Trait.PLAIN),
        reads=replace(T5.reads, untied=False),
    ),
    "t5gemma": T5GEMMA,
    "t5gemma2": T5GEMMA2,
    "umt5": replace(T5, distances=Distances.EACH),
}
"""Families by model_type."""
