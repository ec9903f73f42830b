"""Activation memory, model and hardware FLOP of GPT blocks with recomputation.

All six rows of Table 2 come from the one declared block, by strategy and recompute policy alone.
Inputs are named as in this library or as in the paper's Table 3; see `Training.NAMES`.

Source: korthikanti-2022, Table 2 (Eq 1 to 6), Eq 7 to 9, Tables 3 and 5, sections 4 and 5,
appendix B.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, NamedTuple

from sympy import Expr, Integer, Rational, expand

from symbolic_cost.conventions.presets import MEGATRON_2022, MODEL_FLOP
from symbolic_cost.emit.formulas import plain
from symbolic_cost.ledger import CostTable, Phase, Quantity
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.declare import Model, Part, Place
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.recompute import FULL, KEEP_ALL, SELECTIVE, Recompute
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.published.contract import Cell, Comparison, compared_within, number, printed_data
from symbolic_cost.published.inputs import Count, Inputs, Rate
from symbolic_cost.symbols import B, F_m, R, T_step, V, b, e, exact, h, l, m1, n_layers, pp

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["korthikanti_2022"]
"""The model of 175 billion parameters of Tables 3 and 5."""


INCREASE = "throughput_increase_percent"


class Training(Inputs):
    """A GPT in training; what is not given leaves out the numbers that need it.

    Sizes and degrees of the glossary, the MLP 4 e wide; peak_tflops of one GPU [TFLOP/s];
    iter_s_full_recompute is the time of an iteration with tensor parallelism and full
    recomputation [s], iter_s_present of one with the techniques of the paper [s].
    """

    NAMES: ClassVar[Mapping[str, str]] = {
        "a": "h",
        "s": "l",
        "h": "e",
        "L": "n_layers",
        "v": "V",
        "t": "m1",
        "p": "pp",
        "gpus": "R",
        "global_batch": "B",
        "micro_batch": "b",
    }

    b: Count
    l: Count
    e: Count
    h: Count
    m1: Count = 1
    n_layers: Count | None = None
    V: Count | None = None
    pp: Count | None = None
    R: Count | None = None
    B: Count | None = None
    peak_tflops: Rate = 312
    iter_s_full_recompute: Rate | None = None
    iter_s_present: Rate | None = None

    def numbers(self) -> dict[Expr, Expr]:
        """Return the number of every symbol that is given."""
        numbers = self.bound("b l e h m1 n_layers V pp R B T_step=iter_s_present")
        return numbers | {F_m: exact(self.peak_tflops) * 10**12}


TABLE_2 = {
    "none": l * b * e * (34 + 5 * h * l / e),
    "tensor": l * b * e * (10 + 24 / m1 + 5 * h * l / (e * m1)),
    "tensor + sequence": l * b * e / m1 * (34 + 5 * h * l / e),
    "tensor + selective recomputation": l * b * e * (10 + 24 / m1),
    "tensor + sequence + selective": 34 * l * b * e / m1,
    "full recomputation": 2 * l * b * e,
}
"""Table 2 as printed, to compare with [byte]; nothing is computed from it."""

EQUATIONS = {
    "model_flop": 72 * B * n_layers * l * e**2 * (1 + l / (6 * e) + V / (12 * e * n_layers)),
    "hardware_flop": 72 * B * n_layers * l * e**2 * (1 + l / (3 * e) + V / (12 * e * n_layers)),
}
"""Eq 7 and 8 as printed, to compare with [FLOP]; nothing is computed from them."""


class Technique(NamedTuple):
    """One row of Table 2: a strategy and what is recomputed."""

    strategy: str
    recompute: Recompute


TECHNIQUES = {
    "none": Technique("", KEEP_ALL),
    "tensor": Technique("tp", KEEP_ALL),
    "tensor + sequence": Technique("tp,sp", KEEP_ALL),
    "tensor + selective recomputation": Technique("tp", SELECTIVE),
    "tensor + sequence + selective": Technique("tp,sp", SELECTIVE),
    "full recomputation": Technique("tp", FULL),
}
"""The rows of Table 2 in order."""

RECOMPUTED_PASSES = 3
"""How often Eq 8 counts the attention core that runs again in backward.

Its forward pass alone runs again, once; Eq 8 doubles the core's share in forward and both
gradients. `hfu_percent_once` is what counting it once gives.
"""

_MODEL = GPT(f=4 * e)


@cache
def block_table(technique: str) -> CostTable:
    """Derive what one block costs under a technique of Table 2."""
    strategy, recompute = TECHNIQUES[technique]
    parts = (Part("block", _MODEL.block(), place=Place.BLOCK),)
    model = Model("gpt-block", parts, _MODEL.sizes(), axes=_MODEL.model().axes)
    placement = parse_strategy(strategy).placement(model)
    return cost(model, MEGATRON_2022, placement, recompute)


def saved(technique: str) -> Expr:
    """Return the activations that one block keeps under a technique of Table 2 [byte]."""
    return block_table(technique).total(Quantity.SAVED)


@cache
def rules() -> dict[str, Expr]:
    """Return the formula of every output in FLOP, bytes, and ratios."""
    sequence = saved("tensor + sequence")
    core = sequence - saved("tensor + sequence + selective")
    model, again = _flop(_trained())
    block_model, block_again = _flop(_trained().select(path="block").once())
    hardware = expand(model + RECOMPUTED_PASSES * again)
    return {
        "5as/h": expand(core * m1 / (b * l * e)),
        "selective saving %": expand(core) / expand(sequence),
        "selective FLOP overhead %": RECOMPUTED_PASSES * block_again / block_model,
        "sbhp (2 bytes, 2**30)": saved("full recomputation") * pp,
        "model_flop": model,
        "hardware_flop": hardware,
        "mfu_percent": model / (R * F_m * T_step),
        "hfu_percent": hardware / (R * F_m * T_step),
        "hfu_percent_once": expand(model + again) / (R * F_m * T_step),
    }


_PERCENT = Rational(1, 100)
_UNITS = dict.fromkeys(("selective saving %", "selective FLOP overhead %"), _PERCENT)
_UNITS |= dict.fromkeys(("mfu_percent", "hfu_percent", "hfu_percent_once"), _PERCENT)
_UNITS |= {"sbhp (2 bytes, 2**30)": Integer(2**30)}
"""Unit of an output, where it is not one FLOP, byte or ratio."""


def _computed(name: str, numbers: Mapping[Expr, Expr]) -> Expr:
    return rules()[name].xreplace(numbers) / _UNITS.get(name, Integer(1))


def _increase(full: Fraction, present: Fraction) -> Fraction:
    """Return by how much the throughput grows [percent]."""
    return 100 * (full / present - 1)


@cache
def _trained() -> CostTable:
    """Derive the FLOP of the whole model, the attention core recomputed."""
    return cost(_MODEL.model(), MODEL_FLOP, recompute=SELECTIVE)


def _flop(table: CostTable) -> tuple[Expr, Expr]:
    """Return the FLOP of B sequences without recomputation, and those of recomputation."""
    flop = table.select(Quantity.FLOP).map(lambda expr: expr.xreplace({b: B}))
    again = expand(flop.total(phase=Phase.RECOMPUTE))
    return expand(flop.total() - again), again


def evaluate(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute Table 2, the numbers of the text, and a row of Table 5 for any model.

    Args:
        inputs: of a `Training`, under our names or the paper's.

    Returns:
        "activation_bytes": bytes that one block keeps, by row of Table 2. As far as the inputs
        determine them "5as/h", "selective saving %", "selective FLOP overhead %",
        "sbhp (2 bytes, 2**30)" [GiB], "model_flop" and "hardware_flop" (Eq 7 and 8) [FLOP],
        "mfu_percent", "hfu_percent", "hfu_percent_once" (see `RECOMPUTED_PASSES`), and
        "throughput_increase_percent".
    """
    run = Training.accepted(inputs)
    sizes = {name: getattr(run, name) for name in ("b", "l", "e", "h", "m1")}
    tables = {name: bind(block_table(name), sizes) for name in TECHNIQUES}
    values: dict[str, Any] = {
        "activation_bytes": {
            name: number(table.total(Quantity.SAVED)) for name, table in tables.items()
        }
    }
    numbers = run.numbers()
    for name in rules():
        expr = _computed(name, numbers)
        if expr.is_number:
            values[name] = number(expr)
    if run.iter_s_full_recompute is not None and run.iter_s_present is not None:
        times = (run.iter_s_full_recompute, run.iter_s_present)
        values[INCREASE] = float(_increase(*(Fraction(str(time)) for time in times)))
    return values


def reproduce() -> Sequence[Comparison]:
    """Compare Table 2 and Eq 7 and 8 as expressions, the text and Table 5 as numbers.

    Table 5 follows from iteration times that were printed to 0.01 s: its numbers agree if they do
    so inside that rounding.
    """
    table2 = (_equal(f"table2.{name}", TABLE_2[name], saved(name)) for name in TECHNIQUES)
    equations = (_equal(name, printed, rules()[name]) for name, printed in EQUATIONS.items())
    return (*table2, *equations, *(comparison for _, comparison in _printed()))


def formulas() -> dict[str, Expr]:
    """Return the formula of every printed number by its key, in the units of `rules`."""
    return {row.key: rules()[name] for name, row in _printed() if name in rules()}


def _printed() -> Iterator[tuple[str, Comparison]]:
    """Compare every printed number, with the name of its rule."""
    data = printed_data("korthikanti_2022")

    def cell(place: str, name: str, model: str, text: str, times: tuple[str, ...] = ()) -> Cell:
        numbers = Training.accepted(data["inputs"] | data["table3"][model]).numbers()
        return Cell(f"{place}.{name}", name, text, _computed(name, numbers), times, T_step)

    for model, entries in data["text"].items():
        for name, text in entries.items():
            yield name, cell(f"text.{model}", name, model, text).compared()
    for model, texts in data["table5"]["rows"].items():
        place, (full, present, increase, *shares) = f"table5.{model}", texts
        key = f"{place}.{INCREASE}"
        yield INCREASE, compared_within(key, increase, _increase, (full, present))
        for name, text in zip(("mfu_percent", "hfu_percent"), shares, strict=True):
            yield name, cell(place, name, model, text, (present,)).compared()


def _equal(key: str, printed: Expr, derived: Expr) -> Comparison:
    same = expand(printed - derived) == 0
    return Comparison(key, plain(printed), plain(expand(derived)), same, "compared as expressions")
