"""No code but a declaration knows the name of an axis: it asks for roles."""

import ast
from functools import cache
from pathlib import Path

import pytest

from symbolic_cost.axes import axes

PACKAGE = Path(__file__).parents[1] / "symbolic_cost"
DECLARING = ("layers", "models")
CHECKED = ("ops", "parallel", "systems", "jobs", "numeric", "analysis", "emit", "cli")
READING = ("models/count.py", "models/inference.py")  # they read models and declare none
OTHERS = {
    # symbols that bear the letter of an axis
    "systems/calibration.py": {"e", "h", "l"},
    "systems/runs.py": {"b", "e", "f", "h", "l"},
    "parallel/layout.py": {"v"},
    "jobs/batch.py": {"b"},
    "jobs/calculator.py": {"b", "e", "l"},
    "jobs/packed.py": {"b"},
    "jobs/inputs.py": {"b", "h", "k", "v"},
    "jobs/workings.py": {"v"},
    "jobs/numbers.py": {"v"},
    "jobs/setup.py": {"v"},
    "jobs/launch_files.py": {"b", "l", "v"},
    "serving/passes.py": {"b", "c", "l"},
    "serving/engine_numbers.py": {"b", "c", "l"},
    "jobs/code_export.py": {"b", "l"},
    # axes and marks of a picture
    "emit/charts.py": {"y"},
    "emit/plots.py": {"o", "s", "v"},
    # columns of measured products
    "systems/kernel_fit.py": {"k", "m", "n"},
    "systems/kernel_tables.py": {"k", "m", "n"},
    # columns of measured runs, and symbols that bear the letter of an axis
    "jobs/recorded_row.py": {"b", "l", "v"},
    # seconds
    "cli/searches.py": {"s"},
    # the exponent of a number
    # fields of that name
    "ops/conv.py": {"window"},
    "ops/einsum.py": {"window"},
    # the x of 2x4, the tensor "x"
    "parallel/parsing.py": {"x"},
    "parallel/degrees.py": {"x"},
    "jobs/tables/lists.py": {"x"},
    "ops/part.py": {"x"},
}


def glossaries(tree):
    """The names of every axes("b batch, ...") of a module."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="axes" | "roles"), args=[ast.Constant(value=text)]):
                yield from axes(text)


def letters(source, sought):
    """'line: name' of every text that is the name of an axis, but for pieces of f-strings."""
    tree = ast.parse(source)
    pieces = {
        id(piece)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for piece in ast.walk(node)
    }
    return {
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and id(node) not in pieces
        if isinstance(node.value, str) and node.value in sought
    }


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def names():
    """Every axis that a module of the declaring folders names."""
    return frozenset(
        name
        for folder in DECLARING
        for path in (PACKAGE / folder).rglob("*.py")
        for name in glossaries(parsed(path))
    )


SOURCES = [
    *(path for folder in CHECKED for path in sorted((PACKAGE / folder).rglob("*.py"))),
    *(PACKAGE / path for path in READING),
]


def test_glossaries_are_read():
    assert {"b", "r", "l", "t", "e", "h", "v", "window", "n_rel"} <= names()


def test_code_names_no_axis():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {name!r}"
        for path in SOURCES
        for line, name in sorted(letters(path.read_text(encoding="utf-8"), names()))
        if name not in OTHERS.get(path.relative_to(PACKAGE).as_posix(), ())
    ]
    assert not found, "\n" + "\n".join(found)


def test_every_exception_is_needed():
    for place, others in OTHERS.items():
        source = (PACKAGE / place).read_text(encoding="utf-8")
        assert {name for _, name in letters(source, names())} >= others, place


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('sizes["b"] * sizes.get("l", 1)', {"b", "l"}),
        ('"v" not in weight.axes', {"v"}),
        ('dict.fromkeys(("r", "l"))', {"r", "l"}),
        ('f"d{tensor}"', set()),
        ('path.split("block")', set()),
    ],
)
def test_letters_are_seen(source, expected):
    assert {name for _, name in letters(source, names() | {"d"})} == expected
