"""The wheel, installed outside of the repository, makes what the five published systems print."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
SYSTEMS = {
    "transformer-tables": "454 of 454",
    "megatron-report": "69 of 69",
    "ulysses-prefill": "124 of 124",
    "module-profile": "392 of 392",
    "lstm-roofline": "293 of 293",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the wheel alone; what it needs is that of this interpreter."""
    pytest.importorskip("hatchling")
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    env = {**os.environ, "SYMBOLIC_COST_PROGRAMS": "gpt2:h100:2"}
    subprocess.run(build, cwd=ROOT, env=env, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    with ZipFile(wheel) as file:
        file.extractall(place / "own")
    return place / "own"


RUN = """
import sys
import symbolic_cost
from click.testing import CliRunner
from symbolic_cost.cli import main
print(symbolic_cost.__file__)
for name in sys.argv[1:]:
    done = CliRunner().invoke(main, ["reproduce", name])
    print(done.exit_code, done.output)
"""


@pytest.mark.slow
def test_a_table_of_each_published_system(installed):
    done = subprocess.run(
        [sys.executable, "-c", RUN, *SYSTEMS],
        cwd=installed,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(installed))
    assert done.stdout.count("\n0 ") == len(SYSTEMS)
    for count in SYSTEMS.values():
        assert count in done.stdout


@pytest.mark.slow
def test_data_files_are_in_the_wheel(installed):
    own = {p.relative_to(ROOT) for p in (ROOT / "symbolic_cost").rglob("*") if p.is_file()}
    kept = {p for p in own if "__pycache__" not in p.parts}
    there = {p.relative_to(installed) for p in installed.rglob("*") if p.is_file()}
    assert kept <= there


KEPT = """
import sys
from symbolic_cost.cli import main
sys.argv[1:] = "search gpt2 --system h100 --gpus 2 --global-batch 4".split()
try:
    main()
except SystemExit as ended:
    print(ended.code, "sympy" in sys.modules)
"""


@pytest.mark.slow
def test_programs_are_in_the_wheel(installed):
    env = {**os.environ, "PYTHONPATH": str(installed), "SYMBOLIC_COST_CACHE": ""}
    line = [sys.executable, "-c", KEPT]
    done = subprocess.run(line, cwd=installed, env=env, capture_output=True, text=True, check=True)
    assert "run it: symbolic-cost time gpt2" in done.stdout
    assert done.stdout.endswith("0 False\n")
