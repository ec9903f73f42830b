"""Hypothesis profiles, parts of the suite, registrations, and LaTeX tests without LaTeX."""

import gc
import os
import re
import shutil
import zlib

import pytest
from hypothesis import HealthCheck, settings

# As commands have it: SymPy makes objects that live to the end, and with Python's own 700 a tenth
# of the time goes into looking for cycles among them.
gc.set_threshold(100_000, 20, 100)

# How long a draw takes says how busy the machine is, as a deadline would.
settings.register_profile(
    "default", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("default"), derandomize=True, database=None, print_blob=True
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default")
)


def _part():
    """The number of a part and how many there are, from `PART=1/3`."""
    part = os.environ.get("PART") or "1/1"
    written = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", part)
    if written is None or int(written[1]) > int(written[2]):
        raise pytest.UsageError(f"PART={part}: a part is written 1/3, 2/3 or 3/3")
    return int(written[1]), int(written[2])


def pytest_configure():
    """What is no part is refused before a worker starts."""
    _part()


def pytest_collection_modifyitems(config, items):
    """Of the tests that were chosen those of one part run.

    A test's name decides where it belongs, so that the parts share none, leave none, and stay what
    they are when other tests come and go.
    """
    number, parts = _part()
    here = {item: zlib.crc32(item.nodeid.encode()) % parts == number - 1 for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not here[item]])
    items[:] = [item for item in items if here[item]]


LATEX_PROGRAMS = ("pdflatex", "pdftoppm")


def pytest_runtest_setup(item):
    if item.get_closest_marker("latex") is None:
        return
    missing = [program for program in LATEX_PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"LaTeX compile test: {' and '.join(missing)} not found")


@pytest.fixture
def registered_for_one_test():
    """Other tests go through the whole catalogue: they must not meet what one adds to it."""
    from symbolic_cost.conventions.presets import PRESETS
    from symbolic_cost.models.catalog import CATALOG
    from symbolic_cost.parallel.catalogue import STRATEGIES

    before = [(names, dict(names)) for names in (CATALOG, STRATEGIES, PRESETS)]
    yield
    for names, entries in before:
        names.clear()
        names.update(entries)
