"""What the stages of a pipeline divide is declared, not read from paths."""

from dataclasses import replace

import pytest
from sympy import Integer

from symbolic_cost.models.catalog import model
from symbolic_cost.ops.part import Part, Place
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.stages import block_paths, cut_stage, stage_parts


@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        ("gpt2", {"block"}),
        ("t5", {"encoder.block", "decoder.block"}),
        ("deepseek_v3", {"dense.block", "experts.block"}),  # those that predict follow the head
        ("mamba2", {"block"}),
        ("resnet-18", set()),
    ],
)
def test_blocks(name, blocks):
    assert block_paths(model(name)) == blocks


def test_a_path_says_nothing():
    declared = model("gpt2")
    parts = tuple(
        replace(part, path=part.path.replace("block", "layer")) for part in declared.parts
    )
    renamed = replace(declared, parts=parts)
    assert block_paths(renamed) == {"layer"}
    parts = stage_parts(renamed, Integer(4), Stage.FIRST, Pipeline())
    held = cut_stage(renamed, parts)
    assert {part.path for part in held.parts} == {"embedding", "layer"}


def test_a_repeated_part_is_a_block_unless_said_otherwise():
    assert Part("any", (), Integer(2)).is_block
    assert not Part("block", ()).is_block
    assert not Part("block", (), Integer(2), place=Place.END).is_block
    assert Part("any", (), place=Place.BLOCK).is_block
