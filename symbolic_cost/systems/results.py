"""Names and units of what a step defines; apart from how, so that a search need not load it."""

from symbolic_cost.units import Unit

ENDS = ("gradients", "clipping", "optimizer", "weights")
"""Definitions of what happens once."""

STEP_PARTS = ("microbatches", "bubble", *ENDS)
"""Definitions that add up to the step."""

THROUGHPUTS = ("tokens per second", "samples per second")
"""Definitions of which a model has the one that suits it."""

RESULTS = ("step", "bubble fraction", "exposed", *THROUGHPUTS, "achieved", "mfu", "hfu")
"""Definitions that say how good the step is."""

SHARES = ("bubble fraction", "mfu", "hfu")
"""Definitions that are shares: of the step, of the peak rate."""


def unit_of(name: str) -> str:
    """Return the unit of a definition of a step, "1" where it has none.

    >>> unit_of("first.forward"), unit_of("first.gradients.dp.all-reduce.message"), unit_of("mfu")
    ('s', 'byte', '1')
    """
    if name.endswith("FLOP"):
        return Unit.FLOP.value
    if name.endswith(".message"):
        return Unit.BYTE.value
    if name in SHARES or name.endswith(".ranks") or name.startswith("slowness."):
        return "1"
    if name in THROUGHPUTS:
        return "1/s"
    rate = name in ("achieved", "peak rate")
    return Unit.FLOP_PER_SECOND.value if rate else Unit.SECOND.value
