"""The difference of two conventions for one model, as formulas."""

from collections.abc import Mapping

from sympy import Add, Expr, expand

from symbolic_cost.algebra import sums
from symbolic_cost.conventions.presets import preset
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.costs import named_cost
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass
from symbolic_cost.units import Unit


@dataclass(frozen=True)
class Difference:
    """What one preset counts more than another.

    Args:
        first: name of the conventions that are subtracted from.
        second: name of those that are subtracted.
        kinds: the parts of it by kind of op; kinds that are counted alike are left out.
    """

    first: str
    second: str
    unit: Unit
    total: Expr
    kinds: Mapping[str, Expr]


def compare_conventions(
    model: Model, first: str | Conventions, second: str | Conventions, of: str = "flops"
) -> Difference:
    """Subtract what two conventions count for a model.

    Args:
        model: sizes as symbols or numbers.
        first: conventions, or the name of a preset.
        second: the same.
        of: a named cost.

    Raises:
        UnknownNameError: no such preset or cost; the closest are offered.
    """
    named = named_cost(of)
    rules = [preset(one) if isinstance(one, str) else one for one in (first, second)]
    tables = (named.rows(cost(model, one)) for one in rules)
    more, less = (sums((row.kind, row.total) for row in table) for table in tables)
    kinds = {kind: expand(more.get(kind, 0) - less.get(kind, 0)) for kind in {**more, **less}}
    differing = {kind: expr for kind, expr in kinds.items() if expr != 0}
    total = Add(*differing.values())
    return Difference(rules[0].name, rules[1].name, named.unit, total, differing)
