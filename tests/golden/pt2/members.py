"""Members of a family: small configurations whose sizes differ, exported with torch.export.

Which fields a family has, its smallest configuration among the tests' says; what they are, their
names say. Sizes of a configuration differ from each other, so that axes are told apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.export import Dim, export, save

GOLDEN = Path(__file__).parents[1]
KINDS = ("causal", "masked", "encdec", "vision", "image", "text", "other")
"""Categories of the tests' entries that one input describes, or two lengths."""

ROWS = {
    "heads": (4, 12, 8, 12, 10, 18, 20),
    "groups": (2, 4, 2, 6, 2, 6, 4),
    "width": (24, 16, 32, 40, 48, 8, 56),
    "rotated": (8, 8, 8, 8, 8, 8, 8),
    "inner": (112, 152, 176, 136, 200, 184, 168),
    "expert_inner": (40, 52, 68, 76, 44, 60, 92),
    "vocabulary": (131, 139, 149, 157, 163, 167, 173),
    "positions": (130, 142, 154, 134, 160, 146, 138),
    "types": (3, 5, 2, 4, 7, 6, 9),
    "depth": (2, 3, 2, 4, 3, 5, 7),
}
"""Sizes of the graphs, of which the last but one is held out; of the last there is no graph."""

FIELDS = {
    "heads": "num_attention_heads n_head n_heads num_heads encoder_attention_heads "
    "decoder_attention_heads num_encoder_attention_heads num_decoder_attention_heads",
    "groups": "num_key_value_heads num_kv_heads",
    "width": "head_dim d_kv",
    "rotated": "rotary_dim",
    "hidden": "hidden_size d_model n_embd dim emb_dim",
    "inner": "intermediate_size d_ff ffn_dim encoder_ffn_dim decoder_ffn_dim n_inner d_inner "
    "hidden_dim",
    "expert_inner": "moe_intermediate_size",
    "vocabulary": "vocab_size",
    "positions": "max_position_embeddings n_positions",
    "types": "type_vocab_size",
    "depth": "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers "
    "num_encoder_layers num_decoder_layers",
}
"""Names of fields by what they are; a hidden width is a multiple of the heads."""

_WIDTHS = ("hidden_sizes", "embed_dims")
"""Lists of whole numbers: every entry is a field of its own, NAME.PLACE, and varies by a factor."""

_DERIVED = (
    "stage_names",
    "out_features",
    "out_indices",
    "pooler_hidden_size",
    "pooler_output_size",
)
_BESIDE = ("qk_rope_head_dim", "qk_nope_head_dim")
"""Fields that divide the width of a head: it stays as it is."""

_NOT_OF_THE_CLASS = ("architectures", "model_type", "transformers_version", "torch_dtype")
_FACTORS = 5
_SEEN = "vision_config"
"""The section of what sees images, whose fields vary."""

_SIDE = 64
"""Height and width of images where a configuration names none."""


def bases() -> dict[str, dict[str, Any]]:
    """Return the smallest configuration of every family, by model type."""
    found: dict[str, tuple[tuple[bool, int], dict[str, Any]]] = {}
    for file in sorted(GOLDEN.glob("families_*.json")):
        entries = json.loads(file.read_text(encoding="utf-8"))
        for entry in entries if isinstance(entries, list) else ():
            config, kind = entry["config"], entry.get("category", "text")
            family = config.get("model_type")
            if not family or kind not in KINDS:
                continue
            head = (config.get("architectures") or [""])[0]
            params = entry.get("params", 0)
            fewest = min(params) if isinstance(params, list) else params
            order = not head.endswith(("LM", "LMHeadModel", "Generation")), fewest
            if family not in found or order < found[family][0]:
                found[family] = order, config | _pictured(config, kind)
    return {family: _numbers(config) for family, (_, config) in sorted(found.items())}


def _pictured(config: Mapping[str, Any], kind: str) -> dict[str, Any]:
    network = getattr(transformers, (config.get("architectures") or [""])[0], None)
    sees = getattr(network, "main_input_name", "pixel_values") == "pixel_values"
    known = "image_size" in json.dumps(config)
    return {"image_size": _SIDE} if kind in ("vision", "image") and sees and not known else {}


def _numbers(value: Any) -> Any:
    """Return JSON with the numbers that it has no name for."""
    if isinstance(value, dict):
        if "__float__" in value:
            return float("inf")
        return {name: _numbers(inner) for name, inner in value.items()}
    return [_numbers(inner) for inner in value] if isinstance(value, list) else value


def members(base: Mapping[str, Any], *, one_depth: bool = False) -> Iterator[dict[str, int]]:
    """Yield the numbers of the fields of each member."""
    base = base.get(_SEEN) or base
    fields = {
        role: [name for name in names.split() if type(base.get(name)) is int]
        for role, names in FIELDS.items()
    }
    if any(name in base for name in _BESIDE):
        fields["width"] = []
    if any(name.startswith("mamba_") for name in base):
        fields["heads"] = fields["groups"] = fields["hidden"] = []  # Mamba's heads divide it too
    if one_depth:
        fields["depth"] = []
    heads = base.get("num_attention_heads")
    for row in range(len(ROWS["heads"])):
        sizes = {role: values[row] for role, values in ROWS.items()}
        sizes["hidden"] = sizes["heads"] * (sizes["width"] + 8 * bool(fields["width"]))
        if any(base[name] == heads for name in fields["groups"]):
            sizes["groups"] = sizes["heads"]
        yield {name: sizes[role] for role, names in fields.items() for name in names} | {
            f"{name}.{place}": size * (1 + (row + 2 * place) % _FACTORS)
            for name in _WIDTHS
            for place, size in enumerate(base.get(name, ()))
        }


def configuration(base: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return a member's configuration: lists of layers are the class's to make."""
    if base.get(_SEEN):
        return {**base, _SEEN: configuration(base[_SEEN], sizes)}
    depths = [base[name] for name in FIELDS["depth"].split() if name in sizes]
    kept = {
        name: value
        for name, value in base.items()
        if name not in _DERIVED
        and not (isinstance(value, list) and len(value) in depths and "layer" in name)
    }
    for name in ("rope_parameters", "rope_scaling"):
        if isinstance(kept.get(name), dict) and "short_factor" in kept[name]:
            del kept[name]  # one factor for each pair of a head
    marked = {
        name: 1
        for name, value in kept.items()
        if name.endswith("_token_id") and type(value) is int and value >= ROWS["vocabulary"][0]
    }
    lists = {
        name: [sizes[f"{name}.{place}"] for place in range(len(kept[name]))]
        for name in _WIDTHS
        if f"{name}.0" in sizes
    }
    numbers = {name: size for name, size in sizes.items() if "." not in name}
    return kept | marked | lists | numbers


def export_member(
    path: Path, config: Mapping[str, Any], sizes: Mapping[str, int], *, lengths: bool = True
) -> dict[str, int]:
    """Write the graph of a configuration, its fields beside it; return lengths that are fixed."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = _network(config).eval()
    given = _inputs(model)
    values, shapes = zip(*given.values(), strict=True)
    fixed = {}
    if not lengths:
        fixed = {dims[1].__name__: one.shape[1] for one, dims in given.values() if 1 in dims}
        shapes = tuple({0: dims[0]} for dims in shapes)
    result = _Result(model, tuple(given))
    save(export(result, values, dynamic_shapes=(shapes,), strict=False), path)
    path.with_suffix(".json").write_text(json.dumps(dict(sizes)))
    return fixed


_OF_OBJECTS = ("Detection", "InstanceSegmentation", "UniversalSegmentation", "SamModel")
"""Classes that give two results: classes or scores, and boxes or masks."""


class _Result(torch.nn.Module):
    """A network from named inputs to its first result, and what is pooled of it."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        made = self.model(**dict(zip(self.names, values, strict=True)))
        pooled = getattr(made, "pooler_output", None)
        if pooled is not None:
            return made[0], pooled
        if type(self.model).__name__.endswith(_OF_OBJECTS):
            return made[0], made[1]
        return made if isinstance(made, torch.Tensor) else made[0]


def _network(config: Mapping[str, Any]) -> Any:
    kind = getattr(transformers, config["architectures"][0])
    own = {name: value for name, value in config.items() if name not in _NOT_OF_THE_CLASS}
    made = kind.config_class(**own)
    try:
        return kind._from_config(made, attn_implementation="sdpa")  # noqa: SLF001 - the door of a config
    except ValueError:
        return kind._from_config(made, attn_implementation="eager")  # noqa: SLF001


def _inputs(model: Any) -> dict[str, tuple[torch.Tensor, dict[int, Any]]]:
    """Return inputs by name, with their dynamic dimensions."""
    config, taken = model.config, model.main_input_name
    b, l, m = Dim("b", min=2, max=64), Dim("l", min=9, max=16), Dim("m", min=9, max=16)
    if taken == "input_values":
        raise ValueError(f"{taken}: tokens and images are given")
    if taken == "pixel_values":
        seen = getattr(config, _SEEN, getattr(config, "backbone_config", None) or config)
        seen = seen if hasattr(seen, "image_size") else config
        side = getattr(seen, "image_size", None) or _SIDE
        frames = (seen.num_frames,) if hasattr(seen, "num_frames") else ()
        sides = side if isinstance(side, list | tuple) else (side, side)
        shape = (2, *frames, getattr(seen, "num_channels", 3), *sides)
        return {taken: (torch.randn(shape), {0: b})}
    tokens = (torch.randint(3, 96, (2, 14)), {0: b, 1: l})
    if getattr(config, "is_encoder_decoder", False):
        return {taken: tokens, "decoder_input_ids": (torch.randint(3, 96, (2, 12)), {0: b, 1: m})}
    return {taken: tokens}
