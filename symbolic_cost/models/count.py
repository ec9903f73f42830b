"""Counts of a configuration: parameters, FLOP, cache and saved activations, exact integers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.axes import At, Role
from symbolic_cost.conventions.presets import preset
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import InputError, refuse
from symbolic_cost.ledger import CostTable, Phase, Quantity
from symbolic_cost.models.bound import bound
from symbolic_cost.models.checked import BEGUN, has_cells, has_scans, saved_note
from symbolic_cost.models.config import WIDTHS, Imported, imported
from symbolic_cost.models.configfile import is_elsewhere
from symbolic_cost.models.fields import is_size, shortened
from symbolic_cost.models.positions import beyond
from symbolic_cost.models.quantized import bytes_by_format
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.traced import is_graph
from symbolic_cost.models.training import not_all_linear, training
from symbolic_cost.ops.derive import counted
from symbolic_cost.ops.graph import ALL, Model
from symbolic_cost.ops.trained import trained_parameters

if TYPE_CHECKING:
    from symbolic_cost.models.catalog import Preset

ROUTED = At(Role.EXPERT, ("",))
"""Experts; of their weights a token meets those of the experts chosen for it."""
QUEUE = At(Role.TOKEN, ("posted", "routed"))
"""Tokens of one expert, as they are sent and as it sees them."""


_COUNTED = (Quantity.FLOP, Quantity.PARAMETER, Quantity.CACHED, Quantity.SAVED)


_PADDED = frozenset({"recurrent_gemma"})
"""Families that convolve a short prompt as it is; caches of others fill it up to the kernel."""


def count(
    source: str | Path | Mapping[str, Any],
    batch: int = 1,
    seq: int = 1024,
    conventions: str | Conventions = "torch-flop-counter",
    image_tokens: int = 0,
    *,
    train: str = ALL,
) -> dict[str, int | str | None]:
    """Count a configuration.

    Args:
        source: a config.json, the mapping that it holds, or the name of a model; a folder, a file
            of weights (.safetensors, .gguf), or a name on the Hub, "hub:org/name".
        batch: sequences.
        seq: tokens of each sequence; a decode step has as many in its cache.
        conventions: of counting, or the name of a preset.
        image_tokens: of each sequence, those that stand for images, which a tower sees first.
        train: which weights are trained, as `models.training` reads it.

    Returns:
        model_type and architecture; params and params_active [element]; flops_fwd and flops_train
        of the whole batch, flops_decode of one step [FLOP], None where nothing is cached and so
        nothing generated; kv_cache_elements after the sequence [element]; saved_bytes kept for
        backward [byte]; note, what to know of these, or None; ignored, keys of the configuration
        that count for nothing with what is assumed, and positions beyond a learned table, or None.
        Where not all weights are trained, also trained, which ones, and params_trained [element];
        where weights are stored in few bits, weight_bytes with their scales and
        weight_bytes_by_format [byte]. Where weights stand
        beside the configuration, from their headers: stored_params [element], stored_bytes [byte],
        and stored, what there is of each data type and which tensors are not as declared.

    Raises:
        InputError: every problem of the configuration, or a batch or length that is no count.
    """
    _check(batch, seq, image_tokens)
    rules = preset(conventions) if isinstance(conventions, str) else conventions
    b, l = Integer(batch), Integer(seq)
    whole = _declared(source, Shape(b, l, i=Integer(image_tokens)), train)
    kernel = whole.model.bindings.get("K", 0)
    if seq < kernel and whole.model_type not in _PADDED:
        raise InputError(f"seq = {seq}: {kernel} tokens or more are accepted, as the kernel has")
    if image_tokens and not _sees(whole.model):
        raise InputError(
            f"image_tokens = {image_tokens}: {whole.model_type} has no images in its sequences"
        )
    counts = _counts(whole, rules)
    if counts["kv_cache_elements"]:
        counts["flops_decode"] = _decoded(source, Shape(b, Integer(1), l), train, rules)
    ignored = "; ".join(
        [
            *(f"{key}: {why}" for key, why in whole.ignored.items()),
            *beyond(whole.model, seq, whole.spare),
        ]
    )
    counts |= {"note": _note(source, whole), "ignored": ignored or None}
    counts |= _trained(whole.model) | _bytes(whole)
    return counts | _stored(source, whole.model, int(counts["params"] or 0))


def _check(batch: object, seq: Any, tokens: object) -> None:  # noqa: ANN401 - unchecked input
    """Refuse numbers that are no counts."""
    problems = [
        f"{name} = {shortened(value)}: a positive integer is accepted"
        for name, value in (("batch", batch), ("seq", seq))
        if not is_size(value)
    ]
    if tokens != 0 and not is_size(tokens):
        said = f"image_tokens = {shortened(tokens)}: zero or a positive integer is accepted"
        problems.append(said)
    elif is_size(tokens) and is_size(seq) and tokens > seq:
        problems.append(f"image_tokens = {tokens}: a sequence has {seq} tokens")
    refuse(problems)


def _counts(whole: Imported, rules: Conventions) -> dict[str, int | str | None]:
    """Return what a model costs, but for a step of generation."""
    model, table = whole.model, counted(whole.model, rules, _COUNTED)
    cached, params = (_exact_integer(table.total(q)) for q in (Quantity.CACHED, Quantity.PARAMETER))
    met = active(model)
    least = (
        params
        if met is model
        else _exact_integer(counted(met, rules, _COUNTED).total(Quantity.PARAMETER))
    )
    return {
        "model_type": whole.model_type,
        "architecture": whole.architecture,
        "params": params,
        "params_active": least,
        "flops_fwd": _exact_integer(_forward(table)),
        "flops_train": _exact_integer(table.total(Quantity.FLOP)),
        "flops_decode": None,
        "kv_cache_elements": cached,
        "saved_bytes": _exact_integer(table.total(Quantity.SAVED)),
    }


def _decoded(
    source: str | Path | Mapping[str, Any], step: Shape, train: str, rules: Conventions
) -> int:
    """Return the FLOP of a step of generation."""
    return _exact_integer(
        _forward(counted(_declared(source, step, train, step=True).model, rules, {Quantity.FLOP}))
    )


def _stored(
    source: str | Path | Mapping[str, Any], model: Model, declared: int
) -> dict[str, int | str | None]:
    """Return what files of weights say, where there are any beside a configuration."""
    if not isinstance(source, str | Path) or is_graph(source):
        return {}
    if not is_elsewhere(source) and not os.path.isdir(source):  # noqa: PTH112 - Path.is_dir raises for long names
        return {}
    from symbolic_cost.models.stored.header import difference  # noqa: PLC0415 - few have any
    from symbolic_cost.models.stored.places import stored  # noqa: PLC0415

    header = stored(source)
    if header is None:
        return {}
    other = difference(header, model, declared)
    if other and str(source).endswith(".gguf"):
        raise InputError(f"{header.place}: its metadata are not understood: {other}")
    told = "; ".join(filter(None, (header.summary, other)))
    return {"stored_params": header.count, "stored_bytes": header.size, "stored": told}


def _bytes(source: Imported) -> dict[str, int | str | None]:
    """Return the bytes of weights as stored, where some are in few bits, and of each format."""
    model = source.model
    if not model.stored:
        return {}
    name = str(source.dtype)
    sums = bytes_by_format(model, name, WIDTHS[name])
    formats = ", ".join(f"{form}: {_exact_integer(size)}" for form, size in sums.items())
    return {
        "weight_bytes": sum(map(_exact_integer, sums.values())),
        "weight_bytes_by_format": formats,
    }


def _trained(model: Model) -> dict[str, int | str | None]:
    """Return what is trained, where that is not everything."""
    weights = (weight for part in model.parts for op in part.ops for weight in op.weights)
    if model.trains == ALL and all(weight.needs_gradient for weight in weights):
        return {}
    return {"trained": model.trains, "params_trained": _exact_integer(trained_parameters(model))}


def _sees(model: Model) -> bool:
    """Return whether a tower hands images to a language model."""
    return any(part.path == TOWER_PORT for part in model.parts)


def _graph(path: str, shape: Shape) -> Imported:
    """Return the model of an exported graph, every length that of the shape; it caches nothing."""
    from symbolic_cost.models.traced.imported import traced  # noqa: PLC0415 - few count graphs

    model = traced(path).model
    sizes = {size for axis in model.axis_names for size in model.sizes[axis].free_symbols}
    own = {symbol for symbol in sizes if symbol.name not in model.bindings}
    numbers = {symbol: shape.b if symbol == symbols.b else shape.l for symbol in own}
    bound_sizes = {axis: size.xreplace(numbers) for axis, size in model.sizes.items()}
    return Imported("graph", model.name, replace(model, sizes=bound_sizes))


def _named_model(source: str | Path | Mapping[str, Any]) -> Preset | None:
    """Return the named model that is meant, if any; configurations need no catalogue."""
    if not isinstance(source, str) or source.endswith(".json") or is_graph(source):
        return None
    from symbolic_cost.models.catalog import CATALOG  # noqa: PLC0415 - loads every family

    return CATALOG.get(source)


def _note(source: str | Path | Mapping[str, Any], model: Imported) -> str | None:
    """Return what a reader should know of the counts."""
    if _named_model(source) is not None:
        target = model.model.bindings.get(symbols.l_t.name)
        of_it = (f"a target of {target} tokens",) if target else ()
        trains, scans = model.model.trains, has_scans(model.model)
        saved = saved_note(model.model_type, trains=trains, scans=scans)
        own = (*of_it, *_adapted(model.model), saved)
        return "; ".join(filter(None, own)) or None
    origin = model.origins.get("attn_implementation")
    sliding = bool(model.model.placed(At(Role.KEY_TOKEN, ("sliding",))))
    attention = "eager" if origin is None else origin.value
    saved = saved_note(
        model.model_type,
        attention,
        sliding=sliding,
        trains=model.model.trains,
        scans=has_scans(model.model),
    )
    begun = BEGUN if has_cells(model.model) else ""
    told = (*model.model.notes, *_adapted(model.model), begun, saved)
    return "; ".join(filter(None, told)) or None


def _adapted(model: Model) -> Iterator[str]:
    if model.trains != ALL:
        from symbolic_cost.models.converted import adapted_apart  # noqa: PLC0415 - few need it

        yield from adapted_apart(model)
        yield from not_all_linear(model)


def _declared(
    source: str | Path | Mapping[str, Any], shape: Shape, train: str, *, step: bool = False
) -> Imported:
    """Return the model of a configuration, or a named one, with its numbers."""
    named = _named_model(source)
    if is_graph(source):
        declared = _graph(str(source), shape)
    elif named is not None:
        own = named.model(shape)
        declared = Imported(named.family, named.name, own)
    else:
        declared = imported(source, shape)
    model = bound(training(declared.model, train, step=step))
    used = (model.sizes[axis] for axis in model.axis_names)
    open_sizes = {symbol for size in used for symbol in size.free_symbols}
    open_sizes |= {symbol for part in model.parts for symbol in part.repeat.free_symbols}
    if open_sizes:
        names = ", ".join(sorted(map(str, open_sizes)))
        raise InputError(f"{model.name}: {names} {'have' if ',' in names else 'has'} no number")
    return replace(declared, model=model)


TOWER_PORT = "connector"
"""Path of the part that hands what a tower sees to a language model."""


def active(model: Model) -> Model:
    """Return a model with no more experts than are chosen for a token: what a token meets."""
    experts, slots = model.placed(ROUTED), model.placed(At(Role.SLOT))
    if not experts or not slots:
        return model
    chosen = {axis.name: model.sizes[slots[0].name] for axis in experts}
    return replace(model, sizes={**model.sizes, **chosen})


def _forward(table: CostTable) -> Expr:
    return table.total(Quantity.FLOP, phase=Phase.FORWARD)


def _exact_integer(number: Expr) -> int:
    """Return an exact integer."""
    if not number.is_Integer:
        raise InputError(f"{number} is not a whole number: sizes do not divide")
    return int(number)
