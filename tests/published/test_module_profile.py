"""The profiles of BERT-base and Megatron GPT-2, every printed number of both."""

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from sympy import expand

from symbolic_cost.errors import InputError
from symbolic_cost.models.bound import bound
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.models.vision.cnn import NETWORKS
from symbolic_cost.published import module_profile
from symbolic_cost.published.contract import publication, reproduce
from symbolic_cost.published.module_profile import bert, gpt2
from symbolic_cost.published.module_profile.figures import profile_text
from symbolic_cost.published.module_profile.numbers import latency, printed, text_of
from symbolic_cost.published.module_profile.profile import profile
from symbolic_cost.symbols import symbol

GOLDEN = Path(__file__).parents[1] / "golden"
NOTES = {
    "within the rounding of the printed latencies": "derived",
    "a measured latency, an input": "measured",
    "a fact of the run, an input": "given",
    "": "closed",
}


@pytest.mark.parametrize(
    ("module", "counts"),
    [
        (bert, {"closed": 177, "derived": 63, "measured": 40}),
        (gpt2, {"closed": 109, "derived": 43, "measured": 26, "given": 4}),
    ],
    ids=["bert", "gpt2"],
)
def test_every_printed_number(module, counts):
    rows = module.reproduce()
    assert Counter(NOTES[row.note] for row in rows) == counts
    assert [row for row in rows if row.match is False] == []
    inputs = [row for row in rows if row.match is None]
    assert [row for row in inputs if row.published != row.computed] == []
    closed = [row for row in rows if not row.note]
    assert [row for row in closed if row.published != row.computed] == []


def test_a_wrong_shape_is_noticed():
    found = bert.evaluate({**bert.inputs, "b": 1})
    published = {row.key: row.published for row in bert.reproduce()}
    key = "detailed||BertModel|macs"
    assert (found[key], published[key]) == ("11.17 GMACs", "44.7 GMACs")


def test_the_exact_integers_behind_bert():
    sizes = {"b": 4, "l": 128, "e": 768, "f": 3072, "h": 12, "V": 30522, "P": 512, "T": 2}
    top = profile(bound(CATALOG["bert"].model(), **sizes, n_layers=12)).top
    assert (top.params, top.macs, top.flop) == (109_482_240, 44_696_862_720, 89_452_314_624)


def test_weights_that_modules_share_count_once_above_them():
    sizes = {"b": 1, "l": 8, "e": 16, "f": 32, "h": 2, "V": 50, "P": 8, "T": 2, "n_layers": 3}
    top = profile(bound(CATALOG["bert-mlm"].model(), **sizes)).top
    modules = {module.path: module for _, _, module in top.walk()}
    table = 50 * 16
    assert modules["embedding.token"].params == table
    assert modules["head.logits"].params == table + 50
    assert top.params == modules["embedding"].params + 3 * modules["block.0"].params + sum(
        [16 * 16 + 16, 2 * 16, 50]
    )


def test_any_model_is_profiled_by_the_paths_of_its_declaration():
    made = profile(NETWORKS["alexnet"].model(), {"b": 256})
    assert (made.top.params, made.top.macs, made.top.flop) == (
        61_100_840,
        182_832_250_880,
        366_013_743_104,
    )
    text = profile_text(made)
    row = "(0): Conv2d(23.3 k, 0.04% Params, 17.99 GMACs, 9.84% MACs, !image[b c0 y0 x0]"
    assert row in text
    assert "latency -" not in text  # none was given


def test_report_is_the_approved_text():
    """The approved text; rates differ from the print in digits that hang on unrounded latencies."""
    for name, module in (("bert", bert), ("gpt2", gpt2)):
        lines = (GOLDEN / f"{name}_profile.txt").read_text("utf-8")
        assert module.report(module.inputs) + "\n" == lines


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (text_of("params", 0), "0"),
        (text_of("params", 1536), "1.54 k"),
        (text_of("params", 109_482_240), "109.48 M"),
        (text_of("macs", 0), "0 MACs"),
        (text_of("macs", 999), "999 MACs"),
        (text_of("macs", 44_696_862_720), "44.7 GMACs"),
        (text_of("macs", 41_271_951_360_000), "41271.95 GMACs"),
        (text_of("flop", 82_543_902_720_000), "82543.9 G"),
        (text_of("rate", Fraction(0)), "0.0 FLOPS"),
        (text_of("rate", Fraction(205_810_000_000_000)), "205.81 TFLOPS"),
        (text_of("latency", Fraction(189, 100)), "1.89 s"),
        (text_of("latency", Fraction(125, 10_000)), "12.5 ms"),
        (text_of("latency", Fraction(1, 10**8)), "0.01 us"),
        (text_of("percent", Fraction(100)), "100.00%"),
    ],
)
def test_printed_rounding(made, text):
    assert made == text


def test_a_printed_number_stands_for_a_span():
    span = printed("4.4 ms")
    assert (span.low, span.high) == (Fraction(4395, 10**6), Fraction(4405, 10**6))
    assert printed("0.74%").value == Fraction(74, 100)
    assert printed("1024").low == printed("1024").high == 1024
    assert latency(0.25, "x").value == Fraction(1, 4)


@pytest.mark.parametrize(
    ("inputs", "texts"),
    [
        ({"bert": {**bert.inputs, "n": 7}}, ["e = 768 is not divisible by n = 7"]),
        ({"brt": {}}, ["unknown profile 'brt': did you mean bert?"]),
        (
            {"bert": {"b": 0, "x": 1}},
            ["input 'b' is 0: input should be greater than or equal to 1", "input 'l' is missing"],
        ),
        (
            {
                "bert": {
                    **bert.inputs,
                    "latencies": {
                        "detailed|encodr|BertEncoder|latency": "1 ms",
                        "detailed|pooler|BertPooler|latency": "-1 ms",
                    },
                }
            },
            ["unknown module 'encodr': did you mean encoder", "latency of module 'pooler'"],
        ),
        (
            {"gpt2": {**gpt2.inputs, "latencies": {"embedding": "1 ms"}}},
            ["latency 'embedding': write for example"],
        ),
    ],
)
def test_refuses(inputs, texts):
    with pytest.raises(InputError) as caught:
        module_profile.evaluate(inputs)
    for text in texts:
        assert text in str(caught.value)


def test_inputs_of_one_profile_are_enough():
    words = {"tensor": "BertModel(add_pooling_layer=True), eval mode, fp32"}
    found = module_profile.evaluate({**bert.inputs, **words})
    assert found == bert.evaluate(bert.inputs)
    assert module_profile.evaluate(gpt2.inputs) == gpt2.evaluate(gpt2.inputs)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"module": {}}, "unknown group of latencies 'module': did you mean modules?"),
        ({"modules": ["1 ms"]}, "latencies by module are ['1 ms']: an object is accepted"),
        ({"modules": {"": "fast"}}, "latency of module '' is 'fast'"),
        ({"modules": {"": 0}}, "positive seconds, or text like '4.4 ms', are accepted"),
        ({"modules": {"": True}}, "latency of module '' is True"),
        ({"run": {"fwdd": 1}}, "unknown pass 'fwdd': did you mean fwd"),
        ({"classes": {"deep": {}}}, "depth 'deep' of latencies is not a number from 0"),
        ({"classes": {"1": {"Linear": "x"}}}, "latency of depth 1, class 'Linear' is 'x'"),
    ],
)
def test_latencies_refused(given, text):
    model = GPT(b=1, l=4, e=8, f=8, h=2, V=5, P=4, n_layers=1).model()
    with pytest.raises(InputError) as caught:
        profile(model, measured=given)
    assert text in str(caught.value)


def test_both_are_one_publication():
    result = reproduce("module-profile")
    assert (result.matched, result.total) == (177 + 63 + 109 + 43, 392)
    assert set(publication("module-profile").PUBLISHED_INPUTS) == {"bert", "gpt2"}
    assert json.dumps(module_profile.evaluate({"bert": bert.inputs}))


def symbols_of(names):
    return [symbol(name) for name in names.split()]


def test_formulas_of_bert():
    b, l, e, f, h, n, V, P, T = symbols_of("b l e f h n_layers V P T")
    layer = b * l * (4 * e**2 + 2 * e * f) + 2 * b * l**2 * e
    by_hand = {
        "detailed||BertModel|params": (V + P + T + 2) * e
        + n * (4 * e**2 + 2 * e * f + 9 * e + f)
        + e**2
        + e,
        "detailed||BertModel|macs": n * layer + b * e**2,
        "detailed||BertModel|flops": 2 * (n * layer + b * e**2)
        + 5 * (2 * n + 1) * b * l * e
        + n * b * h * l**2,
        "detailed|encoder.layer.0.attention.self|BertSelfAttention|macs": 3 * b * l * e**2
        + 2 * b * l**2 * e,
        "detailed|pooler.dense|Linear|flops": 2 * b * e**2,
    }
    found = bert.formulas()
    assert [key for key, formula in by_hand.items() if expand(found[key] - formula) != 0] == []


def test_formulas_of_gpt2_with_partitioned_weights():
    b, l, e, f, h, n, V = symbols_of("b l e f h n_layers V")
    layers = n * (b * l * (4 * e**2 + 2 * e * f) + b * h * l**2)
    by_hand = {
        "detailed||GPT2Model|params": n * (9 * e + f + 4) + 2 * e + 2,
        "detailed||GPT2Model|macs": layers + b * l * e * V,
        "detailed||GPT2Model|flops": 2 * (layers + b * l * e * V),
        "detailed|language_model.transformer.layers|ModuleList|macs": layers,
    }
    found = gpt2.formulas()
    assert [key for key, formula in by_hand.items() if expand(found[key] - formula) != 0] == []
    assert len(module_profile.formulas()) == len(found) + len(bert.formulas())


def test_sizes_that_do_not_divide_are_refused():
    with pytest.raises(InputError, match="axis 'd' is 10/3, not a whole number"):
        profile(GPT(b=1, l=3, e=10, f=3, h=3, V=5, P=4, n_layers=1).model())
