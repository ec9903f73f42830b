"""A setup whose formulas have letters for what numbers decide, so that people can read them.

Microbatches of a known global batch are M, and blocks of an uneven stage n_first, not
ceiling(n_layers/pp) - floor((pp ceiling(n_layers/pp) - n_layers)/2). Programs read whole formulas:
a table says what its letters stand for, and its formats for programs put that in their places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from fractions import Fraction
from functools import cached_property

from sympy import Add, Expr, Integer, Symbol

from symbolic_cost import symbols
from symbolic_cost.conditions import check
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.numeric.binding import bind, check_values, value
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.stages import Blocks, stage_blocks
from symbolic_cost.parallel.table import Divided
from symbolic_cost.records import dataclass

_ALL = {Stage.FIRST: symbols.n_first, Stage.MIDDLE: symbols.n_middle, Stage.LAST: symbols.n_last}
_KINDS = {
    Stage.FIRST: (symbols.n_lead_first, symbols.n_rest_first),
    Stage.MIDDLE: (symbols.n_lead_middle, symbols.n_rest_middle),
    Stage.LAST: (symbols.n_lead_last, symbols.n_rest_last),
}


def lettered(setup: Setup) -> Lettered:
    """Return a setup with letters in its formulas.

    Raises:
        InputError: more stages than there are blocks for.
    """
    numbers, names = check_values(setup.values), _names(setup)
    if any(count.xreplace(numbers).is_negative for count in names.values()):
        check(setup.divided.conditions, numbers)
    own = {one.name: getattr(setup, one.name) for one in fields(Setup)}
    count = setup.training.microbatches
    if count.is_Integer:
        own["training"] = replace(setup.training, microbatches=symbols.M)
        own["numbers"] = {**setup.numbers, "M": int(count)}
    return Lettered(**own, names=names)


@dataclass(frozen=True)
class Lettered(Setup):
    """A setup in which letters stand for microbatches and for the blocks of its stage.

    Args:
        names: what the letters for blocks stand for; none where a stage holds n_layers/pp blocks.
    """

    names: Mapping[Symbol, Expr] = field(default_factory=dict)

    @cached_property
    def values(self) -> Mapping[str, int | Fraction]:
        """Every known number by symbol name, those of the letters as well."""
        known = dict(super().values)
        for letter, count in self.names.items():
            number = bind(count, known)
            if number.is_Rational:
                known[letter.name] = value(number)
        return known

    @cached_property
    def divided(self) -> Divided:
        """The model on the ranks of the mesh, with letters for the blocks of the stage."""
        letters = (*self.names, Integer(0))
        blocks = Blocks(*letters[:2]) if len(self.names) > 1 else Blocks(letters[-1], letters[0])
        return replace(super().divided, blocks={self.stage: blocks} if self.names else {})


def _names(setup: Setup) -> dict[Symbol, Expr]:
    own, stages, stage = setup.divided.split_model, setup.placed.degree("pp"), setup.stage
    if stages == 1 or not any(part.is_block for part in own.parts):
        return {}
    leading, others = stage_blocks(own, stages, stage, setup.trained.pipeline)
    if leading != 0:
        first, second = _KINDS[stage]
        return {first: leading, second: others + leading - first, _ALL[stage]: first + second}
    return {_ALL[stage]: others} if isinstance(others, Add) else {}
