"""Publications as BibTeX: exactly those that something rests on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from symbolic_cost.emit.formulas import latex_text
from symbolic_cost.references import REFERENCES, Reference

_ARXIV = re.compile(r"arXiv:(\d{2})(\d{2}\.\d{4,5})")
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")


def bibtex(keys: Iterable[str]) -> str:
    """Return an entry for each publication, in the order of the keys.

    >>> print(bibtex(["korthikanti-2022"]))
    @misc{korthikanti-2022,
      author = {Korthikanti, Vijay and others},
      title = {{Reducing Activation Recomputation in Large Transformer Models}},
      year = {2022},
      eprint = {2205.05198},
      archivePrefix = {arXiv},
    }
    """
    return "\n\n".join(_entry(REFERENCES[key]) for key in dict.fromkeys(keys))


def in_words(key: str) -> str:
    """Return a publication as a list of references has it.

    >>> in_words("dao-2022")
    'Tri Dao et al. FlashAttention. arXiv:2205.14135, 2022'
    >>> in_words("fedus-2021").partition(".")[0]
    'William Fedus, Barret Zoph and Noam Shazeer'
    """
    one = REFERENCES[key]
    names = [" ".join(reversed(name.strip("{}").split(", "))) for name in one.author.split(" and ")]
    *most, last = ["et al." if name == "others" else name for name in names]
    joined = " " if last == "et al." else " and "
    authors = f"{', '.join(most)}{joined}{last}" if most else last
    dated = f"{one.where}, {_year(one)}" if _ARXIV.fullmatch(one.where) else one.where
    return ". ".join(part.removesuffix(".") for part in (authors, one.title, dated) if part)


def _entry(one: Reference) -> str:
    fields = "".join(f"  {name} = {{{text}}},\n" for name, text in _fields(one) if text)
    return f"@misc{{{one.key},\n{fields}}}"


def _fields(one: Reference) -> Iterator[tuple[str, str]]:
    preprint = _ARXIV.search(one.where)
    yield "author", one.author
    yield "title", f"{{{latex_text(one.title)}}}"
    yield "year", _year(one)
    if preprint:
        yield "eprint", f"{preprint[1]}{preprint[2]}"
        yield "archivePrefix", "arXiv"
    rest = re.sub(_ARXIV, "", one.where).strip(" ;,")
    yield "howpublished", latex_text(rest)


def _year(one: Reference) -> str:
    preprint = _ARXIV.search(one.where)
    if preprint:
        return f"20{preprint[1]}"
    stated = _YEAR.findall(one.key) or _YEAR.findall(one.where)
    return stated[-1] if stated else ""
