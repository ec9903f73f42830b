"""Importing the package, or asking the command line for help, loads no heavy package."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPORT = """
import json, sys
heavy = sorted({"matplotlib", "numpy", "pandas", "sympy"} & set(sys.modules))
print(json.dumps({"code": code, "heavy": heavy}))
"""
IMPORT = "import symbolic_cost\ncode = 0\n"
HELP = """
import sys
from symbolic_cost.cli import main
sys.argv = ["symbolic-cost", "--help"]
code = None
try:
    main()
except SystemExit as stop:
    code = stop.code or 0
"""


def run(script):
    """Standard output before the report, and the report, of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", script + REPORT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    *output, report = done.stdout.splitlines()
    return "\n".join(output), json.loads(report)


def test_import_of_the_package_is_light():
    assert run(IMPORT) == ("", {"code": 0, "heavy": []})


def test_help_of_the_command_line_is_light():
    output, report = run(HELP)
    assert report == {"code": 0, "heavy": []}
    assert output.startswith("Usage: ")
