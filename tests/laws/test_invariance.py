"""What must not change a cost: names, orders, fusion without recomputation, repetition."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Integer, Symbol, expand

from symbolic_cost.conventions.presets import EXACT, PRESETS, STANDARD
from symbolic_cost.conventions.questions import Saved
from symbolic_cost.ledger import TRAINING, Phase, Quantity
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import Einsum, einsum
from symbolic_cost.ops.elementwise import dropout, pointwise, softmax
from symbolic_cost.ops.fused import fused
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Place, scope
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.recompute import FULL, SELECTIVE
from symbolic_cost.ops.view import view
from tests.strategies import model_of, placed_contractions


def totals(table):
    """Every total by quantity and phase."""
    found = {}
    for row in table:
        key = (row.quantity, row.phase)
        found[key] = found.get(key, 0) + row.total
    return {key: value for key, value in found.items() if value != 0}


def renamed(drawn, names):
    """The same contraction with other names of axes and tensors."""

    def change(operand):
        axes = tuple(names[axis] for axis in operand.axes)
        return replace(operand, tensor=f"other_{operand.tensor}", axes=axes)

    pattern = drawn.op.pattern
    changed = replace(
        pattern,
        inputs=tuple(map(change, pattern.inputs)),
        biases=tuple(map(change, pattern.biases)),
        outputs=tuple(map(change, pattern.outputs)),
    )
    sizes = {names[axis]: size for axis, size in drawn.sizes.items()}
    axes = {names[axis]: meshes for axis, meshes in drawn.placement.axes.items()}
    placement = Placement(drawn.placement.degrees, axes)
    return cost(model_of([Einsum("op", changed)], sizes), EXACT, placement)


@given(placed_contractions(), st.permutations("abcd"))
def test_renaming_changes_nothing(drawn, order):
    names = dict(zip("abcd", order, strict=True))
    table = cost(drawn.model, EXACT, drawn.placement)
    assert totals(renamed(drawn, names)) == totals(table)


@given(placed_contractions(), st.data())
def test_permuting_operands_and_axes_changes_nothing(drawn, data):
    pattern = drawn.op.pattern

    def permuted(operand):
        return replace(operand, axes=tuple(data.draw(st.permutations(operand.axes))))

    changed = replace(
        pattern,
        inputs=tuple(map(permuted, data.draw(st.permutations(pattern.inputs)))),
        outputs=tuple(map(permuted, pattern.outputs)),
    )
    model = model_of([Einsum("op", changed)], drawn.sizes)
    assert totals(cost(model, EXACT, drawn.placement)) == totals(
        cost(drawn.model, EXACT, drawn.placement)
    )


# Fused groups.

CORE = (
    einsum("scores", "q[l d], k[t d] -> s[l t]", pairs="l t"),
    softmax("softmax", "s[l t] -> p[l t]", row="t"),
    dropout("dropout", "p[l t] -> kept[l t]"),
    einsum("attend", "kept[l t], v[t d] -> o[l d]", pairs="l t"),
)
BORDER = "q[l d], k[t d], v[t d]"
CORE_SIZES = {"l": 5, "t": 7, "d": 3}


def core(again):
    return fused("core", f"{BORDER} -> o[l d]", CORE, saves=f"{BORDER}, o[l d]", recompute=again)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("again", [(), ("scores", "softmax")])
def test_a_fused_group_computes_what_its_ops_compute(preset, again):
    apart = cost(model_of(CORE, CORE_SIZES), PRESETS[preset])
    together = cost(model_of([core(again)], CORE_SIZES), PRESETS[preset])
    for phase in (Phase.FORWARD, Phase.BACKWARD_INPUT, Phase.BACKWARD_WEIGHT):
        counted = together.total(Quantity.FLOP, phase=phase)
        seen = "fused" not in PRESETS[preset].unseen
        assert counted == (apart.total(Quantity.FLOP, phase=phase) if seen else 0)
    repeated = cost(model_of([op for op in CORE if op.path in again], CORE_SIZES), PRESETS[preset])
    expected = repeated.total(Quantity.FLOP, phase=Phase.FORWARD)
    assert together.total(Quantity.FLOP, phase=Phase.RECOMPUTE) == (
        expected if PRESETS[preset].fused_recompute else 0
    )


def test_a_fused_group_moves_what_crosses_its_border():
    table = cost(model_of([core(())], CORE_SIZES), EXACT)
    keys, queries = 7 * 3 * 2, 5 * 3 * 2
    assert table.total(Quantity.READ, phase=Phase.FORWARD) == queries + 2 * keys
    assert table.total(Quantity.WRITE, phase=Phase.FORWARD) == queries
    # The output's gradient and what is saved in; three gradients out.
    assert table.total(Quantity.READ, phase=Phase.BACKWARD_INPUT) == 3 * queries + 2 * keys
    assert table.total(Quantity.WRITE, phase=Phase.BACKWARD_INPUT) == queries + 2 * keys
    assert {row.tensor for row in table.select(Quantity.SAVED)} == {"q", "k", "v", "o"}


# Recomputation.

GPT_SIZES = {"b": 2, "l": 8, "e": 16, "f": 64, "h": 4, "V": 40, "n_layers": 3}
SHARDED = Placement(
    {"tp": 2, "dp": 2},
    {"h": ("tp",), "f": ("tp",), "v": ("tp",), "r": ("tp",), "b": ("dp",)},
)


@pytest.mark.parametrize("placement", [Placement(), SHARDED], ids=["one rank", "sharded"])
@pytest.mark.parametrize("preset", ["exact", "standard", "model-flop", "megatron-2022"])
@pytest.mark.parametrize("policy", [SELECTIVE, FULL], ids=lambda policy: policy.name)
def test_recomputation_repeats_the_forward_of_its_regions(policy, preset, placement):
    model = GPT(**GPT_SIZES).model()
    regions = policy.regions(model)
    kept = cost(model, PRESETS[preset], placement)
    again = cost(model, PRESETS[preset], placement, policy)
    for quantity in (Quantity.FLOP, Quantity.READ, Quantity.WRITE):
        inside = again.select(quantity, phase=Phase.FORWARD).select(
            where=lambda row: regions[row.path] is not None and row.collective is None
        )
        repeated = again.select(quantity, phase=Phase.RECOMPUTE)
        computed = repeated.select(where=lambda row: row.collective is None)
        assert computed.total() == inside.total()
        for phase in TRAINING[:3]:
            assert again.total(quantity, phase=phase) == kept.total(quantity, phase=phase)
    sizes = {"s": 2, "mu": 1}
    numbers = {symbol: sizes[symbol.name] for symbol in kept.total("saved").free_symbols}
    before, after = (t.total(Quantity.SAVED).subs(numbers) for t in (kept, again))
    assert after < before


def test_full_recomputation_keeps_the_shard_that_a_block_gathers_first():
    ops = scope(
        "block",
        (
            view("gather", "outside[r] -> full[l]"),
            einsum("product", "full[l], *w[l e] -> y[e]"),
        ),
        outside="x",
    )
    placement = Placement({"tp": 2}, {"r": ("tp",)})
    model = model_of(ops, {"r": 8, "l": 8, "e": 2})
    block = replace(model, parts=tuple(replace(p, place=Place.BLOCK) for p in model.parts))
    table = cost(block, EXACT, placement, FULL)
    assert [(row.tensor, row.expr) for row in table.select(Quantity.SAVED)] == [("x", 4 * 2)]
    gathered = table.select(Quantity.COMMUNICATION, phase=[Phase.FORWARD, Phase.RECOMPUTE])
    assert [row.phase for row in gathered] == [Phase.FORWARD, Phase.RECOMPUTE]


# Saved tensors.


def test_a_shared_input_is_saved_once():
    ops = tuple(einsum(name, f"x[b e], *w[e f] -> {name}[b f]") for name in "qkv")
    table = cost(model_of(ops, {"b": 3, "e": 5, "f": 7}), EXACT)
    assert [row.tensor for row in table.select(Quantity.SAVED)] == ["x"]


@given(st.permutations(range(4)))
def test_the_order_of_independent_ops_changes_no_total(order):
    ops = (
        einsum("one", "x[b e], *w[e f] -> one[b f]"),
        pointwise("two", "x[b e] -> two[b e]", "gelu"),
        einsum("three", "x[b e], y[b e] -> three[b]"),
        einsum("four", "y[b e], *w[e f] -> four[b f]"),
    )
    placement = Placement({"m": 2, "n": 2}, {"f": ("m",), "b": ("n",)})
    sizes = {"b": 4, "e": 4, "f": 4}
    mixed = cost(model_of([ops[i] for i in order], sizes), EXACT, placement)
    assert totals(mixed) == totals(cost(model_of(ops, sizes), EXACT, placement))


@pytest.mark.parametrize("first", [0, 1])
def test_a_gathered_copy_is_gathered_again_whoever_comes_first(first):
    """A shard is kept; the op that needs the whole tensor gathers it again in backward."""
    made = scope(
        "layer",
        (
            einsum("shard", "x[r e], *w[e f] -> u[r f]"),
            einsum("whole", "full[l e], *w[e f] -> y[l f]"),
        ),
        x="x",
        full="full",
    )
    gather = view("gather", "x[r e] -> full[l e]")
    ops = (gather, made[first], made[1 - first])
    placement = Placement({"tp": 2}, {"r": ("tp",)})
    convention = replace(EXACT, saved=Saved.SHARD)
    table = cost(model_of(ops, {"r": 4, "l": 4, "e": 2, "f": 3}), convention, placement)
    again = table.select(Quantity.COMMUNICATION, phase=Phase.BACKWARD_WEIGHT).select(
        where=lambda row: row.collective.kind == "all-gather"
    )
    assert [row.tensor for row in again] == ["full"]
    assert again.rows[0].collective.message == 4 * 2 * 2
    assert [row.tensor for row in table.select(Quantity.SAVED)] == ["x"]


# The cost of building.


def calls_of(monkeypatch, model):
    """How often the kernels of an op are asked for."""
    calls = []
    with monkeypatch.context() as patch:
        for kind in subclasses(Op):
            if "kernels" in vars(kind):
                patch.setattr(kind, "kernels", counted(kind.kernels, calls))
        table = cost(model, STANDARD)
    return len(calls), len(table)


def subclasses(kind):
    return [kind, *(below for sub in kind.__subclasses__() for below in subclasses(sub))]


def counted(kernels, calls):
    def ask(self):
        calls.append(self.path)
        return kernels(self)

    return ask


def test_the_build_does_not_depend_on_the_number_of_layers(monkeypatch):
    few, many = (
        calls_of(monkeypatch, GPT(**(GPT_SIZES | {"n_layers": n})).model()) for n in (2, 10**6)
    )
    assert few == many


def test_the_build_is_linear_in_the_number_of_ops(monkeypatch):
    def chained(length):
        names = ["b e" if i % 2 == 0 else "b f" for i in range(length + 1)]
        ops = [
            einsum(f"op{i}", f"x{i}[{names[i]}], *w[e f] -> x{i + 1}[{names[i + 1]}]")
            for i in range(length)
        ]
        return model_of(ops, {"b": 4, "e": 4, "f": 4})

    short, long = (calls_of(monkeypatch, chained(length)) for length in (10, 100))
    assert long == (10 * short[0], 10 * short[1])


def test_repetition_is_a_factor():
    n_layers = Symbol("n_layers", positive=True, integer=True)
    symbolic = cost(GPT(**(GPT_SIZES | {"n_layers": n_layers})).model(), STANDARD)
    numbers = cost(GPT(**GPT_SIZES).model(), STANDARD)
    for quantity in (Quantity.FLOP, Quantity.SAVED, Quantity.PARAMETER):
        factored = symbolic.total(quantity).subs(n_layers, Integer(3))
        assert expand(factored - numbers.total(quantity)) == 0
