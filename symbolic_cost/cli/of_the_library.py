"""Commands about what there is: models, machines, schedules, launch files, publications."""

import click

from symbolic_cost.cli.options import Output, command


@command("models")
def models(*, name: str | None, out: Output) -> None:
    """List the named models, their sizes and sources; or the sizes of one.

    For example: symbolic-cost models gpt3-175b
    """
    if name is not None:
        from symbolic_cost.cli.sheets.models import model_sheet

        out.sheet(model_sheet(name))
        return
    from symbolic_cost.emit.sheet import Column, Sheet
    from symbolic_cost.models.catalog import CATALOG
    from symbolic_cost.models.published_size import configured

    rows = tuple(
        (
            preset.name,
            preset.family,
            ", ".join(f"{name}={size}" for name, size in preset.bindings.items()) or "symbolic",
            _where(preset.source),
            preset.note,
        )
        for preset in CATALOG.values()
    ) + tuple(
        (one.name, one.config["model_type"], "by its config.json", _where(one.source), one.note)
        for one in configured().values()
    )
    headings = ("model", "family", "sizes", "source", "note")
    out.sheet(Sheet("Models", tuple(map(Column, headings)), rows))


def _where(source: str) -> str:
    from symbolic_cost.references import REFERENCES

    return REFERENCES[source].where


@command("systems")
def systems(*, name: str | None, out: Output) -> None:
    """List the machines, or every number of one (a name, or a TOML file) with its source.

    For example: symbolic-cost systems h100
    """
    from symbolic_cost.cli.sheets.machines import machine_sheet, machines_sheet

    out.sheet(machines_sheet() if name is None else machine_sheet(name))


@command("schedule")
def schedule(*, strategy: str, microbatches: int, name: str, chunks: int, out: Output) -> None:
    """Bubble, activations in flight and messages of a pipeline schedule.

    With -o FILE.svg or FILE.png the schedule is drawn, as in
    symbolic-cost schedule --strategy pp=4 --microbatches 8 --schedule zb-h1 -o schedule.svg
    """
    from symbolic_cost.cli.sheets.machines import schedule_sheet, stages_of
    from symbolic_cost.emit.timeline import draw
    from symbolic_cost.parallel.timeline import timeline

    stages = stages_of(strategy)
    events = timeline(name, stages, microbatches, chunks)
    if out.is_picture:
        out.draw(draw, events, f"{name}, {stages} stages, {microbatches} microbatches")
        return
    out.sheet(schedule_sheet(name, stages, microbatches, chunks, events))


@command("calibrate")
def calibrate(
    *,
    system: str,
    files: tuple[str, ...],
    kernels: tuple[str, ...],
    stack: str,
    more: tuple[str, ...],
    out: Output,
) -> None:
    """Fit a machine to what was measured on it; -o FILE.toml writes its record.

    --kernels fits rates by kind of kernel: products (m, n, k, dtype), attention (phase, batch,
    q_len, kv_len, heads, kv_heads, head_dim), collectives (op, gpus, bytes), passes, each with
    latency_ms. --rows fits three numbers of the cluster to steps of any model: model or sizes
    (n_layers, hidden, heads, ...), seq, micro_batch, global_batch, tp, pp, dp, precision,
    recompute, framework or stack, measured_step_s. Both together: kernels first. For example:

    symbolic-cost calibrate --system h100 --kernels gemm.csv nccl.csv --rows runs.csv -o mine.toml

    Rows with columns e, h, l and iteration_time_ms alone, and no --stack, fit the efficiencies of
    the machine's record to GPT runs instead.
    """
    from symbolic_cost.cli.sheets.calibration import calibrated, calibrated_sheet, has_efficiencies
    from symbolic_cost.cli.sheets.machines import fitted, fitted_sheet
    from symbolic_cost.systems.calibration import record

    if not files and not kernels:
        raise click.UsageError(
            f"of {system} nothing is measured: give --rows FILE or --kernels FILE"
        )
    if kernels:  # --kernels gemm.csv nccl.csv
        kernels += more
    else:
        files += more
    if has_efficiencies(files) and not kernels and not stack:
        reached = fitted(system, files)
        machine, sheet = reached.machine, fitted_sheet(reached)
    else:
        outcome = calibrated(system, kernels, files, stack)
        machine, sheet = outcome.machine, calibrated_sheet(outcome)
    if out.file is not None and out.file.endswith(".toml"):
        out.text(record(machine))
    else:
        out.sheet(sheet)


@command("import")
def import_(*, files: tuple[str, ...], out: Output) -> None:
    """Read model and strategy from FILES, with where each value came from.

    Megatron-LM launch scripts, DeepSpeed, accelerate and vLLM configurations, nanotron and NeMo
    YAML, torchtitan TOML, axolotl, TRL, LLaMA-Factory, LLM Foundry and MaxText YAML, Calculon and
    llm-analysis JSON, as in symbolic-cost import run.sh ds_config.json

    One graph exported by torch.export (.pt2) or to ONNX: its axes with their roles and why, its
    parts, and its formulas: symbolic-cost import model.onnx -o model.json

    One file of weights (.safetensors, its index, .gguf): elements and bytes of each data type. One
    folder of a pipeline (model_index.json): its parts, counted or refused by name.
    """
    from symbolic_cost.models.configfile import is_elsewhere
    from symbolic_cost.models.traced import is_graph

    if len(files) == 1 and is_elsewhere(files[0]):
        from symbolic_cost.cli.sheets.graphs import stored_sheet

        out.sheet(stored_sheet(files[0]))
        return

    graphs = [file for file in files if is_graph(file)]
    if graphs:
        _import_graph(graphs, len(files), out)
        return
    from symbolic_cost.cli.sheets.models import recipe_sheet
    from symbolic_cost.importers.launch import recipe

    out.sheet(recipe_sheet(recipe(*files)))


def _import_graph(graphs: list[str], files: int, out: Output) -> None:
    """Print what a graph holds; one alone is read."""
    if files > 1:
        raise click.UsageError(f"a graph is imported alone: {graphs[0]} is one of {files} files")
    from symbolic_cost.cli.sheets.graphs import graph_sheet
    from symbolic_cost.models.traced.imported import traced

    out.sheet(graph_sheet(traced(graphs[0])))


@command("compare-conventions")
def compare_conventions(
    *, model: str, first: str, second: str, cost: str, settings: tuple[str, ...], out: Output
) -> None:
    """Subtract what conventions SECOND count for MODEL from what FIRST count, as a formula.

    For example: symbolic-cost compare-conventions gpt2 torch-flop-counter fvcore
    """
    from symbolic_cost.cli.sheets.models import difference_sheet

    out.sheet(difference_sheet(model, first, second, cost, settings))


@command("reproduce")
def reproduce(*, name: str, inputs: str | None, formulas: bool, out: Output) -> None:
    """Reproduce the publication NAME: published, computed, match.

    The exit code is 1 if a number differs.
    """
    from symbolic_cost.cli.sheets.reproduce import reproduction_json, reproduction_sheet
    from symbolic_cost.errors import InputError
    from symbolic_cost.published.contract import formulas as formulas_of
    from symbolic_cost.published.contract import publication, reproduce
    from symbolic_cost.published.inputs import of_file, read_inputs

    publication(name)
    if formulas and not formulas_of(name):
        raise InputError(f"--formulas is not read: {name} offers none, only numbers")
    with of_file(inputs):
        result = reproduce(name, None if inputs is None else read_inputs(inputs))
    known = formulas_of(name) if formulas else {}
    if out.form == "json":
        out.text(reproduction_json(result, known))
    else:
        out.sheet(reproduction_sheet(result, known))
    if result.matched < result.total:
        click.get_current_context().exit(1)
