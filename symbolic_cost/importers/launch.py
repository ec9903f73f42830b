"""From launch files to a recipe: formats told apart by their keys, several files joined."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from math import prod
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError, quote
from symbolic_cost.importers import script, tree
from symbolic_cost.importers.files import SCRIPTS
from symbolic_cost.importers.formats import (
    DEEPSPEED,
    MEGATRON,
    PUBLISHED,
    TORCHTITAN,
    TREES,
    VLLM,
    Format,
    recognised,
)
from symbolic_cost.importers.meaning import COMPLETIONS
from symbolic_cost.importers.quotes import check_quotes
from symbolic_cost.importers.recipe import MODEL_RANKS, Entry, Recipe
from symbolic_cost.importers.tuning import base
from symbolic_cost.models.configfile import LARGEST_FILE, Document
from symbolic_cost.models.fields import is_size
from symbolic_cost.models.sources import document
from symbolic_cost.reading import line_number, package_data, read_text
from symbolic_cost.records import dataclass

_SHARDING = (("dp", None), ("cp", 1))
"""Degrees of torchtitan whose ranks keep shards, with what they are where nothing is said."""

_OFF = (None, False, 0, "", "none", "null", "no", "false", "False", "None", "auto")
_SWITCHED_ON = (True, "REDUCE_SCATTER", "reduce_scatter")
_FROM_TRUTH: Mapping[str, Any] = {"degrees.zero": 1, "run.recompute": "selective"}


def recipe(*paths: str | Path) -> Recipe:
    """Read one or several launch files: shell scripts of Megatron-LM, and JSON or YAML files.

    Args:
        paths: of the files; a model and its strategy may stand in different ones.

    Raises:
        InputError: every file that cannot be read or understood, and settings that contradict.
    """
    draft = _Draft()
    for path in map(Path, paths):
        draft.folders[path.name] = path.parent
        try:
            known, entries = _read(path)
            if known is PUBLISHED:
                draft.take(document(path))
                continue
            draft.add(known, entries)
        except InputError as error:
            draft.problems += error.problems
    if not paths:
        draft.problems.append("no file is given: name a script, a JSON or a YAML file")
    twice = [path.name for path, times in Counter(map(Path, paths)).items() if times > 1]
    draft.problems += [f"{name}: is given more than once" for name in twice]
    draft.complete()
    draft.problems = draft.problems or draft.contradictions()
    if draft.problems:
        raise InputError(draft.problems)
    return draft.recipe()


def _read(path: Path) -> tuple[Format, tuple[Entry, ...]]:
    text = read_text(path, LARGEST_FILE, path.name or str(path))  # "." has no name
    if path.suffix in SCRIPTS or text.startswith("#!"):
        check_quotes(text, path.name)
        return recognised(path.name, script.entries(text, path), (MEGATRON,))
    published = (PUBLISHED,) if path.suffix == ".json" else ()  # others may name a class so
    return recognised(path.name, tree.entries(text, path.name), (*TREES, *published))


def _accepted(target: str) -> tuple[Callable[[object], bool], str] | None:
    """Return what values a target takes, and how a message says it; None if any."""
    if target == "degrees.zero":
        return (lambda value: isinstance(value, int) and 0 <= value <= 3), "a stage from 0 to 3"  # noqa: PLR2004 - stages
    if target.startswith("degrees.") or target in _COUNTS:
        return is_size, "a positive integer"
    if target == "switches.sp":
        return (lambda value: isinstance(value, bool | str)), "true or false"
    return None


_COUNTS = tuple(
    f"run.{name}"
    for name in (
        *("vocab_multiple", "micro_batch", "global_batch", "sequence", "microbatches"),
        *("layers_per_chunk", "chunks", "ranks", "ranks_per_node", "nodes"),
    )
)
_LEFT_OPEN = ("run.nodes", "run.ranks_per_node", "run.global_batch", "run.micro_batch")


@dataclass
class _Draft:
    """A recipe in the making: values by target, and the entry behind each."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Entry] = field(default_factory=dict)
    unread: list[Entry] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    formats: dict[str, None] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def take(self, published: Document) -> None:
        """Take a published configuration as it is."""
        for key, value in published.values.items():
            line = line_number(published.text, key) or 1
            entry = Entry(key, value, line, published.name)
            self._contradicts(f"config.{key}", entry)
            self.values[f"config.{key}"], self.origins[f"config.{key}"] = value, entry

    def add(self, known: Format, entries: tuple[Entry, ...]) -> None:
        """Take what a format understands of some entries, then what it implies."""
        self.formats[known.name] = None
        for entry in entries:
            target = known.keys.get(entry.key)
            meant = known.words.get(entry.key, {}).get(str(entry.value), entry.value)
            if entry.key in known.refused:
                if meant is True or meant not in _OFF:
                    self.problems.append(
                        f"{entry.where}: {quote(entry.value)} is not read: "
                        f"{known.refused[entry.key]}"
                    )
            elif target is None:
                self.unread.append(entry)
                usual = entry.value is None or (entry.key in known.words and meant in _OFF)
                self.open += [] if usual or entry.key.startswith(known.free) else [entry.key]
            elif entry.branch and not self._said_outside(entry, entries):
                self.problems.append(
                    f"{entry.where}: stands in the branch of {entry.branch}, and the script does "
                    "not say whether it runs: leave in it what does"
                )
            elif meant not in (None, "auto"):
                self._set(target, replace(entry, value=meant))
        if known is VLLM:
            self.values.setdefault("degrees.dp", 1)
        if known is TORCHTITAN:
            self._titan({entry.key: entry for entry in entries})
        for name, value in known.implied.items():
            self.values.setdefault(f"config.{name}", value)

    @staticmethod
    def _said_outside(entry: Entry, entries: tuple[Entry, ...]) -> bool:
        same = (other for other in entries if (other.key, other.value) == (entry.key, entry.value))
        return any(not other.branch for other in same)

    def _set(self, target: str, entry: Entry) -> None:
        value = entry.value
        if value is True and target in _FROM_TRUTH:
            value = _FROM_TRUTH[target]
        self._contradicts(target, replace(entry, value=value))
        accepted = _accepted(target)
        unset = value == "" and entry.key.startswith("--")  # of a script
        if unset and target in _LEFT_OPEN:  # a variable of the cluster's own
            self.unread.append(entry)
            return
        if unset or (accepted is not None and not accepted[0](value)):
            more = f": it must be {accepted[1]}" if accepted else ""
            more += "; the script sets no such variable" if unset else ""
            self.problems.append(f"{entry.where}: {quote(value)} is not accepted{more}")
        self.values[target], self.origins[target] = value, entry

    def _contradicts(self, target: str, entry: Entry) -> None:
        """Note that another file says otherwise."""
        before = self.origins.get(target)
        if before is not None and self.values[target] != entry.value:
            self.problems.append(
                f"{entry.where}: {quote(entry.value)} contradicts {quote(self.values[target])} "
                f"of {before.where}"
            )

    def _titan(self, entries: Mapping[str, Entry]) -> None:
        """Spell out what torchtitan names: a model by its flavour, FSDP, sequence parallelism."""
        flavors = package_data("importers/flavors.toml")
        name, flavor = (entries.get(key) for key in ("model.name", "model.flavor"))
        self.values.pop("config.flavor", None)
        if name is not None and flavor is not None:
            config = flavors.get(f"{name.value} {flavor.value}")
            if config is None:
                self.problems.append(
                    f"{flavor.where}: {quote(f'{name.value} {flavor.value}')} is not known: "
                    f"{', '.join(flavors)} are read"
                )
            self.values |= {f"config.{key}": value for key, value in (config or {}).items()}
        shards = (self.values.get(f"degrees.{name}", usual) for name, usual in _SHARDING)
        if any(ranks != 1 for ranks in shards):
            self.values["degrees.zero"] = 3
        if self.values.get("degrees.tp", 1) != 1:
            self.values["switches.sp"] = True
        stages = entries.get("parallelism.pipeline_parallel_degree")
        if stages is not None and stages.value != 1 and is_size(self.values.get("run.micro_batch")):
            each = entries.get("parallelism.pipeline_parallel_microbatch_size")
            size = 1 if each is None else each.value
            if not is_size(size) or self.values["run.micro_batch"] % size:
                said = stages.where if each is None else each.where
                self.problems.append(f"{said}: {quote(size)}: a divisor of the batch is read")
                return
            self.values["run.microbatches"] = self.values["run.micro_batch"] // size
            self.values["run.micro_batch"] = size

    def complete(self) -> None:
        """Decide what depends on several settings of a framework, and on its defaults."""

        def refuse(target: str, problem: str) -> None:
            entry = self.origins.get(target)
            said = f"{entry.where}: {quote(entry.value)} is not accepted: " if entry else ""
            self.problems.append(f"{said}{problem}")

        named = self.origins.get("said.base")
        if named is not None:
            own = [t for t, one in self.origins.items() if one.file == named.file]
            for target in (t for t in own if t.startswith("config.")):
                refuse(target, f"{named.value} says the model: leave one of the two out")
            base(self.values, self.folders[named.file], refuse)
        beside = self.origins.get("said.deepspeed")
        if beside is not None and isinstance(beside.value, str):  # the name of a file
            self._read_beside(beside, refuse)
        for name in self.formats if not self.problems else ():
            if name in COMPLETIONS:
                COMPLETIONS[name](self.values, refuse)
        if "degrees.cp" in self.origins:
            for name in ("ring", "ulysses"):
                self.origins.setdefault(f"degrees.{name}", self.origins["degrees.cp"])

    def _read_beside(self, named: Entry, refuse: Callable[[str, str], None]) -> None:
        """Read the file that a setting names, unless one of its format is given."""
        if DEEPSPEED.name in self.formats:
            return
        path = self.folders[named.file] / named.value
        if not os.path.isfile(path):  # noqa: PTH113 - Path raises for long names
            refuse("said.deepspeed", "no such file lies beside: give it as well")
            return
        try:
            self.add(*_read(path))
        except InputError as error:
            self.problems += error.problems

    def part(self, name: str) -> dict[str, Any]:
        """Return the values below a name."""
        prefix = f"{name}."
        return {
            target.removeprefix(prefix): value
            for target, value in self.values.items()
            if target.startswith(prefix)
        }

    def contradictions(self) -> list[str]:
        """Say which numbers of ranks and batches do not go together, and where they stand."""
        degrees, run = self.part("degrees"), self.part("run")
        if is_size(run.get("nodes")) and is_size(run.get("ranks_per_node")):
            run.setdefault("ranks", run["nodes"] * run["ranks_per_node"])
        others = prod(degrees.get(name, 1) for name in MODEL_RANKS)
        ranks, data, copies = run.get("ranks"), degrees.get("dp"), degrees.get("replicas", 1)
        data = data and data * copies
        problems = []
        if ranks is not None and ranks % others:
            problems.append(f"{ranks} ranks are not a multiple of tp x pp x cp = {others}")
        elif ranks is not None and data is not None and ranks != others * data:
            problems.append(f"{ranks} ranks are not tp x pp x cp x dp = {others * data}")
        elif ranks is not None:
            data = ranks // others
        if data is not None and data % copies:
            problems.append(f"{data} data-parallel ranks are not a multiple of {copies} replicas")
        batch, micro = run.get("global_batch"), run.get("micro_batch")
        count = run.get("microbatches")
        if batch is not None and micro is not None and data is not None:
            said = f"{micro} sequences x {data} data-parallel ranks"
            if batch % (micro * data):
                problems.append(f"a global batch of {batch} is not a multiple of {said}")
            elif count is not None and batch != micro * data * count:
                problems.append(f"a global batch of {batch} is not {said} x {count} microbatches")
        asked = ("degrees.tp", "degrees.pp", "degrees.dp", "run.ranks", "run.global_batch")
        origins = [self.origins[name].where for name in asked if name in self.origins]
        return [f"{'; '.join(origins[:3])}: {problem}" for problem in problems]

    def recipe(self) -> Recipe:
        config, run = self.part("config"), self.part("run")
        degrees = {name: int(degree) for name, degree in self.part("degrees").items()}
        switches = tuple(n for n, value in self.part("switches").items() if value in _SWITCHED_ON)
        if is_size(run.get("nodes")) and is_size(run.get("ranks_per_node")):
            run.setdefault("ranks", run["nodes"] * run["ranks_per_node"])
        if config.keys() <= {"model_type", "vocab_size", "position_embedding", "bias", "untied"}:
            config = {}
        return Recipe(
            config,
            degrees,
            switches,
            run,
            self.origins,
            tuple(self.unread),
            tuple(self.open),
            tuple(self.part("note").values()),
        )
