"""Networks whose maps others take: those of every stage stand aside, as "map1", "map2" and on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from symbolic_cost.errors import shown
from symbolic_cost.layers.aside import Put, frozen
from symbolic_cost.layers.conv import Chain, Layer
from symbolic_cost.models.cnn_config import read
from symbolic_cost.models.cnn_residual import trunk
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.stored.timm import spelt


def residual(fields: Fields) -> tuple[Chain, tuple[str, ...]]:
    """Return a detector's residual network, with frozen norms, and what of it is not trained.

    It is one of timm, by `backbone` or by its section, all of which Transformers trains; or one of
    Hugging Face, by its section, of which it trains nothing: names of stages to train match none.
    """
    inner, own = fields.source.values.get("backbone_config"), True
    fields.ignore("backbone", "backbone_config", "use_pretrained_backbone", "num_channels")
    values = inner if isinstance(inner, Mapping) else {}
    fields.require(
        holds=inner is None or bool(values),
        problem="an object is accepted",
        name="backbone_config",
    )
    timm = fields.flag("use_timm_backbone", default=True)
    own = values.get("model_type") != "timm_backbone" if values else not timm
    _checked_arguments(fields)
    if not own:
        name = (values or fields.source.values).get("backbone") or "resnet50"
        spelled = spelt(name) if isinstance(name, str) and name.startswith("resnet") else None
        fields.require(
            holds=spelled is not None,
            problem=f"{shown(name)}: resnet18, 34, 50, 101 or 152 is accepted",
            name="backbone",
        )
        known = ("model_type", "backbone", "num_channels", "features_only", "out_indices")
        strange = [k for k in values if k not in (*known, "use_pretrained_backbone")]
        fields.require(
            holds=not strange,
            problem=f"{', '.join(strange)} not understood",
            name="backbone_config",
        )
        values = spelled or {}
    source = replace(fields.source, values=values)
    resnet = Fields(source, "resnet", FAMILIES["resnet"], problems=fields.problems)
    blocks, widths, branch, first = read(resnet)
    fields.problems += resnet.not_understood().values()
    dilated = fields.flag("dilation", default=False)
    fields.require(holds=not (own and dilated), problem="only false is declared", name="dilation")
    layers = trunk(blocks, widths, branch, first, last=1 if dilated else 2)
    named = {f"layer{stage}": f"map{stage}" for stage in range(1, len(blocks) + 1)}
    made = {name: frozen(layer) for name, layer in layers.items()}
    return tapped(made, named), ("backbone.",) if own else ()


def _checked_arguments(fields: Fields) -> None:
    """Note arguments for timm that would change its network."""
    arguments = fields.source.values.get("backbone_kwargs") or {}
    fields.ignore("backbone_kwargs")
    harmless = isinstance(arguments, Mapping) and all(
        name in ("in_chans", "num_channels") or (name == "out_indices" and value == [1, 2, 3, 4])
        for name, value in arguments.items()
    )
    fields.require(
        holds=harmless,
        problem="in_chans and out_indices = [1, 2, 3, 4] are accepted",
        name="backbone_kwargs",
    )


def tapped(layers: Mapping[str, Layer], named: Mapping[str, str]) -> Chain:
    """Return layers with what some of them make set aside, under names."""
    made: dict[str, Layer] = {}
    for name, layer in layers.items():
        made[name] = layer
        if name in named:
            made[f"{name}.put"] = Put(named[name])
    return Chain(made)
