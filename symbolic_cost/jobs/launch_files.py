"""Jobs and counts of launch files: what the file says of a run, where the user says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import InputError, quote
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.records import dataclass
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.overlap import Overlap, overlaps
from symbolic_cost.systems.records import find_machine
from symbolic_cost.systems.rooflines import MAXIMUM
from symbolic_cost.systems.stacks import ROOFLINE, Stack, stack, usual

if TYPE_CHECKING:
    from symbolic_cost.importers.recipe import Recipe

_PRECISIONS: Mapping[str, tuple[object, ...]] = {
    "bf16-mixed": ("bf16", "bf16-mixed", "bfloat16"),
    "fp16-mixed": ("fp16", "16", 16, "16-mixed", "float16"),
    "fp32": ("fp32", "32", 32, "float32"),
}
_SAME = ("optimizer", "offload", "attention", "schedule", "layout", "train")
"""Options that importers say as `job` takes them."""

_OF_STAGES = ("schedule", "layout")
"""Those that go with the stages of the file's strategy."""

_CHOSEN = {
    "micro_batch": "b",
    "microbatches": "M",
    "layers_per_chunk": "layers per chunk",
    "chunks": "v",
    "schedule": "schedule",
    "layout": "layout",
    "recompute": "recompute",
    "offload": "offload",
    "overlap": "overlap",
    "global_batch": "global batch",
}
"""What of a run a search chooses or is asked with, as `Recipe.run` names it, and as a note does."""

_POLICIES: Mapping[str, tuple[object, ...]] = {
    "selective": ("selective", "attn_only"),
    "full": ("full",),
    "none": ("none",),
}


@dataclass(frozen=True)
class Launched:
    """A run as a launch file describes it."""

    path: str

    @cached_property
    def recipe(self) -> Recipe:
        """What the file says."""
        from symbolic_cost.importers.launch import recipe

        return recipe(self.path)

    def model(self, shape: Shape = TRAINING) -> Model:
        """Declare the model; a vocabulary that the file leaves out stays the symbol V."""
        keys = ", ".join(dict.fromkeys(self.recipe.open))
        unread = (f"not read of {Path(self.path).name}: {keys}",) if keys else ()
        notes = (*unread, *self.recipe.notes)
        return replace(self.recipe.model(shape), name=self.path, notes=notes)

    def numbers(
        self, written: Mapping[str, int | Fraction], schedule: object = None, *, staged: bool = True
    ) -> dict[str, int | Fraction]:
        """Return microbatch, length and chunks of the file, and the numbers of the user.

        Args:
            written: by the user.
            schedule: by the user as well; one without chunks has none of the file's.
            staged: whether the strategy is the file's, or has stages as well.
        """
        run = self.recipe.run
        chunks = self._chunks if staged and schedule in (None, "interleaved") else None
        sizes = {"b": run.get("micro_batch"), "l": run.get("sequence"), "v": chunks}
        return {name: size for name, size in sizes.items() if size is not None} | {**written}

    def options(
        self,
        written: Mapping[str, Any],
        numbers: Mapping[str, int | Fraction],
        *,
        staged: bool = True,
    ) -> dict[str, Any]:
        """Return options of `job`: those of the user, and of the file where they say nothing.

        Args:
            written: by the user.
            numbers: by symbol name; M says the microbatches, so that a batch is not taken.
            staged: whether the strategy is the file's, or has stages as well.
        """
        run = self.recipe.run
        taken = _SAME if staged else [name for name in _SAME if name not in _OF_STAGES]
        options = {name: run[name] for name in taken if name in run}
        if written.get("precision") is None:
            options["precision"] = self._precision
        if written.get("recompute") is None:
            options["recompute"] = self._recompute
        unsaid = written.get("stack") is None and written.get("roofline") in (None, MAXIMUM.name)
        if unsaid and "stack" in run and self._runs_on(written.get("system")):
            options["stack"] = run["stack"]
        if staged and self._chunks is not None:
            options["schedule"] = "interleaved"
        batches = {"global_batch", "microbatches"}
        if "M" not in numbers and not any(written.get(name) is not None for name in batches):
            options |= {name: run[name] for name in batches if name in run}
        return options | {name: one for name, one in written.items() if one is not None}

    @cached_property
    def whole(self) -> Launched:
        """The same run before it is distributed: one rank, nothing of what a search chooses."""
        run = {name: one for name, one in self.recipe.run.items() if name not in _CHOSEN}
        own = Launched(self.path)
        bare = replace(self.recipe, degrees={}, switches=(), run=run | {"ranks": 1})
        own.__dict__["recipe"] = bare
        return own

    @property
    def ranks(self) -> int | None:
        """Ranks that the file says, or the product of its degrees where these say all of them."""
        recipe = self.recipe
        data = recipe.data_parallel
        if "ranks" in recipe.run or data is None:
            return recipe.run.get("ranks")
        from symbolic_cost.importers.recipe import MODEL_RANKS

        others = prod(recipe.degrees.get(name, 1) for name in (*MODEL_RANKS, "replicas"))
        return data * others

    @property
    def global_batch(self) -> int | None:
        """Sequences of a step that the file says, or that its microbatches make together."""
        recipe, run = self.recipe, self.recipe.run
        data = recipe.data_parallel
        counts = (run.get("micro_batch"), run.get("microbatches"), data)
        if "global_batch" in run or None in counts:
            return run.get("global_batch")
        return prod(counts) * recipe.degrees.get("replicas", 1)  # type: ignore[arg-type]  # known

    @property
    def dropped(self) -> str:
        """What `whole` leaves out, as a note says it; empty where the file says none of it."""
        recipe = self.recipe
        said = [
            f"{name} {recipe.run[key]}"
            for key, name in _CHOSEN.items()
            if recipe.run.get(key) and key != "global_batch"
        ]
        strategy = [f"strategy {recipe.strategy}"] if recipe.strategy else []
        listed = ", ".join(strategy + said)
        return listed and f"a search chooses what {self.path} says of {listed}"

    def overlaps(self, strategy: Strategy, runs: Stack | None) -> dict[str, Overlap]:
        """Return what the file hides of communication where its own software runs."""
        run = self.recipe.run
        own = stack(run["stack"]) if "stack" in run else None
        if runs is None or own is None or set(runs.family).isdisjoint(own.family):
            return {}
        said = overlaps(run.get("overlap", ""))
        return {mesh: answer for mesh, answer in said.items() if mesh in strategy.mesh}

    def _runs_on(self, machine: str | Machine | None) -> bool:
        """Tell whether the software of the file has kernels on a machine, if one is said."""
        try:
            known = find_machine(machine) if isinstance(machine, str) else machine
            runs = stack(self.recipe.run["stack"])
            if known is not None and runs is not None:
                runs.check(known)
        except InputError:  # told by who reads the machine
            return False
        return known is None or usual(known) != ROOFLINE

    @property
    def _precision(self) -> str:
        """What it computes with: single precision unless it says otherwise."""
        run = self.recipe.run
        if run.get("policy") == "auto":
            raise InputError(f"{self.path} leaves the precision open (auto): say precision=")
        flags = (name for name in ("bf16", "fp16") if run.get(name))
        said = run.get("precision", next(flags, "fp32"))
        return run.get("policy") or _policy(_PRECISIONS, said, "precision")

    @property
    def _recompute(self) -> str:
        """What backward runs again, by the names of a framework or of this library."""
        said = self.recipe.run.get("recompute", "none")
        try:
            return recompute_policy(said).name if isinstance(said, str) else said
        except InputError:
            return _policy(_POLICIES, said, "recompute policy")

    @property
    def _chunks(self) -> int | None:
        """Model chunks per stage: 96 layers, 8 stages and 3 layers per chunk make 4."""
        run = self.recipe.run
        per_chunk = run.get("layers_per_chunk")
        if per_chunk is None:
            return int(run["chunks"]) if "chunks" in run else None
        layers = self.recipe.config.get("num_hidden_layers", 0)
        stages = self.recipe.degrees.get("pp", 1)
        if layers % (stages * per_chunk):
            raise InputError(
                f"{layers} layers are not a multiple of {stages} stages x {per_chunk} per chunk"
            )
        return int(layers // (stages * per_chunk))


def launched(model: object) -> Launched | None:
    """Return the run of a launch file; None for all other models."""
    if isinstance(model, Launched):
        return model
    if not isinstance(model, str) or not Path(model).suffix:
        return None
    from symbolic_cost.importers.launch import is_launch_file

    return Launched(model) if is_launch_file(model) else None


def strategy_of_file(model: str) -> str:
    """Return the strategy of a launch file; none of other models, or of one that is refused."""
    file = launched(model)
    try:
        return "" if file is None else file.recipe.strategy
    except InputError:  # told by who makes the job
        return ""


def counted_length(source: object) -> int:
    """Return the tokens of a sequence of a launch file; those that are counted without one."""
    file = launched(str(source) if isinstance(source, Path) else source)
    own = None if file is None else file.recipe.run.get("sequence")
    return _COUNTED if own is None else int(own)


_COUNTED = 1024


def count(
    source: str | Path | Mapping[str, Any],
    batch: int = 1,
    seq: int | None = None,
    conventions: str | Conventions = "torch-flop-counter",
    image_tokens: int = 0,
    *,
    train: str = "all",
) -> dict[str, int | str | None]:
    """Count a model; see `symbolic_cost.models.count.count`.

    Args:
        source: a config.json, the mapping that it holds, a launch file, or the name of a model.
        batch: sequences.
        seq: tokens of each sequence; those of a launch file or 1024 unless given.
        conventions: of counting, or the name of a preset.
        image_tokens: of each sequence, those that stand for images.
        train: which weights are trained.

    Raises:
        InputError: every problem of the configuration, or a batch or length that is no count.
    """
    from symbolic_cost.models import count as counts

    file = launched(str(source) if isinstance(source, Path) else source)
    config = source if file is None else file.recipe.config
    seq = counted_length(source) if seq is None else seq
    return counts.count(config, batch, seq, conventions, image_tokens, train=train)


def _policy(names: Mapping[str, tuple[object, ...]], word: object, what: str) -> str:
    """Return the name of a policy by the word of a framework."""
    for name, words in names.items():
        if word in words:
            return name
    accepted = ", ".join(str(one) for words in names.values() for one in words)
    raise InputError(
        f"{what} {quote(word)} of a launch file: {accepted} are understood; what is said beside "
        "the file has the last word"
    )
