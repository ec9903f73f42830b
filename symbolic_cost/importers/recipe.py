"""What a launch file says: a model, a strategy and a run, each value with where it stands."""

from collections.abc import Mapping
from dataclasses import field, replace
from math import prod
from typing import Any

from symbolic_cost.errors import InputError, quote
from symbolic_cost.models.config import from_config
from symbolic_cost.models.configfile import Document
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.catalogue import DATA_AXES
from symbolic_cost.records import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting of a file.

    Args:
        key: as written, dotted where the file nests.
        line: where it stands, from 1.
        branch: where the branch of a script begins in which it stands, if that is not decided.
    """

    key: str
    value: Any
    line: int
    file: str
    branch: str = ""

    @property
    def where(self) -> str:
        """File, line and key, as errors name them."""
        return f"{self.file}: line {self.line}, key {quote(self.key)}"


@dataclass(frozen=True)
class Recipe:
    """A model, how it is distributed and how it is run.

    Args:
        config: the model, as a config.json would say it.
        degrees: ranks by strategy name, and the ZeRO level.
        switches: strategies without a degree (sp).
        run: microbatch, global batch, sequence length, precision, recomputation, ranks.
        origins: the entry behind every value; what a format implies has none.
        unread: entries that were not used.
        open: keys of those of which it is not known that they change no cost.
        notes: what is taken where the file is silent, or is not known of what it says.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    degrees: Mapping[str, int] = field(default_factory=dict)
    switches: tuple[str, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, Entry] = field(default_factory=dict)
    unread: tuple[Entry, ...] = ()
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def strategy(self) -> str:
        """The strategy as it is written on the command line: "tp=8,sp,pp=4,dp=16,zero=1"."""
        degrees = {name: self.degrees[name] for name in _ORDER if self.degrees.get(name, 1) != 1}
        parts = [f"{name}={degree}" for name, degree in degrees.items()]
        place = 1 if "tp" in degrees else 0
        parts[place:place] = self.switches if "tp" in degrees else ()
        ranks, zero = self.data_parallel, self.degrees.get("zero", 0)
        copies = self.degrees.get("replicas", 1)
        among_sequences = not degrees.keys().isdisjoint(DATA_AXES)
        if ranks == 1 and not among_sequences:  # copies of what is whole
            ranks, copies, zero = copies, 1, 0
        distributed = bool(self.degrees or self.run) if ranks is None else ranks * copies > 1
        if distributed:
            parts.append("dp" if ranks is None else f"dp={ranks}")
            parts += [f"replicas={copies}"] if copies > 1 else []
        if zero and (distributed or among_sequences):
            parts.append(f"zero={zero}")
            parts += ["reshard=1"] if self.degrees.get("reshard") else []
        return ",".join(parts)

    @property
    def data_parallel(self) -> int | None:
        """Data-parallel degree: as given, or what the other degrees leave of the ranks, or None.

        Of ranks that keep copies of the same shards one is counted.

        Raises:
            InputError: the ranks are not a multiple of the other degrees.
        """
        ranks: int | None = self.run.get("ranks")
        if "dp" in self.degrees or ranks is None:
            return self.degrees.get("dp")
        others = prod(self.degrees.get(name, 1) for name in MODEL_RANKS)
        if ranks % others:
            raise InputError(f"{ranks} ranks are not a multiple of tp x pp x cp = {others}")
        return ranks // others // self.degrees.get("replicas", 1)

    def model(self, shape: Shape = TRAINING) -> Model:
        """Declare the model; where no vocabulary is named, V stays a symbol.

        Raises:
            InputError: the files hold no model, or one that is refused.
        """
        if not self.config:
            raise InputError("no model: a strategy alone was imported; add the file of the model")
        places = {
            target.removeprefix("config."): entry.where for target, entry in self.origins.items()
        }
        known = "vocab_size" in self.config
        config = self.config if known else {**self.config, "vocab_size": 1}
        model = from_config(Document(_NAME, config, places=places), shape)
        bindings = {name: size for name, size in model.bindings.items() if known or name != "V"}
        return replace(model, bindings=bindings)


_NAME = "launch files"


MODEL_RANKS = ("tp", "pp", "cp", "ring", "ulysses")
"""Names of degrees that together with data-parallel ranks make all ranks."""

_ORDER = ("tp", "cp", "ring", "ulysses", "ep", "pp")
