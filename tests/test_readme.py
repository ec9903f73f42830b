"""The examples of the README and of the guide run and print what they say."""

import difflib
import doctest
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8") if README.is_file() else ""
PAGES = [
    page for page in (README, *sorted((ROOT / "reports" / "site").glob("*.md"))) if page.is_file()
]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
PROGRAM = "symbolic-cost"
ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
needs_readme = pytest.mark.skipif(not TEXT, reason="there is no README.md")


@dataclass(frozen=True)
class Block:
    """A fenced block: the words after its fence, its text, and the line where the text begins."""

    info: tuple[str, ...]
    body: str
    line: int


def blocks(text, language):
    """The fenced blocks of one language, in order."""
    found = (
        Block(
            info=tuple(match["info"].split()),
            body=match["body"],
            line=text.count("\n", 0, match.start("body")) + 1,
        )
        for match in FENCE.finditer(text)
    )
    return [block for block in found if block.info[:1] == (language,)]


def commands(body):
    """Pairs of a command and the output lines written below it; `\\` continues a command."""
    found = []
    lines = iter(body.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line.removeprefix("$ ")
            while command.endswith("\\"):
                command = command.removesuffix("\\") + next(lines).removeprefix(">")
            found.append((command, []))
        elif found:
            found[-1][1].append(line.rstrip())
    return found


def arguments(command):
    """The words of a command, which is run without a shell."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    split = list(words)
    shell = [word for word in split if word and set(word) <= set("();<>|&")]
    if shell:
        pytest.fail(f"{command}: runs without a shell, which would be needed for {' '.join(shell)}")
    return split


def difference(expected, output):
    """Nothing if the output is the expected lines, where a line `...` stands for any lines."""
    printed = [line.rstrip() for line in output.rstrip().splitlines()]
    wanted = "\n".join(expected).rstrip().split("\n")
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + r"\n" for line in wanted
    )
    if re.fullmatch(pattern, "".join(line + "\n" for line in printed)):
        return ""
    return "\n".join(difflib.unified_diff(wanted, printed, "README.md", "printed", lineterm=""))


def only_elided(block):
    """Whether no command of a block has output to compare, and the block is one that ends well."""
    return exit_code(block.info) == 0 and all(
        lines in (["..."], []) for _, lines in commands(block.body)
    )


def exit_code(info):
    """N of the word `exit=N` in a block's info string; 0 without it."""
    codes = [int(word.removeprefix("exit=")) for word in info if word.startswith("exit=")]
    return codes[0] if codes else 0


@pytest.mark.usefixtures("registered_for_one_test")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_of_a_page_are_one_session(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names = {"__name__": "__main__"}
    report = []
    for block in blocks(page.read_text(encoding="utf-8"), "python"):
        if ">>> " not in block.body:
            compile(block.body, f"{page.name}:{block.line}", "exec")
            continue
        test = doctest.DocTestParser().get_doctest(
            block.body, {}, f"{page.name}:{block.line}", str(page), block.line - 1
        )
        test.globs = names
        runner.run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=f"{page.name} line {block.line}")
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"), "console")
        if page == README or not only_elided(block)  # the site runs those when it is built
    ],
)
def test_console_block_prints_what_it_says(block, tmp_path, monkeypatch):
    from symbolic_cost.cli import main

    monkeypatch.chdir(tmp_path)
    for command, expected in commands(block.body):
        if command.split()[0] != PROGRAM:
            continue
        result = CliRunner(env=ENVIRONMENT).invoke(
            main, arguments(command)[1:], prog_name=PROGRAM, catch_exceptions=False
        )
        assert result.exit_code == exit_code(block.info), f"$ {command}\n{result.output}"
        assert "DOES NOT FIT" not in result.output, f"$ {command}: the example cannot run"
        if "".join(expected).strip():
            report = difference(expected, result.output)
            assert not report, f"$ {command}\n{report}"


LINK = re.compile(r"\]\((?!http)([^)#]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if not link.startswith("generated/"):  # lists that the site makes when it is built
            assert (page.parent / link).is_file(), link


@needs_readme
def test_readme_is_short():
    assert len(TEXT.splitlines()) <= 250


@needs_readme
def test_continuous_integration_runs_the_test_command():
    section = re.search(r"^## Tests\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert section, "README.md has no heading '## Tests'"
    fenced = FENCE.search(section[1])
    assert fenced, "README.md names no test command in a fenced block under '## Tests'"
    assert fenced["body"].removeprefix("$ ").strip() == "make test"
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_blocks_carry_info_and_line():
    text = "a\n```console exit=2\n$ symbolic-cost\n```\n\n```python\n>>> 1\n```\n"
    assert blocks(text, "console") == [Block(("console", "exit=2"), "$ symbolic-cost\n", 3)]
    assert [block.line for block in blocks(text, "python")] == [7]
    assert [exit_code(block.info) for block in blocks(text, "console")] == [2]


def test_commands_carry_their_output():
    body = "$ symbolic-cost a \\\n    --b\none\n\ntwo\n$ symbolic-cost c\n"
    assert commands(body) == [
        ("symbolic-cost a     --b", ["one", "", "two"]),
        ("symbolic-cost c", []),
    ]


def test_arguments_are_split_as_by_a_shell():
    assert arguments("symbolic-cost a --set 'b = 1 > 0' x=2,y=3") == [
        *("symbolic-cost", "a", "--set", "b = 1 > 0", "x=2,y=3")
    ]


def test_arguments_refuse_a_shell():
    with pytest.raises(pytest.fail.Exception, match=r"runs without a shell.*needed for \|"):
        arguments("symbolic-cost a | head")


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a", "b", ""], "a  \nb\n\n", True),
        (["a", "..."], "a\nb\nc\n", True),
        (["a", "...", "c"], "a\nc\n", True),
        (["a", "...", "c"], "a\nb\nd\n", False),
        (["a.c"], "abc\n", False),
        (["a"], "a\nb\n", False),
    ],
)
def test_difference(expected, output, same):
    assert (difference(expected, output) == "") is same
