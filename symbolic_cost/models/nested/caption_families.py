"""Decoders that attend to an image, to a text or to a recording, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.codebooks import Codes, PredictedCodes
from symbolic_cost.layers.embeddings import BERT_TABLES, COMPUTED, PLACES, Change
from symbolic_cost.layers.heads import Hidden, Output, Predicted
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Outcome, Placing
from symbolic_cost.models.encoder_decoders.seq2seq import GENERATED, WORDS, Seq2Seq
from symbolic_cost.models.encoders.encoder import ATTENTION
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Caption:
    """A decoder that attends to an image.

    Args:
        family: its blocks and head.
        dropouts: fields of the rates of attention and of what is hidden.
        offset: rows of the position table that no position uses.
        widening: perceptron width as a multiple of the embedding's unless given.
        function: the activation function unless given.
        sizes: fields of the layers, of the heads and of the perceptron's width.
    """

    family: Seq2Seq
    dropouts: tuple[str, str] = ("attention_probs_dropout_prob", "hidden_dropout_prob")
    offset: int = 0
    widening: int | None = None
    function: str = "gelu"
    sizes: tuple[str, str, str] = ("num_hidden_layers", "num_attention_heads", "intermediate_size")


MUSIC = "musicgen_decoder"
_POST = Branch(placing=Placing.POST, outcome=Outcome.DROP)
_BERT = Seq2Seq(
    replace(WORDS, tables=BERT_TABLES),
    branch=_POST,
    last=None,
    heads={GENERATED: Predicted(Hidden("gelu", norm=Norm.LAYER), output=Output.TIE | Output.BIAS)},
    source="devlin-2018",
)
_BART = Caption(
    Seq2Seq(),
    ("attention_dropout", "dropout"),
    offset=2,
    sizes=("decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"),
)


def _spoken(places: str) -> Caption:
    """Return a decoder of what a Conformer hears."""
    words = replace(WORDS, tables={"position": places}, changes=Change.NONE)
    heads = {GENERATED: Predicted(output=Output.TIE | Output.BIAS)}
    family = Seq2Seq(words, heads=heads, branch=Branch(), source="sekoyan-2025")
    return Caption(family, ("attention_dropout", "hidden_dropout_prob"), function="relu")


CAPTIONS: Mapping[str, Caption] = MappingProxyType(
    {
        "blip_text_model": Caption(replace(_BERT, words=WORDS)),
        "bert": Caption(_BERT),
        **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), Caption(_BERT)),
        "bert-generation": Caption(
            replace(
                _BERT,
                words=WORDS,
                heads={GENERATED: Predicted(output=Output.TIE | Output.BIAS)},
            )
        ),
        MUSIC: Caption(
            Seq2Seq(
                Codes(tables={"position": COMPUTED}, norm=None),
                attention=replace(ATTENTION, bias=Bias.NONE),
                perceptron=MLP(bias=Bias.NONE),
                heads={GENERATED: PredictedCodes()},
                source="copet-2023",
            ),
            ("attention_dropout", "dropout"),
            sizes=("num_hidden_layers", "num_attention_heads", "ffn_dim"),
        ),
        "canary_decoder": _spoken(COMPUTED),
        "cohere_asr_decoder": _spoken(PLACES),
        "trocr": replace(_BART, family=Seq2Seq(branch=_POST, last=None)),
        "mbart": _BART,
        "gpt2": Caption(
            Seq2Seq(words=replace(WORDS, norm=None)),
            ("attn_pdrop", "resid_pdrop"),
            widening=4,
            function="gelu_new",
        ),
    }
)
"""Decoders by model_type."""
