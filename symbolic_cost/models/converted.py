"""Which linear layers of a model are stored in few bits, by the names of checkpoints."""

import re
from collections.abc import Iterator, Mapping, Sequence

from symbolic_cost.axes import At, Role
from symbolic_cost.errors import unknown
from symbolic_cost.models.paths import WORDS, below, routes
from symbolic_cost.models.quantization_keys import Keys
from symbolic_cost.models.weight_formats import Format
from symbolic_cost.ops.declare import Model, Op, Operand, Part
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.unread import Unread

Formats = Mapping[str, Format]
"""The format of every linear layer that is stored in few bits, by its path."""


def linear(model: Model) -> Iterator[tuple[str, Part, Op, Operand]]:
    """Yield the linear layers: path, part, the product, its weight."""
    for part in model.parts:
        for op in part.ops:
            own = op.inner if isinstance(op, Unread) else op
            weights = [operand for operand in own.pattern.inputs if operand.is_weight]
            plain = isinstance(own, Einsum) and len(own.pattern.inputs) == 2  # noqa: PLR2004 - x and w
            if plain and len(weights) == 1 and not routes(model, own):
                yield f"{part.path}.{op.path}", part, own, weights[0]


def heads(model: Model) -> set[str]:
    """Return the paths of output heads, which are not stored in few bits unless said."""
    vocabulary = At(Role.VOCABULARY)
    return {
        path
        for path, _, op, _ in linear(model)
        if any(model.axes[axis] in vocabulary for axis in op.outputs[0].axes if axis in model.axes)
    }


def experts(model: Model) -> set[str]:
    """Return the paths of the products of experts among which a token chooses."""
    routed = At(Role.EXPERT, ("",))
    return {
        path
        for path, _, _, weight in linear(model)
        if any(model.axes[axis] in routed for axis in weight.axes if axis in model.axes)
    }


def all_but(
    keys: Keys, model: Model, names: Sequence[str] | None, chosen: Format, *, head: bool
) -> Formats:
    """Return the format of all linear layers but some.

    Args:
        keys: where problems are noted.
        model: whose layers they are.
        names: of these, as checkpoints have them.
        chosen: the format.
        head: whether output heads are stored so, too.
    """
    skipped = named(keys, model, names or ()) | (set() if head else heads(model))
    return {path: chosen for path, *_ in linear(model) if path not in skipped}


def named(keys: Keys, model: Model, names: Sequence[str]) -> set[str]:
    """Return the paths of the linear layers that names of checkpoints mean.

    Args:
        keys: where problems are noted.
        model: whose layers they are.
        names: as checkpoints have them; those of blocks that the model has not mean nothing.
    """
    paths = [path for path, *_ in linear(model)]
    blocks = {path for path, part, *_ in linear(model) if part.is_block}
    depth, meant = int(model.bindings.get("n_layers", 0)), set[str]()
    layers: dict[str, set[int]] = {}
    for name in names:
        piece, layer = _of_tree(name)
        if layer is not None and layer >= depth:
            continue
        matching = blocks if piece == _ALL else below(paths, piece) if piece else set()
        if layer is not None:
            for path in matching:
                layers.setdefault(path, set()).add(layer)
        elif piece is None:
            problem = unknown("module that is not converted", name, WORDS)
            keys.problems.append(f"{keys.where}: {problem}")
        else:
            meant |= matching
    for path, ones in layers.items():
        if len(ones) == depth:
            meant.add(path)
        else:
            keys.problems.append(
                f"{keys.where}: {path} is not converted in {len(ones)} of {depth} layers: "
                "all of them or none is accepted"
            )
    return meant


_OUTSIDE = frozenset({"model", "language_model", "transformer", "decoder", "weight"})
_REPEATED = frozenset({"layers", "h", "block", "blocks"})
_NO_PRODUCT = re.compile(r".*norm.*|embed_tokens|wte|wpe|gate|router|rotary_emb|.*_bias|embeddings")
_PIECES: Mapping[str, str] = {
    **dict.fromkeys(("self_attn", "attn", "self_attention", "attention"), "attention"),
    **dict.fromkeys(("mlp", "feed_forward", "block_sparse_moe"), "mlp"),
    **dict.fromkeys(("shared_expert", "shared_experts"), "shared"),
    **dict.fromkeys(("visual", "vision_model", "vision_tower", "vision"), "vision"),
    **dict.fromkeys(("multi_modal_projector", "connector", "mm_projector"), "connector"),
    **dict.fromkeys(("o_proj", "out_proj"), "proj"),
    "experts": "experts",
}


_ALL = "*"


def _of_tree(name: str) -> tuple[str | None, int | None]:
    """Return the path of a module in the tree and its layer; empty for what is no product.

    For example "model.layers.*.self_attn" is attention, as is "re:.*self_attn.*" and
    "model.layers.*.self_attn*", "model.layers.3.mlp.gate" no product, "model.layers.3" every one.
    """
    pieces, layer, inside = [], None, False
    for word in re.sub(r"^re:\^?|\$$|\\(?=\.)", "", name).split("."):
        piece = word.strip("*")
        if piece.isdecimal():
            layer, inside = int(piece), True
        elif _NO_PRODUCT.fullmatch(piece):
            return "", layer
        elif piece and piece not in _OUTSIDE | _REPEATED:
            words = WORDS.get(piece, ())
            known = _PIECES.get(piece) or (words[0] if len(words) == 1 else None)
            if known is None:
                return None, layer
            pieces.append(known)
    return (".".join(pieces) or (_ALL if inside else None)), layer


_APART = (
    "Yi apertus arcee cohere cohere2 cwm ernie4_5 exaone4 gemma gemma2 gemma3_text glm4_moe "
    "granite helium hunyuan_v1_dense hunyuan_v1_moe llama mellum mimo minimax_m2 ministral "
    "ministral3 mistral mixtral nemotron olmo olmo2 olmo3 olmoe opt phi qwen2 qwen2_moe qwen3 "
    "qwen3_moe seed_oss smollm3 stablelm starcoder2"
)
_LATENT = (("kv_down", "k_rotated"), ("k_up", "v_up"))

JOINED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(_APART.split(), ()),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2"), _LATENT),
    **dict.fromkeys(("glm", "glm4"), (("gate", "up"),)),
    "phi3": (("q", "k", "v"), ("gate", "up")),
}
"""Linear layers whose weights files hold as one, by family; not all families are known."""


def joined(family: str, path: str) -> bool:
    """Return whether files hold a weight at the end of another."""
    return any(path.rpartition(".")[2] in group[1:] for group in JOINED.get(family, ()))
