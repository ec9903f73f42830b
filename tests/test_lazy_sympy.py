"""SymPy that loads by name holds what SymPy holds, whatever is asked for first."""

import json
import subprocess
import sys

import pytest

from symbolic_cost.lazy_sympy import _PACKAGES

_NAMES = """
import json, sys
from importlib import import_module
from types import ModuleType
from symbolic_cost.lazy_sympy import load_by_name
if sys.argv[1] == "by name":
    load_by_name()
homes = {}
for place in json.loads(sys.argv[2]):
    package, _, name = place.rpartition(".")
    own = getattr(import_module(package), name)
    if isinstance(own, ModuleType):
        homes[place] = own.__name__
    else:
        name = getattr(own, "__qualname__", type(own).__qualname__)
        homes[place] = getattr(own, "__module__", "") + "." + name
print(json.dumps(homes))
"""


def _run(script, *arguments):
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def places():
    """Every public name of the packages that load by name."""
    script = """
import sympy
from importlib import import_module
for package in PACKAGES:
    for name in getattr(import_module(package), "__all__", ()):
        print(f"{package}.{name}")
"""
    return _run(script.replace("PACKAGES", repr(sorted(_PACKAGES)))).split()


@pytest.mark.parametrize(
    "order",
    [
        pytest.param("forward", marks=pytest.mark.slow),
        pytest.param("backward", marks=pytest.mark.slow),
        "inside out",
    ],
)
def test_every_name_is_sympys_own(places, order):
    ways = {"forward": places, "backward": places[::-1]}
    ordered = ways.get(order) or sorted(places, key=lambda place: (-place.count("."), place[::-1]))
    assert len(places) > 1000
    whole, by_name = (
        json.loads(_run(_NAMES, way, json.dumps(ordered))) for way in ("whole", "by name")
    )
    assert by_name == whole


def test_what_is_not_asked_for_is_not_loaded(tmp_path, monkeypatch):
    # A line that was answered before is answered without SymPy.
    monkeypatch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path))
    script = """
import sys
from symbolic_cost.lazy_sympy import load_by_name
load_by_name()
from symbolic_cost.cli import main
from contextlib import suppress
with suppress(SystemExit):
    main(["memory", "gpt3-175b", "--strategy", "tp=8,pp=16,dp=8"])
print(*(name for name in sys.modules if name.startswith("sympy.")))
"""
    loaded = _run(script).splitlines()[-1].split()
    assert "sympy.core.mul" in loaded
    assert not {"sympy.plotting", "sympy.geometry", "sympy.solvers.solvers"} & set(loaded)


def test_a_count_loads_no_matrices_series_or_integrals(tmp_path, monkeypatch):
    monkeypatch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path))
    script = """
import sys
from symbolic_cost.lazy_sympy import load_by_name
load_by_name()
from symbolic_cost.cli import main
from contextlib import suppress
with suppress(SystemExit):
    main(["count", "llama-3-8b"])
print(*(name for name in sys.modules if name.startswith("sympy.")))
"""
    loaded = _run(script).splitlines()[-1].split()
    assert "sympy.core.mul" in loaded
    heavy = ("matrices.matrixbase", "integrals.integrals", "series.order", "simplify.simplify")
    assert not {f"sympy.{name}" for name in heavy} & set(loaded)


@pytest.mark.parametrize("way", ["whole", "by name"])
def test_sums_products_and_signs_are_sympys_own(way):
    script = """
import sys
from symbolic_cost.lazy_sympy import load_by_name, prepare
if sys.argv[1] == "by name":
    load_by_name()
if sys.argv[1] != "plain":
    prepare()
from sympy import Symbol
x = 2 * (Symbol("x") + 1) / 2  # before anything else is loaded
import sympy.matrices.expressions.transpose as module
from sympy import *
A, bounds, array = MatrixSymbol("A", 2, 2), AccumBounds(1, 2), Array([[1, x], [x, 3]])
for number in (S("-2/3"), S("7/2"), S(0), S(5), S(-5), S(1), S(-1), S.Half, oo, -oo, S("0.5"), pi):
    print(number.is_extended_positive, number.is_extended_negative, number.is_nonnegative)
print(x * A + 2 * A, A + A, (3 + x) * bounds, bounds - 2 * bounds, (1 - sqrt(2)).is_negative)
print(tensorcontraction(array, (0, 1)), module.Transpose is Transpose, Transpose(A * A))
"""
    assert _run(script, way) == _run(script, "plain")


def test_a_star_and_names_that_there_are_not():
    script = """
from symbolic_cost.lazy_sympy import load_by_name
load_by_name()
import sympy
try:
    sympy.nothing
except AttributeError as error:
    print(error)
from sympy import *
x = Symbol("x")
print(integrate(sin(x) ** 2, x), Matrix([[1, 2], [3, 4]]).det(), S.Reals, sympy.SYMPY_DEBUG)
"""
    assert _run(script).splitlines()[-1] == "x/2 - sin(x)*cos(x)/2 -2 Reals False"


def test_a_sympy_that_is_loaded_stays():
    script = """
import sympy, sys
from symbolic_cost.lazy_sympy import load_by_name
before = list(sys.meta_path)
load_by_name()
print(sys.meta_path == before)
"""
    assert _run(script).strip() == "True"


def test_workers_get_sympy_by_name():
    """Functions of a plugin go to workers of dask with the modules that they name."""
    script = """
import pickle
from symbolic_cost.lazy_sympy import load_by_name
load_by_name()
import sympy
print(all(pickle.loads(pickle.dumps(one)) is one for one in (sympy, sympy.polys)))
"""
    assert _run(script).strip() == "True"
