"""Run the command line: `python -m symbolic_cost`, and the installed `symbolic-cost`."""

from __future__ import annotations

import sys


def main() -> None:
    """Import and run the command line; Ctrl-C ends it without a traceback, even while it loads."""
    try:
        from symbolic_cost.cli import main as run  # noqa: PLC0415 - inside of the try

        run(prog_name="symbolic-cost")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
