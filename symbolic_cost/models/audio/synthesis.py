"""Builder of SpeechT5: a text of l tokens is read aloud in half as many positions of frames."""

from __future__ import annotations

from dataclasses import replace

from symbolic_cost.axes import axes
from symbolic_cost.layers import conformer
from symbolic_cost.layers.conformer import KeyedDistances
from symbolic_cost.layers.embeddings import COMPUTED
from symbolic_cost.layers.residual import Branch, Outcome, Placing
from symbolic_cost.layers.speech_synthesis import Frames, Weighed, Written
from symbolic_cost.models.encoder_decoders.config import bart_numbers, declared, lengths, running
from symbolic_cost.models.encoder_decoders.seq2seq import Reads, Seq2Seq
from symbolic_cost.models.encoder_decoders.sizes import Source
from symbolic_cost.models.encoders.encoder import ATTENTION
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import exact

_READ = "ForTextToSpeech"

_PLACES = {"position": COMPUTED}
SPEECHT5 = Seq2Seq(
    Weighed(tables=_PLACES),
    near=KeyedDistances(**{**vars(ATTENTION), "table": "@near"}),
    branch=Branch(placing=Placing.POST, outcome=Outcome.DROP),
    last=None,
    reads=Reads(dropouts=("attention_dropout", "hidden_dropout"), untied=True),
    source="ao-2021",
)


def speecht5(fields: Fields, shape: Shape) -> Model:
    """Declare a SpeechT5 that reads texts aloud."""
    read = ("speech_decoder_prenet_layers", 2), ("speech_decoder_postnet_layers", 5)
    first, last = (fields.size(*one) for one in read)
    family = replace(SPEECHT5, ahead=Frames(tables=_PLACES, layers=first))
    family, numbers, own = bart_numbers(
        fields, replace(running(fields, family), heads={_READ: Written(last)})
    )
    known = lengths(shape, _READ)
    e, frames = numbers["e"], fields.size("reduction_factor", 2)
    mels, speaker = fields.size("num_mel_bins", 80), fields.size("speaker_embedding_dim", 512)
    kernel = fields.size("speech_decoder_postnet_kernel", 5)
    odd = "an odd kernel is accepted"
    fields.require(holds=kernel % 2 == 1, problem=odd, name="speech_decoder_postnet_kernel")
    fields.assume("speaker_embedding_dim", "features of a speaker are given")
    inner = fields.size("speech_decoder_prenet_units", 256)
    wide = fields.size("speech_decoder_postnet_units", 256)
    sizes = {f"w_{i}": inner for i in range(first)} | {f"c_{i}": wide for i in range(1, last)}
    sizes |= {"n_m": mels, "n_w": mels, "w_s": speaker, "w_b": e + speaker, "n_r": frames}
    sizes |= {"s_k": kernel, "n_side": 2 * fields.size("encoder_max_relative_position", 160)}
    named = [*(f"{axis} whole" for axis in sizes), "x_q key-token", "x_p token patch"]
    tokens = exact(known["l_t"])
    every = {**sizes, "x_q": tokens, "x_p": tokens * frames}
    source = Source(exact(known["l"]), every, {**conformer.AXES, **axes(", ".join(named))})
    return declared(fields, shape, family, numbers, own, source=source)
