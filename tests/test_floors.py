"""A module imports only from lower floors, or from its own floor without a cycle."""

import ast
import textwrap
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "symbolic_cost"
FLOORS = (
    (
        "algebra",
        "apart",
        "cache",
        "shipped",
        "errors",
        "checking",
        "display",
        "reading",
        "symbols",
        "units",
        "references",
        "extrema",
        "grammar",
        "grouping",
        "typed",
        "axes",
        "lazy",
        "lazy_sympy",
        "records",
    ),
    ("conventions", "ledger", "costs", "conditions", "program"),
    ("ops",),
    ("layers",),
    ("models",),
    ("parallel",),
    ("systems",),
    ("analysis", "importers"),
    ("numeric", "emit"),
    ("jobs",),
    ("explore", "scaling", "serving"),
    ("published",),
    ("cli",),
)
FLOOR = {unit: number for number, units in enumerate(FLOORS) for unit in units}
ROOF = {"__init__", "__main__"}  # above every floor: may import anything, imported by nothing


def parts_of(path, package):
    """('ops', 'pattern') for ops/pattern.py; ('ops', '__init__') for ops/__init__.py."""
    return path.relative_to(package).with_suffix("").parts


def resolve(dotted, package):
    """The module within the package that a dotted name reaches: () is the roof."""
    reached = ()
    for name in dotted[1:]:
        here = package.joinpath(*reached, name)
        is_module = here.with_suffix(".py").is_file() or here.is_dir()
        if not is_module and (reached or name not in FLOOR):
            break
        reached = (*reached, name)
    return reached


def dotted_names(node, inside):
    """Every dotted name that one syntax node imports; `inside` is the package of its module."""
    match node:
        case ast.Import(names=names):
            return [alias.name.split(".") for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            base = list(inside[: len(inside) - level + 1]) if level else []
            base += module.split(".") if module else []
            return [[*base, alias.name] for alias in names]
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return [name.split(".")]
    return []


def imports(path, package):
    """Line and module reached, for every import of the package's own modules in a file."""
    inside = (package.name, *parts_of(path, package)[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for dotted in dotted_names(node, inside):
            if dotted[0] == package.name:
                yield node.lineno, resolve(dotted, package)


def cycle(edges):
    """The first cycle among (importer, imported) pairs as text, or nothing."""
    graph = TopologicalSorter()
    for importer, imported in edges:
        graph.add(importer, imported)
    try:
        graph.prepare()
    except CycleError as error:
        return [f"import cycle: {' -> '.join('.'.join(step) for step in reversed(error.args[1]))}"]
    return []


def objection(floor, target, name):
    """What is wrong with an import of `target` on a floor, or nothing."""
    if not target or target[0] in ROOF:
        return f"floor {floor} imports {name}, above all floors"
    if target[0] not in FLOOR:
        return f"floor {floor} imports {name}, on no floor: assign it a floor"
    if FLOOR[target[0]] > floor:
        return f"floor {floor} imports {name} of floor {FLOOR[target[0]]}"
    return ""


def violations(package):
    found = []
    edges = set()
    for path in sorted(package.rglob("*.py")):
        parts = parts_of(path, package)
        unit, where = parts[0], f"{package.name}/{path.relative_to(package)}"
        if unit in ROOF:
            continue
        if unit not in FLOOR:
            found.append(f"{where}: {unit} is on no floor: assign it a floor")
            continue
        module = parts[:-1] if parts[-1] == "__init__" else parts
        for line, target in imports(path, package):
            text = objection(FLOOR[unit], target, ".".join((package.name, *target)))
            if text:
                found.append(f"{where}:{line}: {text}")
            elif module != target:
                edges.add((module, target))
    siblings = {(a[:1], b[:1]) for a, b in edges if a[0] != b[0]}
    return found + (cycle(sorted(edges)) or cycle(sorted(siblings)))


def test_imports_go_down_the_floors():
    found = violations(PACKAGE)
    assert not found, "\n" + "\n".join(found)


def package_with(tmp_path, files):
    package = tmp_path / "symbolic_cost"
    for name, source in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
    return package


@pytest.mark.parametrize(
    "files",
    [
        {"ops/derive.py": "import sympy\nfrom symbolic_cost.ledger import Row"},
        {"ops/derive.py": "from symbolic_cost.ops.einsum import einsum", "ops/einsum.py": ""},
        {"ops/__init__.py": "from .einsum import einsum", "ops/einsum.py": ""},
        {"numeric/exact.py": "", "emit/csv.py": "from symbolic_cost.numeric import exact"},
        {"__init__.py": "from symbolic_cost import cli", "cli.py": ""},
    ],
    ids=["lower floor", "own folder", "relative", "sibling", "roof"],
)
def test_accepts(tmp_path, files):
    assert violations(package_with(tmp_path, files)) == []


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (
            {"ops/derive.py": "import sympy\nfrom symbolic_cost.models.gpt import GPT"},
            "symbolic_cost/ops/derive.py:2: floor 2 imports symbolic_cost.models of floor 4",
        ),
        (
            {"ops/derive.py": "def f():\n    from ..models import gpt", "models/gpt.py": ""},
            "symbolic_cost/ops/derive.py:2: floor 2 imports symbolic_cost.models.gpt of floor 4",
        ),
        (
            {"units.py": "import importlib\nimportlib.import_module('symbolic_cost.cli')"},
            "symbolic_cost/units.py:2: floor 0 imports symbolic_cost.cli of floor 12",
        ),
        (
            {"units.py": "from symbolic_cost import CostTable"},
            "symbolic_cost/units.py:1: floor 0 imports symbolic_cost, above all floors",
        ),
        (
            {"helpers.py": ""},
            "symbolic_cost/helpers.py: helpers is on no floor: assign it a floor",
        ),
        (
            {"units.py": "from . import errors", "errors.py": "from . import units"},
            "import cycle: errors -> units -> errors",
        ),
        (
            {
                "emit/csv.py": "from symbolic_cost.numeric import exact",
                "emit/text.py": "",
                "numeric/exact.py": "",
                "numeric/frame.py": "from symbolic_cost.emit import text",
            },
            "import cycle: emit -> numeric -> emit",
        ),
    ],
    ids=["upward", "inside a function", "by name", "roof", "unknown", "cycle", "sibling cycle"],
)
def test_refuses(tmp_path, files, text):
    assert violations(package_with(tmp_path, files)) == [text]
