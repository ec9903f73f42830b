"""What of a model is trained, from words: terms joined by "+".

    all                          every weight, as where nothing is said
    connector,head               the weights of these parts, ops or names alone
    all-but:embedding,vision     every weight but these
    lora:r=16,q,v                adapters beside these products; r_a is the rank without a number
    adapter:r=64,proj,down       bottlenecks behind these products
    lora:r=16,all-linear+head    the same beside every linear layer of the blocks, and the head
    lora:r=16,q,v+frozen:nf4     frozen linear layers are stored in 4 bits (QLoRA)

A name is the beginning of a path of the model's tree, such as `head` or `block.attention`, else a
piece of paths, such as `mlp.down` or `q`; the names of checkpoints (`q_proj`) are understood where
the tree has none of that name and checkpoints call no other layer so.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from sympy import Expr, Integer

from symbolic_cost.errors import InputError, PatternError, Problems, quote, refuse, unknown
from symbolic_cost.layers import adapters
from symbolic_cost.layers.adapters import Adapter, Bottleneck, is_target
from symbolic_cost.models.modules import GRAPHS, called, place
from symbolic_cost.models.paths import below, in_checkpoints, routes, said
from symbolic_cost.models.quantized import stored_as
from symbolic_cost.ops.declare import Op, Operand, glossary
from symbolic_cost.ops.graph import ALL, Model
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.trained import Key, key_of, training_only
from symbolic_cost.records import dataclass, replace
from symbolic_cost.symbols import r_a

_METHODS: Mapping[str, type[Adapter]] = {"lora": Adapter, "adapter": Bottleneck}
_ALL_BUT, _FROZEN, _LINEAR, _RANK = "all-but", "frozen", "all-linear", "rank"
_MOST = 10**6

_EXAMPLE = "all, connector,head, all-but:embedding or lora:r=16,q,v is accepted"


def training(model: Model, text: str, *, step: bool = False) -> Model:
    """Return a model of which only what the words say is trained.

    Args:
        model: trained as a whole, or made by this function from one that is.
        text: terms; see the module.
        step: whether this is a step of a model that has parts which the step lacks.

    Raises:
        InputError: every term that is none, and every name that nothing has.
    """
    whole = first = model if model.origin is None else model.origin
    if not isinstance(text, str):
        raise InputError(f"train = {quote(text)}: a text is accepted: {_EXAMPLE}")
    terms = [term.strip() for term in text.split("+")]
    refuse(
        f"train: {quote(text)} says {quote(term)} more than once"
        for term, times in Counter(terms).items()
        if times > 1
    )
    if model.trains == "+".join(terms):
        return model
    if terms == [ALL]:
        return whole
    problems = Problems()
    every = [problems.attempt(_term, term) for term in terms]
    problems.refuse()
    read = [term for term in every if term.but != _FROZEN]
    formats = [term for term in every if term.but == _FROZEN]
    if not read or len(formats) > 1:
        problems.texts.append(f"train: {quote(text)}: one format, and what is trained, is accepted")
    elif formats:
        whole = problems.attempt(stored_as, whole, ",".join(formats[0].names))
    problems.refuse()
    linear, weights = partial(_linear, step=step), partial(_weights_of_term, step=step)
    adapted, own = replace(whole, origin=None), set[Key]()
    beside = [(term, problems.attempt(linear, whole, term)) for term in read if term.method]
    plain = [problems.attempt(weights, whole, term) for term in read if not term.method]
    problems.refuse()
    if len(read) > 1 and own.union(*plain) == _learning(whole):
        raise InputError(f"train: {quote(text)} is every weight: {ALL} alone is accepted")
    for number, (term, targets) in enumerate(beside):
        adapted, added = _attached(adapted, term, targets, number)
        own |= added
    own = own.union(*plain)
    if formats and own >= whole.stored.keys():
        raise InputError(f"train: {quote(formats[0].text)}: no linear layer is left frozen")
    trained = training_only(adapted, frozenset(own))
    return replace(trained, trains="+".join(terms), origin=first)


@dataclass(frozen=True, slots=True)
class _Term:
    """One term.

    Args:
        method: of adapters; empty where weights themselves are trained.
        rank: of these.
        names: what is meant.
        but: whether all others are meant, or the format of what is frozen; else empty.
    """

    text: str
    method: str
    rank: Expr
    names: tuple[str, ...]
    but: str


def _term(text: str) -> _Term:
    head, _, rest = (piece.strip() for piece in text.replace(" ", ":", 1).partition(":"))
    methods = [*_METHODS, _ALL_BUT, _FROZEN]
    is_method = head in methods
    if not is_method and (rest or "=" in head):
        raise InputError(f"train: {unknown('method', head, methods)}")
    words = [word.strip() for word in (rest if is_method else head).split(",")]
    method = head if head in _METHODS else ""
    ranks = [word for word in words if method and "=" in word]
    names = tuple(word for word in words if word not in ranks)
    twice = [name for name, times in Counter(names).items() if times > 1]
    strange = [name for name in names if not re.fullmatch(r"@?\w[\w.-]*", name)]
    problems = [f"train: {quote(text)} names nothing: {_EXAMPLE}"] if not any(names) else []
    problems += [f"train: {quote(n)} is no name of a part, op or weight" for n in strange if n]
    problems += [f"train: {quote(text)} names {quote(name)} more than once" for name in twice]
    if len(ranks) > 1:
        problems.append(f"train: {quote(text)} gives r more than once")
    rank: Expr = r_a
    for word in ranks[:1]:
        match = re.fullmatch(r"r\s*=\s*([0-9]{1,9})", word)
        if match is None or not 0 < int(match[1]) <= _MOST:
            problems.append(f"train: {quote(word)}: r=NUMBER from 1 to {_MOST} is accepted")
        else:
            rank = Integer(match[1])
    if problems:
        raise InputError(problems)
    return _Term(text, method, rank, names, head if is_method and not method else "")


def _weights_of_term(model: Model, term: _Term, *, step: bool) -> set[Key]:
    """Return the weights that a term means."""
    every, paths = _learning(model), _paths(model)
    matching = _matching(model, term, ("weight", paths), {ALL: paths.keys()}, step=step)
    meant = {key for path in matching for key in paths[path]}
    left = every - meant if term.but else meant & every
    if not (left or step):
        raise InputError(f"train: {quote(term.text)} leaves no weight that is trained")
    return left


def _learning(model: Model) -> set[Key]:
    return {key_of(part, one) for part, _, one in _weights(model) if one.needs_gradient}


def _weights(model: Model) -> Iterator[tuple[Part, Op, Operand]]:
    for part in model.parts:
        for op in part.ops:
            for weight in op.weights:
                yield part, op, weight


def _paths(model: Model) -> dict[str, set[Key]]:
    """Return every weight by its path; one whose path another has as well stands beside it."""
    paths: dict[str, set[Key]] = {}
    for part, op, weight in _weights(model):
        paths.setdefault(place(model, part, op, weight), set()).add(key_of(part, weight))
    return paths


def _matching(
    model: Model,
    term: _Term,
    every: tuple[str, Iterable[str]],
    words: Mapping[str, Collection[str]],
    *,
    step: bool,
) -> set[str]:
    """Return the paths that the names of a term mean.

    Args:
        model: whose paths these are.
        term: with names.
        every: what the paths are of, and all of them.
        words: paths that a word of its own means.
        step: whether names may mean nothing.
    """
    (what, paths), meant, problems = every, set[str](), []
    for name in term.names:
        matching = words[name] if name in words else called(model, paths, name)
        meant |= {*matching}
        if not (matching or step):
            pieces = {piece for path in paths for piece in path.split(".")}
            problems.append(f"train: {unknown(f'{what} of model {model.name!r}', name, pieces)}")
        problems += [] if model.source in GRAPHS else _twice(name, matching)
    refuse(problems)
    return meant


def _twice(name: str, paths: Collection[str]) -> list[str]:
    """Refuse a name of blocks that is one of ops in them as well.

    For example `experts` of DeepSeek-V3, whose blocks with experts are at experts.block.
    """
    inner = sorted(path for path in paths if f".{name}." in path.removeprefix(name))
    if not inner or len(inner) == len(paths):
        return []
    blocks = ".".join(inner[0].split(".")[:2])
    ops = ".".join(inner[0].removeprefix(f"{blocks}.").partition(f"{name}.")[:1]) + name
    return [f"train: {quote(name)} means {blocks} and {ops} in it: one of these is accepted"]


def _attached(model: Model, term: _Term, targets: set[str], number: int) -> tuple[Model, set[Key]]:
    """Return the model with the adapters of a term at some linear layers, and these."""
    rank = f"{_RANK}{number or ''}"
    kind, own = _METHODS[term.method], set[Key]()
    parts = []
    for part in model.parts:
        ops: tuple[Op, ...] = part.ops
        for op in part.ops:
            if f"{part.path}.{op.path}" in targets:
                own_op = next(one for one in ops if one.path == op.path)
                made = kind(ops, own_op, model.axes, rank, model.sizes)
                try:
                    ops = made.attached()
                except PatternError as error:
                    where = f"{part.path}.{op.path}"
                    raise InputError(
                        f"train: {where} takes one position of many, beside which no adapter is "
                        f"declared: name other layers ({error.problems[0]})"
                    ) from None
        extended = replace(part, ops=ops)
        before = {key_of(part, w) for o in part.ops for w in o.weights}
        own |= {key_of(extended, w) for o in ops for w in o.weights} - before
        parts.append(extended)
    known = {rank: replace(adapters.AXES[_RANK], name=rank)}
    axes = glossary(model.axes, known) if model.axes else model.axes
    sizes, bindings = {**model.sizes, rank: term.rank}, model.bindings
    if term.rank.is_Integer and r_a.name not in bindings:  # formulas have the symbol
        sizes, bindings = {**sizes, rank: r_a}, {**bindings, r_a.name: int(term.rank)}
    adapted = replace(model, parts=tuple(parts), sizes=sizes, axes=axes, bindings=bindings)
    return adapted, own


def _linear(model: Model, term: _Term, *, step: bool) -> set[str]:
    """Return the paths of the linear layers that a term means.

    Raises:
        InputError: names that nothing has, weights that are read twice, and words of checkpoints
            that may mean other layers as well.
    """
    layers = _layers(model)
    words = {**said(layers, model.family), _LINEAR: _of_blocks(model)}
    meant = _matching(model, term, ("linear layer", layers), words, step=step)
    problems = [
        f"train: {quote(path)} and {other} share a weight, beside which no adapter is declared"
        for path in sorted(meant)
        for other in _again(*layers[path])
    ]
    for name in term.names:
        vague = name == "dense" and model.source not in GRAPHS  # whose names are their own
        own = below(layers, name) if in_checkpoints(layers, name) or vague else set()
        inside = {path for path in own if not path.startswith("head.")}
        why = _doubt(model, layers, inside) if inside else ""
        why = "which may call layers of blocks so" if vague else why
        if why:
            pieces = ", ".join(sorted({".".join(path.split(".")[-2:]) for path in own}))
            problems.append(f"train: {quote(name)} is a word of checkpoints, {why}: name {pieces}")
    refuse(problems)
    return meant


def _layers(model: Model) -> dict[str, tuple[Part, Op]]:
    return {f"{p.path}.{o.path}": (p, o) for p in model.parts for o in p.ops if is_target(o)}


def _of_blocks(model: Model) -> set[str]:
    """Return the linear layers that all-linear means."""
    layers = _layers(model).items()
    return {path for path, (p, o) in layers if p.is_block and not routes(model, o)}


def not_all_linear(model: Model) -> Iterator[str]:
    """Say which parts have linear layers that all-linear does not mean, beside the head's."""
    whole = model.origin
    if whole is None or not any(_LINEAR in _term(one).names for one in model.trains.split("+")):
        return
    meant, layers = _of_blocks(whole), _layers(whole)
    inside = dict.fromkeys(layers[path][0].path for path in layers if path in meant)
    rest = dict.fromkeys(part.path for part, _ in layers.values() if part.path not in inside)
    others = [path for path in rest if path != "head"]
    if others:
        yield (
            f"{_LINEAR}: the linear layers of {', '.join(inside)}; "
            f"beside those of {', '.join(others)} there is no adapter unless they are named"
        )


def _again(part: Part, target: Op) -> Iterator[str]:
    """Yield other ops that read the weight of a linear layer."""
    own = {weight.tensor for weight in target.weights}
    for op in part.ops:
        if op is not target and own & {weight.tensor for weight in op.weights}:
            yield op.path


_OTHERWISE = {"bigbird_pegasus"}
"""Families whose encoder attends as the decoder does where sequences are short, by other names."""


def _doubt(model: Model, layers: Collection[str], meant: Collection[str]) -> str:
    """Return why checkpoints may call other layers so than those that are meant."""
    encoder, decoder = (_attending(model, side) for side in ("encoder", "decoder"))
    halves = any(path.endswith(".fc2") for path in meant)
    doubts = {
        "some of which hold experts as linear layers and others as one weight": any(
            ".experts." in path for path in meant
        ),
        "which may hold layers of the mixers under it": any(".mixer." in path for path in layers),
        "some of which hold gates of attention apart and others with its queries": any(
            path.endswith("attention.gate") for path in layers
        ),
        "which may call what attention ends with otherwise": halves
        and any(path.endswith(".attention.q") for path in layers),
        "which may call layers of the encoder otherwise": model.family in _OTHERWISE
        or (bool(encoder and decoder) and encoder != decoder),
        "which may call a layer of the head so": bool({*layers} & {"head.dense", "head.transform"}),
        "which may hold layers of a tower under it that is not declared": any(
            part.path.endswith(".block") and not part.is_block for part in model.parts
        ),
    }
    return next((why for why, holds in doubts.items() if holds), "")


def _attending(model: Model, side: str) -> set[str]:
    """Return the paths of the ops by which blocks of one side attend to their own tokens."""
    ops = (op for part in model.parts if part.path.startswith(f"{side}.") for op in part.ops)
    return {op.path for op in ops if op.path.startswith("attention.")}
