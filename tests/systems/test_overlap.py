"""Overlap: what of a communication is waited for."""

import pytest
from sympy import Integer, Rational

from symbolic_cost.errors import InputError
from symbolic_cost.ledger import CollectiveKind, Phase
from symbolic_cost.systems.overlap import overlap


@pytest.mark.parametrize(
    ("text", "communication", "busy", "exposed"),
    [
        ("none", 6, 100, 6),
        ("full", 6, 100, 0),
        ("full", 6, 2, 4),
        ("partial=0.5", 6, 100, 3),
        ("partial=0.5", 6, 2, 4),
        ("partial=0", 6, 100, 6),
        ("partial=1", 6, 2, 4),
        ("panels=3", 6, 100, 2),
        ("panels=3", 6, 2, 2 + 4),
    ],
)
def test_exposed(text, communication, busy, exposed):
    assert overlap(text).exposed(Integer(communication), Integer(busy)) == exposed


def test_share_is_exact():
    assert overlap("partial=0.1").exposed(Integer(1), Integer(1)) == Rational(9, 10)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("al", "unknown overlap 'al': accepted are full, gradients, none, panels=..., partial=..."),
        ("none=3", "unknown overlap 'none=3': did you mean none"),
        ("partial=2", "overlap 'partial=2': a share from 0 to 1 is accepted after partial="),
        ("partial=nan", "overlap 'partial=nan': a share from 0 to 1 is accepted after partial="),
        ("panels=1.5", "overlap 'panels=1.5': a positive integer is accepted after panels="),
        ("panels", "overlap 'panels': a positive integer is accepted after panels="),
    ],
)
def test_refusals(text, said):
    with pytest.raises(InputError) as caught:
        overlap(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("phase", "kind", "hidden"),
    [
        (Phase.FORWARD, CollectiveKind.ALL_GATHER, False),
        (Phase.FORWARD, CollectiveKind.REDUCE_SCATTER, False),
        (Phase.BACKWARD_INPUT, CollectiveKind.ALL_GATHER, False),
        (Phase.BACKWARD_INPUT, CollectiveKind.REDUCE_SCATTER, True),
        (Phase.BACKWARD_WEIGHT, CollectiveKind.ALL_GATHER, True),
        (Phase.STEP, CollectiveKind.ALL_GATHER, False),
    ],
)
def test_linear_layers_hide_what_their_other_product_does_not_wait_for(phase, kind, hidden):
    """Megatron-Core's linear layers; two of the five collectives of sequence parallelism."""
    assert overlap("gradients").of(phase, kind) == overlap("full" if hidden else "none")
