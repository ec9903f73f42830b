"""Pictures: labels cover nothing, bytes are the same each time, widths are those of journals."""

from functools import cache
from itertools import combinations, pairwise

import pytest

import symbolic_cost as sc
from symbolic_cost.analysis.dominance import Map
from symbolic_cost.emit import front as fronts
from symbolic_cost.emit import timeline as schedule
from symbolic_cost.emit.charts import Bars, Curve, Curves, draw_bars, draw_curves, draw_regions
from symbolic_cost.emit.front import Front
from symbolic_cost.emit.plots import picture, style
from symbolic_cost.emit.roofline import draw
from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.errors import InputError
from symbolic_cost.jobs.tables.pictures import memory_bars, scaling_curves, time_bars
from symbolic_cost.parallel.timeline import timeline
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.rooflines import roofline_points
from symbolic_cost.units import Unit

pytest.importorskip("matplotlib")

JOB = sc.job("gpt2", "tp=4", {"b": 1, "M": 8}, system="a100-80gb")
JOBS = [JOB, JOB.replace(strategy="tp=4,sp"), JOB.replace(strategy="dp=4,zero=3")]


@cache
def curves():
    return scaling_curves(JOB, "flops_train", "l")


@cache
def memory():
    return memory_bars([job.memory().setup for job in JOBS])


@cache
def steps_of_jobs():
    return time_bars([job.time() for job in JOBS])


def _bars(figure):
    draw_bars(figure, memory())


def _step(figure):
    draw_bars(figure, steps_of_jobs())


def _curves(figure):
    draw_curves(figure, curves())


def _roofline(figure):
    device = machine("h100").device("bf16")
    draw(figure, roofline_points(sc.job("gpt3-175b").bound, device), device, "GPT-3 on $H100$")


def _front(figure):
    points = range(1, 7)
    labels = [f"tp={2**n} pp={n} dp={64 // n}" for n in points]
    sheet = Sheet("t", (Column("a"),), ())
    up = [2.0**36 / n for n in points]
    steps = [0.1 * n for n in points]
    one = Front("step", "memory", "s", "byte", steps, up, labels, "gpus=64", "gpt2", sheet)
    fronts.draw(figure, [one, one])


def _map(figure):
    import numpy as np

    winner = np.add.outer(np.arange(40), np.arange(40)) // 20
    grid = np.geomspace(1, 1e6, 40)
    found = Map(("core", "mlp", "<b>$head", "router"), ("l", grid), ("e", grid), winner)
    draw_regions(figure, found, "most of the $FLOP$ of <script>")


def _schedule(figure):
    schedule.draw(figure, timeline("zb-h1", 4, 8), "zb-h1, $4$ stages")


def drawn(draws, wide):
    """The figure, laid out as it is written."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(style(wide)):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        draws(figure)
        figure.draw_without_rendering()
    return figure


def texts_of(figure):
    """Every text that is seen, with its box; ticks beyond the ends of an axis are not drawn."""
    from matplotlib.axis import Tick
    from matplotlib.text import Text

    renderer = figure.canvas.get_renderer()
    labels = {label for tick in figure.findobj(Tick) for label in (tick.label1, tick.label2)}
    seen = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis._update_ticks()  # noqa: SLF001 - no other way to know
        for label in (tick.label1, tick.label2)
    }
    return {
        f"{text.get_text()} at {box.x0:.0f}, {box.y0:.0f}": box
        for text in figure.findobj(Text)
        for box in [Text.get_window_extent(text, renderer)]
        if text.get_text().strip() and text.get_visible() and box.width
        if text in seen or text not in labels
    }


_SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draws", "wide"),
    [
        pytest.param(_bars, 3.3, marks=_SLOW),
        (_curves, 3.3),
        (_roofline, 3.3),
        (_front, 3.3),
        (_map, 3.3),
        (_schedule, 6.5),
        pytest.param(_schedule, 3.3, marks=_SLOW),
        pytest.param(_front, 9.0, marks=_SLOW),
        pytest.param(_step, 6.5, marks=_SLOW),
        pytest.param(_roofline, 6.5, marks=_SLOW),
    ],
)
def test_labels_cover_nothing_and_stay_inside(draws, wide):
    figure = drawn(draws, wide)
    texts = texts_of(figure)
    assert len(texts) > 5
    for (one, box), (other, beside) in combinations(texts.items(), 2):
        apart = (
            box.x1 <= beside.x0 + 1
            or beside.x1 <= box.x0 + 1
            or box.y1 <= beside.y0 + 1
            or beside.y1 <= box.y0 + 1
        )
        assert apart, (one, other)
    for text, box in texts.items():
        room = figure.bbox
        inside = box.x0 >= -1 and box.x1 <= room.x1 + 1 and box.y0 >= -1 and box.y1 <= room.y1 + 1
        assert inside, text


def test_bars_are_told_apart_in_grey():
    figure = drawn(_bars, 6.5)
    patches = figure.axes[0].patches
    looks = {(patch.get_facecolor(), patch.get_hatch()) for patch in patches}
    assert len({hatch for _, hatch in looks}) == len(looks)


def grey(colour):
    red, green, blue = colour[:3]
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_maps_and_schedules_are_told_apart_in_grey():
    looks = {p.get_hatch() for p in drawn(_map, 6.5).legends[0].get_patches()}
    assert len(looks) == 4
    shades = sorted(grey(p.get_facecolor()) for p in drawn(_schedule, 6.5).legends[0].get_patches())
    assert len(shades) == 3
    assert all(after - before > 0.15 for before, after in pairwise(shades))


def test_labels_of_a_front_keep_off_its_stairs():
    from matplotlib.text import Text

    figure = drawn(_front, 3.3)
    for axes in figure.axes:
        (line,) = axes.lines  # as one line with a corner at every turn
        corners = axes.transData.transform(line.get_xydata())
        assert len(corners) == 2 * 6 - 1
        for label in axes.texts:
            box = Text.get_window_extent(label, figure.canvas.get_renderer())
            for one, other in pairwise(corners):
                steps = [one + (other - one) * n / 200 for n in range(201)]
                assert not any(box.contains(*at) for at in steps), label.get_text()


@pytest.mark.parametrize("largest", [1.3, 1.9, 3.5])
def test_figures_within_few_powers_of_two_have_ticks(largest):
    sheet = Sheet("t", (Column("a"),), ())
    up = [largest * 2**30, 2.0**30]
    one = Front("step", "memory", "s", "byte", [0.1, 0.2], up, ["a", "b"], "", "t", sheet)
    (axes,) = drawn(lambda figure: fronts.draw(figure, [one]), 6.5).axes
    low, high = axes.get_ylim()
    ticks = [*axes.get_yticks(), *axes.get_yticks(minor=True)]
    assert sum(low <= tick <= high for tick in ticks) >= 3


@pytest.mark.slow
def test_parts_add_up():
    for place, job in enumerate(JOBS):
        total = sum(values[place] for values in memory().parts.values())
        held = job.memory().peak + job.memory().fits.beside
        assert total == pytest.approx(float(held), rel=1e-12)
    for place, job in enumerate(JOBS):
        total = sum(values[place] for values in steps_of_jobs().parts.values())
        assert total == pytest.approx(float(job.time().step), rel=1e-12)


def test_curves_are_the_formula_and_its_powers():
    whole, *powers = curves().curves
    assert len(powers) == 2
    for place, value in enumerate(whole.up):
        assert value == pytest.approx(sum(curve.up[place] for curve in powers), rel=1e-12)


def test_long_formulas_are_numbers_in_a_legend():
    """Of deepseek-v3 they were 24 lines below a column."""
    whole, *powers = scaling_curves(sc.job("deepseek-v3", "tp=8"), "flops_train", "l").curves
    assert whole.label == "the whole, of all powers of l"
    for curve, power in zip(powers, (1, 2), strict=True):
        if isinstance(curve.label, str):
            number, name = curve.label.split()
            assert name == ("l" if power == 1 else f"l^{power}")
            assert float(number) * curve.across[0] ** power == pytest.approx(curve.up[0], rel=5e-3)


@pytest.mark.parametrize("form", ["svg", pytest.param("pdf", marks=pytest.mark.slow)])
def test_a_picture_has_the_same_bytes_each_time(form):
    assert picture(_step, form, 3.3) == picture(_step, form, 3.3)


def test_what_cannot_be_drawn():
    for draws in (
        lambda figure: draw_bars(figure, Bars("t", [], {}, Unit.BYTE)),
        lambda figure: draw_curves(figure, Curves("t", "x", "y", [])),
    ):
        with pytest.raises(InputError, match="nothing to draw"):
            picture(draws, "svg")
    with pytest.raises(InputError, match="numbers for"):
        memory_bars([sc.job("gpt", "tp").memory().setup])
    with pytest.raises(InputError, match="a number to go around"):
        scaling_curves(sc.job("gpt"), "flops", "l")


def test_bands_and_hostile_titles():
    band = ([0.5, 1.0], [2.0, 4.0])
    curve = Curve("<b> $x$ \\input", [1, 10], [1, 2], band)
    chart = Curves("$x^{ <script>alert(1)</script>", "x", "y", [curve])
    text = picture(lambda figure: draw_curves(figure, chart), "svg").decode()
    assert "<script" not in text


@pytest.mark.slow
def test_a_fitted_law_has_bands(tmp_path):
    from math import exp, sin

    from click.testing import CliRunner

    from symbolic_cost.cli import main

    law = sc.laws.law("chinchilla")
    name = next(iter(law.sets))
    lines = ["N,D,loss"]
    for n in (3e7, 1e8, 3e8, 1e9, 3e9):
        for ratio in (5, 15, 40, 100):
            loss = float(law.at({"N": n, "D": ratio * n}, name)["loss"])
            lines.append(f"{n},{ratio * n},{loss * exp(0.01 * sin(n + ratio)):.6f}")
    runs = tmp_path / "runs.csv"
    runs.write_text("\n".join(lines))
    path = tmp_path / "fit.svg"
    line = ["laws", "fit", str(runs), "--width", "ieee", "-o", str(path)]
    done = CliRunner().invoke(main, line, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "PolyCollection" in path.read_text() or "FillBetween" in path.read_text()
