"""Run the command line: `python -m symbolic_cost`."""

from symbolic_cost.cli import main

main(prog_name="symbolic-cost")
