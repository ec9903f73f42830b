"""Names of what a step defines; here, apart from how, so that a search need not load it."""

ENDS = ("gradients", "clipping", "optimizer", "weights")
"""Definitions of what happens once."""

STEP_PARTS = ("microbatches", "bubble", *ENDS)
"""Definitions that add up to the step."""

THROUGHPUTS = ("tokens per second", "samples per second")
"""Definitions of which a model has the one that suits it."""

RESULTS = ("step", "bubble fraction", "exposed", *THROUGHPUTS, "achieved", "mfu", "hfu")
"""Definitions that say how good the step is."""
