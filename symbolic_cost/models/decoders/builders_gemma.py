"""Builders of the later Gemma families."""

from collections.abc import Mapping
from dataclasses import replace

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Attention, Sources
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.decoders.config import declared, decoder_of
from symbolic_cost.models.decoders.decoder import Habit
from symbolic_cost.models.decoders.gemma import TAKING, THINNED, WIDENED, full_layers, own_heads
from symbolic_cost.models.decoders.kinds import DENSE, EXPERTS, FULL, SLIDES, Sparse
from symbolic_cost.models.decoders.other_heads import OtherHeads

_EXPERT_KEYS = ("num_experts", "top_k_experts", "moe_intermediate_size")


def gemma4(fields: Fields, shape: Shape) -> Model:
    """Declare a Gemma 4: full layers have their own heads; experts run beside a perceptron."""
    decoder = decoder_of(fields)
    own = decoder.attention
    sparse = fields.flag("enable_moe_block", default=False)
    doubled = fields.flag("use_double_wide_mlp", default=False)
    single = fields.flag("attention_k_eq_v", default=False)
    taking = fields.optional_size("num_kv_shared_layers") or 0
    if sparse and doubled and taking:
        fields.note("use_double_wide_mlp", "only false is declared beside experts")
    if not sparse:
        fields.ignore(*_EXPERT_KEYS)
    full: Attention = replace(own, sources=Sources.ONE) if single else own  # type: ignore[arg-type,assignment]
    mixers = {
        FULL: OtherHeads(full, own_heads),
        TAKING[FULL]: OtherHeads(replace(full, sources=Sources.OTHERS), own_heads),
    }

    def kinds(fields: Fields, layers: int) -> tuple[list[str], list[str]]:
        plain = [*full_layers(fields)[:-1], FULL]
        followers = [EXPERTS if sparse else DENSE] * layers
        if doubled and taking:
            followers[-taking:] = [WIDENED] * taking
        return _taking(fields, plain, taking), followers

    changed = replace(
        decoder,
        mixers=mixers,
        sparse=Sparse.ALWAYS if sparse else Sparse.NEVER,
        reads=replace(decoder.reads, kinds=kinds),
        lengths={**_features(fields), "f_y": 2 * symbols.f},
    )
    return declared(fields, shape, changed)


def embedding_gemma2(fields: Fields, shape: Shape) -> Model:
    """Declare an EmbeddingGemma 2: tokens see both sides, full layers have their own heads."""
    usual = {"num_global_key_value_heads": 1, **fields.source.values, "attention_k_eq_v": True}
    fields.source = replace(fields.source, values=usual)
    decoder = decoder_of(fields)
    own: Attention = decoder.attention  # type: ignore[assignment]
    period = fields.size("sliding_window_pattern", 6)
    fields.need("per_layer_config")

    def kinds(fields: Fields, layers: int) -> tuple[list[str], list[str]]:
        return [*full_layers(fields, period)[:-1], FULL], [DENSE] * layers

    sizes = {
        "d_y": fields.size("hidden_size_per_layer_input", 512),
        "n_y": fields.size("num_hidden_layers"),
        "w": fields.size("embedding_dim", 768),
    }
    changed = replace(
        decoder,
        mixers={FULL: OtherHeads(own, own_heads)},
        variants={SLIDES: {"at": own.at}},  # windows are a mask of the whole square
        reads=replace(decoder.reads, kinds=kinds),
        lengths={axis: Integer(size) for axis, size in sizes.items()},
    )
    return declared(fields, shape, changed)


def gemma3n(fields: Fields, shape: Shape) -> Model:
    """Declare a Gemma 3n: the residual stream has copies, of which a layer computes one."""
    decoder = decoder_of(fields)
    copies = fields.size("altup_num_inputs", 4)
    fields.require(holds=copies > 1, problem="1 is no copy", name="altup_num_inputs")
    scaled = fields.flag("altup_correct_scale", default=True)
    taking = fields.optional_size("num_kv_shared_layers", 15) or 0
    sparse = fields.items("activation_sparsity_pattern")

    def kinds(fields: Fields, layers: int) -> tuple[list[str], list[str]]:
        first = 10 if layers > 10 else 0  # noqa: PLR2004 - as the class has it
        thin = list(sparse) or [1] * first + [0] * (layers - first)  # whatever share it is
        if not (len(thin) == layers and all(isinstance(one, int | float) for one in thin)):
            fields.note("activation_sparsity_pattern", f"{layers} shares are accepted")
        followers = [THINNED if isinstance(one, int | float) and one > 0 else DENSE for one in thin]
        return _taking(fields, full_layers(fields, 5), taking), followers

    changed = replace(
        decoder,
        habits=decoder.habits | Habit.SCALE if scaled else decoder.habits,
        reads=replace(decoder.reads, kinds=kinds),
        lengths={
            **_features(fields),
            **dict.fromkeys(("n_s", "n_i", "n_m"), Integer(copies)),
            "n_o": Integer(max(copies - 1, 1)),
            "r_l": Integer(fields.size("laurel_rank", 64)),
        },
    )
    return declared(fields, shape, changed)


def _features(fields: Fields) -> Mapping[str, Expr]:
    width = fields.optional_size("hidden_size_per_layer_input", 256)
    if width is None:
        fields.ignore("vocab_size_per_layer_input")
        return {}
    sizes = {
        "d_y": width,
        "n_y": fields.size("num_hidden_layers"),
        "n_v": fields.size("vocab_size_per_layer_input", 262144),
    }
    return {axis: Integer(size) for axis, size in sizes.items()}


def _taking(fields: Fields, plain: list[str], taking: int) -> list[str]:
    """Return the kinds of layers, the last of which take keys of others."""
    first = len(plain) - taking
    if not (not taking or (first > 0 and set(plain[:first]) == set(plain))):
        fields.note("num_kv_shared_layers", "layers that others take keys from are missing")
    if SLIDES not in plain:
        fields.ignore("sliding_window")
    return [*plain[: max(first, 0)], *(TAKING[kind] for kind in plain[max(first, 0) :])]
