"""Families from traces: sizes of several exported graphs as formulas in their configurations.

Graphs of one family have the same parts, ops and axes, and other sizes. Every axis and every
repetition is explained by the fields of the configurations; a held-out graph, which nothing was
fitted to, is predicted whole: parameters and FLOP, as formulas in batch and length.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from sympy import Expr, Rational, expand

from symbolic_cost.conventions.presets import preset
from symbolic_cost.errors import InputError, Problems, quote, refuse
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.bound import bound
from symbolic_cost.models.configfile import LARGEST_FILE
from symbolic_cost.models.traced.imported import traced
from symbolic_cost.models.traced.monomials import Fitter, Sum
from symbolic_cost.ops.declare import Model, Op
from symbolic_cost.ops.derive import cost
from symbolic_cost.reading import json_value, read_text
from symbolic_cost.records import dataclass, replace

FEWEST = 4
"""Graphs, of which one is held out: fewer explain anything."""

_MOST_FIELDS = 24


@dataclass(frozen=True)
class Traced:
    """A graph and the configuration beside it."""

    place: str
    model: Model
    fields: Mapping[str, int]


@dataclass(frozen=True)
class Lifted:
    """A family.

    Args:
        model: the first graph.
        sizes: of axes: what is explained, times the dynamic rest, which is 1 for most.
        repeats: how often each part runs, by its path.
        checked: the held-out graph.
    """

    model: Model
    sizes: Mapping[str, tuple[Sum, Expr]]
    repeats: Mapping[str, Sum]
    checked: str

    def at(self, fields: Mapping[str, int]) -> Model:
        """Return the member of the family with some numbers of the fields."""
        sizes = {n: _number(one.at(fields)) * rest for n, (one, rest) in self.sizes.items()}
        parts = tuple(
            replace(part, repeat=_number(self.repeats[part.path].at(fields)))
            for part in self.model.parts
        )
        return replace(self.model, sizes={**self.model.sizes, **sizes}, parts=parts)


def lifted(paths: Sequence[str | Path]) -> Lifted:
    """Lift exported graphs of one family; the last is held out.

    Args:
        paths: NAME.pt2 or NAME.onnx, with the configuration NAME.json beside each.

    Raises:
        InputError: graphs of other structure, sizes that no field explains, or a held-out graph
            that is predicted wrongly.
    """
    if len(paths) < FEWEST:
        raise InputError(f"{len(paths)} graphs: at least {FEWEST} are lifted, the last held out")
    problems = Problems()
    graphs = [problems.attempt(member, Path(path)) for path in paths]
    problems.refuse()
    return family_of(graphs)


def family_of(read: Sequence[Traced]) -> Lifted:
    """Lift graphs that are read; the last is held out.

    Raises:
        InputError: as `lifted` does.
    """
    *fitted, held = read
    first = fitted[0]
    names = [name for name in first.fields if all(name in one.fields for one in read)]
    if not names or len(names) > _MOST_FIELDS:
        raise InputError(
            f"{len(names)} fields are whole numbers in all configurations: 1 to {_MOST_FIELDS} "
            "are accepted; leave out what does not vary"
        )
    fitter = Fitter([{name: one.fields[name] for name in names} for one in fitted])
    family = _explained(fitter, fitted)
    family = replace(family, checked=held.place)
    _check(family, held)
    return family


def member(path: Path) -> Traced:
    """Read an exported graph and the configuration beside it.

    Raises:
        InputError: one of them is refused.
    """
    beside = path.with_suffix(".json")
    values = json_value(read_text(beside, LARGEST_FILE, beside.name), beside.name)
    if not isinstance(values, dict):
        raise InputError(f"{beside.name}: only a JSON object is accepted")
    fields = {name: value for name, value in values.items() if type(value) is int and value > 0}
    return Traced(path.name, bound(traced(path).model), fields)


def _explained(fitter: Fitter, fitted: Sequence[Traced]) -> Lifted:
    """Explain all sizes and repetitions."""
    first = fitted[0].model
    axes = [_matched(fitted[0], other) for other in fitted]
    problems: list[str] = []
    sizes: dict[str, tuple[Sum, Expr]] = {}
    for name in first.axis_names:
        split = [number[name].as_coeff_Mul() for number in axes]
        values = [Fraction(int(c.p), int(c.q)) for c, _ in split]
        known = fitter.explained(values)
        if known is None or len({rest for _, rest in split}) > 1:
            seen = ", ".join(str(number[name]) for number in axes)
            problems.append(f"axis {name}, sizes {seen}: no short sum of the fields")
        else:
            sizes[name] = (known, split[0][1])
    repeats: dict[str, Sum] = {}
    for place, part in enumerate(first.parts):
        counts = [Fraction(int(one.model.parts[place].repeat)) for one in fitted]
        times = fitter.explained(counts, affine=True)
        if times is None:
            seen = ", ".join(map(str, counts))
            problems.append(f"part {part.path} runs {seen} times: not affine in the fields")
        else:
            repeats[part.path] = times
    refuse(problems)
    return Lifted(first, sizes, repeats, "")


def _matched(first: Traced, other: Traced) -> dict[str, Expr]:
    """Return the size in another graph of every axis of the first, found by where it stands."""
    ours, theirs = first.model.parts, other.model.parts
    sizes: dict[str, Expr] = {}
    if [len(part.ops) for part in ours] != [len(part.ops) for part in theirs]:
        raise InputError(
            f"{other.place}: {len(theirs)} parts of {', '.join(str(len(p.ops)) for p in theirs)} "
            f"ops; {first.place} has {', '.join(str(len(p.ops)) for p in ours)}: one family has "
            "the same, and repeated blocks at least twice"
        )
    for mine, their in zip(ours, theirs, strict=True):
        for one, two in zip(mine.ops, their.ops, strict=True):
            for a, b in zip(_axes(one), _axes(two), strict=True):
                size = other.model.sizes[b]
                if len(_axes(one)) != len(_axes(two)) or sizes.setdefault(a, size) != size:
                    raise InputError(
                        f"{other.place}: {two.path}: axis {a} of {first.place} has sizes "
                        f"{sizes.get(a)} and {size}: choose sizes that differ from each other"
                    )
    return sizes


def _axes(op: Op) -> tuple[str, ...]:
    operands = (*op.pattern.inputs, *op.pattern.biases, *op.pattern.outputs)
    return tuple(axis for operand in operands for axis in operand.axes)


def _number(value: Fraction) -> Expr:
    return Rational(value.numerator, value.denominator)


def _check(family: Lifted, held: Traced) -> None:
    """Compare the prediction with the held-out graph."""
    rules = preset("torch-flop-counter")
    tables = [cost(one, rules) for one in (family.at(held.fields), held.model)]
    asked: dict[str, Any] = {
        "parameters": {"quantity": Quantity.PARAMETER},
        "forward FLOP": {"quantity": Quantity.FLOP, "phase": Phase.FORWARD},
        "FLOP": {"quantity": Quantity.FLOP},
    }
    problems = []
    for name, query in asked.items():
        said, true = (expand(table.total(**query)) for table in tables)
        if said != true:
            problems.append(
                f"{held.place}, held out: {name} = {quote(str(true))}, predicted {quote(str(said))}"
            )
    refuse(problems)
