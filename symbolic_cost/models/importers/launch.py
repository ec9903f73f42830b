"""From launch files to a recipe: formats told apart by their keys, several files joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError
from symbolic_cost.models.configfile import LARGEST_FILE, document
from symbolic_cost.models.fields import is_size, shortened
from symbolic_cost.models.importers import script, tree
from symbolic_cost.models.importers.formats import MEGATRON, PUBLISHED, TREES, Format
from symbolic_cost.models.importers.recipe import Entry, Recipe

_SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")
_VOCABULARY_MULTIPLE = 128
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
        try:
            known, entries = _read(path)
            if known is PUBLISHED:
                draft.take(document(path).values)
                continue
            draft.add(known, entries)
        except InputError as error:
            draft.problems += error.problems
    if not paths:
        draft.problems.append("no file is given: name a script, a JSON or a YAML file")
    if draft.problems:
        raise InputError(draft.problems)
    return draft.recipe()


def _read(path: Path) -> tuple[Format, tuple[Entry, ...]]:
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise InputError(f"{path.name}: {size} bytes: at most {LARGEST_FILE} are read")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path.name}: not a text file in UTF-8") from None
    if path.suffix in _SCRIPTS or text.startswith("#!"):
        return _recognised(path.name, script.entries(text, path.name), (MEGATRON,))
    return _recognised(path.name, tree.entries(text, path.name), (*TREES, PUBLISHED))


def _recognised(
    name: str, entries: tuple[Entry, ...], formats: tuple[Format, ...]
) -> tuple[Format, tuple[Entry, ...]]:
    keys = {entry.key for entry in entries}
    for known in formats:
        if keys & set(known.marks):
            return known, entries
    marks = "; ".join(f"{known.name}: {', '.join(known.marks)}" for known in formats)
    raise InputError(f"{name}: of no known format. Keys that are looked for: {marks}")


@dataclass
class _Draft:
    """A recipe in the making: values by target, and the entry behind each."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Entry] = field(default_factory=dict)
    unread: list[Entry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def take(self, config: Mapping[str, Any]) -> None:
        """Take a published configuration as it is."""
        self.values |= {f"config.{key}": value for key, value in config.items()}

    def add(self, known: Format, entries: tuple[Entry, ...]) -> None:
        """Take what a format understands of some entries, then what it implies."""
        for entry in entries:
            target = known.keys.get(entry.key)
            if target is None:
                self.unread.append(entry)
            elif entry.value not in (None, "auto"):
                self._set(target, entry)
        for name, value in known.implied.items():
            self.values.setdefault(f"config.{name}", value)

    def _set(self, target: str, entry: Entry) -> None:
        value = entry.value
        if value is True and target in _FROM_TRUTH:
            value = _FROM_TRUTH[target]
        before = self.origins.get(target)
        if before is not None and self.values[target] != value:
            self.problems.append(
                f"{entry.where}: {shortened(value)} contradicts {shortened(self.values[target])} "
                f"of {before.where}"
            )
        if target.startswith("degrees.") and not (is_size(value) or value in (0, False)):
            self.problems.append(
                f"{entry.where}: {shortened(value)} is not accepted: it must be a positive integer"
            )
        self.values[target], self.origins[target] = value, entry

    def part(self, name: str) -> dict[str, Any]:
        """Return the values below a name."""
        prefix = f"{name}."
        return {
            target.removeprefix(prefix): value
            for target, value in self.values.items()
            if target.startswith(prefix)
        }

    def recipe(self) -> Recipe:
        """Complete what follows from other values."""
        config, run = self.part("config"), self.part("run")
        degrees = {name: int(degree) for name, degree in self.part("degrees").items()}
        switches = tuple(n for n, value in self.part("switches").items() if value in _SWITCHED_ON)
        if is_size(run.get("nodes")) and is_size(run.get("ranks_per_node")):
            run.setdefault("ranks", run["nodes"] * run["ranks_per_node"])
        if config.keys() <= {"model_type", "vocab_size", "position_embedding", "bias", "untied"}:
            config = {}
        if config.get("model_type") == "megatron":
            _complete(config, run, degrees.get("tp", 1))
        return Recipe(config, degrees, switches, run, self.origins, tuple(self.unread))


def _complete(config: dict[str, Any], run: Mapping[str, Any], tp: int) -> None:
    """Pad the vocabulary as Megatron does, and take the sequence for missing positions."""
    if is_size(run.get("sequence")):
        config.setdefault("max_position_embeddings", run["sequence"])
    multiple = run.get("vocab_multiple", _VOCABULARY_MULTIPLE) * tp
    if is_size(config.get("vocab_size")) and is_size(multiple):
        config["vocab_size"] = -(-config["vocab_size"] // multiple) * multiple
