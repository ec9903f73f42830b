r"""Notations: whose letters formulas are read and written in. A file names the library's symbols.

    meaning = "Kaplan et al. 2020: d_model, d_ff"
    source = "kaplan-2020"
    [names]                     # symbol of the library = its name in the notation
    e = "d_model"
    [latex]                     # how a name is typeset, where not as it is written
    e = "d_{\mathrm{model}}"
    [others]                    # names that are formulas of symbols, on input alone
    d_attn = "h q"
    [assumed]                   # sizes that the paper ties to others
    f = "4 e"

A symbol that a notation does not name keeps the library's name, unless that is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any

from sympy import Expr

from symbolic_cost.errors import InputError, Problems, looked_up, quote, refuse, unknown
from symbolic_cost.grouping import grouped
from symbolic_cost.reading import package_data, toml_record
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY, symbol
from symbolic_cost.typed import formula, own_names

_FOLDER = Path(__file__).parent / "notations"
_MOST_BYTES = 2**16
_TEXTS = ("meaning", "source", "conventions", "attention")
_TABLES = ("names", "latex", "others", "assumed")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}", re.ASCII)
_TEX = re.compile(r"(?:[A-Za-z0-9_^{}', *+-]|\\(?:[A-Za-z]+ ?|[_,;]))+", re.ASCII)
_TYPESET = (
    *("mathrm", "mathit", "mathsf", "mathtt", "mathbf", "mathcal", "text", "hat", "bar", "tilde"),
    *(
        "prime",
        "star",
        "ell",
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "eta",
        "theta",
        "kappa",
    ),
    *("lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"),
)


@dataclass(frozen=True)
class Notation:
    """The letters of a paper, or of a user.

    Args:
        meaning: whose they are.
        written: name in the notation by the library's symbol; others keep the library's name.
        latex: how names are typeset, where not as they are written.
        others: formulas by name, for names that stand for no symbol.
        assumed: sizes that the paper ties to others, by the library's symbol: f = 4 e.
        conventions: of counting that its formulas follow; empty if it says nothing of them.
        attention: the kernel that they are of; empty as well.
    """

    name: str
    meaning: str
    written: Mapping[str, str] = field(default_factory=dict)
    latex: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, Expr] = field(default_factory=dict)
    assumed: Mapping[str, Expr] = field(default_factory=dict)
    conventions: str = ""
    attention: str = ""
    source: str = ""

    @property
    def is_own(self) -> bool:
        """Tell whether the library's names are left as they are."""
        return not self.written

    @property
    def names(self) -> dict[str, Expr]:
        """Formula of the library's symbols by name, for what is typed.

        A paper's letters are its own alone; a user who renames some symbols has the others as well.
        """
        base = own_names() if self.name == OWN else {}
        renamed = {name: symbol(own) for own, name in self.written.items()}
        return {**base, **self.others, **renamed}

    def renamed(self, names: Mapping[str, str]) -> Notation:
        """Return the notation with other names for some symbols.

        Raises:
            InputError: every name that is none, unknown symbol, and clash.
        """
        problems = [*_name_problems(names)]
        latex = {own: tex for own, tex in self.latex.items() if own not in names}
        written = {**self.written, **names}
        problems += _clashes(written)
        refuse(f"notation: {problem}" for problem in problems)
        return replace(self, written=written, latex=latex)


OWN = "own"


def notation(name: str = OWN, symbols: str = "") -> Notation:
    """Return a notation by name or from a TOML file, with names of a user's own.

    Args:
        name: "own" is the library's.
        symbols: names by symbol, as in "e=d_model,l=s".

    Raises:
        InputError: no such notation (the closest are offered), or every problem of the file or of
            the names.

    >>> notation("megatron").written["e"], notation(symbols="e=d_model").written["e"]
    ('h', 'd_model')
    """
    if not symbols:
        return _named(name)
    problems = Problems()
    base = problems.attempt(_named, name)
    names = problems.attempt(_pairs, symbols)
    problems.refuse()
    return base.renamed(names)


def notation_names() -> tuple[str, ...]:
    """Return the names of all notations."""
    return (OWN, *sorted(file.stem for file in _FOLDER.glob("*.toml")))


def _named(name: str) -> Notation:
    if name.endswith(".toml"):
        record, place = toml_record(name, _MOST_BYTES, "notation")
        return _read(Path(name).stem, record, place)
    looked_up("notation", name, dict.fromkeys(notation_names()))
    return Notation(OWN, "the library's symbols") if name == OWN else _of_library(name)


@cache
def _of_library(name: str) -> Notation:
    return _read(name, package_data(f"analysis/notations/{name}.toml"), f"notation {name}")


def _pairs(text: str) -> dict[str, str]:
    """Return the name by symbol of "e=d_model,l=s"."""
    pairs: dict[str, str] = {}
    problems: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        own, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            problems.append(f"{quote(part)}: SYMBOL=NAME is accepted, as in e=d_model,l=s")
        elif own in pairs:
            problems.append(f"{quote(own)} is named twice")
        else:
            pairs[own] = name
    refuse(f"symbols: {problem}" for problem in problems)
    return pairs


def _read(name: str, record: Mapping[str, Any], place: str) -> Notation:
    refuse(f"{place}: {problem}" for problem in _record_problems(record))
    tables: dict[str, dict[str, str]] = {key: dict(record.get(key, {})) for key in _TABLES}
    own = own_names()
    collected = Problems()
    read = {
        key: {one: collected.attempt(formula, text, own) for one, text in tables[key].items()}
        for key in ("others", "assumed")
    }
    if collected.texts:
        raise InputError(f"{place}: {problem}" for problem in collected.texts)
    more = {key: str(record.get(key, "")) for key in _TEXTS}
    return Notation(
        name,
        more["meaning"],
        written=tables["names"],
        latex=tables["latex"],
        others=read["others"],
        assumed=read["assumed"],
        conventions=more["conventions"],
        attention=more["attention"],
        source=more["source"],
    )


def _record_problems(record: Mapping[str, Any]) -> Iterator[str]:
    for key, value in record.items():
        if key not in (*_TEXTS, *_TABLES):
            yield unknown("key", key, (*_TEXTS, *_TABLES))
        elif key in _TEXTS and not isinstance(value, str):
            yield f"{key} is {quote(value)}: a text is accepted"
        elif key in _TABLES and not _is_texts(value):
            yield f"{key}: a table of texts is accepted"
    if not record.get("names"):
        yield 'names: is missing; [names] takes SYMBOL = "NAME"'
    texts = {key: record[key] for key in _TABLES if _is_texts(record.get(key))}
    names = texts.get("names", {})
    yield from _name_problems(names)
    yield from _clashes(names)
    yield from _more_problems(texts, names)


def _more_problems(
    texts: Mapping[str, Mapping[str, str]], names: Mapping[str, str]
) -> Iterator[str]:
    """Say what is wrong with the other tables of a record."""
    for own, tex in texts.get("latex", {}).items():
        if own not in names:
            yield f"latex: {quote(own)} has no name in [names]"
        yield from _tex_problems(own, tex)
    for other in texts.get("others", {}):
        if not _NAME.fullmatch(other):
            yield f"others: {quote(other)}: {_ACCEPTED}"
        if other in names.values():
            yield f"others: {other} is the name of a symbol as well"
    yield from (
        unknown("symbol", a, GLOSSARY) for a in texts.get("assumed", {}) if a not in GLOSSARY
    )


def _is_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())


_ACCEPTED = "letters, digits and _ are accepted, up to 40"


def _name_problems(names: Mapping[str, str]) -> Iterator[str]:
    for own, name in names.items():
        if own not in GLOSSARY:
            yield unknown("symbol", own, GLOSSARY)
        if not _NAME.fullmatch(name):
            yield f"{quote(own)} = {quote(name)}: {_ACCEPTED}"


def _clashes(names: Mapping[str, str]) -> Iterator[str]:
    for name, owners in grouped((name, own) for own, name in names.items()).items():
        if len(owners) > 1:
            yield f"{' and '.join(map(described, owners))} would both be {quote(name)}"


def described(own: str) -> str:
    """Return a symbol with what it counts."""
    return f"{own} ({GLOSSARY[own].meaning})" if own in GLOSSARY else quote(own)


def _tex_problems(own: str, tex: str) -> Iterator[str]:
    """Refuse LaTeX that does more than typeset letters."""
    commands = re.findall(r"\\([A-Za-z]+)", tex)
    strange = [one for one in commands if one.lower() not in _TYPESET]
    depth = 0
    for sign in tex.replace(r"\_", ""):
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            break
    if not _TEX.fullmatch(tex) or len(tex) > 80 or strange or depth:  # noqa: PLR2004 - a name
        yield (
            f"latex of {quote(own)} = {quote(tex)}: letters, digits, _ ^ {{ }} and "
            f"{', '.join(_TYPESET[:7])}, ... are accepted"
        )
