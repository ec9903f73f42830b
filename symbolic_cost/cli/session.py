"""What a command works on: a model, costed, and the numbers of its symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sympy import Expr

from symbolic_cost.cli.options import Choices
from symbolic_cost.conventions.presets import preset
from symbolic_cost.errors import Problems, UnknownNameError, unknown
from symbolic_cost.ledger import CostTable
from symbolic_cost.models.catalog import model as named_model
from symbolic_cost.numeric.assignments import parse_assignments
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.recompute import Recompute, recompute_policy
from symbolic_cost.parallel.layout import layout as named_layout
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.stages import stage_model
from symbolic_cost.parallel.states import precision as named_precision
from symbolic_cost.parallel.strategy import Strategy, parse_strategy
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.parallel.table import strategy_table


@dataclass(frozen=True)
class Session:
    """A costed model.

    Args:
        name: of the model.
        declared: the model, all of its stages.
        model: the share of one stage.
        strategy: as parsed.
        recompute: what backward computes again.
        table: formulas, degrees as symbols.
        values: numbers by symbol name: of the preset, of the strategy, of --set.
        pipeline: layout of the blocks.
    """

    name: str
    declared: Model
    model: Model
    strategy: Strategy
    recompute: Recompute
    table: CostTable
    values: Mapping[str, int]
    pipeline: Pipeline

    @property
    def bound(self) -> CostTable:
        """The table with every known number in place.

        Raises:
            InputError: a number that is refused, or a size that a degree does not divide.
        """
        return bind(self.table, self.values)

    @property
    def checked(self) -> CostTable:
        """The table of formulas, after a check of the numbers.

        Raises:
            InputError: as `bound`.
        """
        bind(self.table, self.values)
        return self.table

    def value(self, expr: Expr) -> Expr:
        """Return an expression with every known number in place."""
        bound: Expr = bind(expr, self.values)
        return bound

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know."""
        numbers = ", ".join(f"{name} = {number}" for name, number in self.values.items())
        chosen = self.table.conventions
        return (
            f"model {self.model.name}, strategy {str(self.strategy) or 'one rank'}, per rank",
            f"conventions {chosen.name}: {chosen.meaning}",
            *((numbers,) if numbers else ()),
        )


def session(
    name: str,
    choices: Choices,
    point: str | None = None,
    precision: str | None = None,
) -> Session:
    """Cost a named model as the options say.

    Args:
        name: of the model.
        choices: as typed.
        point: a named model whose numbers are taken; those of `name` unless given.
        precision: policy that says the bytes of elements; as the conventions say unless given.

    Raises:
        InputError: every problem of every option.
    """
    problems = Problems()
    model = problems.attempt(named_model, name)
    numbers = problems.attempt(named_model, point or name)
    chosen = problems.attempt(parse_strategy, choices.strategy)
    counting = problems.attempt(preset, choices.conventions)
    policy = problems.attempt(recompute_policy, choices.recompute)
    given = problems.attempt(parse_assignments, choices.settings)
    part = problems.attempt(stage_of, choices.stage)
    blocks = problems.attempt(named_layout, choices.layout)
    policy_of_bytes = problems.attempt(named_precision, precision) if precision else None
    problems.refuse()
    counting = counting if policy_of_bytes is None else policy_of_bytes.applied(counting)
    structure, pipeline = Structure(chosen), Pipeline(layout=blocks)
    symbolic = structure.symbolic
    spread = on_every_rank(symbolic.model(model), symbolic)
    values = {**numbers.bindings, **chosen.bindings(), **given}
    return Session(
        name=name,
        declared=model,
        model=stage_model(spread, symbolic.degree("pp"), structure.checked(part), pipeline),
        strategy=chosen,
        recompute=policy,
        table=strategy_table(
            on_every_rank(model, symbolic),
            symbolic,
            counting,
            policy,
            stage=part,
            pipeline=pipeline,
        ),
        values=values,
        pipeline=pipeline,
    )


def stage_of(name: str) -> Stage:
    """Return a pipeline stage by name.

    Raises:
        UnknownNameError: no such stage.
    """
    if name not in set(Stage):
        raise UnknownNameError(unknown("stage", name, Stage))
    return Stage(name)
