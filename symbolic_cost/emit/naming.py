r"""The names under which symbols are written: the library's own, or those of a notation.

All that is written while `written_in` lasts has the notation's names: formulas, meanings of
symbols, headers of tables, as text and as LaTeX.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from symbolic_cost.analysis.notations import OWN, Notation, described
from symbolic_cost.errors import InputError
from symbolic_cost.symbols import GLOSSARY

_OWN = Notation(OWN, "the library's symbols")
_NOW = ContextVar("notation", default=_OWN)
_GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "lambda", "mu", "nu"),
    *("xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"),
)


@contextmanager
def written_in(notation: Notation) -> Iterator[Notation]:
    r"""Write symbols under the names of a notation.

    >>> from symbolic_cost.analysis.notations import notation
    >>> from symbolic_cost.emit.formulas import latex, plain
    >>> from symbolic_cost.symbols import b, e, l
    >>> with written_in(notation("kaplan")):
    ...     plain(b * l * e), latex(b * l * e)
    ('b n_ctx d_model', 'b n_{\\mathrm{ctx}} d_{\\mathrm{model}}')
    """
    token = _NOW.set(notation)
    try:
        yield notation
    finally:
        _NOW.reset(token)


def current() -> Notation:
    """Return the notation in which symbols are written."""
    return _NOW.get()


def text_of(name: str) -> str:
    """Return what a symbol is called.

    Raises:
        InputError: two symbols would have one name; both are told.
    """
    now = _NOW.get()
    if now.is_own or name in now.written:
        return now.written.get(name, name)
    for own, taken in now.written.items():
        if taken == name:
            raise InputError(
                f"notation {now.name}: {described(own)} and {described(name)} would both be "
                f"{name!r}: give one another name, as in --symbols {name}={name}_2"
            )
    return name


def latex_of(name: str) -> str:
    """Return how a symbol is typeset; nothing for one that neither glossary nor notation knows."""
    now, text = _NOW.get(), text_of(name)
    if name in now.latex:
        return now.latex[name]
    if name in now.written:
        return typeset(text)
    return GLOSSARY[name].latex if name in GLOSSARY else ""


def typeset(name: str) -> str:
    r"""Return LaTeX of a name of letters, digits and underscores.

    >>> typeset("d_model"), typeset("h"), typeset("hidden_size"), typeset("alpha_2"), typeset("n1")
    ('d_{\\mathrm{model}}', 'h', '\\mathtt{hidden\\_size}', '\\alpha_{2}', 'n_{1}')
    """
    head, _, index = name.partition("_")
    numbered = re.fullmatch(r"([A-Za-z])([0-9]+)", head)
    if numbered and not index:
        head, index = numbered.groups()
    if "_" in index or (len(head) > 1 and index and head not in _GREEK):
        return rf"\mathtt{{{name.replace('_', chr(92) + '_')}}}"
    shown = rf"\{head}" if head in _GREEK else head if len(head) == 1 else rf"\mathit{{{head}}}"
    return f"{shown}_{{{_index(index)}}}" if index else shown


def _index(text: str) -> str:
    return text if len(text) == 1 or text.isdigit() else rf"\mathrm{{{text}}}"


_DIGITS = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


def macro(name: str) -> str:
    r"""Return the macro of a symbol: letters alone, as TeX wants.

    >>> macro("e"), macro("m1"), macro("n_layers"), macro("B")
    ('\\Syme', '\\SymmOne', '\\SymnLayers', '\\SymB')
    """
    text_of(name)  # refuses clashes
    head, *parts = name.split("_")
    joined = head + "".join(part[:1].upper() + part[1:] for part in parts)
    return r"\Sym" + re.sub(r"[0-9]", lambda digit: _DIGITS[int(digit[0])], joined)


def definition(name: str) -> str:
    """Return the line of LaTeX that defines the macro of a symbol, where it is not defined yet."""
    return rf"\providecommand*{{{macro(name)}}}{{{latex_of(name)}}}"
