"""Profiles: parameters, multiply-accumulates, FLOP and, where given, latencies of every module."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from sympy import Add, Expr, Integer, Mul

from symbolic_cost import symbols
from symbolic_cost.conventions.frameworks import (
    FLOPS_PROFILER,
    FLOPS_PROFILER_2021,
    FLOPS_PROFILER_2021_MACS,
    FLOPS_PROFILER_MACS,
)
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import InputError, Problems, looked_up, quote, unknown
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.catalog import model as named_model
from symbolic_cost.models.fields import is_size
from symbolic_cost.models.lengths import of_length
from symbolic_cost.models.positions import beyond
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.ops.declare import Model, Op
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.published.inputs import of_file, read_inputs
from symbolic_cost.published.module_profile.modules import Module, declared_modules, tree
from symbolic_cost.published.module_profile.numbers import Span, latency


class Version(NamedTuple):
    """One version of the profiler.

    Args:
        flop: what it counts as FLOP.
        macs: what it counts as multiply-accumulates.
        device: what it calls the device in the line of parameters.
        top: how many modules it lists per depth.
    """

    title: str
    flop: Conventions
    macs: Conventions
    device: str
    top: int


VERSION_2023 = Version(
    "DeepSpeed Flops Profiler", FLOPS_PROFILER, FLOPS_PROFILER_MACS, "device", 10
)
VERSION_2021 = Version("Flops Profiler", FLOPS_PROFILER_2021, FLOPS_PROFILER_2021_MACS, "gpu", 1)
VERSIONS = {"2023": VERSION_2023, "2021": VERSION_2021}
"""Versions of the profiler by name."""


class Run(NamedTuple):
    """Devices, devices that hold one model, samples per device and step; may be unknown."""

    world: int | None = None
    mp: int = 1
    batch: int | None = None


class Latencies(NamedTuple):
    """What was measured [s]; nothing here can be derived from a declaration.

    Args:
        modules: one call of a module, by its path; of repeated modules the first.
        classes: all modules of a class at a depth together, by (depth, class).
        run: whole passes ("fwd", "bwd", "step"), as the training loop saw them.
    """

    modules: Mapping[str, Span]
    classes: Mapping[tuple[int, str], Span]
    run: Mapping[str, Span]


class Profile(NamedTuple):
    """A profiled model."""

    top: Module
    version: Version
    run: Run
    measured: Latencies
    notes: tuple[str, ...] = ()


def counted(
    model: Model, modules: Module, version: Version, *, partitioned: bool = False
) -> Module:
    """Return the modules of a model with their formulas.

    A module's total is what it runs itself and the totals of its children.

    Args:
        model: declared.
        modules: of it.
        version: of the profiler.
        partitioned: whether tables and factors of products are partitioned over ranks and each
            shows one element (ZeRO-3).
    """
    own: dict[str, _Terms] = {"": {}}
    own |= {path: {} for _, _, module in modules.walk() for path in module.ops}
    for kind, rules in (("macs", version.macs), ("flop", version.flop)):
        for row in cost(model, rules).select(Quantity.FLOP, phase=Phase.FORWARD):
            _owner(own, row.path).setdefault(kind, []).append(row.expr)
    for part in model.parts:
        for op in part.ops:
            terms = _owner(own, f"{part.path}.{op.path}")
            for tensor, elements in _weights(op, model.sizes, partitioned=partitioned):
                # A weight that modules share counts once above them.
                shared = tensor.startswith("@")
                terms[tensor if shared else "params"] = [
                    *([] if shared else terms.get("params", [])),
                    elements,
                ]
    return _summed(modules, "", own)[0]


_Terms = dict[str, list[Expr]]
"""Terms by "macs", "flop", "params" or the name of a shared weight."""


def _owner(own: Mapping[str, _Terms], path: str) -> _Terms:
    """Return the entry of the longest named path that a path starts with."""
    while path and path not in own:
        path = path.rpartition(".")[0]
    return own[path]


def _weights(op: Op, sizes: Mapping[str, Expr], *, partitioned: bool) -> Iterable[tuple[str, Expr]]:
    for weight in op.weights:
        factor = isinstance(op, Einsum | Lookup) and weight in op.pattern.inputs
        whole = Mul(*(sizes[axis] for axis in weight.axes))
        yield weight.tensor, Integer(1) if partitioned and factor else whole


def _summed(module: Module, path: str, own: Mapping[str, _Terms]) -> tuple[Module, _Terms]:
    """Sum over a module and those inside; the top runs what no module names."""
    names = [child.name or str(place) for place, child in enumerate(module.children)]
    inside = [
        _summed(replace(child, name=name), f"{path}.{name}".lstrip("."), own)
        for name, child in zip(names, module.children, strict=True)
    ]
    mine = [own[named] for named in (*module.ops, *(() if path else ("",)))]
    terms = {
        kind: [
            Add(*(expr for one in mine for expr in one.get(kind, ())))
            + module.repeat * Add(*(expr for _, one in inside for expr in one[kind]))
        ]
        for kind in ("macs", "flop", "params")
    }
    for one in (*mine, *(one for _, one in inside)):
        terms |= {name: shared for name, shared in one.items() if name.startswith("@")}
    totals = {
        "macs": terms["macs"][0],
        "flop": terms["flop"][0],
        "params": Add(*(e for name, t in terms.items() if name not in {"macs", "flop"} for e in t)),
    }
    children = tuple(child for child, _ in inside)
    return replace(module, path=path, children=children, **totals), terms


_GROUPS, _PASSES = ("modules", "classes", "run"), ("fwd", "bwd", "step")


def latencies(measured: Mapping[str, Any], paths: Iterable[str]) -> Latencies:
    """Read latencies, in seconds or as text like "4.4 ms".

    For example {"modules": {"": "135.52 ms", "encoder": 0.13411},
    "classes": {"4": {"BertAttention": "60.64 ms"}}, "run": {"fwd": "1.89 s"}}.

    Raises:
        InputError: every latency that is refused or belongs to no module.
    """
    problems = Problems()
    told = problems.texts

    def group(entry: object, where: str) -> Mapping[str, Any]:
        if isinstance(entry, Mapping):
            return entry
        told.append(f"latencies by {where} are {entry!r}: an object is accepted")
        return {}

    def spans(entry: object, where: str) -> dict[str, Span]:
        named = group(entry, where).items()
        return {key: problems.attempt(latency, text, f"{where} {key!r}") for key, text in named}

    told += [
        unknown("group of latencies", name, _GROUPS) for name in measured if name not in _GROUPS
    ]
    modules = spans(measured.get("modules", {}), "module")
    run = spans(measured.get("run", {}), "pass")
    told += [unknown("pass", name, _PASSES) for name in run.keys() - _PASSES]
    classes: dict[tuple[int, str], Span] = {}
    for depth, names in group(measured.get("classes", {}), "classes").items():
        if str(depth).isdecimal():
            by_class = spans(names, f"depth {depth}, class")
            classes |= {(int(depth), name): span for name, span in by_class.items()}
        else:
            told.append(f"depth {depth!r} of latencies is not a number from 0")
    known = set(paths)
    told += [unknown("module", path, known) for path in modules if path not in known]
    problems.refuse()
    return Latencies(modules, classes, run)


def profile(
    model: Model,
    values: Mapping[str, object] | None = None,
    *,
    modules: Module | None = None,
    version: Version = VERSION_2023,
    measured: Mapping[str, Any] | None = None,
    run: Run | None = None,
    partitioned: bool = False,
) -> Profile:
    """Profile a model.

    Args:
        model: declared.
        values: number of every symbol left in it, besides those of its preset.
        modules: its tree; the paths of its declaration unless given.
        version: of the profiler.
        measured: as `latencies` reads them.
        run: further facts of the run.
        partitioned: as for `counted`.

    Raises:
        InputError: a symbol without a number, sizes that do not divide, or every latency that is
            refused.
    """
    declared = modules or declared_modules(model)
    formulas = counted(model, declared, version, partitioned=partitioned)
    times = latencies(measured or {}, [module.path for _, _, module in formulas.walk()])
    numbers = {**model.bindings, **(values or {})}
    sizes = {axis: _integer(model.sizes[axis], numbers, axis) for axis in model.axis_names}
    top = _Bound(numbers, sizes, times).module(formulas, once=True)
    return Profile(top, version, run or Run(), times)


def _integer(expr: Expr, numbers: Mapping[str, object], axis: str = "") -> int:
    number = value(bind(expr, numbers))
    if not isinstance(number, int):
        what = f"axis {axis!r}" if axis else "a count"
        raise InputError(f"{what} is {number}, not a whole number: sizes do not divide")
    return number


class _Bound(NamedTuple):
    """Numbers by symbol, sizes of axes, and latencies."""

    numbers: Mapping[str, object]
    sizes: Mapping[str, int]
    times: Latencies

    def module(self, module: Module, *, once: bool) -> Module:
        """Put numbers and latencies into a module that occurs once or more."""
        repeat = _integer(module.repeat, self.numbers)
        inside = tuple(self.module(one, once=once and repeat == 1) for one in module.children)
        took = self.times.modules.get(module.path)
        together = took if once else None
        if together is not None and repeat > 1 and len(inside) == 1:
            # A list is never called: its latency is that of what it holds.
            inside = (replace(inside[0], together=together),)
        return replace(
            module,
            params=_integer(module.params, self.numbers),
            macs=_integer(module.macs, self.numbers),
            flop=_integer(module.flop, self.numbers),
            extra=module.extra.format_map(self.sizes),
            latency=took,
            together=together,
            children=inside,
            repeat=repeat,
        )


def named_profile(
    name: str,
    batch: int = 1,
    seq: int | None = None,
    measured: Mapping[str, Any] | str | None = None,
    version: str = "2023",
) -> Profile:
    """Profile a named model, or that of a config.json.

    Args:
        name: of the model, or path of the configuration.
        batch: sequences or images.
        seq: tokens of each sequence; those of the preset unless given.
        measured: as `latencies` reads them, or the path of a JSON file that holds them.
        version: of the profiler.
    """
    problems = Problems()
    problems.texts += [
        f"{what} = {number!r} is not accepted: a positive integer is"
        for what, number in (("batch", batch), ("seq", seq))
        if number is not None and not is_size(number)
    ]
    rules = problems.attempt(looked_up, "version of the profiler", version, VERSIONS)
    problems.refuse()
    length = {} if seq is None else {"l": seq}
    model = of_length(partial(named_model, name), length)
    read = model.fixed or any(size.has(symbols.l) for size in model.sizes.values())
    if seq is not None and not read:
        raise InputError(f"seq = {seq} is not read: model {quote(name)} has no sequence")
    values = {"b": batch, **({} if model.fixed else length)}
    times = read_inputs(measured) if isinstance(measured, str) else measured
    paths = tuple(part.path for part in model.parts)
    bert = paths == ("embedding", "block", "pooler") and model.source == "devlin-2018"
    modules = tree("bert", model.parts[1].repeat) if bert else None
    with of_file(measured if isinstance(measured, str) else None):
        own = profile(model, values, modules=modules, version=rules, measured=times)
    if seq is None:
        return own
    sizes = {axis: bind(size, {**model.bindings, **values}) for axis, size in model.sizes.items()}
    return own._replace(notes=tuple(beyond(replace(model, sizes=sizes), seq, 0)))
