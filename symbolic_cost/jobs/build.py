"""A setup from words: names, strategies and options as people write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import Any, Protocol, TypeAlias, TypedDict, Unpack, runtime_checkable

from symbolic_cost.conventions.presets import preset
from symbolic_cost.conventions.questions import Conventions, Saved
from symbolic_cost.errors import InputError, Problems, looked_up, quote, refuse, unknown
from symbolic_cost.jobs.batch import with_batch
from symbolic_cost.jobs.launch_files import launched
from symbolic_cost.jobs.numbers import twice
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.models.catalog import model as named_model
from symbolic_cost.models.kernels import Attention, kernel, running
from symbolic_cost.models.lengths import of_length
from symbolic_cost.ops.graph import ALL, Model
from symbolic_cost.ops.recompute import Recompute, recompute_policy
from symbolic_cost.parallel.catalogue import GATHERING, STRATEGIES
from symbolic_cost.parallel.degrees import KEY_COPIES
from symbolic_cost.parallel.layout import AUTO
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.records import replace
from symbolic_cost.symbols import GLOSSARY
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.methods import Methods
from symbolic_cost.systems.overlap import HOST, Overlap, overlap
from symbolic_cost.systems.records import find_machine
from symbolic_cost.systems.rooflines import MAXIMUM, Roofline, roofline
from symbolic_cost.systems.stacks import Stack, stack, usual, usual_attention, usual_precision


@runtime_checkable
class Family(Protocol):
    """What declares a model, as GPT() does."""

    def model(self) -> Model:
        """Declare the model."""


Modelled: TypeAlias = str | Model | Family


class Options(TypedDict, total=False):
    """How a job is run; each by name, or as the object that the name stands for.

    Attributes:
        system: machine, or the path of its TOML file.
        conventions: preset of counting conventions.
        precision: of training, or "usual", that of the stack; where none is given, tables have
            the bytes of the conventions.
        microbatches: of one step and pipeline.
        global_batch: sequences of one step; gives the microbatches.
        offload: quantities kept in the memory of the host.
        attention: kernel of attention cores; "flash" unless the stack has another.
        overlap: of communication, by mesh axis, as in "dp=full,tp=none"; "host" is the link over
            which offloaded quantities move.
        roofline: how computing and memory make one time, under the stack "roofline".
        stack: software that runs, as "megatron-core"; "roofline" for the efficiencies of the
            machine's record alone. Unless given, "unknown", whose facts are middle values, on the
            library's own machines and those that `calibrate` fitted, and "roofline" on others or
            where a roofline is named.
        layout: of the blocks over stages: "even", "uneven", "ends=1", "ends=0/3", or "auto": even
            where the stages divide the blocks.
        scattered: whether stages send each tensor-parallel rank's part once.
        order: mesh axes, innermost first, as in "tp,cp,dp,pp"; that of the catalogue unless given.
        regather: whether inputs that sequence or context parallelism gathers in forward are kept in
            shards and gathered again in backward, or kept as gathered; None leaves it to the
            conventions.
        stage: of the pipeline, for tables of one rank.
        train: which weights are trained, as in "lora:r=16,q,v" or "all-but:embedding"; None leaves
            it to the model.
    """

    system: str | Machine | None
    conventions: str | Conventions
    recompute: str | Recompute
    precision: str | None
    optimizer: str
    schedule: str
    microbatches: int | None
    global_batch: int | None
    offload: str | Iterable[str]
    attention: str | None
    overlap: str | Mapping[str, Overlap]
    roofline: str | Roofline
    stack: str | Stack | None
    layout: str
    scattered: bool
    order: str | Iterable[str]
    regather: bool | None
    stage: str
    train: str | None


USUAL_PRECISION = "usual"
"""The precision of the stack."""


def modelled(model: Modelled, numbers: Mapping[str, int | Fraction] | None = None) -> Model:
    """Return the model that a name, a configuration's path or a family stands for.

    Args:
        model: that is meant.
        numbers: by symbol name; one whose ops depend on its length is declared for that.
    """
    if isinstance(model, str):
        return of_length(partial(named_model, model), numbers or {})
    declared = model if isinstance(model, Model) else _declared_by(model)
    if not isinstance(declared, Model):
        raise InputError(f"{type(model).__name__} is no model: a name, a path or GPT() is accepted")
    return declared


def _declared_by(family: Family) -> object:
    """Return what a family declares; nothing of what has another kind of model, as a job."""
    declare = getattr(family, "model", None)
    try:
        signature(declare).bind()  # type: ignore[arg-type]  # what is no function is refused
    except TypeError:
        return None
    return family.model()


def setup(
    model: Modelled,
    strategy: str | Strategy = "",
    numbers: Mapping[str, int | Fraction] | None = None,
    **options: Unpack[Options],
) -> Setup:
    """Return a setup; arguments as of `jobs.job.job`."""
    accepted = Options.__annotations__
    refuse(_no_option(name, options[name]) for name in options if name not in accepted)  # type: ignore[literal-required]
    file = launched(model)
    problems = Problems()
    said = strategy or file is None
    mesh = problems.attempt(_named, parse_strategy, strategy if said else file.recipe.strategy)  # type: ignore[union-attr]
    if file is not None:
        staged = not said or mesh is None or "pp" in mesh.degrees
        numbers = file.numbers(numbers or {}, options.get("schedule"), staged=staged)
        model = of_length(file.model, numbers)
        options = file.options(options, numbers, staged=staged)  # type: ignore[assignment]  # keys of Options
    declared = problems.attempt(_learning, model, options.get("train"), numbers)
    counting = problems.attempt(_named, preset, options.get("conventions", "standard"))
    machine = problems.attempt(_named, find_machine, options.get("system"))
    methods = problems.attempt(_methods, options, mesh, machine)
    runs = getattr(methods, "stack", None)  # nothing where options are refused
    training = problems.attempt(_training, options, mesh, runs)
    attention = problems.attempt(_attention, declared, options, runs)
    stage = problems.attempt(stage_of, options.get("stage", "first"))
    problems.refuse()
    hidden = {} if file is None else file.overlaps(mesh, runs)
    job = Setup(
        declared,
        mesh,
        counting,
        training,
        machine,
        replace(methods, conventions=counting, overlaps={**hidden, **methods.overlaps}),
        attention,
        stage,
        dict(numbers or {}),
        precise=options.get("precision") is not None,
    )
    batch = options.get("global_batch")
    times = options.get("microbatches")
    return job if batch is None and times is None else with_batch(job, batch, times)


def _no_option(name: str, option: object) -> str:
    """Say where an unknown option belongs: degrees to the strategy, sizes to the numbers."""
    refused = unknown("option", name, Options.__annotations__)
    if name in STRATEGIES or name == "zero":
        return f'unknown option {quote(name)}: a strategy is one text, as in "{name}={option}"'
    if name in GLOSSARY:
        return f"unknown option {quote(name)}: numbers go together, as in {{{name!r}: {option}}}"
    return refused


def _learning(
    model: Modelled, train: str | None, numbers: Mapping[str, int | Fraction] | None
) -> Model:
    """Return the model, of which only some weights may be trained."""
    declared = modelled(model, numbers)
    learning = declared if train is None else _training_only(declared, train)
    if learning.unread and learning.trains != ALL and "frozen:" not in learning.trains:
        raise InputError(f"train {learning.trains}: bytes of frozen weights: {learning.unread}")
    return learning


def _training_only(declared: Model, train: str) -> Model:
    from symbolic_cost.models.training import training

    return training(declared, train)


def stage_of(name: str) -> Stage:
    """Return a pipeline stage by name."""
    return looked_up("stage", name, {stage.value: stage for stage in Stage})


def _named(look_up: Callable[[str], Any], option: object) -> Any:  # noqa: ANN401 - of any option
    """Return what a name stands for; what is no name is the object itself."""
    return look_up(option) if isinstance(option, str) else option


def _attention(declared: Model | None, options: Options, runs: Stack | None) -> Attention | None:
    """Return the kernel of attention cores; one that is asked for needs cores.

    Attention over windows or crossed tables is no core: it runs op by op, and eager says so.
    """
    named = options.get("attention", usual_attention(runs))
    asked = None if named is None else kernel(named)
    if declared is None or asked is None or "attention" not in options:
        return asked
    if running(declared, asked).cores:
        return asked
    attends = any("softmax" in op.kind for part in declared.parts for op in part.ops)
    if not attends or asked is not Attention.EAGER:
        has = "attention that runs op by op alone" if attends else "no attention"
        raise InputError(f"attention {asked} is not read: model {quote(declared.name)} has {has}")
    return asked


def _training(options: Options, strategy: Strategy | None, runs: Stack | None) -> Training:
    problems, precise = Problems(), options.get("precision")
    names: dict[str, Any] = {
        "precision": usual_precision(runs) if precise in (None, USUAL_PRECISION) else precise,
        "optimizer": options.get("optimizer", "adam"),
        "schedule": options.get("schedule", "1f1b"),
    }
    again = problems.attempt(_named, recompute_policy, options.get("recompute", "none"))
    hosted = _words(options.get("offload", ()))
    problems.texts += twice("offload", hosted)
    saved = _SAVED[options.get("regather")]
    if saved and strategy is not None and strategy.degrees.keys().isdisjoint(GATHERING):
        problems.texts.append(f"regather needs one of {', '.join(GATHERING)}, which gather inputs")
    stages = options.get("layout", AUTO)
    if strategy is not None and "pp" not in strategy.degrees:
        asked = (("layout", stages, (AUTO, "even")), ("schedule", names["schedule"], ("1f1b",)))
        problems.texts += [
            f"{name} {quote(one)} is of the stages of pp, which there is not"
            for name, one, usual in asked
            if one not in usual
        ]
    names |= {"offload": frozenset(hosted), "layout": stages, "saved": saved}
    names |= {} if problems.texts else {"recompute": again}
    training = problems.attempt(lambda: Training(**names))
    problems.refuse()
    return training


def _methods(options: Options, strategy: Strategy | None, machine: Machine | None) -> Methods:
    problems = Problems()
    roof = problems.attempt(_named, roofline, options.get("roofline", "maximum"))
    hosted = bool(_words(options.get("offload", ())))
    read = partial(_overlaps, strategy=strategy, hosted=hosted)
    overlaps = problems.attempt(_named, read, options.get("overlap", ""))
    order = _words(options.get("order", ()))
    problems.texts += [] if strategy is None else _order_problems(order, strategy)
    scattered = options.get("scattered", False)
    if scattered and strategy is not None and not {"tp", "pp"} <= set(strategy.degrees):
        problems.texts.append("scattered is about tensor-parallel ranks (tp) of stages (pp)")
    named = options["stack"] if "stack" in options else usual(machine, roof)
    runs = problems.attempt(_stack, named, machine)
    problems.refuse()
    if runs is not None and roof != MAXIMUM:
        raise InputError(
            f"roofline {roof.name!r} is not read under stack {runs.name!r}, which has rates "
            "by kind of kernel: take stack 'roofline', or leave one of them out"
        )
    return Methods(roof, overlaps=overlaps, scattered=scattered, order=tuple(order), stack=runs)


def _stack(named: str | Stack | None, machine: Machine | None) -> Stack | None:
    """Return the stack that runs; none for the efficiencies of the machine's record."""
    runs: Stack | None = _named(stack, named)
    if runs is not None and machine is not None:
        runs.check(machine)
    return runs


_SAVED = {None: None, True: Saved.SHARD, False: Saved.GATHERED}


def _words(text: str | Iterable[str]) -> list[str]:
    listed = text.split(",") if isinstance(text, str) else text
    return [name.strip() for name in listed if name.strip()]


def _order_problems(order: list[str], strategy: Strategy) -> list[str]:
    """Say what of an order is no mesh axis of a strategy, and which axes it leaves out."""
    meshes = [mesh for mesh in strategy.mesh if mesh != KEY_COPIES]
    accepted = ",".join(meshes) or "none, for the strategy has no ranks"
    return [
        *twice("order", order),
        *(
            f"order: the strategy has no mesh axis {quote(name)}: {accepted} in any order"
            for name in dict.fromkeys(order)
            if name not in meshes
        ),
        *(
            f"order: mesh axis {mesh} is missing: {accepted} in any order"
            for mesh in meshes
            if order and mesh not in order
        ),
    ]


def _overlaps(text: str, strategy: Strategy | None, *, hosted: bool) -> dict[str, Overlap]:
    """Read the overlap of every mesh axis; an axis that the strategy lacks would be unread."""
    meshes = {mesh for entry in STRATEGIES.values() for mesh in entry.meshes} | {HOST}
    problems = Problems()
    overlaps: dict[str, Overlap] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        mesh, equals, answer = (piece.strip() for piece in part.partition("="))
        if not equals:
            problems.texts.append(f"overlap {part!r}: MESH=ANSWER is accepted, as in dp=full")
        elif mesh not in meshes:
            problems.texts.append(unknown("mesh axis of overlap", mesh, meshes))
        elif mesh in overlaps:
            problems.texts.append(f"overlap of {mesh} is given twice")
        elif mesh == HOST:
            if not hosted:
                problems.texts.append(f"overlap {part!r}: nothing is offloaded to the host")
            overlaps[mesh] = problems.attempt(overlap, answer)
        elif strategy is not None and mesh not in strategy.mesh:
            problems.texts.append(f"overlap {part!r}: the strategy has no mesh axis {mesh}")
        else:
            overlaps[mesh] = problems.attempt(overlap, answer)
    problems.refuse()
    return overlaps
