"""Step time and memory of a transformer under 1D, SUMMA and context-parallel tensor parallelism.

The block is declared once (`declaration`); FLOP, traffic, weights, activations and collectives are
derived under the placement of each strategy. `books` names every place where the model counts
otherwise, and its slips, which "corrected" repairs together or one by one. Times are in seconds,
memory and messages in the units of element_size (GB), FLOP in those of flops_units
(Tera-operations).

Source: subramanian-2024-head.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sympy import Expr

from symbolic_cost.ledger import Collective, CollectiveKind, Quantity
from symbolic_cost.ops.update import TRAFFIC
from symbolic_cost.published.contract import Comparison, compared, printed_data
from symbolic_cost.published.nersc_2024.books import SLIPS
from symbolic_cost.published.nersc_2024.declaration import MESHES, Scheme
from symbolic_cost.published.nersc_2024.inputs import StepInputs
from symbolic_cost.published.nersc_2024.layers import PASSES, Layer, Timed
from symbolic_cost.published.nersc_2024.layers import layers as symbolic_layers
from symbolic_cost.published.results import Erratum
from symbolic_cost.symbols import exact

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("nersc_2024")["inputs"]
"""The configuration whose rows were printed: a GPT of 10**12 parameters on 2048 H200."""

_NAMES = {CollectiveKind.SEND_RECEIVE: "p2p"}


def evaluate(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute rows and totals for any configuration.

    Args:
        inputs: strategy, l, e, h, depth, global_batch_size and system; unless they are the
            defaults of `inputs.StepInputs`, f, micro_batch_size, tp, dp, pp, nv_assignment,
            flash_attention, recompute_attention and corrected.

    Returns:
        "layers", one record per row of one block and microbatch, and "totals" of one step.
    """
    run = StepInputs.accepted(inputs)
    timed = Timed(run)
    totals = {name: float(value) for name, value in timed.totals().items()}
    totals |= {
        "t_total": totals["t"],
        "memory": totals["mem"],
        "number_micro_batches": run.microbatches,
        "feasible": totals["mem"] <= run.system.hbm_capacity,
    }
    return {"layers": [_record(layer, timed) for layer in timed.layers], "totals": totals}


def reproduce() -> Sequence[Comparison]:
    """Compare every number that was printed for two configurations with its computed value."""
    printed = printed_data("nersc_2024")
    comparisons = []
    rows = {row["layer"]: row for row in evaluate(PUBLISHED_INPUTS)["layers"]}
    for name, cells in printed["layers"].items():
        for column, cell in zip(printed["columns"], cells, strict=True):
            comparisons.append(compared(f"layers.{name}.{column}", cell, rows[name][column]))
    for number, case in enumerate(printed["totals"], 1):
        totals = evaluate({**PUBLISHED_INPUTS, **case["inputs"]})["totals"]
        for name, cell in case["printed"].items():
            comparisons.append(_full_precision(f"totals {number}.{name}", cell, totals[name]))
    return comparisons


def errata() -> list[Erratum]:
    """Return where the counts depart from what the declared layers imply."""
    return SLIPS.errata("nersc-2024", "Named in the input `corrected`, it is left out.")


@cache
def formulas() -> Mapping[str, Expr]:
    """Return FLOP, traffic, activation and weights of every row and strategy as expressions."""
    totals: dict[str, Expr] = {}
    for strategy in ("1d", "2d", "2d-seqp"):
        for layer in symbolic_layers(Scheme(strategy)):
            key = f"{strategy}.{layer.name}"
            totals[f"{key}.activation_buffer"] = layer.sum(Quantity.SAVED)
            totals[f"{key}.weights_mem"] = layer.sum(Quantity.WEIGHT)
            for way in PASSES:
                totals[f"{key}.flops_{way}"] = layer.sum(Quantity.FLOP, way=way)
                totals[f"{key}.mem_{way}"] = layer.sum(*TRAFFIC, way=way)
    return {key: expr for key, expr in totals.items() if expr != 0}


def _full_precision(key: str, printed: str, value: float) -> Comparison:
    """Compare with a float64 that was printed in full, but for the rounding of its sums."""
    close = abs(value - float(printed)) <= _ROUNDING * abs(float(printed))
    note = "" if repr(value) == printed else "equal but for the rounding of sums in float64"
    return Comparison(key, printed, repr(value), close, note if close else "")


_ROUNDING = 1e-14


def _record(layer: Layer, timed: Timed) -> dict[str, Any]:
    weights = float(layer.sum(Quantity.WEIGHT))
    record: dict[str, Any] = {
        "layer": layer.name,
        "block": layer.block,
        "weights_mem": weights,
        "weights_grad_mem": weights,
        "activation_buffer": float(layer.sum(Quantity.SAVED)),
    }
    for way, times in timed.times[layer.name].items():
        flop = exact(timed.system.flops_units) * layer.sum(Quantity.FLOP, way=way)
        record |= {
            f"flops_{way}": float(flop),
            f"mem_{way}": float(layer.sum(*TRAFFIC, way=way)),
            **_moves(way, layer.moves(way), timed.run),
            f"t_{way}": float(times.total),
            f"t_{way}_comm": float(times.op.exposed),
            f"t_{way}_comp": float(times.compute),
            f"t_{way}_mem": float(times.exposed_memory),
            f"intensity_{way}": float(times.compute / times.op.memory),
        }
    return record | {"t": record["t_fwd"] + record["t_bwd"]}


def _moves(way: str, moves: list[Collective], run: StepInputs) -> dict[str, Any]:
    """Return messages, kinds and ranks of a pass: one of each, or lists of several."""
    real = [(move, MESHES[move.group]) for move in moves if move.ranks > 1]
    columns: dict[str, list[Any]] = {
        f"comm_{way}": [float(move.calls * move.message) for move, _ in real],
        f"comm_{way}_type": [_NAMES.get(move.kind, move.kind.replace("-", "")) for move, _ in real],
        f"comm_{way}_size": [run.degrees[mesh] for _, mesh in real],
        f"comm_{way}_topology": [run.inside[mesh] for _, mesh in real],
    }
    if not real:
        nothing = (0.0, "none", 0, "none")
        return dict(zip(columns, nothing, strict=True))
    return {key: cells[0] if len(cells) == 1 else cells for key, cells in columns.items()}
