"""Every named model: a family whose sizes are symbols, and presets that bind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from sympy import Expr

from symbolic_cost.errors import looked_up
from symbolic_cost.models.cnn import CNN, NETWORKS
from symbolic_cost.models.config import from_config
from symbolic_cost.models.decoder_families import DECODERS, symbolic
from symbolic_cost.models.gpt import GPT
from symbolic_cost.models.other_families import OTHER_FAMILIES
from symbolic_cost.models.published_size import PublishedSize, published
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import P


@dataclass(frozen=True, slots=True)
class Preset:
    """One named model.

    Args:
        name: under which it is found.
        family: whose declaration it uses.
        build: declares the model for a shape, sizes as symbols.
        bindings: numbers of the preset; empty for a family.
        note: what a user should know of its sizes.
    """

    name: str
    family: str
    build: Callable[[Shape], Model]
    bindings: Mapping[str, int] = field(default_factory=dict)
    source: str = "definition"
    note: str = ""

    def model(self, shape: Shape = TRAINING) -> Model:
        """Declare the model, carrying the preset's name and numbers."""
        return replace(
            self.build(shape),
            name=self.name,
            bindings=dict(self.bindings),
            source=self.source,
            family=self.family,
        )


def _gpt(shape: Shape, places: Expr | None = P) -> Model:
    return GPT(b=shape.b, l=shape.l, P=places).model()


def _cnn(network: CNN, shape: Shape) -> Model:
    return replace(network, b=shape.b).model()


def _sized(size: PublishedSize, build: Callable[[Shape], Model]) -> Preset:
    return Preset(size.name, size.family, build, size.bindings(), size.source, size.note)


_PRESETS = (
    Preset("gpt", "gpt", partial(_gpt, places=None), source="radford-2019"),
    *(_sized(size, _gpt) for size in published("gpt")),
    *(Preset(name, name, partial(symbolic, name)) for name in DECODERS if name != "gpt2"),
    *(_sized(size, partial(symbolic, size.family)) for size in published("decoders")),
    *(Preset(name, name, build, source=source) for name, (source, build) in OTHER_FAMILIES.items()),
    *(_sized(size, OTHER_FAMILIES[size.family][1]) for size in published("others")),
    *(
        Preset(name, "cnn", partial(_cnn, network), {"b": 1}, network.source)
        for name, network in NETWORKS.items()
    ),
)

CATALOG: dict[str, Preset] = {preset.name: preset for preset in _PRESETS}
"""Every preset by name."""


def model(name: str) -> Model:
    """Return a named model, or that of a config.json by its path.

    Raises:
        UnknownNameError: no such model; the closest are offered.
        InputError: every problem of the configuration.
    """
    if name.endswith(".json"):
        return replace(from_config(name), name=name)
    return looked_up("model", name, CATALOG).model()
