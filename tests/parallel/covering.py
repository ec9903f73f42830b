"""What one rank of a strategy does of a whole model, as exact shares, for the whole catalogue.

The quotient of a row of one rank by the same row of the whole model holds degrees alone: every
size cancels. Times the ranks it is the product of the degrees of those mesh axes whose ranks do
or hold the same thing. `summary` says that in words; approved text stands in `coverage.txt`:

    PYTHONPATH=. python tests/parallel/covering.py        writes it anew

A share that is no such product is an error of the library and stands there as "WRONG".
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from sympy import Integer, Lambda, Mul, expand, symbols

from symbolic_cost.conventions.presets import preset
from symbolic_cost.conventions.questions import Elementwise, ElementwiseFlop
from symbolic_cost.errors import DivisibilityError, InputError
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import WHOLE
from symbolic_cost.parallel.coverage import RESULTS
from symbolic_cost.parallel.degrees import KEY_COPIES
from symbolic_cost.parallel.memory import Training, memory_table
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.part_memory import STATES
from symbolic_cost.parallel.table import strategy_table

APPROVED = Path(__file__).with_name("coverage.txt")

_n = symbols("n", positive=True, integer=True)
_kv = symbols("kv", positive=True, integer=True)
_EACH = ElementwiseFlop(Lambda(_n, _n), Lambda(_n, _n))
WORK = replace(
    preset("standard"),
    name="elements",
    summation=Lambda(_n, _n),
    elementwise=Elementwise({}, _EACH),
    reduction_additions=Lambda(_n, Integer(0)),
)
"""Work proportional to the index space of every op, so that shares are exact."""

TENSOR = ("tp", "tp,sp", "tp,kv", "2d", "2.5d", "3d")
CONTEXT = ("cp", "ulysses", "ring")
DATA = ("dp", "dp,zero=1", "dp,zero=2", "dp,zero=3", "dp,zero=3,reshard=1")
EXPERTS = ("ep,dp", "ep,dp,zero=1", "ep,dp,zero=3")
STRATEGIES = (*TENSOR, *CONTEXT, *DATA, *EXPERTS)


def strategy_of(text):
    """Read a strategy; "kv" keeps its number of ranks beyond the key/value heads open."""
    names = text.split(",")
    plain = parse_strategy(",".join(name for name in names if name != KEY_COPIES))
    return replace(plain, copies=_kv) if KEY_COPIES in names else plain


SHARDED = {0: (), 1: STATES[2:], 2: STATES[1:], 3: STATES}
"""States that data-parallel ranks keep once, by the level of ZeRO."""

SHARING = {"dp", "cp", "ulysses", "ring"}
"""Mesh axes whose ranks share all weights; those of experts share all but the experts'."""

CORE = {"ulysses"}
"""Mesh axes that split the weights inside an attention core by heads: these are approved."""


def families():
    """Names of presets by the structure they share."""
    found = defaultdict(list)
    for entry in CATALOG.values():
        found[entry.name if entry.family == "cnn" else entry.family].append(entry.name)
    return dict(found)


@cache
def declared(family):
    """A family with symbols for sizes; an axis that is padded counts as divisible."""
    return replace(CATALOG[family].model(), padded=())


@cache
def whole(family):
    return cost(declared(family), WORK)


@cache
def whole_states(family):
    return memory_table(declared(family), parse_strategy(""), WORK)


@cache
def table_of(family, text):
    """Costs of one rank."""
    return strategy_table(declared(family), strategy_of(text), WORK)


@dataclass(frozen=True)
class Share:
    """Over which mesh axes the ranks repeat what a row is about; None if it is no such share."""

    row: object
    over: frozenset | None


def keyed(table, quantities):
    """Rows by what tells them apart."""
    rows = defaultdict(list)
    for row in table:
        if row.quantity in quantities and row.collective is None:
            rows[row.path, row.phase, row.quantity, row.tensor].append(row)
    return rows


def shares(part, all_of_it, strategy, quantities):
    """The share of every row; rows of the whole that no rank has are repeated by nobody."""
    mine, total = keyed(part, quantities), keyed(all_of_it, quantities)
    for key, rows in mine.items():
        reference = total.get(key, ())
        if len(reference) != len(rows):
            yield Share(rows[0], None)
            continue
        for row, other in zip(rows, reference, strict=True):
            yield Share(row, share_of(row, other, strategy))


def share_of(row, other, strategy):
    """The mesh axes over which ranks repeat a row of the whole; None where no such thing."""
    ratio = row.expr * row.count / (other.expr * other.count) * strategy.ranks
    return repeated_over(ratio, strategy)


def repeated_over(ratio, strategy):
    """The mesh axes of whose degrees a number of copies is the product."""
    powers = ratio.as_powers_dict()
    over = set()
    for mesh, degree in reversed(strategy.mesh.items()):
        symbol = next(iter(degree.as_numer_denom()[0].free_symbols))
        if powers.get(symbol, 0) == 1:
            over.add(mesh)
            ratio = ratio / degree
            powers = ratio.as_powers_dict()
    return frozenset(over) if ratio == 1 else None


def leaf(path):
    """The last two segments of a path: an op and its layer."""
    return ".".join(path.split(".")[-2:])


@dataclass(frozen=True, order=True)
class Fact:
    """One line of approved text: what is refused or repeated, of which family."""

    strategy: str
    title: str
    item: str
    family: str


@cache
def examined(family, text):
    """Return problems of a family under a strategy, and the facts to approve."""
    strategy = strategy_of(text)
    model = declared(family)
    try:
        own = strategy.model(model)
        repeated = strategy.repeated(own)
        table = table_of(family, text)
    except InputError as error:
        refusals = [("refused", shortened(problem, family)) for problem in error.problems]
        return [], [Fact(text, *refusal, family) for refusal in refusals]
    ops = {f"{part.path}.{op.path}": op for part in own.parts for op in part.ops}
    problems = [*unnamed(strategy, own, table, repeated)]
    facts = [
        (f"{'rest' if each.reason is RESULTS else 'work'} over {each.mesh}", leaf(each.path))
        for each in repeated
        if ops[each.path].bulk
    ]
    problems += undone(family, model, ops)
    problems += state_problems(family, strategy, table)
    facts += [
        (f"weight over {mesh}", leaf(share.row.tensor))
        for share in shares(table, whole(family), strategy, {Quantity.WEIGHT})
        for mesh in (("WRONG",) if share.over is None else share.over - SHARING - {"ep"})
    ]
    facts += [
        (f"weight split over {mesh}", leaf(share.row.tensor))
        for share in state_shares(family, strategy, table)
        for mesh in CORE & set(strategy.mesh) - (share.over or set())
        if share.row.quantity is Quantity.WEIGHT
    ]
    facts += saved_facts(family, strategy, table)
    return problems, [Fact(text, *fact, family) for fact in dict.fromkeys(facts)]


def unnamed(strategy, own, table, repeated):
    """Ops of which all ranks together do not do the whole, and what is named again, exactly."""
    counter = Counter(own.sizes, WHOLE, WORK, means=own.means)
    over = defaultdict(set)
    for each in repeated:
        for work in each.work:
            over[each.path, work].add(each.mesh)
    done = defaultdict(lambda: Integer(0))
    for row in table.select(Quantity.FLOP, where=lambda row: row.collective is None):
        done[row.path] += row.total
    for part in own.parts:
        for op in part.ops:
            path = f"{part.path}.{op.path}"
            works = [w for k in op.kernels() if k.phase is not Phase.RECOMPUTE for w in k.work]
            wanted = sum(
                part.repeat
                * counter.flop(work, op.kind)
                * Mul(*(strategy.degree(mesh) for mesh in over[path, work]))
                for work in works
            )
            if expand(done[path] * strategy.ranks - wanted) != 0:
                yield f"{path}: all ranks do {done[path] * strategy.ranks}, named are {wanted}"


def undone(family, model, ops):
    """Ops that work on the whole model and that no rank has, but for copies."""
    worked = {row.path for row in whole(family).select(Quantity.FLOP)}
    declared_ops = {f"{part.path}.{op.path}": op for part in model.parts for op in part.ops}
    return [
        f"{path}: no rank does it"
        for path in sorted(worked - set(ops))
        if not declared_ops[path].repeats
    ]


def saved_facts(family, strategy, table):
    """What is kept for backward by more ranks than one, and by ops that keep nothing else.

    A tensor may be kept under the name that it has before or after a view: an op's are in order.
    """
    total = by_path(whole(family))
    for path, rows in by_path(table).items():
        others = total.get(path, ())
        if len(others) != len(rows):
            yield "saved anew", leaf(path)
            continue
        for row, other in zip(rows, others, strict=True):
            over = share_of(row, other, strategy)
            if over is None:
                yield "saved otherwise", leaf(row.tensor)
            yield from ((f"saved over {mesh}", leaf(row.tensor)) for mesh in over or ())


def by_path(table):
    rows = defaultdict(list)
    for row in table.select(Quantity.SAVED):
        rows[row.path].append(row)
    return rows


def state_problems(family, strategy, table):
    """Weights and their states are on the ranks that share them, once where ZeRO says so."""
    for share in state_shares(family, strategy, table):
        row, over = share.row, share.over
        sharded = row.quantity in SHARDED[strategy.zero]
        wanted = set() if sharded else SHARING & set(strategy.mesh)
        if over is None or over - (set() if sharded else {"ep"} | CORE) != wanted - CORE:
            yield f"{row.path} {row.tensor} {row.quantity}: on ranks of {over}"


def state_shares(family, strategy, table):
    """Shares of weights and states; the moments of the optimizer only where ZeRO cuts them."""
    if not SHARING & set(strategy.mesh):
        return ()
    part, all_of_it = table, whole(family)
    if strategy.zero:
        part = memory_table(declared(family), strategy, WORK, Training())
        all_of_it = whole_states(family)
    return shares(part, all_of_it, strategy, {*STATES, Quantity.PARAMETER})


def shortened(problem, family):
    """A refusal less the name of the model, its middle left out."""
    text = problem.replace(repr(family), "it")
    return text if len(text) < LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


LONGEST = 240


def text_of(facts):
    """Approved text: one line per fact, with the families that have it in common."""
    lines = {}
    for fact in facts:
        lines.setdefault((fact.strategy, fact.title, fact.item), []).append(fact.family)
    order = {text: place for place, text in enumerate(STRATEGIES)}
    keys = sorted(lines, key=lambda key: (order[key[0]], key[1:]))
    return "".join(f"{' | '.join(key)} | {' '.join(lines[key])}\n" for key in keys)


def facts_of(text):
    """Facts of approved text."""
    for line in text.splitlines():
        *key, names = line.split(" | ")
        yield from (Fact(*key, name) for name in names.split(" "))


# Divisibility of the published sizes.

DEGREES = (2, 8)
OURS = {"b": 4096, "l": 4096, "l_t": 4096}


def undivided(family, text):
    """Facts about published sizes of a family that degrees do not divide."""
    strategy = strategy_of(text)
    try:
        table = replace(table_of(family, text), rows=())
    except InputError:
        return
    if strategy.copies != 1:  # a number of ranks that has no symbol to give it by
        return
    names = {symbol.name for degree in strategy.mesh.values() for symbol in degree.free_symbols}
    for preset_name in families()[family]:
        bindings = CATALOG[preset_name].bindings
        for degree in DEGREES if bindings else ():
            try:
                bind(table, {**bindings, **OURS, **dict.fromkeys(names, degree)})
            except DivisibilityError as error:
                for problem in error.problems:
                    short = shortened(problem, preset_name)
                    yield Fact(text, f"undivided by {degree}", short, preset_name)


def everything(names):
    """Every fact and every problem of some families."""
    facts, problems = [], []
    for family in names:
        for text in STRATEGIES:
            wrong, known = examined(family, text)
            facts += [*known, *undivided(family, text)]
            problems += [f"{family} under {text}: {problem}" for problem in wrong]
    return facts, problems


if __name__ == "__main__":
    known, wrong = everything(families())
    APPROVED.write_text(text_of(known), encoding="utf-8")
    sys.stdout.write("".join(f"{problem}\n" for problem in wrong))
