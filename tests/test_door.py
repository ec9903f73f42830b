"""Whatever is passed to a public name is refused by the library itself, or understood."""

import inspect
import subprocess
import sys
from fractions import Fraction
from itertools import count, repeat

import numpy as np
import pytest
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.errors import SymbolicCostError
from symbolic_cost.jobs.build import Options
from symbolic_cost.symbols import b, e, l

TABLE = sc.cost("gpt")
RUNS = [{"N": n, "D": n * d, "loss": 2 + 1 / n + 1 / d} for n in (8, 9, 11) for d in (2, 3, 5)]
OP = sc.einsum("fc", "x[b e], *w[e f] -> y[b f]")
PART = sc.fragment("block", (OP,))
PLACEMENT = sc.Placement({"tp": 2}, {"f": ("tp",)})
STRATEGY = sc.parse_strategy("tp=2")
GPT = sc.model("gpt")
JOB = sc.job("gpt", "tp=2", {"l": 128})
STRANGE = [None, object(), "text", -1, 0, float("nan"), 1j, [], {}, 10**400, True]
STRANGE += [float("inf"), 5e-324, 10**9, b"text", {"a"}, "a\0b", "\ud800", "x" * 5000]


class Strangers:
    """An iterator that yields no argument of anything, and begins anew when it has ended."""

    def __init__(self, *items):
        self.items, self.place = items, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.place = (self.place + 1) % (len(self.items) + 1)
        if not self.place:
            raise StopIteration
        return self.items[self.place - 1]


STRANGE += [Strangers(object()), Strangers(1), Strangers("b"), [object()], (1, None), {"l": [1]}]
STRANGE += [np.zeros(2), np.array("a"), Integer(2) ** 10**5, TABLE, JOB, STRATEGY, sc]
CONFIG = {"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 16}


def fields(value):
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


OPTIONS = {
    "conventions": "standard",
    "recompute": "none",
    "optimizer": "adam",
    "schedule": "1f1b",
    "offload": "",
    "attention": "flash",
    "overlap": "",
    "roofline": "maximum",
    "stack": "roofline",
    "layout": "even",
    "scattered": False,
    "order": "",
    "regather": None,
    "stage": "first",
    "train": None,
    **dict.fromkeys(("system", "precision", "microbatches", "global_batch")),
}
GENERATED = {"declare": lambda shape: sc.GPT(b=shape.b).model(), "conventions": sc.preset("exact")}
SWEPT = {
    "job": sc.job("gpt2", "tp=2", {"M": 8}),
    "vary": {"b": [1, 2]},
    "where": "memory < 80 GiB",
    "columns": ("memory",),
    "engine": "threads",
    "scheduler": "",
    "progress": False,
    "yes": False,
    "gpus": None,
    "global_batch": None,
}
POINTWISE = {"name": "act", "pattern": "x[b e] -> y[b e]"}
SEARCHED = {
    "of": "lenet-5",
    "gpus": 1,
    "global_batch": 1,
    "system": "h100",
    "choose": {"recompute": ("none",)},
}
# The arguments that are right, by parameter; one after the other is replaced.
VALID = {
    "At": {"role": sc.Role.BATCH, "copies": None},
    "TokenConventions": fields(sc.token_conventions("palm")),
    "branches": {"expr": b * l, "by": "l"},
    "fit_cluster": {"steps": [], "seconds": [], "weights": None},
    "workbook": {"job": sc.job("gpt2", "dp=2", {"M": 1}, system="h100"), "path": "costs.xlsx"},
    "step_trace": {"job": sc.job("gpt2", "dp=2", {"M": 1}, system="h100"), "path": "a.json"},
    "chakra_traces": {"job": sc.job("gpt2", "dp=2", {"M": 1}, system="h100"), "folder": "."},
    "calculator": {"job": sc.job("gpt2", "2d=2x2"), "path": "calculator.html"},
    "check": {
        "text": "b",
        "cost": "params",
        "model": "gpt2",
        "path": "head",
        "phase": None,
        "strategy": "",
        "notation_name": "own",
        "numbers": None,
        "conventions": None,
        "attention": None,
        "recompute": "none",
    },
    "derive": {
        "model": "gpt2",
        "cost": "params",
        "path": "head",
        "phase": None,
        "strategy": "",
        "notation_name": None,
        "numbers": None,
        "conventions": None,
        "attention": None,
        "recompute": "none",
    },
    "diff": {
        "model": "gpt2",
        "other": None,
        "conventions": ("palm", "verl"),
        "strategy": None,
        "train": "all",
        "system": None,
        "of": None,
        "on": "",
        "seq": 8,
        "numbers": None,
    },
    "dominance": {"parts": {"one": b * l, "other": b * e}},
    "flops_per_token": {"model": "gpt2", "seq": 8, "conventions": "palm", "numbers": None},
    "mfu": {
        "model": "gpt2",
        "tokens_per_second": 9,
        "system": "h100",
        "seq": 8,
        "conventions": "palm",
        "gpus": 1,
        "precision": "bf16",
        "numbers": None,
    },
    "optimum": {"expr": b + l / b, "by": "b"},
    "sensitivity": {"totals": {"one": b * l}, "values": {"b": 1, "l": 2}},
    "solve": {"text": "params <= 1e9", "run": sc.job("gpt"), "by": "e"},
    "token_conventions": {"name": "palm"},
    "Axis": {"name": "b", "role": sc.Role.BATCH, "copy": ""},
    "Conventions": fields(sc.preset("standard")),
    "CostTable": {"rows": (), "conventions": sc.preset("standard")},
    "Entry": fields(sc.Entry("mine")),
    "Exempt": {"name": "x", "meaning": "y", "test": lambda _: True},
    "GPT": fields(sc.GPT()),
    "Job": fields(JOB),
    "Model": fields(GPT),
    "Part": fields(PART),
    "Phase": {"value": "forward"},
    "Quantity": {"value": "flop"},
    "Role": {"value": "batch"},
    "Placement": {
        "degrees": {"tp": 2},
        "axes": {"f": ("tp",)},
        "stored": {},
        "whole": (),
        "again": frozenset(),
    },
    "Row": fields(TABLE.rows[0]),
    "Strategy": {
        "degrees": {"tp": 2},
        "zero": 0,
        "panels": 1,
        "copies": 1,
        "shared": (),
        "reshard": 0,
    },
    "trace": {
        "module": None,
        "example_inputs": (),
        "kwargs": None,
        "dynamic_shapes": None,
        "name": "",
    },
    "bind": {"target": b * l, "values": {"l": 4}},
    "collected": {"expr": b * l},
    "compile": {"expressions": {"x": b * l}},
    "cost": {
        "model": "gpt",
        "conventions": "standard",
        "strategy": "",
        "recompute": "none",
        "attention": None,
        "stage": "first",
    },
    "count": {
        "source": CONFIG,
        "batch": 1,
        "seq": 4,
        "conventions": "standard",
        "image_tokens": None,
        "train": "all",
    },
    "cross_entropy": {"name": "a", "pattern": "x[b e] -> y[b]", "row": "e", "single": True},
    "crossover": {"left": b * l, "right": b**2, "symbol": "l"},
    "derivative": {"expr": b * l, "symbol": "l"},
    "dropout": POINTWISE,
    "einsum": {
        "name": "a",
        "pattern": "x[b e], *w[e f] -> y[b f]",
        "pairs": "",
        "masked": True,
        "window": "",
    },
    "elasticity": {"expr": b * l, "symbol": "l"},
    "equal": {"left": b, "right": l},
    "expanded": {"expr": b},
    "exponent": {"expr": b * l, "scale": "l"},
    "factored": {"expr": b * l},
    "fragment": {"path": "p", "ops": (OP,), "repeat": b},
    "frame": {"table": TABLE, "values": None},
    "from_config": {"source": CONFIG},
    "fused": {
        "name": "f",
        "pattern": "x[b e], *fc.w[e f] -> y[b f]",
        "ops": (OP,),
        "saves": "",
        "recompute": (),
        "holds": "",
    },
    "glossary": {},
    "job": {"model": "gpt", "strategy": "", "numbers": None, **OPTIONS},
    "latex": {"expr": b, "breakable": False},
    "markdown": {"headings": ["name"], "rows": [["b"]]},
    "leading_term": {"expr": b * l, "scale": "l"},
    "load_plugin": {"path": "x.py"},
    "lookup": {"name": "a", "pattern": "*w[v e], ids[b l] -> x[b l e]"},
    "model": {"name": "nemotron-3-super", "predicted": 2},
    "named_cost": {"name": "flops", "phase": None},
    "norm": {"name": "a", "pattern": "x[b e] -> y[b e]", "function": "layer_norm", "row": "e"},
    "parse_strategy": {"text": "tp=2"},
    "pivot": {"table": TABLE, "costs": (sc.named_cost("flops"),), "values": None},
    "plain": {"expr": b},
    "pointwise": {**POINTWISE, "function": "gelu", "row": "", "sums": "", "laid": ""},
    "preset": {"name": "standard"},
    "search": {**SEARCHED, "objective": "step", "top": 1, "progress": False},
    "prove": {**SEARCHED, "objective": "step", "vary": {"l": "256"}},
    "fit": {**SEARCHED, "symbols": ("b",)},
    "recompute_policy": {"name": "full"},
    "register_conventions": {"conventions": sc.preset("standard")},
    "register_machine": {"machine": None},
    "register_model": {"name": "gpt", "build": lambda: GPT, "bindings": None},
    "register_strategy": {"name": "tp", "entry": sc.Entry("mine")},
    "register_symbol": {"name": "b", "meaning": "x", "latex": None, "integer": True},
    "roles": {"text": "b batch"},
    "scope": {"path": "p", "ops": (OP,)},
    "softmax": {**POINTWISE, "row": "e", "single": False},
    "split": {"name": "a", "pattern": "x[b e] -> y[b f]"},
    "pareto": {**SWEPT, "axes": ("memory", "gpus")},
    "serve_plan": {
        "model": "llama-3-8b",
        "system": "h100",
        "gpus": 1,
        "prompt": 10,
        "answer": 10,
        **dict.fromkeys(("rate", "ttft", "itl")),
        "strategy": "tp=1",
        "prefill_strategy": "",
        "weights": "bf16",
        "cache": "bf16",
        "split": False,
        "chunk": 512,
        "shared_prefix": 0,
        "prefix_reading": "each",
        "draft": 0,
        "acceptance": 0.0,
        "draft_model": "",
    },
    "report": {"job": sc.job("gpt2", "dp=2", {"M": 1}, system="h100")},
    "sweep": {**SWEPT, "by": "memory", "top": 1, "out": None, "histogram": "step"},
    "value": {"expr": b / b * 3},
    "view": {"name": "a", "pattern": "x[b e] -> y[b f]"},
    "Shape": {"b": b, "l": l, "c": sc.Shape().c, "i": sc.Shape().i},
    "Training": fields(sc.Training()),
    "batch_that_fits": {**GENERATED, "memory": 10**12, "context": 128},
    "cached_bytes": {**GENERATED, "shape": sc.Shape()},
    "decode": {**GENERATED, "shape": sc.Shape()},
    "write_picture": {
        "path": "picture.svg",
        "draw": lambda figure: figure.text(0, 0, "a"),
        "width": "ieee",
    },
    "citations": {"of": JOB},
    "explain": {"of": JOB, "name": "flops", "levels": 2},
    "notation": {"name": "own", "symbols": ""},
    "written_in": {"notation": sc.notation("megatron")},
    "intensity": {**GENERATED, "shape": sc.Shape()},
    "on_every_rank": {"model": GPT, "strategy": STRATEGY},
    "prefill": {**GENERATED, "shape": sc.Shape()},
    "running": {"model": GPT, "wanted": None},
    "weight_only": {"conventions": sc.preset("standard"), "bits": 4, "group": 128},
    "where_plain": {"exprs": [b]},
    "Job.bind": {"l": 128},
    "Job.device_memory": {"view": "smi"},
    "Job.replace": {"model": "gpt", "strategy": "tp=2", "numbers": {}, **OPTIONS},
    "Job.most": {"by": "l"},
    "Job.rows_under": {"strategy": STRATEGY},
    "Job.total": {"cost": "flops"},
    "Model.submodel": {"parts": GPT.parts[:1]},
    "Job.value": {"expr": b},
    "CostTable.below": {"path": "block"},
    "CostTable.map": {"change": lambda expr: expr},
    "CostTable.select": dict.fromkeys(("quantity", "phase", "path", "kind", "tensor", "where")),
    "CostTable.total": {"quantity": "flop", "phase": None, "path": None, "kind": None},
    "Placement.degree": {"meshes": ("tp",)},
    "Placement.gathered_over": {"axes": ("f",), "again": True},
    "Placement.meshes": {"axis": "f"},
    "Placement.needs": {"operand": ("f",)},
    "Placement.split_axis": {"mesh": "tp", "axes": ("f",), "where": ""},
    "Placement.states": {"operand": ("f",), "space": ("f", "e")},
    "Placement.stored_over": {"what": "weight", "axes": ("f",)},
    "Strategy.degree": {"mesh": "tp"},
    "Strategy.model": {"model": GPT},
    "Strategy.numbered": {"numbers": {"m1": 2}},
    "Strategy.placement": {"model": GPT},
    "Strategy.repeated": {"model": GPT},
    "Strategy.resized": {"symbol": "m1", "size": 2},
}
OBJECTS = (JOB, TABLE, PLACEMENT, STRATEGY, GPT, PART)
MORE = {"collected": 1, "glossary": 0, "Job.table": 0, "Model.placed": 0}  # take *args
BY_PLACE = ("Phase", "Place", "Quantity", "Role")
REGISTERS = {"register_model", "register_strategy", "register_symbol"}


def public():
    for name in sc.__all__:
        thing = getattr(sc, name)
        if not inspect.ismodule(thing):
            yield name, thing
    for one in OBJECTS:
        for name, _ in inspect.getmembers(type(one), inspect.isfunction):
            if not name.startswith("_"):
                yield f"{type(one).__name__}.{name}", getattr(one, name)


def calls(name, thing):
    """Every call with one strange argument: what is strange of it, and the call."""
    valid = VALID.get(name, {})
    for strange in STRANGE:
        for parameter in valid:
            if name in REGISTERS and parameter == "name" and isinstance(strange, str):
                continue  # would be registered
            changed = {**valid, parameter: strange}
            if name in BY_PLACE and isinstance(strange, np.ndarray | Integer):
                continue  # which Python compares, or writes, itself
            if name in BY_PLACE:
                yield parameter, strange, lambda s=strange: thing(s)
            else:
                yield parameter, strange, lambda c=changed: thing(**c)
        if name in MORE:
            yield "*", strange, lambda s=strange: thing(*valid.values(), s)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _ in public()])
def test_strange_arguments_are_refused_or_understood(name, tmp_path, monkeypatch):
    """Any exception but the library's own fails the test."""
    monkeypatch.chdir(tmp_path)
    for parameter, strange, call in calls(name, dict(public())[name]):
        try:
            call()
        except SymbolicCostError as refused:
            said = str(refused)
            assert said, (parameter, strange)


def test_every_parameter_of_every_public_name_is_tried():
    for name, thing in public():
        if name in BY_PLACE:
            continue
        accepted = [
            one.name
            for one in inspect.signature(thing).parameters.values()
            if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        ]
        missing = set(accepted) - set(VALID.get(name, ()))
        assert missing <= {
            "splits",
            "name",
            "bounds",
            "selected_from",
            "shape",
            "call",
            "frozen",
        }, name
    assert set(Options.__annotations__) <= set(VALID["job"])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sc.job(5), "job: model = 5: text or Model or Family is accepted"),
        (lambda: sc.cost(JOB), "Job is no model: a name, a path or GPT() is accepted"),
        (lambda: sc.Shape(b=np.ones(2)), "b = array([1., 1.]): a positive integer or a symbol"),
        (lambda: JOB.bind(l=Fraction(3, 2)), "l = 3/2: an integer from 1 to 10**18 is accepted"),
        (lambda: PLACEMENT.degree({"tq"}), "unknown mesh axis 'tq': did you mean tp?"),
        (lambda: sc.pivot(TABLE, TABLE), "...: a list or tuple of NamedCost is accepted"),
        (lambda: sc.decode(lambda _: None, sc.preset("exact")), "declare returns None: a Model"),
        (
            lambda: sc.model("deepseek-v3", 10**9),
            "1000000000 further tokens are predicted: 1 to 64 are accepted",
        ),
        (lambda: sc.plain("l"), "plain: expr = 'l': a SymPy Expr is accepted"),
        (lambda: sc.parse_strategy(8), "parse_strategy: text = 8: text is accepted"),
        (
            lambda: sc.cost("gpt", recompute=["full"]),
            "cost: recompute = ['full']: text or Recompute is accepted",
        ),
        (lambda: JOB.bind(l=True), "Job.bind: l = True: an integer or Fraction is accepted"),
        (
            lambda: JOB.bind(l=np.int64(8)),
            "Job.bind: l = np.int64(8): an integer or Fraction is accepted: int(l) is one",
        ),
        (
            lambda: sc.Model("m", [PART], {}),
            "...: a tuple of Part is accepted",
        ),
        (
            lambda: sc.job("gpt2", offload=repeat("saved")),
            "job: offload has more than 1,000,000 items",
        ),
        (
            lambda: sc.search("gpt2", 8, 8, system="h100", choose={"tp": count(1)}),
            "search: choose has more than 1,000,000 items",
        ),
        (
            lambda: sc.search("gpt2", 8, 8, system="h100", choose={"tp": range(1, 10**12)}),
            "search: choose has more than 1,000,000 items",
        ),
        (
            lambda: sc.fit("gpt2", 2, system="h100", symbols=repeat("l")),
            "fit: symbols has more than 1,000,000 items",
        ),
        (
            lambda: sc.flops_per_token("gpt2").batch(range(1, 10**12)),
            "a batch has more than 1,000,000 items",
        ),
        (
            lambda: sc.laws.fit("chinchilla", RUNS, resampled=10**9),
            "resampled = 1000000000: above 0, and from 0 to 10000",
        ),
        (lambda: sc.fragment("a", iter([OP, 1])), "fragment: ops yields 1: Op is accepted"),
        (sc.plain, "plain() missing 1 required positional argument: 'expr'"),
        (lambda: sc.plain(e, wide=3), "plain() got an unexpected keyword argument 'wide'"),
        (lambda: sc.Phase("fwd"), "unknown phase 'fwd': did you mean forward?"),
        (lambda: STRATEGY.degree("tq"), "unknown mesh axis 'tq': did you mean tp?"),
        (lambda: TABLE.total("flop", phase=[]), "no phase is named: one or more are accepted"),
    ],
)
def test_a_refusal_names_parameter_value_and_what_is_accepted(call, said):
    with pytest.raises(SymbolicCostError) as refused:
        call()
    assert said in str(refused.value)


def test_an_integer_is_offered_where_one_is_accepted():
    with pytest.raises(SymbolicCostError, match=r"to a SymPy Expr is accepted$"):
        sc.compile(sc.job("gpt2", "", {"b": 1}).total("params"))


def test_all_wrong_arguments_are_told_at_once():
    with pytest.raises(SymbolicCostError) as refused:
        sc.count(5, batch="1", seq="1")
    assert len(refused.value.problems) == 3


def test_an_error_inside_a_function_is_not_mistaken_for_wrong_arguments():
    def broken():
        raise TypeError("inside")

    with pytest.raises(TypeError, match="inside"):
        TABLE.map(lambda _: broken())


def test_the_door_is_checked_and_the_kernel_is_not():
    from symbolic_cost.numeric import binding
    from symbolic_cost.ops import derive

    assert sc.bind is not binding.bind
    assert sc.bind is sc.bind
    assert sc.bind.__wrapped__ is binding.bind
    assert not hasattr(derive.cost, "__wrapped__")


def test_importing_the_package_imports_no_sympy():
    code = "import sys, symbolic_cost; print([m for m in ('sympy', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
