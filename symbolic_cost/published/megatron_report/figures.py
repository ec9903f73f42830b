"""Every figure of the report by name, as printed; the sections follow the report's order."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from symbolic_cost.parallel.groups import rank_groups
from symbolic_cost.published.contract import rounded_like
from symbolic_cost.published.megatron_report.amounts import Amounts, Slip
from symbolic_cost.published.megatron_report.run import Run
from symbolic_cost.published.megatron_report.table import (
    Figures,
    full_table,
    megabytes,
    tensor_table,
)
from symbolic_cost.units import IEC

Traffic = tuple[int, Fraction]
"""How often per iteration, and bytes."""


def figures(amounts: Amounts) -> Figures:
    """Compute every figure of the sections that the run has."""
    run = amounts.run
    found = full_table(amounts) | _full(amounts) | _cluster(amounts) | _gpu(amounts)
    found |= _pipeline(amounts) if run.pp > 1 else {}
    found |= _data(amounts) if run.dp > 1 else {}
    return found | (tensor_table(amounts) | _tensor(amounts) if run.tp > 1 else {})


def _gigabytes(size: Fraction, digits: str = "0.0") -> str:
    return rounded_like(digits, size / IEC["Gi"])


def _moved(name: str, traffic: Traffic) -> Figures:
    """Return how often something moves, and how much."""
    count, volume = traffic
    return {f"{name}.count": str(count), f"{name}.volume_gb": _gigabytes(volume)}


def _states(section: str, amounts: Amounts, parameters: Fraction, shards: int) -> Figures:
    """Return parameters, gradients and optimizer states, the latter sharded."""
    words = amounts.run.words
    weights = words.word * parameters
    return {
        f"{section}.num_params": str(int(parameters)),
        f"{section}.params_gb": _gigabytes(weights),
        f"{section}.grads_gb": _gigabytes(weights * words.gradient),
        f"{section}.optimizer_gb": _gigabytes(weights * words.optimizer / shards),
    }


def _full(amounts: Amounts) -> Figures:
    words, parameters = amounts.run.words, amounts.full_parameters()
    activations = amounts.full_activations()
    states = words.word * parameters * (1 + words.gradient + words.optimizer)
    return _states("full", amounts, parameters, 1) | {
        "full.activations_gb": _gigabytes(activations),
        "full.total_gb": _gigabytes(states + activations),
    }


def peaks(amounts: Amounts) -> tuple[Fraction, Fraction]:
    """Return the peaks of one GPU [byte]: of the optimizer step, of forward and backward."""
    run, words = amounts.run, amounts.run.words
    weights = words.word * amounts.stage_parameters(0)
    held = weights * (1 + words.gradient)
    step = held + weights * (Fraction(words.step_shard, run.dp) + words.step)
    states = held + weights * Fraction(words.optimizer, run.dp)
    return step, states + amounts.stage_activations() + amounts.stage_logits()


def _gpu(amounts: Amounts) -> Figures:
    activations = amounts.stage_activations()
    if Slip.LOGITS not in amounts.slips:
        activations += amounts.stage_logits()
    peak = max((_gigabytes(size) for size in peaks(amounts)), key=Decimal)
    return _states("gpu", amounts, amounts.stage_parameters(0), amounts.run.dp) | {
        "gpu.activations_gb": _gigabytes(activations),
        "gpu.peak_gb": peak,
    }


# Communication of the cluster.


def _pipeline_traffic(amounts: Amounts) -> Traffic:
    """Count each message where it is sent and where it is received, in both directions."""
    run = amounts.run
    if run.pp == 1:
        return 0, Fraction(0)
    ends = run.pp if Slip.PIPELINE_ENDS in amounts.slips else run.pp - 1
    count = 4 * ends * (run.world // run.pp) * run.accumulation
    return count, count * amounts.message()


def _tensor_traffic(amounts: Amounts) -> Traffic:
    run = amounts.run
    layers, ends = amounts.all_reduces("layer"), []
    if Slip.TENSOR_ENDS not in amounts.slips:
        ends = amounts.all_reduces("embedding") + amounts.all_reduces("head")
    per_stage = run.world // run.pp * run.accumulation
    count = per_stage * (run.layers * len(layers) + len(ends))
    volume = run.layers * sum(size for _, size in layers) + sum(size for _, size in ends)
    return count, Fraction(per_stage * volume)


def _scattered_gathered(amounts: Amounts, parameters: Fraction) -> tuple[Fraction, Fraction]:
    """Return the bytes of gradients that are scattered and of parameters that are gathered."""
    words = amounts.run.words
    gathered = words.gradient if Slip.GATHER_SIZE in amounts.slips else 1
    weights = words.word * parameters
    return weights * words.gradient, weights * gathered


def _data_traffic(amounts: Amounts) -> Traffic:
    run = amounts.run
    if Slip.DATA_SCOPE in amounts.slips:
        one_gpu = _scattered_gathered(amounts, amounts.stage_parameters(0))
        return (2 if run.dp > 1 else 0), sum(one_gpu, Fraction(0))
    if run.dp == 1:
        return 0, Fraction(0)
    moved = _scattered_gathered(amounts, amounts.pipeline_parameters())
    return 2 * run.world, run.world // run.pp * sum(moved, Fraction(0))


def _cluster(amounts: Amounts) -> Figures:
    traffic = {
        "pp": _pipeline_traffic(amounts),
        "dp": _data_traffic(amounts),
        "tp": _tensor_traffic(amounts),
    }
    counts, volumes = zip(*traffic.values(), strict=True)
    traffic["all"] = sum(counts), sum(volumes, Fraction(0))
    found: Figures = {}
    for kind, moved in traffic.items():
        found |= _moved(f"cluster.{kind}", moved)
    return found


# Sections of one kind of parallelism.


def _groups(run: Run, *axes: str) -> list[list[str]]:
    """Return the names of the ranks that stand together along mesh axes."""
    mesh = {"tp": run.tp, "dp": run.dp, "pp": run.pp}
    return [list(group.names) for group in rank_groups(mesh, axes, run.gpus_per_node)]


def _pipeline(amounts: Amounts) -> Figures:
    run, message = amounts.run, amounts.message()
    per_gpu = 4 * run.accumulation
    named = _groups(run, "pp")
    found: Figures = {
        "pp.message_shape": amounts.shape("b,l,e"),
        "pp.message_mb": megabytes(message),
        "pp.gpu.count": str(per_gpu),
        "pp.gpu.volume_mb": megabytes(per_gpu * message),
        "pp.stages": _groups(run, "tp", "dp"),
        "pp.num_groups": str(len(named)),
        "pp.groups": named,
    }
    return found | _moved("pp.cluster", _pipeline_traffic(amounts))


def _data(amounts: Amounts) -> Figures:
    scattered, gathered = _scattered_gathered(amounts, amounts.stage_parameters(0))
    named = _groups(amounts.run, "dp")
    found: Figures = {}
    for kind in ("grad", "param"):
        found |= {f"dp.{kind}.num_groups": str(len(named)), f"dp.{kind}.groups": named}
    found |= {
        "dp.grad.volume_gb": _gigabytes(scattered),
        "dp.grad.func": "reduce_scatter",
        "dp.grad.count": "1",
        "dp.grad.microbatches_per_iteration": str(amounts.run.accumulation),
        "dp.param.volume_gb": _gigabytes(gathered),
        "dp.param.func": "all_gather",
        "dp.param.count": "1",
    }
    return found | _moved("dp.cluster", _data_traffic(amounts))


def _tensor(amounts: Amounts) -> Figures:
    run = amounts.run
    per_layer = amounts.all_reduces("layer")
    volume = sum((size for _, size in per_layer), Fraction(0))
    named = _groups(run, "tp")
    found: Figures = {
        "tp.num_groups": str(len(named)),
        "tp.groups": named,
        "tp.layer.count": str(len(per_layer)),
        # Two decimals at most: 0.25, but 0.5.
        "tp.layer.volume_gb": _gigabytes(volume, "0.00").removesuffix("0"),
    }
    for who, ranks in (("gpu", 1), ("cluster", run.world)):
        for period, times in (("microbatch", 1), ("iteration", run.accumulation)):
            layers = ranks * times * run.stage_layers
            found |= _moved(f"tp.{who}.{period}", (layers * len(per_layer), layers * volume))
    return found
