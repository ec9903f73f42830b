"""Kinds and counts of collectives that PyTorch's DTensor issues, against the derived ones."""

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from symbolic_cost.conventions.presets import EXACT
from symbolic_cost.layers.attention import Attention, Bias, Projection
from symbolic_cost.layers.attention_core import AttentionCore, Step
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.table import strategy_table

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="extra torch-oracle is not installed"),
]

RANKS = 2
KINDS = {
    "c10d_functional.all_reduce": "all-reduce",
    "c10d_functional.all_gather_into_tensor": "all-gather",
    "c10d_functional.reduce_scatter_tensor": "reduce-scatter",
    "c10d._allgather_base_": "all-gather",
    "c10d._reduce_scatter_base_": "reduce-scatter",
}


@pytest.fixture(scope="module")
def issued(tmp_path_factory):
    """Start the ranks and read what the first one prints."""
    meeting = tmp_path_factory.mktemp("ranks") / "meeting"
    program = [sys.executable, str(Path(__file__).with_name("torch_ranks.py")), str(meeting)]
    started = [
        subprocess.Popen(
            program,
            env={
                **os.environ,
                "WORLD_SIZE": str(RANKS),
                "RANK": str(rank),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    try:
        ended = [process.communicate(timeout=120) for process in started]
    finally:
        for process in started:
            process.kill()
    assert all(process.returncode == 0 for process in started), ended
    return json.loads(ended[0][0].splitlines()[-1])


def derived(strategy):
    attention = Attention(
        projection=Projection.SEPARATE, bias=Bias.NONE, core=AttentionCore(steps=Step.MASK)
    )
    model = GPT(attention=attention, mlp=MLP(bias=Bias.NONE), dropout=False).model()
    table = strategy_table(model, parse_strategy(strategy), EXACT)
    found = {"forward": Counter(), "backward": Counter()}
    for row in table.select(Quantity.COMMUNICATION, path="block"):
        if not row.tensor.endswith((".scale", ".shift")):  # their norms have no weights
            phase = "forward" if row.phase is Phase.FORWARD else "backward"
            found[phase][row.collective.kind.value] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["tp", "tp,sp", "dp,zero=3"])
def test_collectives_of_a_block(issued, strategy):
    for phase, counts in derived(strategy).items():
        theirs = {KINDS[name]: number for name, number in issued[strategy][phase].items()}
        assert theirs == dict(counts), phase
