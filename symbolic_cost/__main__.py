"""Run the command line: `python -m symbolic_cost`, and the installed `symbolic-cost`."""

import gc
import sys

from symbolic_cost.lazy_sympy import load_by_name

_ALLOCATIONS = 500_000
"""Between two searches for cycles: a command makes few, and SymPy hundreds of thousands of objects
that live to its end. Python's own 700 cost a tenth of a command's time."""


def main() -> None:
    """Import and run the command line; Ctrl-C ends it without a traceback, even while it loads."""
    gc.set_threshold(_ALLOCATIONS)
    load_by_name()
    try:
        from symbolic_cost.cli import main as run  # noqa: PLC0415 - inside of the try

        run(prog_name="symbolic-cost")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()  # else Python searches all of SymPy for cycles once more before it ends


if __name__ == "__main__":
    main()
