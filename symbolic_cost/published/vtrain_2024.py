"""Step times of Megatron-DeepSpeed runs on A100 clusters, predicted from declared costs.

FLOP, bytes and collectives are derived from the declared GPT under the run's placement, times from
the machine's rates, links and fitted efficiencies, the bubble from the schedule. No measured time
is printed in the paper, so none is compared; the efficiencies were fitted to one half of the runs
published beside it (see `systems.calibration`), and `reports/accuracy` says how well they do.

Source: vtrain-2024, tables of measured step times; full recomputation, 1F1B, fp16, f = 4 e.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from sympy import Integer

from symbolic_cost.published.contract import Comparison, printed_data
from symbolic_cost.published.inputs import Count, Inputs
from symbolic_cost.systems.machines import Figure, Machine
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.runs import Run, rates, step_seconds

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["vtrain_2024"]
"""A run of 175 billion parameters."""

_MADE_OF: Mapping[str, int] = printed_data("inputs.toml")["vtrain_2024_setting"]
"""The vocabulary, and what the network interfaces of one node carry one way [byte/s]."""


class Measurement(Inputs):
    """One run: ranks, batches [sequences], sizes and degrees; V before it is padded."""

    gpus: Count
    global_batch: Count
    micro_batch: Count
    e: Count
    h: Count
    n_layers: Count
    l: Count
    tp: Count
    dp: Count
    pp: Count
    V: Count = _MADE_OF["vocabulary"]

    def run(self) -> Run:
        """Return the run without its number of ranks."""
        return Run(**{name: size for name, size in self if name != "gpus"})

    def contradictions(self) -> list[str]:
        """Say which sizes and degrees do not go together."""
        problems = list(self.run().problems())
        ranks = self.tp * self.dp * self.pp
        if ranks != self.gpus:
            problems.append(f"gpus = {self.gpus}, but tp dp pp = {ranks}")
        return problems


@cache
def cluster() -> Machine:
    """Return the machine: nodes of eight A100, 800 Gbit/s between nodes."""
    node = machine("a100-80gb")
    inside, outside = node.links
    ranks = Integer(1) if inside.ranks is None else inside.ranks.value
    of_node = Integer(_MADE_OF["node_bandwidth"])
    bandwidth = Figure(of_node / ranks, "vtrain-2024", "one rank's part of the node's")
    return replace(node, links=(inside, replace(outside, bandwidth=bandwidth)))


def evaluate(inputs: Mapping[str, Any]) -> dict[str, float]:
    """Predict the time of one training step [ms].

    Args:
        inputs: gpus, global_batch, micro_batch, e, h, n_layers, l, tp, dp and pp; V unless 50257.

    Returns:
        "iteration_time_ms".
    """
    run = Measurement.accepted(inputs).run()
    (seconds,) = step_seconds([run], rates(cluster()))
    return {"iteration_time_ms": 1000 * float(seconds)}


def reproduce() -> Sequence[Comparison]:
    """Predict one run; measured times are not compared, since none is printed in the paper."""
    milliseconds = evaluate(PUBLISHED_INPUTS)["iteration_time_ms"]
    note = "measured runs are not part of the library; reports/accuracy holds the errors"
    return (Comparison("iteration_time_ms", None, f"{milliseconds:.0f}", None, note),)
