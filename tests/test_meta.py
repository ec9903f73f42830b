"""Nothing is left without an answer, a reference, a meaning or a test."""

import ast
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import symbolic_cost.ops
from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.ledger import CollectiveKind
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.functions import ACTIVATIONS
from symbolic_cost.ops.elementwise import KINDS
from symbolic_cost.ops.op import Op
from symbolic_cost.published.contract import MODULES
from symbolic_cost.published.contract import publication as published
from symbolic_cost.references import REFERENCES
from tests.laws.test_models import KINDS as ACTED

TESTS = Path(__file__).parent
EVERYTHING = ("exact", "standard")


SOME_ACTIVATION = "activation"
"""Stands for any activation function where a publication does not tell them apart."""


@pytest.mark.parametrize("preset", EVERYTHING)
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {SOME_ACTIVATION}))
def test_every_elementwise_kind_has_an_answer(kind, preset):
    assert PRESETS[preset].elementwise.of(KINDS[kind].like or kind, preset)


def test_no_configuration_names_some_activation():
    assert not {*ACTIVATIONS.values()} - KINDS.keys()
    assert SOME_ACTIVATION not in ACTIVATIONS.values()


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_has_a_name_a_meaning_and_a_reference(name):
    preset = PRESETS[name]
    assert preset.name == name
    assert preset.meaning
    assert preset.source in REFERENCES


@pytest.mark.parametrize("key", sorted(REFERENCES))
def test_every_reference_says_where_it_is_found(key):
    reference = REFERENCES[key]
    assert (reference.key, bool(reference.title), bool(reference.where)) == (key, True, True)


def words_of(folder):
    text = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    return set(re.findall(r"[\w-]+", text))


@pytest.mark.parametrize("publication", sorted(MODULES))
def test_every_publication_has_a_test(publication):
    module = MODULES[publication].split(":")
    assert publication in words_of(TESTS / "published") or set(module) <= words_of(
        TESTS / "published"
    )


@pytest.mark.parametrize("publication", sorted(MODULES))
def test_every_publication_is_in_the_readme(publication):
    readme = (TESTS.parent / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"(`|reproduce ){publication}\b(?!-)", readme)


@pytest.mark.parametrize("publication", sorted(MODULES))
def test_every_publication_keeps_the_contract(publication):
    module = published(publication)
    missing = [n for n in ("PUBLISHED_INPUTS", "evaluate", "reproduce") if not hasattr(module, n)]
    assert not missing


def ops_modules():
    names = [module.name for module in iter_modules(symbolic_cost.ops.__path__)]
    return [import_module(f"symbolic_cost.ops.{name}") for name in names]


def constructors():
    """Public functions that declare an op."""
    return sorted(
        name
        for module in ops_modules()
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
        and not name.startswith("_")
        and declares(value)
    )


def declares(value):
    made = getattr(value, "__annotations__", {}).get("return")
    made = getattr(made, "__name__", made)
    return made in {kind.__name__ for kind in kinds_of(Op)} and not isinstance(value, type)


def kinds_of(kind):
    return [kind, *(below for sub in kind.__subclasses__() for below in kinds_of(sub))]


def called_in_tests(*folders):
    """Names of functions that tests call, outside of lists of refused arguments."""
    names = set()
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names.add(node.func.id)
    return names


@pytest.mark.parametrize("constructor", constructors())
def test_every_op_is_declared_by_a_law_or_an_oracle(constructor):
    assert constructor in called_in_tests(TESTS / "laws", TESTS / "ops")


def acted(op):
    return {op.kind, *(kind for stage in op.stages if stage is not op for kind in acted(stage))}


def test_every_kind_of_op_is_acted_out():
    """In one of the models whose ranks are acted out; networks of pools are split by samples."""
    models = [CATALOG[name].model() for name in ACTED]
    kinds = {kind for m in models for part in m.parts for op in part.ops for kind in acted(op)}
    classes = {type(op) for m in models for part in m.parts for op in part.ops}
    assert kinds >= {"einsum", "view", "cache", "embedding", "conv", "scan", "recurrent"}
    assert {kind.__name__ for kind in kinds_of(Op)} - {kind.__name__ for kind in classes} <= {
        "Op",
        "Pool",
        "Fused",
        "UnusedWeight",  # a weight that nothing computes with
        "TransposedConv",  # stands in no model of the catalogue
        "Unread",  # runs forward alone, as the op that it holds
        "Stored",  # does nothing
        "Kept",  # the same
        "Solve",  # only in models that a configuration tells
        "Joined",  # likewise
    }


def test_the_search_for_constructors_finds_them():
    assert {"einsum", "view", "split", "lookup", "fused", "softmax", "norm"} <= set(constructors())


@pytest.mark.parametrize("kind", list(CollectiveKind))
def test_every_collective_is_charged(kind):
    for preset in PRESETS.values():
        assert preset.charge(kind, 12, 4) > 0
        assert preset.charge(kind, 12, 1) == 0
