"""Scripts and the README use the library by its one door, which shows what they need."""

import re
from pathlib import Path

import pytest

import symbolic_cost as sc
from symbolic_cost import program, serving

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "reports"
SCRIPTS = [ROOT / "README.md", *sorted(REPORTS.rglob("*.py")), *sorted(REPORTS.rglob("site/*.md"))]
IMPORT = re.compile(r"^[>\s.]*((?:from|import) symbolic_cost.*)$", re.MULTILINE)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_scripts_import_the_package_alone(path):
    imports = set(IMPORT.findall(path.read_text(encoding="utf-8")))
    assert imports <= {"import symbolic_cost as sc"}


@pytest.mark.parametrize("home", [sc, sc.systems, serving, program])
def test_every_public_name_is_there(home):
    assert [name for name in home.__all__ if getattr(home, name) is None] == []
    assert sorted(dir(home)) == sorted(home.__all__)


def test_what_a_user_of_machines_finds():
    assert {"machine", "machine_names", "calibrate", "step_time"} <= set(dir(sc.systems))
    with pytest.raises(AttributeError, match="has no attribute 'machin'"):
        sc.systems.machin  # noqa: B018 - the look-up is what is tested
