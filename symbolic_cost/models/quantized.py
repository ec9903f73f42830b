"""Weights in few bits: the `quantization_config` of a configuration, or a format by name.

Linear layers of blocks are stored so, experts as linear layers are; biases, norms, tables, routers
and convolutions are not.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import InputError, looked_up, quote
from symbolic_cost.models.converted import JOINED, Formats, heads, joined, linear
from symbolic_cost.models.quantization_keys import Keys
from symbolic_cost.models.quantizers import METHODS
from symbolic_cost.models.weight_formats import FORMATS, Format, sides_of
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.declare import Model, Op, Operand, Part
from symbolic_cost.ops.placement import WHOLE
from symbolic_cost.ops.stored import Scale, Stored
from symbolic_cost.ops.trained import Key, key_of


def stored_as(model: Model, name: str) -> Model:
    """Return a model whose linear layers, but for output heads, are stored in a format.

    Raises:
        UnknownNameError: no such format.
    """
    weight_format = looked_up("format of weights", name, FORMATS)
    formats = {path: weight_format for path, *_ in linear(model)}
    return _with(model, {path: one for path, one in formats.items() if path not in heads(model)})


def _with(model: Model, formats: Formats) -> Model:
    """Return a model with formats; weights that files hold as one share what is there once."""
    stored = {}
    for path, part, op, weight in linear(model):
        if path in formats:
            form, once = _form(op, weight, formats[path])
            left = tuple(scale for scale in form.scales if scale not in once)
            own = replace(form, scales=left) if joined(model.family, path) else form
            stored[key_of(part, weight)] = own
    return replace(model, stored=stored)


def _form(op: Op, weight: Operand, chosen: Format) -> tuple[Stored, tuple[Scale, ...]]:
    """Return the format of a weight, and the scales that all of its result features share."""
    form = chosen(op, weight)
    return form, form.once(sides_of(op, weight)[1])


def quantized(model: Model, config: Mapping[str, Any], where: str, width: int) -> Model:
    """Return a model whose weights are stored as a configuration says.

    Args:
        model: of the configuration.
        config: its `quantization_config`.
        where: place of that.
        width: of an element of all other weights [byte].

    Raises:
        InputError: every value that is none of those accepted.
    """
    method = config.get("quant_method")
    if method is None and (config.get("load_in_4bit") or config.get("load_in_8bit")):
        method = "bitsandbytes"
    read = METHODS.get(method) if isinstance(method, str) else None
    if read is None:
        field = f"quantization_config.quant_method {quote(method)}"
        accepted = ", ".join(METHODS)
        return replace(model, unread=f"{field} is not understood: {accepted} are")
    keys = Keys(config, where, width)
    formats = read(keys, model)
    keys.close()
    if keys.problems:
        raise InputError(keys.problems)
    if keys.left:
        told = ", ".join(dict.fromkeys(keys.left))
        return replace(model, unread=f"quantization_config: {told} not understood")
    shared = (_form(op, w, formats[path])[1] for path, _, op, w in linear(model) if path in formats)
    if model.family not in JOINED and any(shared):
        told = f"of {model.family}, which weights files hold as one"
        return replace(model, unread=f"quantization_config: {told}, is not understood")
    return _with(model, formats)


def as_stored(model: Model) -> Model:
    """Return a model whose weights are held as they are stored.

    Raises:
        InputError: what of the configuration was not understood, or a model that says nothing.
    """
    if model.unread or not model.stored:
        reason = model.unread or "has no quantization_config"
        raise InputError(f"stored weights of model {model.name!r}: {reason}")
    parts = tuple(
        replace(part, ops=tuple(op.mapped(_marking(model, part)) for op in part.ops))
        for part in model.parts
    )
    return replace(model, parts=parts)


def _marking(model: Model, part: Part) -> Callable[[Operand], Operand]:
    def mark(operand: Operand) -> Operand:
        form = model.stored.get(key_of(part, operand)) if operand.is_weight else None
        return operand if form is None else replace(operand, stored=form)

    return mark


def bytes_by_format(model: Model, plain: str, size: int) -> dict[str, Expr]:
    """Return the bytes of all weights by format, scales included, each weight once [byte].

    Args:
        model: with what is stored in few bits.
        plain: name of the format of all others.
        size: of one element of these [byte].
    """
    counter = Counter(model.sizes, WHOLE, STANDARD, model.padded, model.means)
    sums: dict[str, list[Expr]] = {}
    seen: set[Key] = set()
    for part in model.parts:
        for op in part.ops:
            for weight in op.weights:
                key = key_of(part, weight)
                times = Integer(1) if weight.tensor.startswith("@") else part.repeat
                form = model.stored.get(key)
                if key in seen:
                    continue
                seen.add(key)
                own = replace(weight, stored=form)
                each = counter.bytes(own) if form else size * counter.elements(weight.axes)
                sums.setdefault(form.name if form else plain, []).append(mul(times, each))
    return {name: add(*terms) for name, terms in sums.items()}
