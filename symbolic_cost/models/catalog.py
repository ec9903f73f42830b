"""Every named model: a family whose sizes are symbols, and presets that bind them."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module

from symbolic_cost.errors import InputError, UnknownNameError, quote, unknown
from symbolic_cost.models.configfile import is_elsewhere, is_folder
from symbolic_cost.models.published_size import PublishedSize, configured, published
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.models.traced import is_graph
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Preset:
    """One named model.

    Args:
        name: under which it is found.
        family: whose declaration it uses.
        build: declares the model for a shape, sizes as symbols.
        bindings: numbers of the preset; empty for a family.
        note: what a user should know of its sizes.
        routed: groups of experts, and how many of them the experts of a token lie in.
    """

    name: str
    family: str
    build: Callable[[Shape], Model]
    bindings: Mapping[str, int] = field(default_factory=dict)
    source: str = "definition"
    note: str = ""
    routed: tuple[int, int] = (1, 1)

    def model(self, shape: Shape = TRAINING) -> Model:
        """Declare the model, carrying the preset's name and numbers.

        Raises:
            InputError: a user's function builds none.
        """
        built: object = self.build(shape)
        if not isinstance(built, Model):
            raise InputError(f"model {quote(self.name)}: build returns {quote(built)}, no Model")
        return replace(
            built,
            name=self.name,
            bindings=dict(self.bindings),
            source=self.source,
            family=self.family,
            routed=self.routed,
            before=shape.c,
        )


def _declared(module: str, name: str) -> Callable[[Shape], Model]:
    """Return what declares a family; its module is loaded when a model is asked for."""

    def build(shape: Shape) -> Model:
        home = import_module(f"{__package__}.{module}")
        declared: Model = home.declared(name, shape)
        return declared

    return build


def _sized(size: PublishedSize, module: str) -> Preset:
    build = _declared(module, size.family)
    named = (size.name, size.family, build, size.bindings(), size.source, size.note)
    return Preset(*named, (size.routed[0], size.routed[1]))


_DECODERS = (
    *("opt", "bloom", "gpt_neox", "gptj", "falcon", "llama", "mistral", "mixtral", "qwen2"),
    *("qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text", "gemma3", "phi", "phi3"),
    *("stablelm", "starcoder2", "granite", "deepseek_v2", "deepseek_v3", "gpt_oss", "olmo"),
    *("olmo2", "olmoe", "cohere"),
)
"""Decoders whose sizes may be left open."""

_OTHERS = {
    "bert": "devlin-2018",
    "bert-mlm": "devlin-2018",
    "bert-pretraining": "devlin-2018",
    "t5": "raffel-2019",
    "t5-1.1": "raffel-2019",
    "vit": "dosovitskiy-2020",
    "mamba": "gu-2023",
    "mamba2": "dao-2024",
    **dict.fromkeys(("rnn", "gru", "lstm"), "zaremba-2014"),
}
_NETWORKS = {
    "lenet-5": "lecun-1998",
    "alexnet": "krizhevsky-2014",
    "vgg-16": "simonyan-2014",
    "resnet-18": "he-2015",
    "resnet-50": "he-2015",
    "mobilenet-v2": "sandler-2018",
}

_PRESETS = (
    Preset("gpt", "gpt", _declared("decoders.gpt", "unbounded"), source="radford-2019"),
    *(_sized(size, "decoders.gpt") for size in published("gpt")),
    *(Preset(name, name, _declared("decoders.families", name)) for name in _DECODERS),
    *(_sized(size, "decoders.families") for size in published("decoders")),
    *(
        Preset(name, name, _declared("other_families", name), source=source)
        for name, source in _OTHERS.items()
    ),
    *(_sized(size, "other_families") for size in published("others")),
    *(
        Preset(name, "cnn", _declared("vision.cnn", name), {"b": 1}, source)
        for name, source in _NETWORKS.items()
    ),
)

_WORDS = {
    **dict.fromkeys(("gqa", "decoder"), "llama"),
    **dict.fromkeys(("mla", "deepseek"), "deepseek_v3"),
    **dict.fromkeys(("moe", "mixture"), "mixtral"),
    **dict.fromkeys(("mha", "transformer"), "gpt"),
    "ssm": "mamba2",
}
"""Families by what they are known for."""

CATALOG: dict[str, Preset] = {preset.name: preset for preset in _PRESETS}
"""Every preset by name."""


def model(name: str, predicted: int = 0, shape: Shape = TRAINING) -> Model:
    """Return a named model, or that of a config.json, of weights or of a graph by its path.

    Args:
        name: of the model, or a path.
        predicted: further tokens, each by one more block and the same head; of a model by name that
            has a configuration, or whose family has such a head.
        shape: what it runs on; a graph has its own.

    Raises:
        UnknownNameError: no such model; the closest are offered.
        InputError: every problem of the configuration; one that predicts no further tokens.
    """
    if predicted and name not in (able := (*configured(), *_predicting())):
        raise InputError(f"{name}: only models of {', '.join(able)} predict further tokens")
    if name.endswith(".json") or is_elsewhere(name) or is_folder(name):
        from symbolic_cost.models.config import from_config

        return replace(from_config(name, shape), name=name)
    if is_graph(name):
        from symbolic_cost.models.traced.imported import traced

        return replace(traced(name).model, name=name)
    if name in configured():
        from symbolic_cost.models.config import from_config
        from symbolic_cost.models.families import FAMILIES

        known, config = configured()[name], configured()[name].config
        if predicted:
            heads = FAMILIES[config["model_type"]].heads
            ends = [head for head in heads if head.endswith("NextN")]
            config = {**config, "architectures": ends, "num_nextn_predict_layers": predicted}
        return replace(from_config(config, shape), name=name, source=known.source)
    if name not in CATALOG:
        raise UnknownNameError(unknown("model", name, [*CATALOG, *configured()], _WORDS))
    preset = CATALOG[name]
    if predicted:
        from symbolic_cost.models.decoders.families import symbolic

        preset = replace(preset, build=partial(symbolic, preset.family, predicted=predicted))
    return preset.model(shape)


def _predicting() -> list[str]:
    """Return the presets with sizes whose family has a head for further tokens."""
    from symbolic_cost.models.families import FAMILIES

    sized = {name: one.family for name, one in CATALOG.items() if one.bindings}
    heads = {name: FAMILIES[family].heads for name, family in sized.items() if family in FAMILIES}
    return [name for name, own in heads.items() if any(head.endswith("NextN") for head in own)]
