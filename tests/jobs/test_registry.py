"""What a user adds is found like the library's own: a model, a strategy, conventions."""

import json

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError

PLUGIN = """
import symbolic_cost as sc
from symbolic_cost.conventions.presets import MODEL_FLOP
from dataclasses import replace

width = sc.register_symbol("w_own{n}", "degree of my strategy")

AXES = sc.roles("b batch, l token query, e hidden, f inner, d width")


def build():
    from symbolic_cost.symbols import b, e, f, l
    ops = (
        sc.einsum("up", "x[b l e], *w[e f] -> u[b l f]"),
        sc.pointwise("act", "u[b l f] -> a[b l f]", "gelu"),
        sc.einsum("down", "a[b l f], *w[f e] -> y[b l e]"),
    )
    sizes = {{"b": b, "l": l, "e": e, "f": f}}
    return sc.Model("mine{n}", (sc.Part("block", ops),), sizes, axes=AXES)


sc.register_model("mine{n}", build, {{"b": 1, "l": 16, "e": 8, "f": 32}})
sc.register_strategy(
    "inner{n}",
    sc.Entry(
        meaning="inner features",
        meshes={{"inner{n}": width}},
        places={{"inner{n}": (sc.At(sc.Role.INNER),)}},
    ),
)
sc.register_conventions(replace(MODEL_FLOP, name="mine{n}"))
"""


pytestmark = pytest.mark.usefixtures("registered_for_one_test")


def plugin(tmp_path, number):
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN.format(n=number), encoding="utf-8")
    return str(file)


def test_a_plugin_adds_a_model_a_strategy_and_conventions(tmp_path):
    sc.load_plugin(plugin(tmp_path, 1))
    job = sc.job("mine1", "inner1=4", conventions="mine1")
    assert job.table().total("flop", phase="forward") == 2 * 2 * 16 * 8 * 32 // 4
    (reduced,) = job.rows.select("communication", phase="forward")
    assert reduced.collective.kind == "all-reduce"
    assert [file.name for file in tmp_path.iterdir()] == ["mine.py"]


def test_the_command_line_takes_plugins(tmp_path):
    line = ["--plugin", plugin(tmp_path, 2), "formula", "flops", "mine2", "--strategy", "inner2=2"]
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 0, result.output


def test_names_are_not_taken_twice(tmp_path):
    sc.load_plugin(plugin(tmp_path, 3))
    with pytest.raises(InputError, match="exists already"):
        sc.load_plugin(plugin(tmp_path, 3))
    with pytest.raises(InputError, match="exists already"):
        sc.register_model("gpt", lambda: None)


@pytest.mark.parametrize(
    ("text", "said"), [("1/0", "ZeroDivisionError"), ("import nothing_like_it", "ModuleNotFound")]
)
def test_a_plugin_that_fails_is_one_error(tmp_path, text, said):
    file = tmp_path / "bad.py"
    file.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(main, ["--plugin", str(file), "models"])
    assert result.exit_code == 2
    assert said in result.output


def test_a_plugin_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="existing Python file"):
        sc.load_plugin("no-such-file.py")


def test_a_function_that_builds_no_model_is_refused(tmp_path):
    """A forgotten return is told once the model is asked for, not by a traceback."""
    file = tmp_path / "none.py"
    text = "import symbolic_cost as sc\nsc.register_model('none', lambda: None)\n"
    file.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(main, ["--plugin", str(file), "table", "none"])
    assert result.exit_code == 2
    assert "model 'none': build returns None, no Model" in result.stderr


def test_what_a_user_registers_is_not_said_to_be_the_library_s(tmp_path):
    """Unless the entry gives a source of its own."""
    sc.load_plugin(plugin(tmp_path, 4))
    for words, name in ((["models"], "mine4"), (["strategies"], "inner4=w_own4")):
        result = CliRunner().invoke(main, [*words, "--format", "json"])
        rows = [row for row in json.loads(result.output)["records"] if name in row.values()]
        assert [row["source"] for row in rows] == ["a file of yours"]


def test_places_of_a_strategy_may_overlap():
    """Every inner axis, and those of one copy: an axis of both is split once."""
    wide = sc.register_symbol("w_over", "ranks")
    places = (sc.At(sc.Role.INNER), sc.At(sc.Role.INNER, ("along",)))
    sc.register_strategy("over", sc.Entry("inner", meshes={"over": wide}, places={"over": places}))
    b, l, g = map(sc.symbols.symbol, ("b", "l", "f"))
    ops = (
        sc.einsum("along", "x[b l], *w[l g] -> p[b g]"),
        sc.einsum("back", "p[b g], *w[g l] -> y[b l]"),
    )
    roles = sc.roles("b batch, l token query, g inner along")
    mixer = sc.Model("mixer", (sc.Part("block", ops),), {"b": b, "l": l, "g": g}, axes=roles)
    assert sc.job(mixer, "over=2", {"b": 3, "l": 8, "f": 10}).total("params") == 2 * 8 * 10 // 2
