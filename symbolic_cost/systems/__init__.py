"""Machines: from FLOP and bytes to time.

`systems.machine("h100")` is a record, `systems.step_time(...)` the time of a step on it,
`systems.calibrate(...)` fits efficiencies to measured runs. All are loaded when first used.
"""

from symbolic_cost.lazy import lazily

_HOMES = {
    "calibration": ("Errors", "Measured", "calibrate", "errors_of", "read_rows"),
    "collectives": ("COLLECTIVES",),
    "kernel_fit": ("KERNEL_FORMS", "Fitted", "fit_kernels"),
    "kernel_tables": ("kernel_fits",),
    "kernels": ("kernels",),
    "machines": ("SYMBOLIC", "Efficiencies", "Figure", "Machine"),
    "overlap": ("FULL",),
    "records": ("load_machine", "machine", "machine_names"),
    "rooflines": ("ROOFLINES", "roofline"),
    "runs": ("Run", "Way", "rates", "step_seconds"),
    "spread": ("COMPUTING", "QUANTILE"),
    "stacks": ("stack", "stack_names"),
    "step": ("Methods", "StepTime", "step_time"),
}
__getattr__, __dir__, __all__ = lazily(__name__, _HOMES)
