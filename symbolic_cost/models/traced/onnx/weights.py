"""Which tensors of a file are parameters: the format does not say.

torch.export says it beside each value. Elsewhere a tensor of numbers is a parameter if a product, a
lookup, a norm or a convolution takes it, or a function of elements together with what comes from
one: frequencies times positions and statistics of batch norms are none.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from symbolic_cost.models.traced.onnx.file import Call, OnnxFile, Stored

FLOATS = frozenset({1, 10, 11, 16, 17, 18, 19, 20})
"""Data types of numbers that may have a gradient."""

_SURE: Mapping[str, range] = {
    **dict.fromkeys(("MatMul", "FusedMatMul", "Gemm", "Linear", "Einsum"), range(9)),
    "Conv": range(1, 3),
    "ConvTranspose": range(1, 3),
    "LayerNormalization": range(1, 3),
    "RMSNormalization": range(1, 2),
    "SimplifiedLayerNormalization": range(1, 2),
    "GroupNormalization": range(1, 3),
    "InstanceNormalization": range(1, 3),
    "BatchNormalization": range(1, 3),
    "PRelu": range(1, 2),
    "Gather": range(1),
    "GatherND": range(1),
    "Recurrence": range(3, 11),
}
"""Places at which operators take parameters."""

_LAYER_NORMS = ("LayerNormalization", "RMSNormalization")
_CONVOLUTIONS = ("Conv", "ConvTranspose")
_CONVOLVED = ("x", "weight", "bias")
_COMPUTED = re.compile(r".*(::|/)|(val|const\w*?)_?\d+$")
"""Names that exporters give to what they compute from parameters."""

_MATRIX = (0, 1)
_LOOKS, _SEEN = 512, 64
_MOST_TOLD = 4
_FIXED: Mapping[str, range] = {
    "BatchNormalization": range(3, 5),
    "RotaryEmbedding": range(1, 3),
    "Resize": range(1, 4),
    "Upsample": range(1, 2),
}
"""Places at which operators take what is not learnt: statistics, tables of angles, factors."""

MOVED = frozenset(
    {"Identity", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Cast", "Expand", "Split", "Slice"}
)


def weights_of(file: OnnxFile, notes: Counter[str]) -> frozenset[str]:
    """Return the names of the parameters; what was assumed is noted."""
    floats = {name: one for name, one in file.stored.items() if one.dtype in FLOATS}
    told = any(one.kind for one in file.stored.values())
    sure = {name for name, one in floats.items() if one.kind == "PARAMETER"}
    never = {name for name, one in floats.items() if one.kind not in ("", "PARAMETER")}
    open_ = {
        name: one
        for name, one in floats.items()
        if name not in sure | never and (one.count > 1 or not (told or _made_up(name)))
    }
    for name in _neutral(file.calls, open_, told=told):
        del open_[name]
    fixed = _operands_at(file.calls, _FIXED, open_)
    open_ = {name: one for name, one in open_.items() if name not in fixed}
    if told:
        # Constants that the exporter computed from parameters: turned matrices, and rows.
        sure |= _operands_at(file.calls, _SURE, open_)
    else:
        sure = _operands_at(file.calls, _SURE, open_)
    _note_folded(file, sure, notes, told=told)
    rest = {name for name, one in open_.items() if name not in sure and not _mask(one)}
    return frozenset(sure | _assumed(file, rest, sure, notes))


def _neutral(calls: Sequence[Call], names: Mapping[str, Stored], *, told: bool) -> set[str]:
    """Return the ones and zeros of norms: of groups, whose parameters later ops take, or without.

    Where numbers are kept elsewhere, they are those if other values are told to be parameters; so
    are those that an exporter named for a norm of layers, whose own parameters are told.
    """
    norms = ("InstanceNormalization", *_LAYER_NORMS * told)
    given = {
        name
        for call in calls
        if call.op in norms
        for name in call.inputs[1:3]
        if call.op not in _LAYER_NORMS or _COMPUTED.match(name)
    }
    return {
        name
        for name in given & names.keys()
        if _made_up(name) and (told if names[name].raw is None else _distinct(names[name]) == 1)
    }


def _assumed(file: OnnxFile, names: set[str], sure: set[str], notes: Counter[str]) -> set[str]:
    """Return what functions of elements take beside what comes from parameters."""
    assumed = _beside(file.calls, names, sure)
    told = sorted(name for name in assumed if len(file.stored[name].dims) > 1)
    if told:
        said = ", ".join(told[:_MOST_TOLD]) + (" ..." if len(told) > _MOST_TOLD else "")
        notes[f"counted as parameters, though no product or lookup takes them: {said}"] = len(told)
    return assumed


def _note_folded(file: OnnxFile, sure: set[str], notes: Counter[str], *, told: bool) -> None:
    """Note biases of convolutions that the exporter computed, as from a norm after them.

    Modules say `stem.weight` and `stem.bias`. A norm of c channels that is folded into a
    convolution leaves c numbers (its bias) of 2 c (of 3 c, if the convolution had a bias).
    """
    folded = 0
    for call in file.calls:
        if call.op not in _CONVOLUTIONS or len(call.inputs) < len(_CONVOLVED):
            continue
        weight, bias = call.inputs[1:3]
        stem, own, _ = weight.rpartition("weight")
        computed = told and not file.stored[bias].kind if bias in sure else False
        if {weight, bias} <= sure and (not own or bias != f"{stem}bias" or computed):
            folded += file.stored[bias].count
    if folded:
        notes[
            "biases of convolutions are those that an exporter makes: where they are batch norms "
            f"that it folded, {folded} parameters more, twice that beside biases of their own"
        ] += 1


def note_computed(file: OnnxFile, names: Collection[str], notes: Counter[str]) -> None:
    """Note what an exporter computed and an op takes as a parameter, where it tells these apart.

    It may be a parameter that it turned or scaled, or a buffer: a table of integers as numbers.
    """
    told = any(one.kind for one in file.stored.values())
    computed = [name for name in names if told and not file.stored[name].kind]
    if computed:
        count = sum(file.stored[name].count for name in computed)
        said = ", ".join(computed[:_MOST_TOLD]) + (" ..." if len(computed) > _MOST_TOLD else "")
        notes[
            f"{count} parameters are numbers that the exporter computed, from parameters or from "
            f"buffers: {said}"
        ] = len(computed)


def _mask(one: Stored) -> bool:
    return len(one.dims) >= len(_MATRIX) and 0 < _distinct(one) <= len(_MATRIX)


def _distinct(one: Stored) -> int:
    """Return how many numbers there are at some places of a tensor; 0 where it is elsewhere."""
    raw, size = one.raw, 0 if one.raw is None else len(one.raw) // max(one.count, 1)
    if raw is None or not size:
        return 0
    places = (look * 104_729 % one.count * size for look in range(_LOOKS))
    return len({bytes(raw[at : at + size]) for at in places})


def parameter_names(file: OnnxFile, weights: Collection[str]) -> dict[str, str]:
    """Return a name for every parameter: that of its module where the exporter made one up."""
    paths: dict[str, str] = {}
    for call in file.calls:
        for name in call.inputs:
            paths.setdefault(name, call.path)
    names: dict[str, str] = {}
    for name in sorted(weights):
        own = f"{paths.get(name)}.weight" if _made_up(name) and paths.get(name) else name
        while own in names.values():
            own = f"{own}_"
        names[name] = own
    return names


def _made_up(name: str) -> bool:
    """Tell whether an exporter made a name up: those of modules have dots."""
    return "." not in name or "::" in name or "/" in name


def _operands_at(
    calls: Sequence[Call], places: Mapping[str, range], names: Mapping[str, Stored]
) -> set[str]:
    roots = {name: name for name in names}
    taken: set[str] = set()
    for call in calls:
        if call.op in MOVED and call.inputs and call.inputs[0] in roots:
            roots.update(dict.fromkeys(call.outputs, roots[call.inputs[0]]))
        for place in places.get(call.op, ()):
            if place < len(call.inputs) and call.inputs[place] in roots:
                taken.add(roots[call.inputs[place]])
    return taken


def _beside(calls: Sequence[Call], names: set[str], sure: set[str]) -> set[str]:
    """Return names that functions of elements take beside what comes from parameters."""
    moving = set(sure)
    roots = {name: name for name in names}
    beside: set[str] = set()
    for call in calls:
        if not moving.isdisjoint(call.inputs):
            if call.op not in _SURE:  # of those the places are known: an image is no parameter
                beside |= {roots[name] for name in call.inputs if name in roots}
            moving.update(call.outputs)
        elif call.op in MOVED and call.inputs and call.inputs[0] in roots:
            roots.update(dict.fromkeys(call.outputs, roots[call.inputs[0]]))
        elif not beside.isdisjoint(call.inputs):
            moving.update(call.outputs)
    return beside


def copies(
    file: OnnxFile, weights: Collection[str], notes: Counter[str]
) -> dict[str, tuple[str, bool]]:
    """Return matrices that exporters store again: of which weight, and whether turned.

    Those are a table turned, as a head takes it, and what the exporter computed and named itself.
    Both are compared at some places; where a file keeps its weights elsewhere, it is told.
    """
    matrices = {n: file.stored[n] for n in weights if len(file.stored[n].dims) == len(_MATRIX)}
    matrices = {n: one for n, one in matrices.items() if one.count}
    shapes = Counter(tuple(sorted(map(str, one.dims))) for one in matrices.values())
    matrices = {n: m for n, m in matrices.items() if shapes[tuple(sorted(map(str, m.dims)))] > 1}
    tables = _operands_at(file.calls, {"Gather": range(1)}, matrices)
    made = {n for n, one in matrices.items() if _COMPUTED.match(n) and one.kind != "PARAMETER"}
    places = {name: place for place, name in enumerate(file.stored)}
    first: dict[tuple[object, ...], str] = {}
    found: dict[str, tuple[str, bool]] = {}
    for name in sorted(matrices, key=lambda n: (n not in tables, n in made, places[n])):
        one = matrices[name]
        if one.raw is None:
            continue
        for flip in (True, False):
            own = first.get(_seen(one, one.raw, flip=flip))
            told = own in tables and flip
            if own and (told or (name in made and _distinct(one) > len(_MATRIX))):
                found[name] = own, flip
                break
        else:
            first.setdefault(_seen(one, one.raw), name)
    _note_untold(matrices, tables, made, notes)
    return found


def _note_untold(
    matrices: Mapping[str, Stored], tables: set[str], made: set[str], notes: Counter[str]
) -> None:
    """Note matrices of the shape of another turned, where one of both is kept elsewhere."""
    for table in matrices.keys() - made | tables:
        alike = [
            name
            for name in (matrices if table in tables else made)
            if name != table
            and matrices[name].dims == matrices[table].dims[::-1]
            and (matrices[name].raw is None or matrices[table].raw is None)
        ]
        if alike:
            name = max(alike, key=list(matrices).index)
            notes[
                f"{name} has the shape of {table} turned: where both are one (tied), "
                f"{matrices[name].count} parameters fewer"
            ] += 1


def _seen(one: Stored, raw: memoryview, *, flip: bool = False) -> tuple[object, ...]:
    """Return what a matrix is known by: its type, sizes and some elements; those of it turned."""
    size = len(raw) // max(one.count, 1)
    rows, columns = one.dims[::-1] if flip else one.dims
    elements = []
    for look in range(_SEEN):
        i, j = look * 7919 % rows, look * 104_729 % columns
        at = (j * rows + i if flip else i * columns + j) * size
        elements.append(bytes(raw[at : at + size]))
    return (one.dtype, len(raw), rows, columns, *elements)
