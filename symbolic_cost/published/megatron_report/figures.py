"""Every figure of the report by name, as printed; the sections follow the report's order."""

from decimal import Decimal
from fractions import Fraction

from sympy import Integer

from symbolic_cost.ledger import Phase
from symbolic_cost.ops.placement import WHOLE, Placement
from symbolic_cost.parallel.groups import rank_groups
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.published.contract import rounded_like
from symbolic_cost.published.megatron_report.amounts import REPORT, Amounts, Run
from symbolic_cost.published.megatron_report.declaration import TENSOR
from symbolic_cost.units import IEC

Figures = dict[str, str | list[int] | list[list[str]]]
"""Figures by name: printed numbers, shapes, groups of ranks."""

Traffic = tuple[int, Fraction]
"""How often per iteration, and bytes."""


def figures(amounts: Amounts) -> Figures:
    """Compute every figure of the sections that the run has."""
    run = amounts.run
    rules = {"pp": _pipeline_traffic, "dp": _data_traffic, "tp": _tensor_traffic}
    traffic = {kind: rule(amounts) for kind, rule in rules.items()}
    counts, volumes = zip(*traffic.values(), strict=True)
    traffic["all"] = sum(counts), sum(volumes, Fraction(0))
    cells: Figures = {}
    for kind, moved in traffic.items():
        cells |= _moved(f"cluster.{kind}", moved)
    all_figures = _table(amounts, "full", WHOLE) | _full(amounts) | cells
    activations = amounts.stage_activations()
    if "logits" not in amounts.slips:
        activations += amounts.stage_logits()
    all_figures |= _states("gpu", amounts, amounts.stage_parameters(0), amounts.run.dp) | {
        "gpu.activations_gb": _gigabytes(activations),
        "gpu.peak_gb": max((_gigabytes(size) for size in peaks(amounts)), key=Decimal),
    }
    all_figures |= _pipeline(amounts) if run.pp > 1 else {}
    all_figures |= _data(amounts) if run.dp > 1 else {}
    return all_figures | (_table(amounts, "tp", TENSOR) | _tensor(amounts) if run.tp > 1 else {})


def _megabytes(size: Fraction) -> str:
    return rounded_like("0.0", size / IEC["Mi"])


def _gigabytes(size: Fraction, digits: str = "0.0") -> str:
    return rounded_like(digits, size / IEC["Gi"])


def _table(amounts: Amounts, table: str, placement: Placement) -> Figures:
    """Return the cells of the layer table: of the model, or of one rank and what it reduces."""
    tensor = table == "tp"
    undivided = tensor and "whole-rows" in amounts.slips
    cells: Figures = {}
    for name, line in REPORT["lines"].items():
        whole = line.get("whole", "") if undivided else ""
        weights, writes = (WHOLE if whole == of else placement for of in ("weights", "writes"))
        key = f"{table}.{name}"
        cells |= _shapes(amounts, key, line, placement)
        if "weights" in line:
            parameters = amounts.parameters(line["weights"], weights)
            if name == "input_layernorm" and "first-norm" in amounts.slips:
                parameters += amounts.run.micro_batch - amounts.run.hidden
            cells[f"{key}.param_mb"] = _megabytes(amounts.run.words["word"] * parameters)
        if "writes" in line:
            cells[f"{key}.act_mb"] = _megabytes(amounts.writes(line["writes"], writes))
        if tensor and "weights" in line:
            for phase, message in amounts.all_reduces(line["weights"].split()[0]):
                way = "forward" if phase is Phase.FORWARD else "backward"
                cells[f"{key}.{way}_shape"] = amounts.shape("b,l,e")
                cells[f"{key}.{way}_mb"] = _megabytes(message)
    layers = amounts.run.stage_layers if tensor else amounts.run.layers
    layer = amounts.layer_activations(WHOLE if undivided else placement)
    cells[f"{table}.transformer.num_layers"] = str(layers)
    return cells | {f"{table}.transformer.act_mb_per_layer": _megabytes(layer)}


def _shapes(amounts: Amounts, key: str, line: dict[str, str], placement: Placement) -> Figures:
    if "shape" not in line:
        return {}
    weight = amounts.shape(line["shape"], placement)
    if key.startswith("tp") and key.endswith("_embeddings"):
        # The report prints the columns of a table of embeddings where a bias stands.
        return {f"{key}.w": weight[:1], f"{key}.b": weight[1:]}
    shapes: Figures = {f"{key}.w": weight}
    if "bias" in line:
        slip = key.endswith("query_key_value") and "qkv-bias" in amounts.slips
        shapes[f"{key}.b"] = amounts.shape("e" if slip else line["bias"], placement)
    return shapes


def _moved(name: str, traffic: Traffic) -> Figures:
    """Return how often something moves, and how much."""
    count, volume = traffic
    return {f"{name}.count": str(count), f"{name}.volume_gb": _gigabytes(volume)}


def _states(section: str, amounts: Amounts, parameters: Fraction, shards: int) -> Figures:
    """Return parameters, gradients and optimizer states, the latter sharded."""
    words = amounts.run.words
    weights = words["word"] * parameters
    return {
        f"{section}.num_params": str(int(parameters)),
        f"{section}.params_gb": _gigabytes(weights),
        f"{section}.grads_gb": _gigabytes(weights * words["gradient"]),
        f"{section}.optimizer_gb": _gigabytes(weights * words["optimizer"] / shards),
    }


def peaks(amounts: Amounts) -> tuple[Fraction, Fraction]:
    """Return the peaks of one GPU [byte]: of the optimizer step, of forward and backward."""
    run, words = amounts.run, amounts.run.words
    weights = words["word"] * amounts.stage_parameters(0)
    held = weights * (1 + words["gradient"])
    step = held + weights * (Fraction(words["step_shard"], run.dp) + words["step"])
    states = held + weights * Fraction(words["optimizer"], run.dp)
    return step, states + amounts.stage_activations() + amounts.stage_logits()


def _full(amounts: Amounts) -> Figures:
    words, parameters = amounts.run.words, amounts.full_parameters()
    activations = amounts.full_activations()
    states = words["word"] * parameters * (1 + words["gradient"] + words["optimizer"])
    return _states("full", amounts, parameters, 1) | {
        "full.activations_gb": _gigabytes(activations),
        "full.total_gb": _gigabytes(states + activations),
    }


_SEEN = 2
"""Each message counts where it is sent and where it is received."""


def _pipeline_traffic(amounts: Amounts) -> Traffic:
    """Count the messages of all pipelines; as printed, the last stage sends on too."""
    run, plan = amounts.run, Pipeline("1f1b", Integer(amounts.run.accumulation))
    stages = run.pp + ("pipeline-ends" in amounts.slips and run.pp > 1)
    messages = int(plan.of(plan.schedule.messages, Integer(stages)))
    count = _SEEN * messages * (run.world // run.pp)
    return count, count * amounts.message()


def _tensor_traffic(amounts: Amounts) -> Traffic:
    run = amounts.run
    layers = amounts.all_reduces("layer") * run.layers
    ends = [] if "tensor-ends" in amounts.slips else amounts.all_reduces("embedding head")
    per_stage = run.world // run.pp * run.accumulation
    volume = sum((size for _, size in [*layers, *ends]), Fraction(0))
    return per_stage * len([*layers, *ends]), per_stage * volume


def _scattered_gathered(amounts: Amounts, parameters: Fraction) -> tuple[Fraction, Fraction]:
    """Return the bytes of gradients that are scattered and of parameters that are gathered."""
    words = amounts.run.words
    gathered = words["gradient"] if "gather-size" in amounts.slips else 1
    weights = words["word"] * parameters
    return weights * words["gradient"], weights * gathered


def _data_traffic(amounts: Amounts) -> Traffic:
    run = amounts.run
    if "data-scope" in amounts.slips:
        one_gpu = _scattered_gathered(amounts, amounts.stage_parameters(0))
        return (2 if run.dp > 1 else 0), sum(one_gpu, Fraction(0))
    if run.dp == 1:
        return 0, Fraction(0)
    moved = _scattered_gathered(amounts, amounts.pipeline_parameters())
    return 2 * run.world, run.world // run.pp * sum(moved, Fraction(0))


def _groups(run: Run, *axes: str) -> list[list[str]]:
    """Return the names of the ranks that stand together along mesh axes."""
    mesh = {"tp": run.tp, "dp": run.dp, "pp": run.pp}
    return [list(group.names) for group in rank_groups(mesh, axes, run.gpus_per_node)]


def _pipeline(amounts: Amounts) -> Figures:
    run, message, named = amounts.run, amounts.message(), _groups(amounts.run, "pp")
    per_gpu = _SEEN * run.accumulation * int(sum(schedule("1f1b").sends(Stage.MIDDLE)))
    return {
        "pp.message_shape": amounts.shape("b,l,e"),
        "pp.message_mb": _megabytes(message),
        "pp.gpu.count": str(per_gpu),
        "pp.gpu.volume_mb": _megabytes(per_gpu * message),
        "pp.stages": _groups(run, "tp", "dp"),
        "pp.num_groups": str(len(named)),
        "pp.groups": named,
        **_moved("pp.cluster", _pipeline_traffic(amounts)),
    }


def _data(amounts: Amounts) -> Figures:
    moved = _scattered_gathered(amounts, amounts.stage_parameters(0))
    named = _groups(amounts.run, "dp")
    cells: Figures = {}
    kinds = (("grad", "reduce_scatter"), ("param", "all_gather"))
    for (kind, collective), volume in zip(kinds, moved, strict=True):
        cells |= {f"dp.{kind}.num_groups": str(len(named)), f"dp.{kind}.groups": named}
        cells |= {f"dp.{kind}.volume_gb": _gigabytes(volume), f"dp.{kind}.count": "1"}
        cells[f"dp.{kind}.func"] = collective
    cells["dp.grad.microbatches_per_iteration"] = str(amounts.run.accumulation)
    return cells | _moved("dp.cluster", _data_traffic(amounts))


def _tensor(amounts: Amounts) -> Figures:
    run, per_layer = amounts.run, amounts.all_reduces("layer")
    volume, named = sum((size for _, size in per_layer), Fraction(0)), _groups(run, "tp")
    cells: Figures = {
        "tp.num_groups": str(len(named)),
        "tp.groups": named,
        "tp.layer.count": str(len(per_layer)),
        # Two decimals at most: 0.25, but 0.5.
        "tp.layer.volume_gb": _gigabytes(volume, "0.00").removesuffix("0"),
    }
    for who, ranks in (("gpu", 1), ("cluster", run.world)):
        for period, times in (("microbatch", 1), ("iteration", run.accumulation)):
            layers = ranks * times * run.stage_layers
            cells |= _moved(f"tp.{who}.{period}", (layers * len(per_layer), layers * volume))
    return cells
