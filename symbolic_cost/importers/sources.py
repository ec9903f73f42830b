"""Lines of a shell script and of the files that it sources, each with its place."""

import re
from collections.abc import Iterator
from pathlib import Path

from symbolic_cost.errors import quote
from symbolic_cost.importers.quotes import check_quotes
from symbolic_cost.importers.recipe import Entry
from symbolic_cost.models.configfile import LARGEST_FILE
from symbolic_cost.reading import read_text
from symbolic_cost.records import dataclass

_SOURCE = re.compile(
    r"(?:^|[;&|{]|\b(?:then|do|else)\b)\s*(?:source|\.)\s+(?P<name>"
    r"\"(?:\$\((?:[^()]|\([^()]*\))*\)|[^\"$]|\$(?!\())+\"|'[^']+'|(?:\$\([^()]*\)|[^\s;&|])+)"
)
_ENDING = re.compile(r"[^;&|]*(?:\|\|\s*(?:exit|return)\b[^;&|]*)?;?\s*")
"""What may stand behind the name of a file that is read in its place: arguments, or an exit."""

_HERE = re.compile(
    r"(?:\$\(\s*(?:dirname\s[^()]*|pwd)\)|\$\{BASH_SOURCE\S*%/\*\}|`pwd`|\$\{?PWD\}?|\.|"
    r"\$\{?(?P<variable>\w+)\}?)/(?=[^$`]*$)"
)
"""Beginnings of names that lie beside the script; a variable, if the script says so of it."""

_MOST = 32
"""Files that are read in place of their names, however they name each other."""


@dataclass(frozen=True)
class Lines:
    """Lines without comments, in the order in which they run.

    Args:
        read: file, number from 1 and text of each.
        unread: files that are sourced and were not found beside the script.
    """

    file: str
    read: tuple[tuple[str, int, str], ...]
    unread: tuple[Entry, ...]

    @property
    def text(self) -> str:
        """All of them as one text."""
        return "\n".join(text for _, _, text in self.read)

    def place(self, line: int) -> tuple[str, int]:
        """Return file and number of a line of the text, from 1."""
        file, number, _ = self.read[line - 1]
        return file, number

    def where(self, line: int) -> str:
        """Name the place of a line, as errors do."""
        file, number = self.place(line)
        return f"{file}: line {number}"

    def quoted(self, line: int) -> str:
        """Name a line by number and words, and by the file if it is another one."""
        file, number, text = self.read[line - 1]
        named = f"line {number}" if file == self.file else f"{file}: line {number}"
        return f"{named}, {quote(text.strip())}"


def sourced(text: str, path: Path) -> Lines:
    """Return the lines of a script; those of a file that it sources stand in place of its name."""
    unread: list[Entry] = []
    taken: list[Path] = []
    bases = {
        match[1]
        for match in re.finditer(r"^\s*(\w+)=(.*)$", text, re.MULTILINE)
        if re.search(r"\bdirname\b|\bpwd\b|BASH_SOURCE", match[2])
    }

    def lines(text: str, file: Path) -> Iterator[tuple[str, int, str]]:
        for number, whole in enumerate(text.splitlines(), 1):
            line = re.sub(r"(^|\s)#.*$", "", whole)
            match = _SOURCE.search(line)
            if match is None:
                yield file.name, number, line
                continue
            name = match["name"].strip("\"'")
            alone = match.start() == 0 and _ENDING.fullmatch(line, match.end()) is not None
            other = _beside(name, path.parent, bases) if alone and len(taken) < _MOST else None
            if other is None:
                unread.append(Entry(f"source {name}", name, number, file.name))
                yield file.name, number, line
            else:
                taken.append(other)
                inside = read_text(other, LARGEST_FILE, other.name)
                check_quotes(inside, other.name)
                yield from lines(inside, other)

    return Lines(path.name, tuple(lines(text, path)), tuple(unread))


def _beside(name: str, folder: Path, bases: set[str]) -> Path | None:
    """Return the file of a name, if it lies in the folder of the script or below it."""
    match = _HERE.match(name)
    if match and match["variable"] and match["variable"] not in bases:
        return None
    inside = name[match.end() :] if match else name
    if re.search(r"[$`~]", inside):
        return None
    try:
        file = (folder / inside).resolve()
        return file if file.is_relative_to(folder.resolve()) and file.is_file() else None
    except (OSError, ValueError, RuntimeError):  # a name that is none, or links in a circle
        return None
