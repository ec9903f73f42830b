"""Training report of a Megatron-LM GPT: parameters, activations, memory per GPU, communication.

The blocks are declared; parameters, activations, shapes, messages and all-reduces are derived
from them under the placement of tensor parallelism. What the report counts differently is a
named slip; without slips the same functions give the true figures. data/megatron_report.toml holds
the layout of the text, which figures fill.

Source: megatron-report.
"""

from collections.abc import Iterator, Mapping, Sequence
from string import Formatter
from typing import Any

from symbolic_cost.published.contract import Comparison, equal, printed_data, rounded_like
from symbolic_cost.published.megatron_report.amounts import REPORT, Amounts, Run
from symbolic_cost.published.megatron_report.figures import Figures, figures, peaks
from symbolic_cost.published.results import Erratum
from symbolic_cost.units import IEC


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


PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["megatron_report"]
"""Inputs of the published report; batch, precision, vocabulary and heads are inferred from it."""


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compute every figure of the report as printed, by name; "derived" holds what it rests on.

    Args:
        inputs: hidden, seq, micro_batch, global_batch, layers, heads, tp, pp, gpus_per_node,
            nodes, vocab, vocab_multiple, precision ("bf16", "fp16" or "fp32").
    """
    amounts = Amounts(Run.accepted(inputs))
    return {**figures(amounts), "derived": _derived(amounts)}


def report(inputs: Mapping[str, Any], *, corrected: bool = False) -> str:
    """Write the report as text."""
    run = Run.accepted(inputs)
    printed = figures(Amounts(run))
    text = report_text(run, printed)
    if not corrected:
        return text
    true = figures(Amounts(run, frozenset()))
    return f"{text}\n\n\n{corrections_text(printed, true, _causes(run, true))}"


def reproduce() -> list[Comparison]:
    """Compare every printed figure with its computed value."""
    return equal(printed_data("megatron_report")["values"], evaluate(PUBLISHED_INPUTS))


def errata() -> list[Erratum]:
    """Return what the report prints beside the true figures."""
    proof = "Figures that the declared layers give follow the report where it is corrected."
    return [
        Erratum("megatron-report", name, slip["printed"], slip["true"], proof)
        for name, slip in REPORT["slips"].items()
    ]


def _derived(amounts: Amounts) -> dict[str, Any]:
    """Return the sizes and degrees that follow from the inputs, and both peaks."""
    run = amounts.run
    step, train = peaks(amounts)
    return {
        "d": run.dp,
        "ga": run.accumulation,
        "V_padded": run.padded_vocab,
        "f": run.mlp_width,
        "layers_per_stage": run.stage_layers,
        "world": run.world,
        "step_peak_gb": rounded_like("0.000", step / IEC["Gi"]),
        "train_peak_gb": rounded_like("0.000", train / IEC["Gi"]),
        "peak_branch": "step" if step > train else "forward_backward",
    }


def _causes(run: Run, true: Figures) -> dict[str, list[str]]:
    """Return which slips change each figure."""
    causes: dict[str, list[str]] = {name: [] for name in true}
    for slip in REPORT["slips"]:
        alone = figures(Amounts(run, frozenset({slip})))
        for name, slips in causes.items():
            if alone[name] != true[name]:
                slips.append(slip)
    return causes
