"""Questions: their grammar, their types, and how near the nearest is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost.errors import InputError
from symbolic_cost.explore.grammar import BYTE, COUNT, SECOND
from symbolic_cost.explore.question import expression, question

KNOWN = {
    "memory": BYTE,
    "step": SECOND,
    "tp": COUNT,
    "pp": COUNT,
    "mfu": COUNT,
    "achieved": (0, -1, 1),
    "tokens_per_second": (0, -1, 0),
    "recompute": ("none", "full", "full/2"),
    "fits": (),
}
ROWS = {
    "memory": np.array([50.0, 90.0]) * 2**30,
    "step": np.array([1.0, np.nan]),
    "tp": np.array([1.0, 8.0]),
    "pp": np.array([8.0, 8.0]),
    "mfu": np.array([0.4, 0.5]),
    "achieved": np.array([1e14, 3e14]),
    "tokens_per_second": np.array([5e5, 2e6]),
    "recompute": "full/2",
    "fits": np.array([1.0, 0.0]),
}


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("memory < 80 GiB", [True, False]),
        ("memory < 80GiB and tp*pp <= 64", [True, False]),
        ("memory > 80 GiB or tp == 1", [True, True]),
        ("not (memory < 80 GiB or mfu > 45%)", [False, False]),
        ("not memory < 80 GiB", [False, True]),
        ("1 < tp <= 8", [False, True]),
        ("tp + pp * 2 == 17", [True, False]),
        ("(tp + pp) * 2 == 18", [True, False]),
        ("pp - tp - 1 == 6", [True, False]),
        ("pp / tp / 2 == 4", [True, False]),
        ("-tp < -1", [False, True]),
        ("achieved > 200 TFLOP/s", [False, True]),
        ("achieved > 200 T", [False, True]),
        ("tokens_per_second >= 1_000_000/s", [False, True]),
        ("tokens_per_second >= 1M/s and tp < 9", [False, True]),
        ("tokens_per_second >= 1e6 /s", [False, True]),
        ("tokens_per_second * 3 s < 3e6", [True, False]),
        ("tokens_per_second > 3/step", [True, False]),
        ("memory > 50 G", [True, True]),
        ("memory/tp > 20 GiB", [True, False]),
        ("step < 1100 ms", [True, False]),
        ("not step < 1 ms", [True, False]),  # what has no value is no answer
        ("step > 0", [True, False]),
        ("fits", [True, False]),
        ("not fits", [False, True]),
        ("recompute == 'full/2'", [True, True]),
        ("recompute != full", [True, True]),
        ("not recompute == full", [True, True]),
        ("tp < 1e1", [True, True]),
        ("tp < 2 or pp < 2 and mfu < 1%", [True, False]),
    ],
)
def test_answers(text, answers):
    made = question(text, KNOWN)
    found = np.broadcast_to(made.answers(ROWS), (2,))
    assert found.tolist() == answers
    missing = np.broadcast_to(made.missing(ROWS), (2,))
    assert [gap <= 0 for gap in missing] == answers


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory < 80", "two units"),
        ("tokens_per_second > 3", "as in 80 GiB, 2 s or 9000/s"),
        ("tokens_per_second > 3 s", "two units"),
        ("memory + step < 3 s", "two units"),
        ("memroy < 3 GiB", "did you mean memory"),
        ("tp", "a comparison"),
        ("tp <", "the end: a number, a name or"),
        ("tp = 3", "== is accepted"),
        ("(tp < 3", "the end: [)] is accepted"),
        ("tp < 3)", "an operator"),
        ("__import__('os')", "an operator"),
        ("tp.real < 3", "is neither number, name nor sign"),
        ("tp; pp", "is neither number, name nor sign"),
        ("lambda: 0", "is neither number, name nor sign"),
        ("recompute == ful", "did you mean full"),
        ("recompute < full", "== and != "),
        ("recompute", "compare it by =="),
        ("memory < 80 GiBs", "unknown unit"),
        ("tp and pp", "takes a comparison"),
        ("(tp < 3) + 1 < 2", "takes a number"),
        ("'x' == tp", "a word goes with the name"),
        ("tp < 1e999", "too large"),
        ("(" * 100 + "tp < 1" + ")" * 100, "parentheses"),
        ("-" * 200 + "tp < 1", "too deeply nested"),
        ("not " * 100 + "tp < 1", "too deeply nested"),
        ("+".join(["tp"] * 400) + " < 1", "at most 300"),
        ("tp < 1" * 1000, "at most 2000 characters"),
    ],
)
def test_refused(text, said):
    with pytest.raises(InputError, match=said):
        question(text, KNOWN)


def test_every_unknown_name_is_told():
    with pytest.raises(InputError) as refused:
        question("memroy < 3 GiB and stp < 2 s", KNOWN)
    assert len(refused.value.problems) == 2


def test_an_expression_is_a_number():
    assert expression("-mfu * 2", KNOWN).values(ROWS).tolist() == [-0.8, -1.0]
    with pytest.raises(InputError, match="a number, such as step"):
        expression("tp < 3", KNOWN)


def test_what_is_missing_is_told_with_numbers():
    made = question("memory < 80 GiB and tp*pp <= 32", KNOWN)
    row = {name: value if isinstance(value, str) else value[1] for name, value in ROWS.items()}
    assert made.failures(row) == ["memory < 80 GiB: it is 90 GiB", "tp * pp <= 32: it is 64"]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="tp mfu<>=!&|()+-*/%'\"0123456789.eGiBsandornot_\n\t\\;:", max_size=60))
def test_any_text_is_a_question_or_refused(text):
    try:
        made = question(text, KNOWN)
    except InputError:
        return
    made.answers(ROWS)
    made.missing(ROWS)
