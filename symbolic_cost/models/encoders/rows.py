"""Sizes of further axes of encoders, where they follow from several fields."""

from collections.abc import Callable, Mapping

from symbolic_cost.layers.nystrom import PRODUCTS
from symbolic_cost.models.build import Fields, Shape, is_size
from symbolic_cost.models.encoders import characters
from symbolic_cost.models.encoders.changes import Tables


def _kinds(fields: Fields, _: Shape) -> Tables:
    sizes = fields.items("type_vocab_sizes", (3, 256, 256, 2, 256, 256, 10))
    return {f"kinds{i}": size for i, size in enumerate(sizes) if is_size(size)}


def _squeezed(fields: Fields, _: Shape) -> Tables:
    e, f = fields.size("hidden_size"), fields.size("intermediate_size")
    if fields.size("embedding_size", 768) != e:
        fields.note("embedding_size", f"only the {e} of hidden_size is declared")
    sizes: Tables = {"one": 1}
    for name, (key, wide, narrow) in {
        "q": ("q_groups", e, e),
        "k": ("k_groups", e, e),
        "v": ("v_groups", e, e),
        "proj": ("post_attention_groups", e, e),
        "fc1": ("intermediate_groups", e, f),
        "fc2": ("output_groups", f, e),
    }.items():
        groups = fields.size(key)
        fine = wide % groups == 0 and narrow % groups == 0
        if not fine:
            fields.note(key, f"{groups} groups do not divide {wide} and {narrow}")
        sizes |= {f"g_{name}": groups, f"i_{name}": wide // groups, f"o_{name}": narrow // groups}
    return {axis: max(size, 1) for axis, size in sizes.items()}


def _beside(fields: Fields, _: Shape) -> Tables:
    """Return the widths of LiLT's stream of boxes: a part of those of the tokens'."""
    e, h, share = (
        fields.size("hidden_size"),
        fields.size("num_attention_heads"),
        fields.size("channel_shrink_ratio", 4),
    )
    if e % 6 != 0:
        fields.note("hidden_size", "six tables side by side are as wide")
    if e // h % share != 0:
        fields.note("channel_shrink_ratio", f"it does not divide heads of {e // h} features")
    f, width = fields.size("intermediate_size"), max(e // 6, 1)
    fields.require(holds=f >= share, problem=f"no feature is left of {f}", name="intermediate_size")
    return {
        "n_page": fields.size("max_2d_position_embeddings", 1024),
        **dict.fromkeys(("w_c", "w_s"), width),
        "e_y": max(e // share, 1),
        "d_y": max(e // h // share, 1),
        "f_y": max(f // share, 1),
    }


def _page(fields: Fields, _: Shape) -> Tables:
    e, place, extent = (
        fields.size("hidden_size"),
        fields.size("coordinate_size", 128),
        fields.size("shape_size", 128),
    )
    fields.require(
        holds=4 * place + 2 * extent == e,
        problem=f"four of coordinate_size and two of shape_size are not the {e} of hidden_size",
        name="coordinate_size",
    )
    side = fields.size("patch_size", 16)
    fields.assume("visual_embed", "text alone: images have weights and no work")
    return {
        "w_c": place,
        "w_s": extent,
        "n_2d": fields.size("rel_2d_pos_bins", 64),
        "ch": fields.size("num_channels", 3),
        **dict.fromkeys(("s_x", "s_y"), side),
        # positions of patches and of a class token, that token, and a bias
        "n_img": (fields.size("input_size", 224) // side) ** 2 + 3,
        "n_few": 4,
    }


def _landmarks(fields: Fields, shape: Shape) -> Tables:
    marks, length = fields.size("num_landmarks", 64), fields.size("segment_means_seq_len", 64)
    kernel = fields.optional_size("conv_kernel_size", 65)
    if kernel is not None and kernel % 2 != 1:
        fields.note("conv_kernel_size", "an odd kernel is accepted")
    fields.require(
        holds=marks == length or (shape.l == length and length % marks == 0),
        problem=f"sequences of {length} tokens, which {marks} landmarks divide, are accepted",
        name="segment_means_seq_len",
    )
    sizes: Tables = dict.fromkeys(("n_mean", "n_of", "n_to"), marks)
    return sizes | {"n_inv": PRODUCTS, "s_n": kernel or 1}


def _kernels(fields: Fields, _: Shape) -> Tables:
    e, f, groups = (
        fields.size("hidden_size"),
        fields.size("intermediate_size"),
        fields.size("num_groups", 1),
    )
    kernel, heads = fields.size("conv_kernel_size", 9), fields.size("num_attention_heads")
    fields.require(
        holds=kernel % 2 == 1, problem="odd kernels are accepted", name="conv_kernel_size"
    )
    fine = e % groups == 0 and f % groups == 0
    fields.require(
        holds=fine, problem=f"{groups} groups do not divide {e} and {f}", name="num_groups"
    )
    sizes: Tables = {"s_n": kernel, "h_c": max(heads // fields.size("head_ratio", 2), 1), "two": 2}
    if groups == 1:
        return sizes
    for name, wide, narrow in (("fc1", e, f), ("fc2", f, e)):
        inner, outer = max(wide // groups, 1), max(narrow // groups, 1)
        sizes |= {f"g_{name}": groups, f"i_{name}": inner, f"o_{name}": outer}
    return sizes


def _languages(fields: Fields, _: Shape) -> Tables:
    width, factor = fields.size("hidden_size"), fields.size("adapter_reduction_factor", 2)
    fields.require(
        holds=factor <= width,
        problem=f"{width} features leave none",
        name="adapter_reduction_factor",
    )
    others = len(set(map(str, fields.items("languages", ("en_XX",))))) - 1
    return {"w_x": max(width // factor, 1), **({"n_o": others} if others > 0 else {})}


def _hashed(fields: Fields, shape: Shape) -> Tables:
    """Return CANINE's tables of hashes, and the lengths of its chunks and kernels."""
    e, hashes = fields.size("hidden_size"), fields.size("num_hash_functions", 8)
    fields.require(
        holds=e % hashes == 0,
        problem=f"{hashes} tables side by side are the {e} of hidden_size",
        name="num_hash_functions",
    )
    chunk, rate = fields.size("local_transformer_stride", 128), fields.size("downsampling_rate", 4)
    problem = f"a sequence of {shape.l} is shorter than one of {rate}"
    fields.require(
        holds=not shape.l.is_Integer or shape.l >= rate, problem=problem, name="downsampling_rate"
    )
    tables: Tables = {"n_h": hashes, "w_h": max(e // hashes, 1), "e_o": e}
    tables |= dict.fromkeys(("n_b", "p_c"), fields.size("num_hash_buckets", 16384))
    kernel = fields.size("upsampling_kernel_size", 4)
    return {**tables, **characters.lengths(shape.l, chunk, rate, kernel)}


def _ranks(fields: Fields, _: Shape) -> Tables:
    """Return the ranks of all adapters of an XLM-RoBERTa, and those of all layers."""
    ranks = len(fields.items("lora_adaptations")) * fields.size("lora_rank", 4)
    return {"n_a": ranks, "n_al": ranks * fields.size("num_hidden_layers")} if ranks else {}


def _routed(fields: Fields, shape: Shape) -> Tables:
    """Return the sizes of a Nomic BERT's experts, where it has any."""
    experts = fields.optional_size("num_experts") or 0
    if not experts or not fields.optional_size("moe_every_n_layers"):
        return {}
    chosen = fields.size("moe_top_k", 1)
    problem = f"{chosen} of {experts} cannot be chosen"
    fields.require(holds=chosen <= experts, problem=problem, name="moe_top_k")
    share = shape.l * chosen / experts
    own: Tables = {"o_s": experts, "x_s": experts, "a_s": chosen, "u_s": shape.b}
    return own | {"f_m_s": fields.size("intermediate_size"), "z_s": share, "z_r_s": share}


def _waves(fields: Fields, _: Shape) -> Tables:
    """Return the waves of BROS's distances between boxes: a quarter of the features."""
    e, sides = fields.size("hidden_size"), fields.size("dim_bbox", 8)
    fields.require(
        holds=e // 4 % (2 * sides) == 0 < e // 4,
        problem=f"a sine and a cosine of {sides} sides do not make a quarter of {e}",
        name="dim_bbox",
    )
    made = {"sinusoid_emb_2d": e // 4, "sinusoid_emb_1d": e // 4 // sides}
    made["projection"] = e // fields.size("num_attention_heads")
    for name, size in made.items():
        stated = fields.optional_size(f"dim_bbox_{name}")
        problem = f"only {size} is declared, as other fields make it"
        fields.require(holds=stated in (None, size), problem=problem, name=f"dim_bbox_{name}")
    return {"w_b": max(e // 4, 1)}


ROWS: Mapping[str, Callable[[Fields, Shape], Tables]] = {
    "bros": _waves,
    "canine": _hashed,
    "convbert": _kernels,
    "esm": lambda fields, _: {
        # One weight for every head of every layer, and a bias.
        "n_att": 1 + fields.size("num_hidden_layers") * fields.size("num_attention_heads")
    },
    "layoutlmv3": _page,
    "lilt": _beside,
    "luke": lambda fields, _: {"c_n": 2, "n_q": 3 * fields.size("num_hidden_layers")},
    "markuplm": lambda fields, _: {"f_x": 4 * fields.size("hidden_size")},
    "mobilebert": lambda fields, _: {
        "w_x": fields.size("hidden_size") - fields.size("embedding_size")
    },
    "nomic_bert": _routed,
    "nystromformer": _landmarks,
    "squeezebert": _squeezed,
    "tapas": _kinds,
    "xlm-roberta": _ranks,
    "xmod": _languages,
}
"""Sizes of further axes that follow from several fields."""
