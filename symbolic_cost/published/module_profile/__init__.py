"""Profiles of modules: the BERT-base and the Megatron GPT-2 printed by the Flops Profiler.

The models are declared like all others and counted under the profiler's conventions; a tree of
modules says which ops each module runs. Latencies are inputs: they were measured.

BERT-base: the document says one sequence; four of 128 tokens are the only batch and length that
give its numbers. GPT-2: the batch of 1024 that it says is the one of a whole step, of four
sequences each; its parameters are partitioned over ranks, so that every table or factor of a
product shows one element.

Source: flops-profiler, README.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import Field
from sympy import Expr, Integer

from symbolic_cost.errors import refuse, unknown
from symbolic_cost.models.bound import bound
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.graph import Model
from symbolic_cost.published.contract import Comparison, printed_data
from symbolic_cost.published.inputs import Count, Inputs, indivisible
from symbolic_cost.published.module_profile.figures import Figure, all_figures, profile_text
from symbolic_cost.published.module_profile.modules import tree
from symbolic_cost.published.module_profile.numbers import printed
from symbolic_cost.published.module_profile.profile import (
    VERSION_2021,
    VERSION_2023,
    Profile,
    Run,
    Version,
    counted,
    profile,
)
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import n_layers

_BARS = 3
_PASSES = {"fwd latency": "fwd", "bwd latency": "bwd", "step latency": "step"}
_NOTES = {"measured": "a measured latency, an input", "given": "a fact of the run, an input"}


class Shape(Inputs):
    """Sizes of a model (n heads, L layers), and latencies by the key of the printed number."""

    b: Count
    l: Count
    e: Count
    f: Count
    n: Count
    L: Count
    V: Count
    latencies: dict[str, str | float] = Field(default_factory=dict)

    def contradictions(self) -> list[str]:
        """Say that the heads do not divide the width."""
        return indivisible("e", self.e, "n", self.n)

    @property
    def run(self) -> Run:
        """Facts of the run."""
        return Run()


class BertShape(Shape):
    """Sizes of a BERT; `tensor` says in words what was profiled."""

    P: Count
    T: Count
    tensor: str = ""


class GPTShape(Shape):
    """Sizes of a GPT-2 and its run; `params` says in words how parameters are kept."""

    train_batch: Count
    world: Count = 1
    mp: Count = 1
    params: str = ""

    def contradictions(self) -> list[str]:
        """Say that heads do not divide the width, or devices the world."""
        return [*super().contradictions(), *indivisible("world", self.world, "mp", self.mp)]

    @property
    def run(self) -> Run:
        """Facts of the run."""
        return Run(self.world, self.mp, self.train_batch)


@dataclass(frozen=True)
class Printed:
    """A profile that was printed.

    Args:
        name: of its data, whose numbers have the key "section|place|class|field" and a check:
            "closed" follows from the shape, "derived" from latencies as well, "measured" and
            "given" are inputs.
        declared: makes the model of sizes.
        sizes: that it takes, with the input's name as "size=input".
        step: at which the text says that it was taken.
        partitioned: whether parameters are partitioned over ranks.
    """

    name: str
    shape: type[Shape]
    declared: Callable[..., Model]
    sizes: str
    version: Version
    step: int
    partitioned: bool = False

    @property
    def inputs(self) -> dict[str, Any]:
        """Sizes, facts of the run, and the latency of every module by the key of its number."""
        data = printed_data(f"{self.name}_profile")
        measured = {key: text for key, text, check in data["numbers"] if check == "measured"}
        return {**data["inputs"], "latencies": measured}

    def profile(self, inputs: Mapping[str, Any]) -> Profile:
        """Profile a model of any sizes."""
        shape = self.shape.accepted(inputs)
        pairs = [(pair.split("=")[0], pair.split("=")[-1]) for pair in self.sizes.split()]
        return profile(
            self.declared(**{size: getattr(shape, field) for size, field in pairs}),
            modules=tree(self.name, Integer(shape.L)),
            version=self.version,
            measured=grouped(shape.latencies),
            run=shape.run,
            partitioned=self.partitioned,
        )

    def evaluate(self, inputs: Mapping[str, Any]) -> dict[str, str]:
        """Compute every number of the profile as printed, by key; see `profile`."""
        return {figure.key: figure.text for figure in all_figures(self.profile(inputs))}

    def report(self, inputs: Mapping[str, Any]) -> str:
        """Write the profile as text; see `profile`."""
        return profile_text(self.profile(inputs), self.step)

    def reproduce(self) -> Iterator[Comparison]:
        """Compare every printed number: to the letter, or the spans of what was measured."""
        computed = {figure.key: figure for figure in all_figures(self.profile(self.inputs))}
        for key, text, check in printed_data(f"{self.name}_profile")["numbers"]:
            yield _compared(key, text, check, computed[key])

    def formulas(self) -> dict[str, Expr]:
        """Return the formula of every count of a module by the key of its number."""
        modules, model = tree(self.name, n_layers), self.declared()
        top = counted(model, modules, self.version, partitioned=self.partitioned)
        return {
            f"detailed|{module.path}|{module.cls}|{name}": expr
            for _, _, module in top.walk()
            for name, expr in (
                ("params", module.params),
                ("macs", module.macs),
                ("flops", module.flop),
            )
        }


_SIZES = "b l e f h=n n_layers=L V"


def _gpt2(**sizes: Any) -> Model:  # noqa: ANN401 - sizes of a GPT
    return GPT(**sizes).model()


_BERT = partial(bound, CATALOG["bert"].model())
bert = Printed("bert", BertShape, _BERT, f"{_SIZES} P T", VERSION_2023, step=3)
gpt2 = Printed("gpt2", GPTShape, _gpt2, _SIZES, VERSION_2021, step=10, partitioned=True)
PRINTED = {"bert": bert, "gpt2": gpt2}
"""The profiles by name."""

PUBLISHED_INPUTS: Mapping[str, Any] = {name: one.inputs for name, one in PRINTED.items()}
"""Inputs of both profiles."""


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compute every number of one profile or both, as printed.

    Args:
        inputs: "bert" and "gpt2", each as the shape of that name takes them; or those of one
            alone, a BERT if there are token types T.
    """
    if {"b", "l", "e"} <= set(inputs):
        return (bert if "T" in inputs else gpt2).evaluate(inputs)
    refuse(unknown("profile", name, PRINTED) for name in inputs if name not in PRINTED)
    return {name: PRINTED[name].evaluate(numbers) for name, numbers in inputs.items()}


def reproduce() -> list[Comparison]:
    """Compare every printed number of both profiles with its computed value."""
    return [
        replace(row, key=f"{name}|{row.key}")
        for name, one in PRINTED.items()
        for row in one.reproduce()
    ]


def formulas() -> dict[str, Expr]:
    """Return the formula of every count of a module by the key of its number."""
    return {
        f"{n}|{key}": expr for n, one in PRINTED.items() for key, expr in one.formulas().items()
    }


def _compared(key: str, text: str, check: str, figure: Figure) -> Comparison:
    if check in _NOTES:
        return Comparison(key, text, figure.text, None, _NOTES[check])
    if figure.span is None:
        return Comparison(key, text, figure.text, figure.text == text)
    note = "within the rounding of the printed latencies"
    return Comparison(key, text, figure.text, figure.span.meets(printed(text)), note)


def grouped(latencies: Mapping[str, str | float]) -> dict[str, Any]:
    """Group latencies by "section|place|class|field" as a profile takes them.

    Raises:
        InputError: every key that is not of that form.
    """
    refuse(
        f"latency {key!r}: write for example 'detailed|encoder|BertEncoder|latency'"
        for key in latencies
        if key.count("|") != _BARS
    )
    groups: dict[str, Any] = {"modules": {}, "classes": {}, "run": {}}
    for key, text in latencies.items():
        section, place, cls, field = key.split("|")
        if section == "summary":
            groups["run"][_PASSES.get(field, field)] = text
        elif section == "aggregated":
            groups["classes"].setdefault(place.removeprefix("depth "), {})[cls] = text
        else:
            groups["modules"][place] = text
    return groups
