"""Jobs: one value for "this model, run this way", and the questions that it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Unpack

from symbolic_cost.checking import checked
from symbolic_cost.conventions.questions import Conventions, Saved
from symbolic_cost.costs import NamedCost, named_cost
from symbolic_cost.errors import Problems, looked_up
from symbolic_cost.jobs.answers import Answer, MemoryAnswer, TimeAnswer
from symbolic_cost.jobs.batch import with_batch
from symbolic_cost.jobs.build import USUAL_PRECISION, Modelled, Options, setup
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.ledger import CostTable
from symbolic_cost.ops.derive import cost as derived
from symbolic_cost.ops.graph import ALL
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.recompute import Recompute
from symbolic_cost.parallel.states import precision
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.systems.setting import check_units
from symbolic_cost.systems.stacks import stack_name, usual, usual_attention, usual_precision


class Changes(Options, total=False):
    """What of a job can be replaced."""

    model: Modelled
    strategy: str | Strategy
    numbers: Mapping[str, int | Fraction] | None


_COLUMNS = ("flops_fwd", "flops_bwd", "params", "saved", "comm")


@checked
class Job(Setup):
    """A model, run this way; frozen, and each of its parts can be replaced.

    >>> from symbolic_cost.jobs.job import job
    >>> gpt = job("gpt3-175b", "tp=8,sp", conventions="model-flop")
    >>> gpt.table().total("flop", phase="forward") == gpt.total("flops_fwd")
    True
    >>> gpt.replace(strategy="tp=4").strategy.degree("tp")
    4
    """

    def __repr__(self) -> str:
        """Return what runs where, in a line; print shows the costs."""
        machine = "no machine" if self.machine is None else self.machine.name
        return f"<Job {self.model.name}, {str(self.strategy) or 'one rank'}, {machine}>"

    def table(self, *costs: str) -> Answer:
        """Tabulate costs per op of one rank and microbatch; the usual five unless named."""
        from symbolic_cost.jobs.tables.per_op import flat_sheet

        chosen = [named_cost(name) for name in costs or _COLUMNS]
        return Answer(self, flat_sheet(self, chosen, None), lambda: self.rows)

    def memory(self) -> MemoryAnswer:
        """Tabulate what one rank of the stage holds, and the peak of a step."""
        from symbolic_cost.jobs.tables.memory import memory_sheet

        own = self._in_precision
        return MemoryAnswer(own, memory_sheet(own), lambda: own.memory_rows)

    @property
    def _in_precision(self) -> Job:
        """The job with the bytes of its precision, which the machine must have, as for its time."""
        if self.machine is not None:
            check_units(self.machine, precision(self.training.precision))
        return replace(self, precise=True)

    def device_memory(self, view: str = "smi") -> Answer:
        """Tabulate what the fullest device shows, term by term.

        Args:
            view: up to which: "allocated" or "reserved" by the allocator, or "smi", as nvidia-smi
                shows it.

        Raises:
            InputError: no such view, a machine that is no GPU, or symbols without a number.
        """
        from symbolic_cost.jobs.device_memory import DeviceMemory, View

        own, problems = self._in_precision, Problems()
        shown = problems.attempt(looked_up, "view of memory", view, {v.value: v for v in View})
        device = problems.attempt(DeviceMemory, own)
        problems.refuse()
        sheet = device.sheet(shown)
        return Answer(own, sheet, lambda: own.memory_rows)

    def communication(self) -> Answer:
        """Tabulate what moves between ranks in one step."""
        from symbolic_cost.jobs.tables.traffic import communication_sheet

        own = replace(self, precise=True)
        return Answer(own, communication_sheet(own, per_op=False), lambda: own.rows)

    def time(self) -> TimeAnswer:
        """Time one training step on the machine.

        Raises:
            InputError: the job has no machine, or symbols have no number.
        """
        from symbolic_cost.jobs.tables.seconds import step_sheet
        from symbolic_cost.jobs.timed import Timed

        own = replace(self, precise=True)
        timed = Timed(own)
        return TimeAnswer(own, step_sheet(timed), timed.step.rows, timed)

    def total(self, cost: str | NamedCost) -> object:
        """Return a named cost of one rank and microbatch, known numbers in place.

        Raises:
            InputError: no such cost, or numbers that do not fit (positions that do not divide).
        """
        chosen = named_cost(cost) if isinstance(cost, str) else cost
        self.bound  # noqa: B018 - refuses numbers that do not fit
        return self.value(chosen.total(self.rows))

    def replace(self, **changes: Unpack[Changes]) -> Job:
        """Return the job with other options; arguments as of `job`."""
        training, methods = self.training, self.methods
        options: dict[str, object] = {
            "system": self.machine,
            "conventions": self.conventions,
            "recompute": training.recompute,
            "precision": training.precision if self.precise else None,
            "optimizer": training.optimizer,
            "schedule": training.schedule,
            "offload": training.offload,
            "attention": self.attention,
            "overlap": methods.overlaps,
            "roofline": methods.roofline,
            "stack": methods.stack,
            "scattered": methods.scattered,
            "order": methods.order,
            "regather": None if training.saved is None else training.saved is Saved.SHARD,
            "layout": training.layout,
            "stage": self.stage,
            "train": None if self.model.trains == ALL else self.model.trains,
            "global_batch": self.global_batch,
        }
        if self.global_batch is None and training.microbatches.is_Integer:
            options["microbatches"] = int(training.microbatches)
        runs = methods.stack
        if {"system", "roofline"} & set(changes) and stack_name(runs) == usual(
            self.machine, methods.roofline
        ):
            del options["stack"]  # nobody said it
        usually = "stack" in changes and self.attention == usual_attention(runs)
        if usually or not self.running.cores:
            del options["attention"]
        if self.precise and training.precision == usual_precision(runs):
            options["precision"] = USUAL_PRECISION
        places = {"model": self.model, "strategy": self.strategy, "numbers": self.numbers}
        return job(**{**places, **options, **changes})  # type: ignore[arg-type]  # job checks them

    def bind(self, **numbers: int | Fraction) -> Job:
        """Bind symbols or degrees, as in job.bind(l=32768, tp=8), and return the job.

        A global batch stays what it is: with b=2 it makes half the microbatches.
        """
        joined: Mapping[str, int | Fraction] = {**self.numbers, **numbers}
        bound, count = replace(self, numbers=joined), self.training.microbatches
        if self.global_batch is not None:
            return with_batch(bound, self.global_batch, None)
        return with_batch(bound, None, int(count)) if count.is_Integer else bound


@checked
def job(
    model: Modelled,
    strategy: str | Strategy = "",
    numbers: Mapping[str, int | Fraction] | None = None,
    **options: Unpack[Options],
) -> Job:
    """Return a job: this model, run this way.

    `.total(cost)` is one cost of one rank and microbatch. The answers `.table()`, `.memory()`,
    `.communication()` and `.time()` are tables with `.total(name)`, `.frame()` and `.latex()`.

    >>> import symbolic_cost as sc
    >>> own = sc.job("llama-3-8b", "tp=8,sp,dp=2", {"b": 1}, system="h100", global_batch=32)
    >>> own.total("params"), own.memory().peak  # elements, bytes
    (1004015616, 24388726784)
    >>> params = sc.job("gpt", "tp").total("params")  # sizes and degrees stay symbols
    >>> sc.derivative(params, "n_layers")
    (4*e**2 + 2*e*f + 6*e*m1 + 3*e + f)/m1

    Args:
        model: name, path of a config.json or of a launch file, family or model. A launch file
            says how it is run, too, where the arguments do not.
        strategy: as "tp=8,sp,pp=8,dp=16,zero=1"; a name without a number keeps its symbol.
        numbers: by symbol name; b is the microbatch of one rank. What has none stays a symbol.
        **options: system, conventions, recompute, precision, optimizer, schedule, microbatches,
            global_batch, offload, attention, overlap, roofline, stack, layout, scattered, stage,
            order, regather, train; what each is stands in `jobs.build.Options`.

    Raises:
        InputError: every problem of every option.
    """
    own = setup(model, strategy, numbers, **options)
    return Job(**{name: getattr(own, name) for name in Setup.__dataclass_fields__})


def cost(
    model: Modelled,
    conventions: str | Conventions = "standard",
    strategy: str | Strategy | Placement = "",
    recompute: str | Recompute = "none",
    *,
    attention: str | None = None,
    stage: str = "first",
) -> CostTable:
    """Derive every cost of one rank and microbatch as rows.

    Args:
        model: name, path of a config.json, family or model.
        conventions: of counting, by name or as an object.
        strategy: as of `job`, b being the microbatch of one rank; or a placement of axes by name,
            which splits the sizes of the model as they are.
        recompute: policy, by name or as an object.
        attention: kernel of attention cores, "flash" or "eager"; as declared unless given.
        stage: of the pipeline.

    Raises:
        InputError: every problem of every option.
    """
    if isinstance(strategy, Placement):
        placed = setup(model, conventions=conventions, recompute=recompute, attention=attention)
        own = placed.running.model
        return derived(own, placed.conventions, strategy, placed.training.recompute)
    whole = setup(
        model,
        strategy,
        conventions=conventions,
        recompute=recompute,
        attention=attention,
        stage=stage,
    )
    return whole.rows_under(whole.strategy)
