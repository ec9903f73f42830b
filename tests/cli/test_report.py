"""The report of a job: one page in which nothing runs, with every number's formula and source."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from sympy import Rational

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.emit.html import table
from symbolic_cost.emit.report import inline
from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.explore.changes import more_memory
from symbolic_cost.jobs.tables.explained import gains
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.symbols import named

pytest.importorskip("matplotlib")

HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m"
NUMBERS = {"b": 1, "l": 256, "n_layers": 4}
JOB = sc.job(
    "gpt2", "tp=2,pp=2,dp=2,zero=1", NUMBERS, system="h100", global_batch=8, precision="bf16-mixed"
)


@pytest.fixture(scope="module")
def report():
    return sc.report(JOB)


class Page(HTMLParser):
    """Collects identifiers, links, elements and attributes."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.tags, self.attributes = [], [], set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, content in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(content)
            if name in ("href", "src"):
                self.links.append(content)


@pytest.mark.slow
def test_the_page_is_whole_and_nothing_in_it_runs(report):
    text = report.html
    page = Page(text)
    assert len(text.encode()) < 10**6
    assert not {"script", "iframe", "link", "img", "object", "form"} & page.tags
    assert not [name for name in page.attributes if name.startswith("on")]
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    assert "prefers-color-scheme: dark" in text
    assert text.count("<svg") == 4


@pytest.mark.slow
def test_numbers_are_those_of_the_job(report):
    time = JOB.time()
    values = {one.name: one.value for one in report.written.figures}
    assert values["MFU"] == f"{time.mfu:.1%}"
    assert values["Step"] in str(time)
    chain = report.written.chapters[-1].anchored
    assert {row[0] for row in chain.rows} >= {"step", "mfu", "bubble", "tokens per second"}
    assert {row[3].partition(":")[0] for row in chain.rows} >= {"derived", "given", "datasheet"}
    definitions = time.timed.step.chain.dependencies(["step", "mfu", "hfu", "tokens per second"])
    assert {*definitions.definitions} <= {row[0] for row in chain.rows}
    for line in ("What runs where", "What binds", "What to change", "References"):
        assert line in report.markdown


@pytest.mark.slow
def test_stages_hold_every_block_and_rank_once(report):
    mesh, stages = report.written.chapters[0].sheets
    assert [row[:2] for row in mesh.rows] == [("tp", 2), ("dp", 2), ("pp", 2)]
    ranks = [cell for row in stages.rows for cell in row[2:]]
    assert ranks == ["0 to 1", "2 to 3", "4 to 5", "6 to 7"]


def test_more_memory_says_the_largest_legal_sizes():
    change = more_memory(JOB, JOB.time().timed)
    rows = {row[0]: row for row in change.sheet.rows}
    for name in ("b", "n_layers"):
        _, now, least, most, _, stage, _ = rows[name]
        assert now < least <= most
        assert stage == {"b": "last", "n_layers": "first"}[name]
        for size, fits in ((least, True), (least * 2, False)):
            numbers = {**NUMBERS, name: size, "M": 4}
            other = JOB.replace(numbers=numbers, global_batch=None, microbatches=None)
            assert bool(other.memory().fits) is fits


def test_what_a_better_rate_gains_is_what_a_better_machine_takes_less():
    timed = JOB.time().timed
    told = dict(gains(timed))
    machine = JOB.machine
    faster = replace(machine.bandwidth, value=machine.bandwidth.value * Rational(11, 10))
    other = replace(machine, bandwidth=faster, record=machine)
    step = Timed(replace(timed.setup, machine=other)).numbers["step"]
    assert told["memory bandwidth"] == pytest.approx(float(1 - step / timed.numbers["step"]))


def test_long_formulas_link_to_what_they_name_once():
    sheet = Sheet(
        "t", (Column("a"), Column("b"), Column("c")),
        (("x.y", named("z") ** 2 * sum(named(f"part.of.{n}") for n in range(60)) + named("z"), "z"),
         ("z", None, "")),
    )  # fmt: skip
    text = "".join(table(sheet, "r"))
    assert text.count('href="#r1"') == 1
    assert "<code>" in text


def test_pictures_have_the_colours_of_the_page():
    def draw(figure):
        figure.add_subplot().barh([0], [1], color="white", edgecolor="black")

    text = inline(draw, "one")
    assert text.startswith("<svg viewBox")
    assert "currentColor" in text
    assert "var(--paper)" in text
    assert "#000000" not in text
    assert "<metadata>" not in text
    assert all(name.startswith("one") for name in re.findall(r'id="([^"]*)"', text))


def test_hostile_text_is_shown():
    from symbolic_cost.emit.report import Chapter, Figure, Written, as_html, as_markdown
    from symbolic_cost.emit.sheet import Column, Sheet

    sheet = Sheet(HOSTILE, (Column(HOSTILE),), ((HOSTILE,),), (HOSTILE,))
    chapter = Chapter(HOSTILE, (HOSTILE,), (HOSTILE,), folded=(sheet,), anchored=sheet)
    written = Written(HOSTILE, HOSTILE, (Figure(HOSTILE, HOSTILE, HOSTILE, 1),), (chapter,))
    for text in (as_html(written), as_markdown(written)):
        assert not re.search(r"(?<!\\)<script", text)
        assert "\x1b" not in text
        assert "\u202e" not in text


def run(line):
    return CliRunner().invoke(main, line.split())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("report run gpt2", "Missing option '-o'"),
        ("report run gpt2 -o report.pdf", "a report is .html or .md"),
        ("report run gpt2 --strategy pp=2 -o report.html", "numbers for M"),
        ("report rum gpt2", "did you mean run"),
        ("report run gpt2 --stage last -o a.html", "every stage of the pipeline is written"),
        ("report run gpt2 --system nowhere --strategy tq=2 -o a.html", "tq"),
    ],
)
def test_bad_lines(line, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(line)
    assert done.exit_code == 2
    assert said in done.output
    assert not list(tmp_path.iterdir())
