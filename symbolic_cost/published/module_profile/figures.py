"""Every number of a profile, with the place where the profiler prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from symbolic_cost.published.module_profile.modules import Module
from symbolic_cost.published.module_profile.numbers import Span, exactly, text_of
from symbolic_cost.published.module_profile.profile import VERSION_2021, Profile


class Figure(NamedTuple):
    """One number.

    Args:
        section: "summary", "aggregated", "detailed" or "footer".
        place: path of a module, or depth.
        cls: class of the module.
        field: what it is.
        text: as printed.
        span: of the values that it may have; None if it follows from the shape alone.
    """

    section: str
    place: str
    cls: str
    field: str
    text: str
    span: Span | None = None

    @property
    def key(self) -> str:
        """Its place in one word."""
        return "|".join(self[:4])


def _entries(
    section: str, place: str, cls: str
) -> Callable[[str, str, int | Fraction | Span], Figure]:
    """Return what makes the numbers of one place: of a name, a kind of `text_of` and a value."""

    def entry(name: str, kind: str, value: int | Fraction | Span) -> Figure:
        span = value if isinstance(value, Span) else None
        return Figure(section, place, cls, name, text_of(kind, _value(value)), span)

    return entry


def every(profile: Profile) -> tuple[Figure, ...]:
    """Return every number of a profile that is known, in the order of the report."""
    return (
        *summary(profile),
        *(figure for depth in range(deepest(profile)) for figure in aggregated(profile, depth)),
        *(figure for _, _, module in profile.top.walk() for figure in detailed(profile, module)),
        *footer(profile),
    )


def summary(profile: Profile) -> Iterator[Figure]:
    """Return the numbers of the whole model."""
    top, run, version = profile.top, profile.run, profile.version
    line = _entries("summary", "", top.cls)
    if run.world is not None:
        yield line("world size", "number", run.world)
        yield line("data parallel size", "number", run.world // run.mp)
        yield line("model parallel size", "number", run.mp)
    if run.batch is not None:
        yield line("batch size per device", "number", run.batch)
    whole = "params of model = params per device * mp_size"
    yield line(f"params per {version.device}", "params", top.params)
    yield line(whole, "params", top.params * run.mp)
    yield line("fwd MACs per device", "flop" if version is VERSION_2021 else "macs", top.macs)
    yield line("fwd flops per device", "flop", top.flop)
    whole = "fwd flops of model = fwd flops per device * mp_size"
    yield line(whole, "flop", top.flop * run.mp)
    yield from (line(*timed) for timed in _timed(profile))


def _timed(profile: Profile) -> Iterator[tuple[str, str, Span]]:
    """Return what follows from the latencies of the passes; backward is twice forward."""
    run, flop, passes = profile.run, profile.top.flop, profile.measured.run
    fwd, bwd, step = passes.get("fwd") or profile.top.latency, passes.get("bwd"), passes.get("step")
    if fwd is None:
        return
    yield "fwd latency", "latency", fwd
    if bwd is not None:
        yield "bwd latency", "latency", bwd
    name = "fwd FLOPS per device = fwd flops per device / fwd latency"
    yield name, "rate", fwd.divides(flop)
    if bwd is None:
        return
    name = "bwd FLOPS per device = 2 * fwd flops per device / bwd latency"
    yield name, "rate", bwd.divides(2 * flop)
    name = "fwd+bwd FLOPS per device = 3 * fwd flops per device / (fwd+bwd latency)"
    yield name, "rate", fwd.plus(bwd).divides(3 * flop)
    if step is None:
        return
    whole = fwd.plus(bwd).plus(step)
    yield "step latency", "latency", step
    yield "iter latency", "latency", whole
    if run.batch is not None and run.world is not None:
        yield "samples/second", "number", whole.divides(run.batch * run.world // run.mp)


def deepest(profile: Profile) -> int:
    """Return the depth of the deepest modules, which are not aggregated."""
    return max(depth for depth, _, _ in profile.top.walk())


def aggregated(profile: Profile, depth: int) -> Iterator[Figure]:
    """Return the sums over the modules of each class at a depth, largest first."""
    sums: dict[str, dict[str, int]] = {"params": {}, "macs": {}}
    seconds: dict[str, Span | None] = {}
    for at, times, module in profile.top.walk():
        if at != depth:
            continue
        cls, took = module.cls, module.together
        for kind, by_class in sums.items():
            by_class[cls] = by_class.get(cls, 0) + times * getattr(module, kind)
        before = seconds.get(cls, exactly(0))
        seconds[cls] = None if before is None or took is None else before.plus(took)
    seconds |= {
        cls: span
        for (at, cls), span in profile.measured.classes.items()
        if cls in seconds and at == depth
    }
    known = {cls: span for cls, span in seconds.items() if span is not None}
    columns: dict[str, dict[str, int] | dict[str, Span]] = {**sums, "latency": known}
    for kind, values in columns.items():
        for cls in sorted(values, key=lambda cls: -_value(values[cls]))[: profile.version.top]:
            yield _entries("aggregated", f"depth {depth}", cls)(kind, kind, values[cls])


def _value(number: int | Fraction | Span) -> Fraction | int:
    return number.value if isinstance(number, Span) else number


def detailed(profile: Profile, module: Module) -> Iterator[Figure]:
    """Return the numbers of one module, in the order of its row."""
    top, took = profile.top, module.latency
    entry = _entries("detailed", module.path, module.cls)
    for kind in ("params", "macs"):
        part, whole = getattr(module, kind), getattr(top, kind)
        yield entry(kind, kind, part)
        yield entry(f"{kind}_pct", "percent", Fraction(100 * part, whole) if whole else 0)
    if took is not None:
        yield entry("latency", "latency", took)
        if top.latency is not None:
            yield entry("latency_pct", "percent", took.share(top.latency))
    if module.flop == 0:
        yield entry("FLOPS", "rate", Fraction(0))
    elif took is not None:
        yield entry("FLOPS", "rate", took.divides(module.flop))


def footer(profile: Profile) -> Iterator[Figure]:
    """Return the last lines of the later version."""
    entry, top = _entries("footer", "", profile.top.cls), profile.top
    if profile.version is not VERSION_2021:
        yield entry("Number of flops", "flop", top.flop)
        yield entry("Number of MACs", "macs", top.macs)
        yield entry("Number of parameters", "params", top.params)
