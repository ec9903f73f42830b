"""Every number of a profile, with the place where it is printed, and the report as text."""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.published.contract import printed_data
from symbolic_cost.published.module_profile.modules import Module
from symbolic_cost.published.module_profile.numbers import Span, exactly, text_of
from symbolic_cost.published.module_profile.profile import VERSION_2021, Profile


class Figure(NamedTuple):
    """One number.

    Args:
        section: "summary", "aggregated", "detailed" or "footer".
        place: path of a module, or depth.
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


def all_figures(profile: Profile) -> tuple[Figure, ...]:
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


_RULE = 26
_AGGREGATED_RULE, _DETAILED_RULE = 29, 30
_SAID = printed_data("module_profile.toml")
_QUANTITIES = {"params": "params     ", "macs": "MACs       ", "latency": "fwd latency"}
_SUFFIX = {"params_pct": " Params", "macs_pct": " MACs", "latency_pct": " latency"}


def profile_text(profile: Profile, step: int = 1) -> str:
    """Write a profile as the profiler lays it out."""
    title = _rule(profile.version.title, _RULE)
    lines = [
        title,
        f"Profile Summary at step {step}:",
        *_SAID["notations"].splitlines(),
        "",
        *_aligned_lines(summary(profile)),
        "",
        _rule("Aggregated Profile per device", _AGGREGATED_RULE),
        _SAID["top"].format(profile.version.top),
        *(line for depth in range(deepest(profile)) for line in _depth(profile, depth)),
        "",
        _rule("Detailed Profile per device", _DETAILED_RULE),
        *_SAID["notes"].splitlines(),
        "",
        *_tree(profile, profile.top, ""),
        "-" * len(title),
        *_aligned_lines(footer(profile)),
        *profile.notes,
    ]
    return "\n".join(lines)


def _rule(title: str, dashes: int) -> str:
    return f"{'-' * dashes} {title} {'-' * dashes}"


def _aligned_lines(figures: Iterable[Figure]) -> list[str]:
    lines = [(f"{figure.field}:", figure.text) for figure in figures]
    width = max((len(name) for name, _ in lines), default=0)
    return [f"{name:<{width}}  {text}" for name, text in lines]


def _depth(profile: Profile, depth: int) -> Iterator[str]:
    figures = list(aggregated(profile, depth))
    yield f"depth {depth}:"
    for quantity, name in _QUANTITIES.items():
        classes = {figure.cls: figure.text for figure in figures if figure.field == quantity}
        if classes:
            yield f"    {name} - {classes}"


def _tree(profile: Profile, module: Module, indent: str) -> Iterator[str]:
    """Write a module and those inside; of repeated ones the first, the next and the last."""
    name = f"({module.name}): " if module.name else ""
    numbers = ", ".join(
        figure.text + _SUFFIX.get(figure.field, "")
        for figure in detailed(profile, module)
        if module.latency is not None or figure.field != "FLOPS"
    )
    if not module.children:
        yield f"{indent}{name}{module.cls}({numbers}, {module.extra})"
        return
    yield f"{indent}{name}{module.cls}("
    yield f"{indent}  {numbers},"
    for child in module.children:
        yield from _tree(profile, child, f"{indent}  ")
    yield from (f"{indent}  {line}" for line in _repeated(module))
    yield f"{indent})"


def _repeated(module: Module) -> Iterator[str]:
    group = len(module.children)
    last = group * module.repeat - 1
    if module.repeat > 1:
        places = [group, *((-1,) if last > group + 1 else ()), *((last,) if last > group else ())]
        for place in places:
            cls = module.children[place % group].cls
            yield "..." if place < 0 else f"({place}): {cls}(...)"


def profile_sheet(name: str, profile: Profile) -> Sheet:
    """Return one row per module; latencies in seconds, where they are known."""
    rows = tuple(
        (
            module.path or module.cls,
            module.cls,
            times,
            module.params,
            module.macs,
            module.flop,
            None if module.latency is None else module.latency.value,
        )
        for _, times, module in profile.top.walk()
    )
    numbers = ("occurs", "params", "MACs", "FLOP", "latency")
    columns = (Column("module"), Column("class"), *(Column(text, "right") for text in numbers))
    notes = (
        f"conventions {profile.version.flop.name}: {profile.version.flop.meaning}",
        *profile.notes,
    )
    return Sheet(f"Profile of {name}", columns, rows, notes)
