"""Importing the package, or asking the command line for help, loads no heavy package."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


JOB = """
import symbolic_cost as sc
job = sc.job("gpt3-175b", "tp=8,sp,pp=8,dp=8,zero=1", system="a100-80gb", global_batch=64)
job.table(), job.memory()
early = [name for name in ("emit.latex", "models.decoder_families", "systems.step")
         if f"symbolic_cost.{name}" in sys.modules]
job.time(), job.time().low
code = early
"""


@pytest.mark.slow
def test_a_job_loads_what_answers_its_question():
    """No other family, no timing for a table of bytes, and no arrays for one configuration."""
    assert run("import sys\n" + JOB) == ("", {"code": [], "heavy": ["sympy"]})
