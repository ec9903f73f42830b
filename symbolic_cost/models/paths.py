"""Paths in the tree of a model, by the names that people give."""

from collections.abc import Iterable, Mapping

from symbolic_cost.axes import At, Role
from symbolic_cost.ops.declare import Model, Op

WORDS: Mapping[str, tuple[str, ...]] = {
    **{f"{name}_proj": (name,) for name in ("q", "k", "v", "gate", "up", "down")},
    **dict.fromkeys(("o", "o_proj", "out_proj"), ("attention.proj",)),
    **dict.fromkeys(("c_attn", "qkv_proj", "query_key_value"), ("qkv",)),
    **dict.fromkeys(("lm_head", "embed_out"), ("output.logits", "head.logits")),
    **dict.fromkeys(("embed_tokens", "wte", "word_embeddings"), ("embedding.token",)),
    "gate_up_proj": ("gate", "up"),
    "c_fc": ("fc1",),
    "c_proj": ("attention.proj", "mlp.fc2"),
    "wpe": ("embedding.position",),
    "ln_f": ("norm.norm",),
    "router": ("mlp.router",),
    "multi_modal_projector": ("connector",),
    "vision_tower": ("vision",),
}
"""Paths by the names that checkpoints give."""


def below(paths: Iterable[str], name: str) -> set[str]:
    """Return the paths that a name means.

    Those that begin with it, else those that it is a piece of, else those that it means in the
    words of checkpoints. For example `block` is a language model's, `vision.block` its tower's.
    """
    listed = tuple(paths)
    for pieces in ((name,), WORDS.get(name, ())):
        starting = {p for p in listed if f"{p}.".startswith(tuple(f"{one}." for one in pieces))}
        inside = {p for p in listed if any(f".{one}." in f".{p}." for one in pieces)}
        if starting or inside:
            return starting or inside
    return set()


def routes(model: Model, op: Op) -> bool:
    """Whether a product scores experts."""
    scored = At(Role.EXPERT, ("scored",))
    return any(model.axes[a] in scored for o in op.outputs for a in o.axes if a in model.axes)
