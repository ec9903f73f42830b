"""Which linear layers of a model are stored in few bits, by the names of checkpoints."""

import re
from collections.abc import Iterator, Mapping, Sequence

from symbolic_cost.axes import At, Role
from symbolic_cost.errors import unknown
from symbolic_cost.layers.adapters import FIRST
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
            path = f"{part.path}.{op.path}"
            raw = path in _RAW.get(model.family, ())
            if plain and len(weights) == 1 and not raw and not routes(model, own):
                yield path, part, own, weights[0]


_RAW: Mapping[str, tuple[str, ...]] = {
    "gemma3": ("connector.linear",),
    "glm4v_moe": ("connector.narrow",),
}
"""Products by family whose weights PyTorch has as such or in a convolution, in no linear layer."""


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
    left = set() if head else heads(model) | _last(keys, model)
    skipped = named(keys, model, names or ()) | left
    undecided(keys, model, names or ())
    return {path: chosen for path, *_ in linear(model) if path not in skipped}


def _last(keys: Keys, model: Model) -> set[str]:
    """Return the path of the last linear layer if nothing behind it has weights.

    Transformers leaves it as it is where nothing is said; with a bias, only before version 5.
    """
    part, op = next((p, o) for p in reversed(model.parts) for o in reversed(p.ops) if o.weights)
    path = f"{part.path}.{op.path}"
    if part.is_block or path in heads(model) or all(path != one for one, *_ in linear(model)):
        return set()
    if len(op.weights) > 1:
        keys.leave("a last layer with a bias")
    return {path}


_ROUTER = re.compile(r"(?:.*[.*])?(?:gate|router)$")
_SCORED_APART = ("deepseek", "dots1", "glm", "kimi")
"""Families whose routers are no linear layers in any version."""
_SCORED_INSIDE = ("gemma4_text", "hunyuan_v1_moe")
"""Families whose routers are linear layers in every version, in modules of that name."""


def undecided(keys: Keys, model: Model, names: Sequence[str]) -> None:
    """Leave what versions of Transformers convert otherwise, or what is not declared."""
    if any(path.endswith("pooler.q") for path, *_ in linear(model)):
        keys.leave("attention in one weight")
    pieces = {(_of_tree(name)[0] or "").partition(".")[0] for name in names}
    kept = {p.path.partition(".")[0] for p in model.parts for o in p.ops if o.path == "kept"}
    for tower in sorted(kept - pieces):
        keys.leave(f"weights of {tower}")
    told = any(map(_ROUTER.match, names)) and model.family not in _SCORED_INSIDE
    told = told or model.family.startswith(_SCORED_APART)
    if experts(model) and not told:
        keys.leave("routers that are not named")


def named(keys: Keys, model: Model, names: Sequence[str]) -> set[str]:
    """Return the paths of the linear layers that names of checkpoints mean.

    Args:
        keys: where problems are noted.
        model: whose layers they are.
        names: as checkpoints have them; those of blocks or heads that it has not mean nothing.
    """
    paths = [path for path, *_ in linear(model)]
    blocks = {path for path, part, *_ in linear(model) if part.is_block}
    depth, meant = int(model.bindings.get("n_layers", 0)), set[str]()
    layers: dict[str, set[int]] = {}
    head = _HEADS.get(model.family, "lm_head")
    for name in names:
        piece, layer = (_HEAD, None) if name == head else _of_tree(name)
        elsewhere = piece == _HEAD and head not in name
        if elsewhere or (layer is not None and layer >= depth):
            continue
        matching = blocks if piece == _ALL else below(paths, piece) if piece else set()
        if name == "gate":  # as the end of a name
            matching = below(paths, "shared_gate")
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


_HEAD = "logits"
_HEADS: Mapping[str, str] = {
    **dict.fromkeys(("deberta-v2", "nomic_bert"), "cls.predictions.decoder"),
    "biogpt": "output_projection",
    "distilbert": "vocab_projector",
    "whisper": "proj_out",
}
"""Names of output heads by family, where they are no `lm_head`."""
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
    **dict.fromkeys(("lm_head", "embed_out"), _HEAD),
    "shared_expert_gate": "shared_gate",
    "experts": "experts",
    "audio_tower": "audio",
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
    "Yi apertus arcee bart bigbird_pegasus biogpt chameleon cohere cohere2 cohere2_moe "
    "cohere_compass_text cwm deberta-v2 deepseek_vl diffllama distilbert doge dots1 ernie4_5 "
    "ernie4_5_moe exaone4 exaone_moe falcon_mamba flex_olmo gemma gemma2 gemma3 gemma3_text "
    "gemma4_text glm4_moe glm4v_moe_text gpt2 gpt_neo gptj granite granite_swa helium "
    "hunyuan_v1_dense hunyuan_v1_moe hy_v3 hyperclovax idefics3 internlm3 internvl iquestcoder "
    "jais2 jamba laguna lfm2 lighton_ocr llama llava llava_next llava_next_video longt5 m2m_100 "
    "marian mellum mimo minimax_m2 ministral ministral3 mistral mistral3 mixtral mpt mvp nanochat "
    "nemotron nomic_bert olmo olmo2 olmo3 olmo_hybrid olmoe opt paligemma pegasus phi phimoe "
    "plbart qianfan_ocr qwen2 qwen2_5_vl_text qwen2_moe qwen2_vl_text qwen3 qwen3_moe "
    "qwen3_vl_moe_text qwen3_vl_text seed_oss smollm3 smolvlm solar_open stablelm starcoder2 "
    "t5gemma vaultgemma whisper xglm"
)
_LATENT = (("kv_down", "k_rotated"), ("k_up", "v_up"))
_GATED = (("gate", "up"),)
_FUSED = (("q", "k", "v"),)
_SEEN = tuple(
    tuple(f"vision.{block}.{name}" for name in ("q", "k", "v"))
    for block in ("block.attention", "local.block.attention.window")
)
_DELTA = (("attention.q", "attention.gate"),)

JOINED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(_APART.split(), ()),
    **dict.fromkeys(
        ("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "kimi_k2", "minicpm3", "youtu"), _LATENT
    ),
    **dict.fromkeys(("glm", "glm4"), _GATED),
    **dict.fromkeys(("codegen", "gpt_bigcode", "openai-gpt", "persimmon"), _FUSED),
    **dict.fromkeys(("glm4v_moe", "qwen2_5_vl", "qwen2_vl", "qwen3_vl", "qwen3_vl_moe"), _SEEN),
    "phi3": (*_FUSED, *_GATED),
    "qwen3_5_text": (*_DELTA, ("mixer.in_q", "mixer.in_k", "mixer.in_v")),
    "qwen3_next": (
        *(*_DELTA, ("mixer.in_q", "mixer.in_k", "mixer.in_v", "mixer.in_z")),
        ("mixer.in_a", "mixer.in_b"),
    ),
}
"""Linear layers whose weights files hold as one, by family.

Of families that are not named, it is not known which of their layers are linear ones in PyTorch.
"""


def held_as_one(family: str, path: str) -> tuple[str, ...]:
    """Return the linear layers whose weights files hold as one with that of a path, if any."""
    groups = JOINED.get(family, ())
    return next((g for g in groups if any(f".{path}".endswith(f".{n}") for n in g)), ())


def adapted_apart(model: Model) -> Iterator[str]:
    """Say which layers have adapters of their own, though files hold their weights as one.

    For example all linear layers of Phi-3: its class has one layer, and PEFT one A, for q, k and v.
    """
    adapted = (
        f"{part.path}.{op.path.removesuffix(FIRST)}"
        for part in model.parts
        for op in part.ops
        if op.path.endswith(FIRST)
    )
    for group in dict.fromkeys(held_as_one(model.family, path) for path in adapted):
        if group:
            names = ", ".join(group)
            yield f"{names} have an adapter each; files hold them as one layer, which takes one"


def joined(family: str, path: str) -> bool:
    """Return whether files hold a weight at the end of another."""
    return any(f".{path}".endswith(f".{name}") for name in held_as_one(family, path)[1:])
