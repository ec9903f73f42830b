"""Training report of a Megatron-LM GPT: parameters, activations, memory per GPU, communication.

The blocks are declared; parameters, activations, shapes, messages and all-reduces are derived
from them under the placement of tensor parallelism. What the report counts differently is a
named slip; without slips the same functions give the true figures.

Source: megatron-report.
"""

from collections.abc import Mapping
from typing import Any

from symbolic_cost.published.contract import Comparison, equal, printed_data, rounded_like
from symbolic_cost.published.megatron_report.amounts import REPORT, Amounts, Run
from symbolic_cost.published.megatron_report.figures import Figures, figures, peaks
from symbolic_cost.published.megatron_report.text import corrections_text, report_text
from symbolic_cost.published.results import Erratum
from symbolic_cost.units import IEC

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
