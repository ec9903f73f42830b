"""Recurrences: the weights of a file taken apart by direction, and all steps as one operator."""

from collections.abc import Mapping

from symbolic_cost.models.traced.graph import Name
from symbolic_cost.models.traced.onnx.file import Call
from symbolic_cost.models.traced.onnx.reading import FLOAT, Reading, op
from symbolic_cost.models.traced.onnx.rewriting import MICROSOFT, Rewriting, rewrites
from symbolic_cost.records import replace

_TARGETS: Mapping[str, str] = {"LSTM": "aten.lstm", "GRU": "aten.gru", "RNN": "aten.rnn_tanh"}
_WAYS: Mapping[str, int] = {"forward": 1, "reverse": 1, "bidirectional": 2}
_MATRICES = ("W", "R")


@rewrites(*_TARGETS)
@rewrites("DynamicQuantizeLSTM", domain=MICROSOFT)
def apart(w: Rewriting, call: Call) -> None:
    """A recurrence with matrices [4 h, e], [4 h, h] and two biases [4 h] of every direction."""
    x, *matrices, bias, lengths, hidden, cell, peepholes = (*call.inputs, *[""] * 8)[:8]
    if peepholes or call.attributes.get("layout", 0):
        raise ValueError("steps before batches (layout = 0) without peepholes are accepted")
    if lengths:
        w.notes["lengths of sequences are not read: all steps are counted"] = 1
    weights: list[str] = []
    ways = _WAYS[str(call.attributes.get("direction", "forward"))]
    for way in range(ways):
        for name in matrices:
            # Integers are stored the other way round: [e, 4 h].
            turned = slice(None, None, -1 if call.op.startswith("Dynamic") else 1)
            weights.append(_stored(w, f"{name}.{way}", name, w.dims(name)[1:][turned]))
        if bias:
            width = w.dims(bias)[1] // len(_MATRICES)
            weights += [_stored(w, f"{bias}.{way}.{side}", bias, (width,)) for side in _MATRICES]
    kind = call.op.removeprefix("DynamicQuantize")
    told = {"kind": kind, "ways": ways, "biased": bool(bias)}
    w.parts("Recurrence", (x, hidden, cell, *weights), call.outputs, **told)


def _stored(w: Rewriting, name: str, whole: str, dims: tuple[int, ...]) -> str:
    """Note a part of a tensor of the file as a tensor."""
    w.stored[name] = replace(
        w.stored[w.weight(whole)], name=name, dims=dims, numbers=None, raw=None
    )
    return name


@op("Recurrence")
def recurrence(r: Reading, call: Call) -> None:
    """All steps, in every direction."""
    x, hidden, cell, *weights = call.inputs
    ways, kind = call.attributes["ways"], call.attributes["kind"]
    steps, batch, _ = r.sizes(x)
    width = int(r.sizes(weights[1])[1])
    state, between = (ways, batch, width), r.between()
    first = [Name(one or r.make(f"{between}/first", state, FLOAT)) for one in (hidden, cell)]
    args = {
        "input": Name(x),
        "hx": first if kind == "LSTM" else first[0],
        "params": [Name(one) for one in weights],
        "has_biases": call.attributes["biased"],
        "num_layers": 1,
        "bidirectional": ways > 1,
    }
    last = [name or f"{between}/last{i}" for i, name in enumerate((*call.outputs, "", "")[1:3])]
    results = [between, *last[: 2 if kind == "LSTM" else 1]]
    for name, sizes in zip(results, ((steps, batch, ways * width), state, state), strict=False):
        r.make(name, sizes, FLOAT)
    r.emits(_TARGETS[kind], args, results)
    if call.outputs[0]:
        sides = (steps, batch, ways, width)
        split = r.emit("aten.reshape", {"self": Name(between)}, sides, FLOAT, r.between())
        args = {"self": Name(split), "dims": [0, 2, 1, 3]}
        r.emit("aten.permute", args, (steps, ways, batch, width))
