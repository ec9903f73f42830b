"""The table of faults is not stale, and one of its faults of every floor is seen."""

from pathlib import Path

import pytest

from tests.faults.run import seen
from tests.faults.table import FAULTS, KERNELS

PACKAGE = Path(__file__).parents[2] / "symbolic_cost"
FLOORS = ("ops", "parallel", "systems")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}: {fault.text[:40]}")
def test_texts_stand_where_the_table_says(fault):
    source = (PACKAGE / fault.file).read_text(encoding="utf-8")
    assert source.count(fault.text) == 1
    assert fault.instead != fault.text
    assert fault.tests
    assert all((PACKAGE.parent / path.partition("::")[0]).exists() for path in fault.tests)


def test_there_are_enough_of_every_floor():
    files = [fault.file.partition("/")[0] for fault in FAULTS]
    assert len(FAULTS) >= 60
    assert all(files.count(floor) >= 8 for floor in FLOORS)
    assert files.count("models") + files.count("layers") >= 8


@pytest.mark.slow
def test_a_fault_is_seen(tmp_path):
    fault = next(fault for fault in FAULTS if fault.tests == (KERNELS,))
    assert seen(fault, tmp_path)
