"""Rows that recompute policies and ZeRO levels share are those that each derives alone."""

from itertools import product

import pytest

import symbolic_cost as sc
from symbolic_cost.lazy import Recent

POLICIES = ("none", "selective", "full")


def rows(model, zero, recompute):
    strategy = f"tp,sp,dp,zero={zero}"
    return sc.job(model, strategy, recompute=recompute, system="h100").rows.rows


def check(model, levels, monkeypatch):
    cases = tuple(product(levels, POLICIES))
    shared = [rows(model, *case) for case in cases]
    for case, found in zip(cases, shared, strict=True):
        for name in ("_SPLIT", "_PLACED"):
            monkeypatch.setattr(f"symbolic_cost.parallel.table.{name}", Recent(1))
        assert found == rows(model, *case), case
    assert len(set(map(len, shared))) > 1  # they are not all the same


def test_rows_of_tied_weights_are_shared(monkeypatch):
    check("gpt2", (0, 3), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gpt2", "deepseek-v3", "t5-large"])
def test_rows_are_shared(model, monkeypatch):
    check(model, range(4), monkeypatch)
