"""What a reader must know of a number: the header of every table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from sympy import Expr, Integer

from symbolic_cost.algebra import sums
from symbolic_cost.axes import At, Role
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.conventions.questions import Saved
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.naming import text_of
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.checked import has_scans, saved_note
from symbolic_cost.models.kernels import MEANINGS, Attention
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.graph import ALL
from symbolic_cost.ops.kernels import taken_by_all
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.part import Place as PartPlace
from symbolic_cost.ops.pattern import is_tied
from symbolic_cost.parallel.catalogue import GATHERING
from symbolic_cost.parallel.coverage import RESULTS
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.stages import block_count, chains, divided, every_stage, stage_blocks
from symbolic_cost.parallel.strategy import strategy_text
from symbolic_cost.symbols import GLOSSARY, in_glossary_order
from symbolic_cost.systems.kernel_records import kernels
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.stacks import ROOFLINE, stack_name, usual_precision
from symbolic_cost.units import Unit

ASSUMED = "degrees without a number are assumed to be several: "


def header(setup: Setup, *shown: str) -> tuple[str, ...]:
    """Return lines on model, strategy, stage, attention, precision, conventions and numbers.

    Args:
        setup: what is tabulated.
        shown: which quantities the table has: names of costs, memory, step; anything if none.
    """
    chosen = setup.conventions
    numbers = ", ".join(f"{text_of(name)} = {size}" for name, size in setup.values.items())
    strategy = strategy_text(setup.strategy, _written) or "none"
    stage = f"stage {setup.stage}, " if "pp" in setup.strategy else ""
    if stage and setup.trained.layout != "even":
        held, every = map(setup.value, (block_count(setup.share), block_count(setup.model)))
        stage += f"layout {setup.trained.layout}, {plain(held)} of {plain(every)} blocks, "
    return (
        f"model {setup.model.name}, strategy {strategy}, {stage}per rank",
        *setup.model.notes,
        *trained(setup),
        *_attention(setup),
        f"conventions {chosen.name}: {chosen.meaning}",
        _elements(setup),
        *(_checked(setup) if not shown or {*_IN} & {*shown} else ()),
        *((f"machine {setup.machine.name}",) if setup.machine is not None else ()),
        *_chosen(setup),
        *_repeated(setup),
        *_on_several_stages(setup),
        *_assumed(setup),
        *_alternating(setup),
        *beyond(setup),
        *((numbers,) if numbers else ()),
    )


def _on_several_stages(setup: Setup) -> Iterator[str]:
    """Say what stages of a pipeline compute, hold and keep beside the same of others."""
    if setup.strategy.mesh.get("pp", 1) == 1:
        return
    model, plan = setup.divided.split_model, setup.trained.pipeline.schedule
    before, blocks, after = divided(model)
    made = [part for part in model.parts if part.path in every_stage(model)]
    if made:
        learn = any(one.needs_gradient for part in made for op in part.ops for one in op.weights)
        said = ", and adds up their gradients with all others" if learn else ""
        yield f"pipeline: every stage computes {' and '.join(part.path for part in made)}{said}"
    if _tied(blocks):
        yield "pipeline: every stage holds the weights that all blocks share"
    both = _tied(before) & _tied(after)
    ends = " and ".join(sorted(name.removeprefix("@") for name in both))
    if ends and plan.entry != plan.exit:
        yield f"pipeline: the first and the last stage each hold table {ends}"
    taken: set[tuple[str, str]] = set()
    for chain in chains(model):
        own = {part.path for part in chain}  # what one of them makes is for the next alone
        for part in chain:
            sources = model.sources[part.path]
            names = (name for name in taken_by_all(part) if sources.get(name) not in own)
            taken |= {(part.path, name) for name in names}
    saved = setup.rows.select(Quantity.SAVED, where=lambda row: (row.part, row.tensor) in taken)
    tensors = " and ".join(dict.fromkeys(row.tensor for row in saved))
    if tensors:
        yield f"pipeline: every stage keeps {tensors}, which all its blocks take"


def _tied(parts: Iterable[Part]) -> set[str]:
    """Return the weights of some parts that the model shares, trained or not."""
    weights = (weight for part in parts for op in part.ops for weight in op.weights)
    return {weight.tensor for weight in weights if is_tied(weight)}


def stack_note(setup: Setup) -> str:
    """Say which software runs, what of it is assumed, and whose kernels it has."""
    runs = setup.methods.stack
    if runs is None:
        return f"stack {ROOFLINE}: the efficiencies of the machine's record"
    assumed = f"; assumed: {', '.join(runs.assumed)}" if runs.assumed else ""
    return f"stack {runs.name}: {runs.meaning}{assumed}{_rates(setup.machine)}"


def _rates(machine: Machine | None) -> str:
    """Say whose kernels they are, and how much longer they take on a cluster that was fitted."""
    if machine is None:
        return ""
    return f"; {kernels(machine).note}{machine.efficiencies.fitted}"


def _written(degree: object) -> str:
    return plain(degree) if isinstance(degree, Expr) else str(degree)


def trained(setup: Setup) -> Iterator[str]:
    """Say which weights are trained, unless all are, and how others are stored; or that none is."""
    model = setup.model
    formats = ", ".join(dict.fromkeys(form.name for form in model.stored.values()))
    if model.follows:
        read = "; the weights of every expert are read" if model.placed(At(Role.EXPERT)) else ""
        yield f"a step of generation, forward alone{read}"
    if model.trains != ALL:
        yield f"trained: {model.trains}; all other weights are frozen"
        from symbolic_cost.models.converted import adapted_apart
        from symbolic_cost.models.training import not_all_linear

        yield from adapted_apart(model)
        yield from not_all_linear(model)
        if formats:
            yield f"frozen linear layers are held as {formats}; to convert them takes no time"
    elif formats:
        yield f"all weights are trained, so none is held as the file stores it: {formats}"


def microbatches(number: Expr) -> str:
    """Say how many microbatches there are.

    >>> microbatches(Integer(1)), microbatches(Integer(8))
    ('1 microbatch', '8 microbatches')
    """
    return f"{plain(number)} microbatch{'' if number == 1 else 'es'}"


def scheduled(setup: Setup, number: Expr) -> str:
    """Say in what order how many microbatches run."""
    name = setup.training.schedule
    if setup.strategy.mesh.get("pp", 1) == 1 and name != Pipeline().name:
        return f"no pipeline, so schedule {name} changes nothing, {microbatches(number)}"
    return f"schedule {name}, {microbatches(number)}"


def lacking(setup: Setup, costs: Iterable[Expr]) -> Iterator[str]:
    """Say which symbols of costs have no number, where others have one."""
    free = set().union(*(setup.value(cost).free_symbols for cost in costs))
    names = [one.name for one in in_glossary_order(free) if one.name in GLOSSARY]
    if names and setup.values:
        yield without_number(names)


def without_number(names: Sequence[str]) -> str:
    """Say which symbols have no number, and how one is given."""
    listed = ", ".join(f"{text_of(name)} ({GLOSSARY[name].meaning})" for name in names)
    batch = " or --global-batch 512" if "M" in names else ""
    return f"no number for {listed}: bind them, as in --set {names[0]}=8{batch}"


def _elements(setup: Setup) -> str:
    if setup.precise:
        chosen, runs = setup.training.precision, setup.methods.stack
        is_own = usual_precision(None) != chosen == usual_precision(runs)
        usual = f", usual under stack {stack_name(runs)}" if is_own else ""
        return f"bytes of precision {chosen}{usual}"
    return "bytes of the conventions; --precision says those of memory, comm and time"


def _assumed(setup: Setup) -> Iterator[str]:
    """Say what is taken for granted of degrees without a number."""
    bounds = [f"{plain(a.size)} >= {a.least}" for a in setup.structure.assumptions]
    if bounds:
        yield f"{ASSUMED}{', '.join(bounds)}"


def _alternating(setup: Setup) -> Iterator[str]:
    """Say which kinds of blocks the stages of a pipeline hold in the mean."""
    if setup.strategy.mesh.get("pp", 1) == 1:
        return
    kinds: dict[bool, list[str]] = {True: [], False: []}
    for part in setup.model.parts:
        if part.is_block:
            kinds[part.stands is PartPlace.LEADING].append(part.path)
    for leads, paths in kinds.items():
        if len(paths) > 1:
            which = "every stage that holds them" if leads else "every stage"
            yield f"{which} holds the same share of {' and '.join(paths)}"
    own, middle = setup.divided, Stage.MIDDLE
    if kinds[True] and middle in own.structure.stages and setup.value(own.stages) != _ONE_MIDDLE:
        led = stage_blocks(own.split_model, own.stages, middle, own.pipeline).leading
        if setup.value(led) != 0:
            leading = " and ".join(kinds[True])
            yield f"stages between the first and the last hold the same share of {leading}"


_ONE_MIDDLE = 3
"""Stages of which one is between the others, and holds what it holds."""


def beyond(setup: Setup, most: Mapping[str, int | Fraction] | None = None) -> Iterator[str]:
    """Say that sequences are longer than the model's table of positions.

    Args:
        setup: whose model has one.
        most: the greatest number, by symbol, of what varies.
    """
    known = {**setup.values, **(most or {})}
    for one in setup.learned_positions:
        rows, length = bind(one.size, known), bind(one.least, known)
        if rows.is_number and length.is_number and length > rows:
            yield f"the model has {rows} {one.what}: of {length}, those beyond have no row"


def _chosen(setup: Setup) -> Iterator[str]:
    """Say what of the run is not as it is where nothing is said."""
    if setup.methods.order:
        yield f"ranks in the order {', '.join(setup.methods.order)}, innermost first"
    departs = setup.training.saved is not None or setup.counting.saved is not STANDARD.saved
    if departs and not setup.strategy.degrees.keys().isdisjoint(GATHERING):
        yield f"inputs gathered in forward: {_KEPT[setup.counting.saved]}"
    if setup.training.offload:
        hosted = ", ".join(sorted(setup.training.offload)).replace("_", " ")
        link = None if setup.machine is None else setup.machine.host
        over = "" if link is None else f", over {link.name}"
        yield f"on the host: {hosted}{over}"


_KEPT = {
    Saved.SHARD: "shards are kept, and gathered again in backward",
    Saved.GATHERED: "kept as gathered, and not gathered again",
}


_IN = (Quantity.SAVED.value, "memory")
"""Quantities in which saved bytes are."""


def by_unit(unit: Unit) -> tuple[str, ...]:
    """Return what a table shows of which the unit is known alone: bytes may be any."""
    return () if unit is Unit.BYTE else (unit.value,)


def _checked(setup: Setup) -> Iterator[str]:
    """Say where saved bytes were never held against PyTorch's own."""
    flash = setup.running.attention == Attention.FLASH
    cores = [op for part in setup.running.model.parts for op in _products(part.ops)]
    # What runs fused here takes windows without a mask, unlike sdpa.
    fused = "flash_attention_2" if any(core.window for core in cores) else "sdpa"
    note = saved_note(
        setup.model.family,
        fused if flash else "eager",
        trains=setup.model.trains,
        scans=has_scans(setup.model),
    )
    if note and not setup.model.follows:
        yield note


def _attention(setup: Setup) -> Iterator[str]:
    """Say which kernel runs, and what of the square of scores it computes."""
    cores = setup.running.cores
    if not cores:
        return
    products = [op for part in setup.running.model.parts for op in _products(part.ops)]
    masks = {"causal" if op.masked else "no" for op in products}
    window = " and window" if any(op.window for op in products) else ""
    kind = setup.running.attention
    meaning = f" ({MEANINGS[Attention(kind)]})" if kind in set(Attention) else ""
    yield f"attention {kind}{meaning}, {' and '.join(sorted(masks))} mask{window}"


def _products(ops: tuple[Op, ...]) -> Iterator[Einsum]:
    for op in ops:
        yield from (o for o in op.stages if isinstance(o, Einsum) and o.pairs)


def _repeated(setup: Setup) -> Iterator[str]:
    """Say what ranks run alike, with its share of a rank's FLOP where numbers are known."""
    reasons: dict[tuple[str, str], set[str]] = {}
    for each in setup.repeated:
        if each.reason is RESULTS:  # the products themselves are divided
            continue
        reasons.setdefault((each.mesh, each.reason.name), set()).add(each.path)
    flop = setup.rows.select(Quantity.FLOP) if reasons else ()
    by_path = sums((row.path, row.total) for row in flop if row.collective is None)
    whole = setup.value(sum(by_path.values(), Integer(0)))
    lines: dict[str, list[str]] = {}
    for (mesh, name), paths in reasons.items():
        part = setup.value(sum((by_path.get(path, Integer(0)) for path in paths), Integer(0)))
        if part == 0:
            continue
        known = not (part.free_symbols | whole.free_symbols)
        share = f" ({_percent(part / whole)} of its FLOP)" if known else ""
        lines.setdefault(mesh, []).append(f"{name}{share}")
    for mesh, names in lines.items():
        yield f"every rank of {mesh} repeats {', '.join(names)}"


def _percent(share: Expr) -> str:
    percent = float(f"{float(100 * share):.2g}")
    return f"{percent:g} %" if percent >= _LEAST else f"less than {_LEAST} %"


_LEAST = 0.001
"""Percentages below are not told apart."""
