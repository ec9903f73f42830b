"""The report as text: data/megatron_report.toml holds the layout, figures fill it."""

from collections.abc import Iterator, Mapping, Sequence
from string import Formatter
from typing import Any

from symbolic_cost.published.megatron_report.amounts import REPORT, Run
from symbolic_cost.published.megatron_report.figures import Figures


def report_text(run: Run, cells: Figures) -> str:
    """Write every section that the run has."""
    sections = ["full", "cluster", "gpu"]
    sections += ["pipeline"] if run.pp > 1 else []
    sections += ["data"] if run.dp > 1 else []
    sections += ["tensor"] if run.tp > 1 else []
    values = _values(run, cells)
    return "\n\n\n".join(_filled(section, values) for section in sections)


def corrections_text(printed: Figures, true: Figures, causes: Mapping[str, Sequence[str]]) -> str:
    """Write the figures that differ, as printed and true, and what is wrong with each."""
    changed = [name for name in true if true[name] != printed[name]]
    wide = max((len(name) for name in changed), default=0)
    lines = ["***Corrected figures***", "=" * 88]
    lines += [
        f"{name:{wide}}  as printed {_plain(printed[name])}, true {_plain(true[name])}"
        f"  ({', '.join(causes[name])})"
        for name in changed
    ]
    lines.append("-" * 88)
    met = {slip for name in changed for slip in causes[name]}
    for slip, said in REPORT["slips"].items():
        seen = "" if slip in met else " (no figure above differs for it)"
        lines.append(f"{slip}: as printed, {said['printed']}; true: {said['true']}{seen}.")
    return "\n".join([*lines, "=" * 88])


class _Filler(Formatter):
    """Fills in figures, whose names have dots."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:  # noqa: ANN401, ARG002 - overridden
        """Return a figure by its whole name."""
        return kwargs[field_name], field_name


def _filled(section: str, values: Mapping[str, Any]) -> str:
    template = REPORT["text"][section]
    return "\n".join(line for text in template.split("\n") for line in _lines(text, values))


def _lines(text: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Fill a line in, once per item of its list if it has one."""
    names = [name for _, name, _, _ in Formatter().parse(text) if name]
    lists = [name for name in names if isinstance(values[name], list)]
    for item in values[lists[0]] if lists else [None]:
        yield _Filler().vformat(text, (), {**values, **dict.fromkeys(lists, item)})


def _values(run: Run, cells: Figures) -> dict[str, Any]:
    """Return figures as they stand in the text, and those that only the text has."""
    values: dict[str, Any] = {"blank": "", "tp.func": "allreduce"}
    for name, value in cells.items():
        values[name] = _plain(value) if name.endswith("_shape") else value
        if name.endswith(".w"):
            values[name.removesuffix("w") + "shape"] = _shape(cells, name)
        if name.endswith("per_layer"):
            values[name.replace("act_mb_", "")] = f"{value}/layer"
        if name.endswith("num_params"):
            values[name.replace("num", "grouped")] = f"{int(str(value)):,}"
        if name.endswith("groups") and isinstance(value, list):
            values[name] = [" ".join(map(str, group)) for group in value if isinstance(group, list)]
    return values | (_stages(run, cells) if run.pp > 1 else {})


def _stages(run: Run, cells: Figures) -> dict[str, Any]:
    stages = [
        {
            "blank": "",
            "stage.number": str(number),
            "stage.first": str(number * run.stage_layers),
            "stage.last": str((number + 1) * run.stage_layers - 1),
            "stage.ranks": " ".join(map(str, ranks)),
        }
        for number, ranks in enumerate(_ranks(cells["pp.stages"]))
    ]
    return stages[0] | {
        "pp.later_stages": [_filled("stage", stage) for stage in stages[1:]],
        "pp.message_volume": f"{cells['pp.message_mb']}MB",
        "pp.gpu.volume": f"{cells['pp.gpu.volume_mb']}MB",
    }


def _ranks(value: Any) -> list[list[str]]:  # noqa: ANN401 - one of the kinds of figures
    return list(value)


def _shape(cells: Figures, name: str) -> str:
    bias = cells.get(name.removesuffix("w") + "b")
    return f"w={_plain(cells[name])}" + (f",b={_plain(bias)}" if bias else "")


def _plain(value: object) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_plain, value))}]"
    return str(value)
