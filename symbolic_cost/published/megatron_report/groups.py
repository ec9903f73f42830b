"""Which ranks communicate: tensor fastest, then data, then pipeline."""

from __future__ import annotations

from symbolic_cost.published.megatron_report.run import Run

Groups = list[list[str]]


def tensor_groups(run: Run) -> Groups:
    """Return the ranks of every tensor-parallel group."""
    return [_named(run, range(i, i + run.tp)) for i in range(0, run.world, run.tp)]


def pipeline_groups(run: Run) -> Groups:
    """Return the ranks of every pipeline, first stage first."""
    stage = run.world // run.pp
    return [_named(run, range(i, run.world, stage)) for i in range(stage)]


def stages(run: Run) -> Groups:
    """Return the ranks of every pipeline stage."""
    stage = run.world // run.pp
    return [_named(run, range(i, i + stage)) for i in range(0, run.world, stage)]


def data_groups(run: Run) -> Groups:
    """Return the ranks of every data-parallel group, stage by stage."""
    stage = run.world // run.pp
    return [
        _named(run, range(first + j, first + stage, run.tp))
        for first in range(0, run.world, stage)
        for j in range(run.tp)
    ]


def _named(run: Run, ranks: range) -> list[str]:
    return [f"n{rank // run.gpus_per_node}_g{rank % run.gpus_per_node}" for rank in ranks]
