"""Layers of decoders: what each declares, and what moves when its axes are split."""

from dataclasses import replace
from fractions import Fraction

import pytest
from sympy import Integer, Rational, expand

from symbolic_cost.conventions.presets import preset
from symbolic_cost.errors import PatternError
from symbolic_cost.layers.attention import Bias, CacheKind, HeadNorm
from symbolic_cost.layers.attention_core import AttentionCore, Core, Step
from symbolic_cost.layers.chain import chain
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.latent import Expansion, LatentAttention
from symbolic_cost.layers.moe import MixtureOfExperts
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.tokens import Exit, Logits, Tokens
from symbolic_cost.ledger import Phase
from symbolic_cost.models.decoders.decoder import ATTENTION, CORE
from symbolic_cost.models.decoders.sizes import Sizes
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import fragment
from symbolic_cost.ops.placement import WHOLE, Placement
from symbolic_cost.ops.view import cache
from symbolic_cost.symbols import E, E_t, V, b, e, ep, f, f_m, f_s, h, k, l, m1, q

RULES = preset("model-flop")


def table(layer, placement=WHOLE, *, latent=None, shape=Shape(), rules=RULES):  # noqa: B008
    sizes = Sizes().axes(shape, latent)
    model = Model("layer", (fragment("layer", layer.ops()),), sizes, means=("z",))
    return cost(model, rules, placement)


def same(expr, other):
    return expand(expr - other) == 0


def moved(made, phase=Phase.FORWARD):
    rows = made.select("communication", phase=phase)
    return sorted((row.path.split(".", 1)[1], row.collective.kind.value) for row in rows)


@pytest.mark.parametrize(
    ("head_norm", "parameters"),
    [
        (HeadNorm.NONE, 0),
        (HeadNorm.HEAD, 2 * q),
        (HeadNorm.HEADS, (h + k) * q),
        (HeadNorm.WIDTH, (h + k) * q),
    ],
)
def test_norms_of_queries_and_keys(head_norm, parameters):
    made = table(replace(ATTENTION, head_norm=head_norm))
    assert same(made.total("parameter"), 2 * e * h * q + 2 * e * k * q + parameters)


def test_biases_and_sinks():
    core = AttentionCore(steps=Step.SINK)
    layer = replace(ATTENTION, bias=Bias.BOTH, core=core)
    extra = table(layer).total("parameter") - table(ATTENTION).total("parameter")
    assert same(extra, (h + 2 * k) * q + e + h)


def test_heads_are_split_with_one_sum_per_pass():
    split = Placement({"tp": m1}, {"k": ("tp",)})
    made = table(ATTENTION, split)
    whole = table(ATTENTION)
    assert moved(made) == [("proj", "all-reduce")]
    assert same(made.total("flop") * m1, whole.total("flop"))
    assert same(made.total("cached") * m1, 2 * b * l * k * q)


def test_fused_and_eager_cores_compute_alike():
    fused = replace(ATTENTION, core=replace(CORE, kernel=Core.FLASH))
    for phase in (Phase.FORWARD, Phase.BACKWARD_INPUT, Phase.BACKWARD_WEIGHT):
        eager = table(ATTENTION).total("flop", phase=phase)
        assert same(table(fused).total("flop", phase=phase), eager)
    assert table(fused).total("saved").coeff(l, 2) == 0


def test_keys_cached_for_every_query_head():
    wide = table(replace(ATTENTION, cache=CacheKind.COPIES))
    assert same(wide.total("cached"), 2 * b * l * h * q)
    assert same(wide.total("flop"), table(ATTENTION).total("flop"))


def test_a_latent_of_the_queries_changes_queries_alone():
    def parameters(layer):
        made = table(layer, latent=Expansion.OWN).select("parameter")
        return made.select(where=lambda row: ".q" not in row.path and "norm_q" not in row.path)

    first, second = (parameters(LatentAttention(query)) for query in ("r_q", ""))
    assert same(first.total(), second.total())
    assert len(first) == len(second)


def test_gated_perceptron():
    made = table(GatedMLP(bias=Bias.BOTH))
    assert same(made.total("parameter"), 3 * e * f + 2 * f + e)
    assert same(made.total("flop"), 18 * b * l * e * f)
    split = table(GatedMLP(), Placement({"tp": m1}, {"f": ("tp",)}))
    assert moved(split) == [("down", "all-reduce")]


def test_experts_and_shared_ones():
    layer = MixtureOfExperts(shared="f_s", bias=Bias.BOTH)
    made = table(layer)
    experts = E * (3 * e * f_m + 2 * f_m + e)
    assert same(made.total("parameter"), experts + e * E + E + 3 * e * f_s)
    products = 3 * e * (E_t * f_m + f_s) + e * E
    assert same(made.total("flop", phase=Phase.FORWARD), 2 * b * l * products)


def test_experts_on_other_ranks_are_reached_by_all_to_all():
    split = Placement({"ep": ep}, {"b": ("ep",), "x": ("ep",)})
    made = table(MixtureOfExperts(), split)
    assert moved(made) == [
        ("copies", "all-to-all"),
        ("copy_shares", "all-to-all"),
        ("weigh", "all-to-all"),
    ]
    assert same(made.total("flop") * ep, table(MixtureOfExperts()).total("flop"))
    reduced = [row.path for row in made.select("communication") if row.per_step]
    assert reduced == ["layer.router"]


def test_padded_experts_compute_their_capacity():
    sizes = Sizes(capacity=Fraction(5, 4)).axes(Shape())
    model = Model("layer", (fragment("layer", MixtureOfExperts().ops()),), sizes, means=("z",))
    made = cost(model, RULES).select(path="layer.experts")
    assert same(made.total("flop", phase=Phase.FORWARD), Rational(15, 2) * b * l * E_t * e * f_m)


def test_tokens_and_logits_share_a_table():
    ops = (*Tokens().ops(), *replace(Logits(), steps=Exit.NONE).ops())
    renamed = tuple(op for op in ops if op.path in {"token", "logits"})
    model = Model("ends", (fragment("ends", renamed[:1]), fragment("head", renamed[1:])), _ends())
    assert cost(model, RULES).total("parameter") == V * e


def _ends():
    return Sizes().axes(Shape())


def test_a_chain_names_what_lies_between():
    def step(name):
        return lambda x, y: pointwise(name, f"{x}[b] -> {y}[b]", "relu")

    ops = chain("x", [step("one"), step("two"), step("three")], "y")
    assert [op.inputs[0].tensor for op in ops] == ["x", "y_1", "y_2"]
    assert [op.outputs[0].tensor for op in ops] == ["y_1", "y_2", "y"]


@pytest.mark.parametrize(
    ("norm", "weights"),
    [(Norm.LAYER, 2), (Norm.LAYER_SCALE, 1), (Norm.LAYER_BARE, 0), (Norm.RMS, 1)],
)
def test_norms_learn(norm, weights):
    op = norm.op("norm", "x[b r e]", "y[b r e]")
    assert [weight.axes for weight in op.weights] == [("e",)] * weights


def test_a_cache_keeps_what_it_says():
    op = cache("keys", "k[b l k d] -> keys[b t k d]", kept="b m k d")
    assert [kept.axes for kept in op.caches()] == [("b", "m", "k", "d")]
    with pytest.raises(PatternError, match="kept axes"):
        cache("keys", "k[b l k d] -> keys[b t k d]", kept="b m")


def test_a_decode_step_is_one_query():
    step = Shape(Integer(1), Integer(1), Integer(7))
    made = table(ATTENTION, shape=step).select(path="layer.core")
    assert same(made.total("flop", phase=Phase.FORWARD), 4 * h * q * 8)
