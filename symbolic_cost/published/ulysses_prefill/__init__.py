"""Prefill step with Ulysses attention and a tensor- and data-parallel perceptron.

FLOP and collectives are derived from declared ops under two placements; shapes follow from the
printed dimensions; memory follows the program's allocations. FLOP are those of the cluster.
As printed, `input_` is labelled N/DP/TP and has N/DP rows, A holds scores without a softmax, and
the later log counts the perceptron without the factor 2 of a multiply-accumulate.

Source: pycomm-prefill.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import Any

from symbolic_cost.published.contract import Comparison, equal, printed_data, rounded_like
from symbolic_cost.published.ulysses_prefill.declaration import (
    LOGS,
    Moment,
    Run,
    Step,
    Tensor,
    flop,
    moments,
    volumes,
)
from symbolic_cost.units import SI

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["ulysses_prefill"]
"""Inputs of the published log; L and d_ff are read off its shapes."""

_SCALES = {"MB": SI["M"], "GB": SI["G"], "TFLOPs": SI["T"]}


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compute every value of a log by name; "derived_not_printed" holds volumes and true FLOP.

    Args:
        inputs: N, d, h, P, TP, DP, L, d_ff, nbytes, rank; optionally log (commit of the log:
            "3b1a699", "d7a62c8" or "5e270bf"), allocator ("caching" or "payload") and
            workspace [byte].
    """
    run = Run.accepted(inputs)
    steps = LOGS[run.log]
    tensors = [tensor for step in steps for tensor in step.tensors]
    sizes = {tensor.name: prod(run.shape(tensor.true)) * run.nbytes for tensor in tensors}
    sizes |= {f"{name}_copy": size for name, size in sizes.items()}
    sizes["workspace"] = run.workspace
    memory = moments([(step.name, step.events) for step in steps], sizes, run.allocator)
    figures: dict[str, Any] = {
        "header.heads_per_gpu": run.h // run.P,
        "header.tokens_per_gpu": run.N // run.P,
    }
    for step in LOGS[run.log]:
        values = _step(run, step, memory[step.name])
        figures |= {f"{step.name}.{name}": value for name, value in values.items()}
    derived = volumes(run) | {
        "softmax_skipped": True,
        "peak_bytes": max(moment.peak for moment in memory.values()),
    }
    if "mlp" in memory:
        derived["mlp_current_bytes"] = memory["mlp"].current
    return {**figures, "derived_not_printed": derived}


def reproduce() -> list[Comparison]:
    """Compare every value of the published log with its computed value."""
    return _compared(PUBLISHED_INPUTS)


class OtherLog:
    """Another log of the step, by its commit; its meaning in one line."""

    def __init__(self, commit: str, meaning: str) -> None:
        self.PUBLISHED_INPUTS: Mapping[str, Any] = {**PUBLISHED_INPUTS, "log": commit}
        self.__doc__ = meaning

    evaluate = staticmethod(evaluate)

    def reproduce(self) -> list[Comparison]:
        """Compare every value of this log with its computed value."""
        return _compared(self.PUBLISHED_INPUTS)


later = OtherLog(
    "d7a62c8", "The prefill step as logged later, with the FLOP of the perceptron's first product."
)
earlier = OtherLog(
    "5e270bf", "The attention of the prefill step as logged earlier, its result not contiguous."
)


def _compared(inputs: Mapping[str, Any]) -> list[Comparison]:
    printed = printed_data("ulysses_prefill")[Run.accepted(inputs).log]
    return equal(printed, evaluate(inputs))


def _step(run: Run, step: Step, moment: Moment) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    if step.name == "mlp":
        first = run.rank // run.TP * run.TP
        figures["tp_ranks"] = list(range(first, first + run.TP))
    if step.flops:
        figures["flops"] = _printed(run.P * flop(run, step.flops, as_printed=True), "TFLOPs")
    for tensor in step.tensors:
        values = _tensor(run, tensor)
        figures |= {f"{tensor.name}.{name}": value for name, value in values.items()}
    if step.contiguous:
        figures["is_contiguous"] = True
    return figures | {
        name: _printed(Fraction(getattr(moment, name)), "GB") for name in step.printed
    }


def _tensor(run: Run, tensor: Tensor) -> dict[str, Any]:
    shape = run.shape(tensor.true)
    return {
        "dims": tensor.dims,
        "shape": shape,
        "elements": prod(shape),
        "size": _printed(Fraction(prod(shape) * run.nbytes), tensor.unit),
    }


def _printed(value: Fraction, unit: str) -> str:
    return f"{rounded_like('0.00', value / _SCALES[unit])} {unit}"
