"""Paths in the tree of a model, by the names that people give."""

from collections.abc import Iterable, Mapping

from symbolic_cost.axes import At, Role
from symbolic_cost.ops.declare import Model, Op

WORDS: Mapping[str, tuple[str, ...]] = {
    **{f"{name}_proj": (name,) for name in ("q", "k", "v", "gate", "up", "down")},
    **dict.fromkeys(("o", "o_proj", "out_proj"), ("attention.proj", "cross.proj")),
    **dict.fromkeys(("c_attn", "qkv_proj", "query_key_value"), ("qkv",)),
    **dict.fromkeys(("lm_head", "embed_out"), ("output.logits", "head.logits")),
    **dict.fromkeys(("embed_tokens", "wte", "word_embeddings"), ("embedding.token",)),
    "c_fc": ("fc1",),
    "c_proj": ("attention.proj", "cross.proj", "mlp.fc2"),
    "wpe": ("embedding.position",),
    "ln_f": ("norm.norm",),
    "router": ("mlp.router",),
    "multi_modal_projector": ("connector",),
    "vision_tower": ("vision",),
}
"""Paths by the names that checkpoints give."""

_ENCODER = {one: (f"attention.{one[0]}", f"cross.{one[0]}") for one in ("query", "key", "value")}
_HALVES = {"fc_in": ("mlp.fc1",), "fc_out": ("mlp.fc2",)}
_WIDENED = {"dense_h_to_4h": ("mlp.fc1",), "dense_4h_to_h": ("mlp.fc2",)}
_SAID: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("bert", "roberta", "electra"), _ENCODER),
    **dict.fromkeys(("gptj", "codegen"), _HALVES),
    **dict.fromkeys(("gpt_neox", "bloom", "falcon"), _WIDENED),
    "t5": {"wi": ("mlp.fc1",), "wo": ("mlp.fc2", "mlp.down")},
    "distilbert": {
        **{f"{one}_lin": (f"attention.{one}",) for one in "qkv"},
        "out_lin": ("attention.proj",),
        "lin1": ("mlp.fc1",),
        "lin2": ("mlp.fc2",),
    },
}
"""Paths by the names that the checkpoints of a family give, and those of others need not."""

_INSIDE = {
    f"{name}_proj": tuple(
        f"{one}.{name}" for one in ("mlp", "experts", "shared", "residual", "layer")
    )
    for name in ("gate", "up", "down")
}
"""What these names mean, where more than perceptrons has a product of the tree's name."""


def below(paths: Iterable[str], name: str) -> set[str]:
    """Return the paths that a name means.

    Those that begin with it, else those that it is a piece of, else those that it means in the
    words of checkpoints. For example `block` is a language model's, `vision.block` its tower's.
    """
    listed = tuple(paths)
    return _at(listed, (name,)) or _at(listed, _INSIDE.get(name, WORDS.get(name, ())))


def said(paths: Iterable[str], family: str) -> dict[str, set[str]]:
    """Return the paths that names of a family's checkpoints mean, by name."""
    listed = tuple(paths)
    words = {name: _at(listed, pieces) for name, pieces in _SAID.get(family, {}).items()}
    return {name: meant for name, meant in words.items() if meant and not _at(listed, (name,))}


def in_checkpoints(paths: Iterable[str], name: str) -> bool:
    """Return whether a name means paths in the words of checkpoints alone."""
    return name in WORDS and not _at(paths, (name,))


def _at(paths: Iterable[str], pieces: Iterable[str]) -> set[str]:
    listed, starts = tuple(paths), tuple(f"{one}." for one in pieces)
    starting = {path for path in listed if f"{path}.".startswith(starts)}
    return starting or {p for p in listed if any(f".{one}" in f".{p}." for one in starts)}


def routes(model: Model, op: Op) -> bool:
    """Whether a product scores experts."""
    scored = At(Role.EXPERT, ("scored",))
    return any(model.axes[a] in scored for o in op.outputs for a in o.axes if a in model.axes)
