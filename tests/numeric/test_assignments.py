"""NAME=NUMBER: what is read and what is refused."""

from fractions import Fraction

import pytest

from symbolic_cost.errors import InputError, unknown
from symbolic_cost.numeric.assignments import parse_assignments
from symbolic_cost.symbols import GLOSSARY


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ([], {}),
        (["m1=4", "b=2"], {"m1": 4, "b": 2}),
        (["m1=4,b=2", "l=1_000_000"], {"m1": 4, "b": 2, "l": 10**6}),
        ([" n_layers = 96 , V = 50257 "], {"n_layers": 96, "V": 50257}),
        (["b=+7", "B=007"], {"b": 7, "B": 7}),
        (
            ["F_m=3e14,alpha=2.5e-6", "beta_m=0.5"],
            {"F_m": 3 * 10**14, "alpha": Fraction(1, 400_000), "beta_m": Fraction(1, 2)},
        ),
    ],
)
def test_reads(texts, values):
    assert parse_assignments(texts) == values


MALFORMED = [
    *("", " ", "m1", "=", "=4", "m1=", "m1==4", "m1=4=4", "m1:4", "m1 4", "m1=4;b=2"),
    *("m1=x", "m1=b", "m1=1.5", "m1=4.0", "m1=1e3", "m1=0x10", "m1=1/2", "m1=2**3", "m1=4 4"),
    *("m1=__1", "m1=1__0", "m1=_1", "m1=1_", "m1=--1", "m1='4'", "m1=[4]", "m1=None", "m1=nan"),
    *("1=4", "4=m1", "m-1=4", "m.1=4", "_m1=4", "m1=٤", "\uff4d1=4", "m1=4\n5", "m1=4\0"),
    "m1=__import__('os').getpid()",
]


@pytest.mark.parametrize("text", MALFORMED)
def test_refuses_malformed(text):
    with pytest.raises(InputError) as caught:
        parse_assignments([text])
    assert str(caught.value) == (
        f"{text!r} is not an assignment: NAME=INTEGER is accepted, as in m1=4 or "
        "l=1_000_000; rates may be 3e14 or 2.5e-6"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("m1=0", "m1 = 0: an integer from 1 to 10**18 is accepted (tensor-parallel degree)"),
        ("m1=-4", "m1 = -4: an integer from 1 to 10**18 is accepted (tensor-parallel degree)"),
        ("s=0", "s = 0: a positive finite number is accepted (size of one element [byte])"),
        ("nlayers=3", unknown("symbol", "nlayers", GLOSSARY)),
        ("m1=2,m1=2", "'m1=2' gives m1 a second number: one is accepted"),
        (
            "b=1" + "0" * 30,
            (
                "b = an integer of 100 bits: an integer from 1 to 10**18 is accepted "
                "(microbatch size [sequences])"
            ),
        ),
        (
            "b=" + "9" * 10_000,
            (
                f"'b={'9' * 55}...' is not an assignment: NAME=INTEGER is accepted, "
                "as in m1=4 or l=1_000_000; rates may be 3e14 or 2.5e-6"
            ),
        ),
    ],
    ids=lambda text: text[:12],
)
def test_refuses(text, problem):
    with pytest.raises(InputError) as caught:
        parse_assignments([text])
    assert str(caught.value) == problem


def test_tells_every_problem_at_once():
    with pytest.raises(InputError) as caught:
        parse_assignments(["m1", "b=0,,l=4", "l=5", "zz=1"])
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "'m1' is not an assignment",
        "'' is not an assignment",
        "'l=5' gives l a second number",
        "b = 0",
        "unknown symbol 'zz'",
    ]
