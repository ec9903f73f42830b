"""Values as typed."""

from fractions import Fraction

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.explore.ranges import values


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("1:16:x2", (1, 2, 4, 8, 16)),
        ("1:8", (1, 2, 3, 4, 5, 6, 7, 8)),
        ("1:8:2", (1, 3, 5, 7)),
        ("1,2,4", (1, 2, 4)),
        ("1:4:x2,3,1", (1, 2, 4, 3)),
        ("3:3", (3,)),
        ("1_000", (1000,)),
        ("3e14,1.5", (3 * 10**14, Fraction(3, 2))),
        ("none,full/2,bf16-mixed", ("none", "full/2", "bf16-mixed")),
        (range(1, 4), (1, 2, 3)),
        ([1, "2:3"], (1, 2, 3)),
        (7, (7,)),
        ("dp=full", ("dp=full",)),
    ],
)
def test_values(given, meant):
    assert values("x", given) == meant


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("8:1", "runs backwards: write 1:8"),
        ("", "accepted are numbers"),
        ([], "no value is given"),
        ("1:8:x1", "would never end"),
        ("1:8:0", "would never end"),
        ("0:8:x2", "would never end"),
        ("1:8:x0.5", "factor 0.5 is below 1"),
        ("1:100000000", "more than 1,000,000 values"),
        ("1,full", "numbers or words, not both"),
        ("-3", "accepted are numbers"),
        ("1:2:3:4", "accepted are numbers"),
        (True, "accepted are numbers"),
        ([None, 1.5], "accepted are numbers"),
    ],
)
def test_refused_values(given, said):
    with pytest.raises(InputError, match=said):
        values("x", given)
