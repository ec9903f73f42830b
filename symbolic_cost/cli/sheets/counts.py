"""What `count` prints."""

from collections.abc import Mapping

from symbolic_cost.emit.sheet import Sheet, headed
from symbolic_cost.errors import InputError
from symbolic_cost.importers.files import is_launch_file
from symbolic_cost.models.configfile import is_elsewhere
from symbolic_cost.models.traced import is_graph
from symbolic_cost.symbols import l, l_t
from symbolic_cost.units import Unit, human

_UNITS = {
    "params": Unit.ELEMENT,
    "params_active": Unit.ELEMENT,
    "params_trained": Unit.ELEMENT,
    "flops_fwd": Unit.FLOP,
    "flops_train": Unit.FLOP,
    "flops_decode": Unit.FLOP,
    "kv_cache_elements": Unit.ELEMENT,
    "saved_bytes": Unit.BYTE,
    "weight_bytes": Unit.BYTE,
    "stored_params": Unit.ELEMENT,
    "stored_bytes": Unit.BYTE,
}


def count_sheet(
    config: str, counts: Mapping[str, int | str | None], batch: int, seq: int, conventions: str
) -> Sheet:
    """Tabulate the counts of a configuration, exact and with a prefix."""
    rows = tuple(
        (
            name,
            None if number is None else str(number),
            human(number, _UNITS[name]) if isinstance(number, int) else None,
        )
        for name, number in counts.items()
        if name not in {"note", "ignored", "trained", "weight_bytes_by_format", "stored"}
    )
    said, ignored, trained = (counts.get(name) for name in ("note", "ignored", "trained"))
    formats, stored = counts.get("weight_bytes_by_format"), counts.get("stored")
    notes = (
        f"batch {batch}, sequence {seq}, conventions {conventions}",
        *((f"trained: {trained}; all other weights are frozen",) if trained else ()),
        *((f"bytes of weights by format: {formats}",) if formats else ()),
        *((str(said),) if said else ()),
        *((f"ignored: {ignored}",) if ignored else ()),
        *((f"stored: {stored}",) if stored else ()),
    )
    return Sheet(f"Counts of {config}", headed("count, exact>, short>"), rows, notes)


def refuse_length(source: str, seq: int) -> None:
    """Refuse tokens of a sequence for a model without any, as one of images alone."""
    if is_elsewhere(source) or is_graph(source) or is_launch_file(source):
        return
    from symbolic_cost.jobs.build import modelled

    try:
        model = modelled(source)
    except InputError:
        return  # told by who counts it
    free = set().union(*(one.free_symbols for one in model.sizes.values()))
    if not model.fixed and free.isdisjoint({l, l_t}):
        raise InputError(f"--seq {seq} is not read: {source} has no sequence of tokens")
