"""The report of a profile as text: summary, sums per depth, tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symbolic_cost.published.module_profile import figures
from symbolic_cost.published.module_profile.modules import Module
from symbolic_cost.published.module_profile.profile import Profile
from symbolic_cost.published.printed import printed_data

_RULE = 26
_AGGREGATED_RULE, _DETAILED_RULE = 29, 30
_SAID = printed_data("module_profile.toml")
_QUANTITIES = {"params": "params     ", "macs": "MACs       ", "latency": "fwd latency"}
_SUFFIX = {"params_pct": " Params", "macs_pct": " MACs", "latency_pct": " latency"}


def profile_text(profile: Profile, step: int = 1) -> str:
    """Write a profile as the profiler lays it out.

    Args:
        profile: of a model.
        step: at which it is said to be taken.
    """
    title = _rule(profile.version.title, _RULE)
    lines = [
        title,
        f"Profile Summary at step {step}:",
        *_SAID["notations"].splitlines(),
        "",
        *_named(figures.summary(profile)),
        "",
        _rule("Aggregated Profile per device", _AGGREGATED_RULE),
        _SAID["top"].format(profile.version.top),
        *(line for depth in range(figures.deepest(profile)) for line in _depth(profile, depth)),
        "",
        _rule("Detailed Profile per device", _DETAILED_RULE),
        *_SAID["notes"].splitlines(),
        "",
        *_tree(profile, profile.top, ""),
        "-" * len(title),
        *_named(figures.footer(profile)),
    ]
    return "\n".join(lines)


def _rule(title: str, dashes: int) -> str:
    return f"{'-' * dashes} {title} {'-' * dashes}"


def _named(found: Iterable[figures.Figure]) -> list[str]:
    lines = [(f"{figure.field}:", figure.text) for figure in found]
    width = max((len(name) for name, _ in lines), default=0)
    return [f"{name:<{width}}  {text}" for name, text in lines]


def _depth(profile: Profile, depth: int) -> Iterator[str]:
    found = list(figures.aggregated(profile, depth))
    yield f"depth {depth}:"
    for quantity, name in _QUANTITIES.items():
        classes = {figure.cls: figure.text for figure in found if figure.field == quantity}
        if classes:
            yield f"    {name} - {classes}"


def _tree(profile: Profile, module: Module, indent: str) -> Iterator[str]:
    """Write a module and those inside; of repeated ones the first, the next and the last."""
    name = f"({module.name}): " if module.name else ""
    numbers = ", ".join(
        figure.text + _SUFFIX.get(figure.field, "")
        for figure in figures.detailed(profile, module)
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
