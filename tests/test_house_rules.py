"""House rules that the syntax tree shows and no linter knows."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from symbolic_cost.references import REFERENCES

PACKAGE = Path(__file__).parents[1] / "symbolic_cost"
SOURCES = sorted(PACKAGE.rglob("*.py"))
FORMULA_FREE = {"ops", "layers", "models"}  # their numbers are exact: integers and symbols
MOST_FLAGS = 60  # fields that are true or false, which say less than a variant's name
# The first four execute text; simplify has no bounded running time and no stated result.
FORBIDDEN = {"eval", "exec", "parse_expr", "sympify", "simplify"}


def asserts(node):
    if isinstance(node, ast.Assert):
        yield "assert: raise an error of symbolic_cost.errors instead"


def bare_excepts(node):
    if isinstance(node, ast.ExceptHandler) and node.type is None:
        yield "bare except: name the exceptions"


def forbidden_names(node):
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in FORBIDDEN:
            yield f"call of {name}"
        case ast.ImportFrom(names=names):
            yield from (f"import of {alias.name}" for alias in names if alias.name in FORBIDDEN)


def floats(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
        yield f"float literal {node.value!r}: counts are exact, write a Rational"


@cache
def nodes(source):
    return list(ast.walk(ast.parse(source)))


def violations(source, rule):
    """'line: what', for every node of a source text that breaks the rule."""
    return [f"{node.lineno}: {text}" for node in nodes(source) for text in rule(node)]


def violations_in(paths, rule):
    return [
        f"{path.relative_to(PACKAGE.parent)}:{text}"
        for path in paths
        for text in violations(path.read_text(encoding="utf-8"), rule)
    ]


def anywhere(node):
    if isinstance(node, ast.stmt | ast.ExceptHandler | ast.Call):
        for rule in (asserts, bare_excepts, forbidden_names):
            yield from rule(node)


MARKS = re.compile(rf"\bassert\b|\bexcept\s*:|{'|'.join(FORBIDDEN)}")
"""What a file without violations lacks: most need no syntax tree."""


def test_package_keeps():
    marked = [path for path in SOURCES if MARKS.search(path.read_text(encoding="utf-8"))]
    assert marked
    found = violations_in(marked, anywhere)
    assert not found, "\n" + "\n".join(found)


def test_declarations_hold_no_floats():
    exact = [
        path
        for path in SOURCES
        if path.relative_to(PACKAGE).with_suffix("").parts[0] in FORMULA_FREE
    ]
    found = violations_in(exact, floats)
    assert not found, "\n" + "\n".join(found)


def flags(source):
    """'Class.field' of every annotated field that is a bool, or a bool and something else."""
    return [
        f"{node.name}.{field.target.id}"
        for node in nodes(source)
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
        and "bool" in ast.unparse(field.annotation).replace("|", " ").split()
    ]


def test_flags_are_few():
    sources = (path.read_text(encoding="utf-8") for path in SOURCES)
    found = [flag for source in sources if "bool" in source for flag in flags(source)]
    assert len(found) <= MOST_FLAGS, "name the variants instead:\n" + "\n".join(found)


def test_flags_are_seen():
    source = "class A:\n    a: bool = False\n    b: bool | None\n    c: Callable[[int], bool]"
    assert flags(source) == ["A.a", "A.b"]


@pytest.mark.parametrize(
    ("rule", "source", "texts"),
    [
        (asserts, "assert x", ["1: assert: raise an error of symbolic_cost.errors instead"]),
        (bare_excepts, "try:\n    f()\nexcept:\n    pass", ["3: bare except: name the exceptions"]),
        (bare_excepts, "try:\n    f()\nexcept ValueError:\n    pass", []),
        (forbidden_names, "sympy.sympify('x')", ["1: call of sympify"]),
        (forbidden_names, "eval('x')", ["1: call of eval"]),
        (forbidden_names, "x.simplify()", ["1: call of simplify"]),
        (forbidden_names, "from sympy import simplify as s", ["1: import of simplify"]),
        (forbidden_names, "from sympy import expand\nexpand(x)", []),
        (floats, "x = 2 + y / 2", []),
        (floats, "x = -0.5", ["1: float literal 0.5: counts are exact, write a Rational"]),
    ],
)
def test_rule_reports(rule, source, texts):
    assert violations(source, rule) == texts


def test_sources_of_layers_and_models_are_references():
    """`Source: vaswani-2017` in a docstring, and `source="vaswani-2017"` of a model."""
    said = re.compile(r'(?:Source: |source(?:: str)? ?= ?")([a-z][a-z-]*-(?:19|20)\d\d)\b')
    found = {
        f"{path.name}: {key}"
        for path in SOURCES
        for key in said.findall(path.read_text(encoding="utf-8"))
        if not any(name.startswith(key) for name in REFERENCES)
    }
    assert not found
