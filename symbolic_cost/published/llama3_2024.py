"""Llama 3: the meshes of Table 4, their ranks, tokens per batch and utilisation.

Source: grattafiori-2024, Table 4 (the first version of the text misprints a degree).
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.published.contract import (
    Comparison,
    compared,
    not_recomputed,
    printed_data,
    printed_rows,
)
from symbolic_cost.published.inputs import Count, Inputs, Rate
from symbolic_cost.symbols import exact
from symbolic_cost.units import IEC

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["llama3_2024"]
"""First row of Table 4."""

_MEASURED = "the reported TFLOP/s are rounded, so their percentage may differ by one"


class Run(Inputs):
    """One training phase: degrees, sequence length [tokens], sequences per data-parallel group.

    Rates are the achieved one, and the dense bf16 one of the GPU, an H100 unless given [TFLOP/s].
    """

    tp: Count
    cp: Count
    pp: Count
    dp: Count
    seq: Count
    batch_per_dp: Count
    tflops_per_gpu: Rate
    peak_tflops: Rate = 989


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, int | float]:
    """Compute ranks, tokens per batch and utilisation [percent].

    Args:
        inputs: tp, cp, pp, dp, seq, batch_per_dp, tflops_per_gpu; optionally peak_tflops.

    Returns:
        "gpus", "tokens_per_batch", "bf16_mfu_percent".
    """
    run = Run.accepted(inputs)
    mesh = Strategy({name: (getattr(run, name),) for name in ("tp", "cp", "dp", "pp")})
    return {
        "gpus": int(mesh.ranks),
        "tokens_per_batch": run.seq * run.batch_per_dp * run.dp,
        "bf16_mfu_percent": float(100 * exact(run.tflops_per_gpu) / exact(run.peak_tflops)),
    }


def reproduce() -> list[Comparison]:
    """Compare ranks and tokens per batch (16M stands for 16 * 2**20); the rest is measured."""
    comparisons = []
    for number, row in enumerate(printed_rows("llama3_2024"), 1):
        inputs = {name: int(row[name]) for name in PUBLISHED_INPUTS}
        values = evaluate(inputs)
        key = f"row {number}"
        comparisons.append(compared(f"{key}.gpus", row["gpus"], values["gpus"]))
        tokens = row["tokens_per_batch"]
        millions = compared(
            "", tokens.removesuffix("M"), Fraction(values["tokens_per_batch"]) / IEC["Mi"]
        )
        computed = f"{millions.computed}M"
        comparisons.append(Comparison(f"{key}.tokens_per_batch", tokens, computed, millions.match))
        percent = f"{values['bf16_mfu_percent']:.1f}"
        printed = row["bf16_mfu_percent"]
        comparisons.append(not_recomputed(f"{key}.bf16_mfu_percent", printed, _MEASURED, percent))
    return comparisons
