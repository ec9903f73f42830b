"""Malformed declarations and their messages."""

import pytest

from symbolic_cost.conventions.questions import Role
from symbolic_cost.errors import PatternError, UnknownNameError
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import norm, pointwise, softmax
from symbolic_cost.ops.fused import fused
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.pattern import parse
from symbolic_cost.ops.view import split, view

EXAMPLE = "write for example 'x[b l e], *w[e f] + *bias[f] -> u[b l f]'"

MALFORMED = [
    ("", f"needs one '->': {EXAMPLE}"),
    ("x[a]", f"needs one '->': {EXAMPLE}"),
    ("x[a] -> y[a] -> z[a]", f"needs one '->': {EXAMPLE}"),
    ("x[a] - > y[a]", f"needs one '->': {EXAMPLE}"),
    (" -> y[a]", f"'' is not a tensor: {EXAMPLE}"),
    ("x[a] ->", f"'' is not a tensor: {EXAMPLE}"),
    ("x[a], -> y[a]", f"'' is not a tensor: {EXAMPLE}"),
    ("x[a -> y[a]", f"'x[a' is not a tensor: {EXAMPLE}"),
    ("xa] -> y[a]", f"'xa]' is not a tensor: {EXAMPLE}"),
    ("x[[a]] -> y[a]", f"'x[[a]]' is not a tensor: {EXAMPLE}"),
    ("x(a) -> y[a]", f"'x(a)' is not a tensor: {EXAMPLE}"),
    ("[a] -> y[a]", f"'[a]' is not a tensor: {EXAMPLE}"),
    ("1x[a] -> y[a]", f"'1x[a]' is not a tensor: {EXAMPLE}"),
    ("x[a] y[a] -> z[a]", f"'x[a] y[a]' is not a tensor: {EXAMPLE}"),
    ("**x[a] -> y[a]", f"'**x[a]' is not a tensor: {EXAMPLE}"),
    ("x[a]: -> y[a]", f"'x[a]:' is not a tensor: {EXAMPLE}"),
    ("x[A] -> y[a]", "'A' is not an axis name (lower case, like l or e)"),
    ("x[1] -> y[a]", "'1' is not an axis name (lower case, like l or e)"),
    ("x[a, b] -> y[a b]", "'a,' is not an axis name (lower case, like l or e)"),
    ("x[a*b] -> y[a]", "'a*b' is not an axis name (lower case, like l or e)"),
    ("x[é] -> y[a]", "'é' is not an axis name (lower case, like l or e)"),
    ("x[a a] -> y[a]", "'x[a a]' names an axis twice"),
    ("x[a] -> y[a a]", "'y[a a]' names an axis twice"),
    ("x[a] -> *y[a]", "result 'y' cannot be marked as weight or constant"),
    ("x[a] -> !y[a]", "result 'y' cannot be marked as weight or constant"),
    ("x[a] + b[a] -> y[a]", "the added 'b' must be a weight (*b)"),
    (
        "x[a]:mean -> y[a]",
        f"unknown role 'mean': accepted are {', '.join(role.value for role in Role)}",
    ),
]


@pytest.mark.parametrize(("text", "problem"), MALFORMED)
def test_malformed(text, problem):
    with pytest.raises(PatternError) as refused:
        parse(text)
    separator = " " if problem.startswith("needs") else ": "
    assert str(refused.value) == f"pattern {text!r}{separator}{problem}"


def test_all_problems_at_once():
    with pytest.raises(PatternError) as refused:
        parse("x(a), y[B b b]:mean + z[a] -> *u[a]")
    assert len(refused.value.problems) == 6
    assert str(refused.value).startswith("6 problems:\n  1. pattern ")


def test_a_parsed_pattern():
    parsed = parse("x[b l], !ids[]:index, *w[ l  f ] + *bias[f] + *@shift[f] -> u[b f]:single")
    assert [(o.tensor, o.axes, o.role, o.constant) for o in parsed.inputs] == [
        ("x", ("b", "l"), "value", False),
        ("ids", (), "index", True),
        ("w", ("l", "f"), "weight", False),
    ]
    assert [o.tensor for o in parsed.biases] == ["bias", "@shift"]
    assert parsed.outputs[0].role == "single"


LOOKED_UP = "write for example '!ids[b l]:index, *table[v e] -> x[b l e]'"
DECLARED = [
    (einsum, ("op", "x[a b], *w[b] -> y[a], z[a]"), "a contraction has one result"),
    (einsum, ("op", "x[a] -> y[a]"), "a contraction multiplies two or more tensors"),
    (
        einsum,
        ("op", "x[a b], *w[a] -> y[a]"),
        (
            "axis 'b' stands in one tensor only; an axis of a contraction is summed or kept, "
            "so it stands in two or more"
        ),
    ),
    (
        einsum,
        ("op", "x[a], *w[a] + *b[a] -> y[]"),
        "bias 'b' has axes that the result has not",
    ),
    (einsum, ("op", "x[a], y[a] -> z[a]", "a c"), "pairs 'a c' are not two of its axes"),
    (einsum, ("op", "x[a], y[a] -> z[a]", "a"), "pairs 'a' are not two of its axes"),
    (view, ("op", "x[a], y[a] -> z[b]"), "a view takes one tensor to one tensor"),
    (view, ("op", "*x[a] -> z[b]"), "a view takes one tensor to one tensor"),
    (view, ("op", "x[a] + *w[a] -> z[b]"), "a view takes one tensor to one tensor"),
    (view, ("op", "x[a b] -> z[b]"), "a view keeps the number of axes"),
    *(
        (split, ("op", text), "a split takes one tensor to parts that lack one of its axes")
        for text in (
            "x[a b] -> y[a b], z[a b]",
            "x[a b] -> y[a], z[b]",
            "x[a b] -> y[c], z[c]",
            "x[a b], u[a] -> y[a], z[a]",
            "*x[a b] -> y[a], z[a]",
        )
    ),
    *(
        (
            lookup,
            ("op", text),
            f"a lookup takes constant ids and one table to one result: {LOOKED_UP}",
        )
        for text in (
            "ids[a], *t[v e] -> x[a e]",
            "!ids[a] -> x[a e]",
            "*t[v e] -> x[a e]",
            "!ids[a], *t[v e], *u[v e] -> x[a e]",
            "!ids[a], *t[v e] -> x[a e], y[a e]",
        )
    ),
    (softmax, ("op", "x[a b] -> y[a b]", "c"), "row axis 'c' is not an axis of the first input"),
    (
        pointwise,
        ("op", "*w[a] -> y[a]", "gelu"),
        "an elementwise op takes a tensor besides weights",
    ),
    (
        pointwise,
        ("op", "x[a] + *b[a] -> y[a]", "gelu"),
        "only contractions add a '+ *b'; declare an 'add'",
    ),
]


@pytest.mark.parametrize(("declare", "arguments", "problem"), DECLARED)
def test_contradictions(declare, arguments, problem):
    with pytest.raises(PatternError) as refused:
        declare(*arguments)
    assert str(refused.value) == f"pattern {arguments[1]!r}: {problem}"


def test_unknown_function():
    with pytest.raises(UnknownNameError, match="unknown elementwise function 'gellu': did you mea"):
        pointwise("op", "x[a] -> y[a]", "gellu")
    with pytest.raises(PatternError, match="2 problems"):
        norm("op", "x[a] -> y[a]", "layer_norm", row="b c")


def test_fused_groups():
    ops = (einsum("one", "x[a b], *w[b c] -> u[a c]"),)
    with pytest.raises(PatternError) as refused:
        fused("group", "x[a b], z[a] -> u[a c]", ops, saves="", recompute=("two",))
    assert refused.value.problems == (
        "fused group 'group': cannot recompute 'two'; its ops are one",
        "fused group 'group': tensor 'z' belongs to none of its ops",
        (
            "fused group 'group': weight 'one.w' of its op 'one' does not cross its border: "
            "add *one.w[b c]"
        ),
    )


def test_parts_link_tensors_by_name():
    ops = (
        pointwise("one", "x[a b] -> y[a b]", "gelu"),
        pointwise("two", "y[b a] -> z[b a]", "gelu"),
        pointwise("three", "y[a b] -> z[b a]", "gelu"),
    )
    with pytest.raises(PatternError) as refused:
        Part("part", ops)
    assert refused.value.problems == (
        "part.two: tensor 'y' was made as [a b] and is used as [b a]: declare a view between them",
        "part.three: tensor 'z' exists already",
    )


def test_a_tensor_from_nowhere_is_refused_with_the_port_that_it_needs():
    with pytest.raises(PatternError) as refused:
        Part("head", (einsum("logits", "y[b e], *w[e v] -> z[b v]"),))
    (problem,) = refused.value.problems
    assert problem == (
        "head: tensor 'y' has no producer and is no port of the part: its ops make z, its ports "
        "are x; takes={'y': \"\"} is a port for what the part before hands on"
    )
