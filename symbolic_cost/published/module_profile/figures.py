"""Every number of a profile, with the place where the profiler prints it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sympy import Expr

from symbolic_cost.published.module_profile.counted import VERSION_2021, Counted
from symbolic_cost.published.module_profile.numbers import (
    Span,
    exactly,
    flop_text,
    latency_text,
    macs_text,
    params_text,
    percent_text,
    rate_text,
)
from symbolic_cost.published.module_profile.profile import Profile, Profiled


@dataclass(frozen=True, slots=True)
class Figure:
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
        return f"{self.section}|{self.place}|{self.cls}|{self.field}"


def figures(profile: Profile) -> tuple[Figure, ...]:
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
    old = version is VERSION_2021

    def line(name: str, text: str, span: Span | None = None) -> Figure:
        return Figure("summary", "", top.cls, name, text, span)

    if run.world is not None:
        yield line("world size", str(run.world))
        yield line("data parallel size", str(run.world // run.mp))
        yield line("model parallel size", str(run.mp))
    if run.batch is not None:
        yield line("batch size per device", str(run.batch))
    params, flop = params_text(top.params), flop_text(top.flop)
    yield line(f"params per {version.device}", params)
    whole = "params of model = params per device * mp_size"
    yield line(whole, params_text(top.params * run.mp))
    yield line("fwd MACs per device", flop_text(top.macs) if old else macs_text(top.macs))
    yield line("fwd flops per device", flop)
    whole = "fwd flops of model = fwd flops per device * mp_size"
    yield line(whole, flop_text(top.flop * run.mp))
    yield from (line(*timed) for timed in _timed(profile))


def _timed(profile: Profile) -> Iterator[tuple[str, str, Span]]:
    """Return what follows from the latencies of the passes; backward is twice forward."""
    run, flop = profile.run, profile.top.flop
    fwd, bwd, step = run.fwd or profile.top.latency, run.bwd, run.step
    if fwd is None:
        return
    yield _seconds("fwd latency", fwd)
    if bwd is not None:
        yield _seconds("bwd latency", bwd)
    yield _rate("fwd FLOPS per device = fwd flops per device / fwd latency", fwd.divides(flop))
    if bwd is None:
        return
    name = "bwd FLOPS per device = 2 * fwd flops per device / bwd latency"
    yield _rate(name, bwd.divides(2 * flop))
    both = (fwd + bwd).divides(3 * flop)
    yield _rate("fwd+bwd FLOPS per device = 3 * fwd flops per device / (fwd+bwd latency)", both)
    if step is None:
        return
    whole = fwd + bwd + step
    yield _seconds("step latency", step)
    yield _seconds("iter latency", whole)
    if run.batch is not None and run.world is not None:
        samples = whole.divides(run.batch * run.world // run.mp)
        yield "samples/second", str(round(float(samples.value), 2)), samples


def _seconds(name: str, span: Span) -> tuple[str, str, Span]:
    return name, latency_text(span.value), span


def _rate(name: str, span: Span) -> tuple[str, str, Span]:
    return name, rate_text(span.value), span


def deepest(profile: Profile) -> int:
    """Return the depth of the deepest modules, which are not aggregated."""
    return max(depth for depth, _, _ in profile.top.walk())


def aggregated(profile: Profile, depth: int) -> Iterator[Figure]:
    """Return the sums over the modules of each class at a depth, largest first."""
    here = [(times, module) for at, times, module in profile.top.walk() if at == depth]
    classes = dict.fromkeys(module.cls for _, module in here)
    params = dict.fromkeys(classes, 0)
    macs = dict.fromkeys(classes, 0)
    for times, module in here:
        params[module.cls] += times * module.params
        macs[module.cls] += times * module.macs
    seconds = {cls: _together(profile, depth, cls) for cls in classes}
    known = {cls: span for cls, span in seconds.items() if span is not None}
    place = f"depth {depth}"
    for cls in _largest(profile, params):
        yield Figure("aggregated", place, cls, "params", params_text(params[cls]))
    for cls in _largest(profile, macs):
        yield Figure("aggregated", place, cls, "macs", macs_text(macs[cls]))
    for cls in _largest(profile, {cls: span.value for cls, span in known.items()}):
        span = known[cls]
        yield Figure("aggregated", place, cls, "latency", latency_text(span.value), span)


def _largest(profile: Profile, sums: dict[str, int] | dict[str, Fraction]) -> list[str]:
    return sorted(sums, key=lambda cls: -sums[cls])[: profile.version.top]


def _together(profile: Profile, depth: int, cls: str) -> Span | None:
    """Return the latency of all modules of a class at a depth, or None if one is unknown."""
    if (depth, cls) in profile.classes:
        return profile.classes[depth, cls]
    total = exactly(0)
    for at, _, module in profile.top.walk():
        if (at, module.cls) == (depth, cls):
            if module.together is None:
                return None
            total += module.together
    return total


def detailed(profile: Profile, module: Profiled) -> Iterator[Figure]:
    """Return the numbers of one module, in the order of its row."""
    top = profile.top

    def entry(name: str, text: str, span: Span | None = None) -> Figure:
        return Figure("detailed", module.path, module.cls, name, text, span)

    yield entry("params", params_text(module.params))
    yield entry("params_pct", _percent(module.params, top.params))
    yield entry("macs", macs_text(module.macs))
    yield entry("macs_pct", _percent(module.macs, top.macs))
    if module.latency is not None:
        yield entry("latency", latency_text(module.latency.value), module.latency)
        if top.latency is not None:
            share = module.latency.share(top.latency)
            yield entry("latency_pct", percent_text(share.value), share)
    if module.flop == 0:
        yield entry("FLOPS", rate_text(Fraction(0)))
    elif module.latency is not None:
        rate = module.latency.divides(module.flop)
        yield entry("FLOPS", rate_text(rate.value), rate)


def _percent(part: int, whole: int) -> str:
    return percent_text(Fraction(100 * part, whole) if whole else Fraction(0))


def footer(profile: Profile) -> Iterator[Figure]:
    """Return the last lines of the later version."""
    if profile.version is VERSION_2021:
        return
    top = profile.top
    for name, text in (
        ("Number of flops", flop_text(top.flop)),
        ("Number of MACs", macs_text(top.macs)),
        ("Number of parameters", params_text(top.params)),
    ):
        yield Figure("footer", "", top.cls, name, text)


def formulas(found: Counted) -> dict[str, Expr]:
    """Return the formula of every count in the rows of modules, by the key of the number."""
    return {
        f"detailed|{entry.path}|{entry.module.cls}|{name}": expr
        for entry in found.walk()
        for name, expr in (
            ("params", entry.params),
            ("macs", entry.macs),
            ("flops", entry.flop),
        )
    }
