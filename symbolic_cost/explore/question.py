"""Questions with their types: which names they ask for, and their answers on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.errors import InputError, Problems, quote, unknown
from symbolic_cost.explore.grammar import (
    BYTE,
    COMPARISONS,
    COUNT,
    FLOP,
    SECOND,
    Dimension,
    Name,
    Number,
    Operation,
    Tree,
    Word,
    parsed,
)
from symbolic_cost.records import dataclass
from symbolic_cost.units import Unit, human

NameKind: TypeAlias = Mapping[str, "Dimension | tuple[str, ...]"]
"""The dimension of a name, or the words that it may be."""

Columns: TypeAlias = Mapping[str, Any]
"""Array of floats by name; of a name that is a word, the word itself."""

_TURNED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}


@dataclass(frozen=True)
class Question:
    """A question or an expression whose names and units are right.

    Args:
        tree: without "not", which stands in the comparisons.
    """

    text: str
    tree: Tree

    @property
    def names(self) -> tuple[str, ...]:
        """Names that it asks for."""
        return tuple(dict.fromkeys(_names(self.tree)))

    def answers(self, columns: Columns) -> NDArray[np.bool_]:
        """Tell of every configuration whether the answer is yes; what has no value is no."""
        with np.errstate(all="ignore"):
            return np.asarray(_yes(self.tree, columns))

    def values(self, columns: Columns) -> NDArray[np.float64]:
        """Return the number of every configuration, in base units."""
        with np.errstate(all="ignore"):
            return np.asarray(_value(self.tree, columns), dtype=np.float64)

    def missing(self, columns: Columns) -> NDArray[np.float64]:
        """Return by what part of itself a number is off; 0 and below where the answer is yes."""
        with np.errstate(all="ignore"):
            return np.nan_to_num(np.asarray(_missing(self.tree, columns)), nan=np.inf)

    def failures(self, columns: Columns) -> list[str]:
        """Say of one configuration which comparisons are not met, with the numbers."""
        return [
            f"{plain(one)}: {_side(one.operands[0], columns)}"
            for one in _comparisons(self.tree)
            if not _yes(one, columns)
        ]


def question(text: str, known: NameKind) -> Question:
    """Return a question, each of its names known and its units alike."""
    return Question(text, _checked(text, known, yes_or_no=True))


def expression(text: str, known: NameKind) -> Question:
    """Return an expression for a number."""
    return Question(text, _checked(text, known, yes_or_no=False))


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a question or an expression, whether or not they are known."""
    return tuple(_names(parsed(text)))


def _checked(text: str, known: NameKind, *, yes_or_no: bool) -> Tree:
    tree = parsed(text)
    problems = Problems()
    problems.texts += [
        unknown("name", name, known)
        for name in dict.fromkeys(_names(tree, known))
        if name not in known
    ]
    problems.refuse()
    kind = _kind(tree, known, problems)
    if not problems.texts and (kind == "yes or no") is not yes_or_no:
        wanted = "a comparison, such as memory < 80 GiB" if yes_or_no else "a number, such as step"
        problems.texts.append(f"{quote(text)}: {wanted}, is accepted")
    problems.refuse()
    return _plain_not(tree, known, turned=False)


def _names(tree: Tree, known: NameKind | None = None) -> Iterator[str]:
    """Yield names; a word beside a name that is one of words is no name."""
    if isinstance(tree, Name):
        yield tree.name
    elif isinstance(tree, Operation):
        words = known is not None and _worded(tree, known)
        for one in tree.operands[:1] if words else tree.operands:
            yield from _names(one, known)


def _worded(tree: Operation, known: NameKind) -> bool:
    first = tree.operands[0]
    own = known.get(first.name, COUNT) if isinstance(first, Name) else COUNT
    return tree.operation in COMPARISONS and bool(own) and isinstance(own[0], str)


# ---------------------------------------------------------------------- types


def _kind(tree: Tree, known: NameKind, problems: Problems) -> Any:  # noqa: ANN401 - a dimension or a word
    """Return the dimension of a number, None for any, or "yes or no"."""
    match tree:
        case Number():
            return tree.dimension
        case Word():
            problems.texts.append(f"{quote(tree.text)}: a word goes with the name that may be it")
            return None
        case Name():
            return _kind_of_name(tree.name, known[tree.name], problems)
    if _worded(tree, known):
        _check_word(tree, known, problems)
        return "yes or no"
    kinds = [_kind(one, known, problems) for one in tree.operands]
    if tree.operation in ("and", "or", "not"):
        _all_alike(tree, kinds, problems, yes_or_no=True)
        return "yes or no"
    _all_alike(tree, kinds, problems, yes_or_no=False)
    return _result(tree, kinds, problems)


def _kind_of_name(name: str, own: Any, problems: Problems) -> Any:  # noqa: ANN401 - as above
    if own and isinstance(own[0], str):
        problems.texts.append(f"{name} is one of {', '.join(own)}: compare it by ==")
        return None
    return own or "yes or no"


def _all_alike(tree: Operation, kinds: list[Any], problems: Problems, *, yes_or_no: bool) -> None:
    for one, kind in zip(tree.operands, kinds, strict=True):
        if (kind == "yes or no") is not yes_or_no:
            wanted = "a comparison" if yes_or_no else "a number"
            problems.texts.append(f"{plain(one)}: {tree.operation} takes {wanted}")


def _result(tree: Operation, kinds: list[Any], problems: Problems) -> Any:  # noqa: ANN401 - as above
    sizes = [kind for kind in kinds if isinstance(kind, tuple)]
    if tree.operation in ("*", "/") and len(tree.operands) > 1:
        sign = 1 if tree.operation == "*" else -1
        one, other = (kind if isinstance(kind, tuple) else COUNT for kind in kinds)
        return tuple(a + sign * b for a, b in zip(one, other, strict=True))
    if len(set(sizes)) > 1:
        texts = " and ".join(
            f"{plain(o)} ({_unit(k)})" for o, k in zip(tree.operands, kinds, strict=True)
        )
        accepted = "give both the same, as in 80 GiB, 2 s or 9000/s"
        problems.texts.append(f"{texts} have two units: {accepted}")
    if tree.operation in COMPARISONS:
        return "yes or no"
    return sizes[0] if sizes else None


def _check_word(tree: Operation, known: NameKind, problems: Problems) -> None:
    name, other = tree.operands
    words = known[name.name] if isinstance(name, Name) else ()
    word = other.name if isinstance(other, Name) else getattr(other, "text", None)
    if tree.operation not in ("==", "!=") or word is None:
        problems.texts.append(f"{plain(name)} is a word: == and != with one in quotes are accepted")
    elif word not in words:
        problems.texts.append(
            unknown(f"value of {plain(name)} in this sweep", word, map(str, words))
        )


def _unit(kind: Dimension | None) -> str:
    names = {
        BYTE: "bytes",
        SECOND: "seconds",
        FLOP: "FLOP",
        (0, -1, 1): "FLOP/s",
        COUNT: "a number",
    }
    names |= {(0, -1, 0): "per second"}
    return "any unit" if kind is None else names.get(kind, "of mixed units")


def _plain_not(tree: Tree, known: NameKind, *, turned: bool) -> Tree:
    """Return the same question with every "not" inside the comparisons, words as words."""
    if isinstance(tree, Name) and known[tree.name] == ():
        return Operation(
            "==", (tree, Number(0.0 if turned else 1.0, COUNT, "no" if turned else "yes"))
        )
    if not isinstance(tree, Operation):
        return tree
    if tree.operation == "not":
        return _plain_not(tree.operands[0], known, turned=not turned)
    if tree.operation in ("and", "or"):
        other = {"and": "or", "or": "and"}[tree.operation] if turned else tree.operation
        return Operation(other, tuple(_plain_not(o, known, turned=turned) for o in tree.operands))
    sign = _TURNED[tree.operation] if turned else tree.operation
    operands = tree.operands
    if _worded(tree, known) and isinstance(operands[1], Name | Number):
        second = operands[1]
        operands = (operands[0], Word(second.name if isinstance(second, Name) else second.text))
    return Operation(sign, operands)


# ---------------------------------------------------------------------- answers


def _value(tree: Tree, columns: Columns) -> Any:  # noqa: ANN401 - array or number
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Name):
        return columns[tree.name]
    if isinstance(tree, Word):
        return tree.text
    operands = [_value(one, columns) for one in tree.operands]
    if len(operands) == 1:
        return np.negative(operands[0])
    with np.errstate(divide="ignore", invalid="ignore"):  # told as inf
        return _OPERATIONS[tree.operation](*operands)


def _yes(tree: Tree, columns: Columns) -> Any:  # noqa: ANN401 - array or truth
    if not isinstance(tree, Operation):
        raise InputError(f"{plain(tree)}: a comparison is accepted")
    if tree.operation in ("and", "or"):
        one, other = (_yes(operand, columns) for operand in tree.operands)
        return one & other if tree.operation == "and" else one | other
    one, other = (_value(operand, columns) for operand in tree.operands)
    if isinstance(one, str):
        return np.bool_((one == other) is (tree.operation == "=="))
    unknown_value = np.isnan(one) | np.isnan(other)
    return _COMPARED[tree.operation](one, other) & ~unknown_value


def _missing(tree: Tree, columns: Columns) -> Any:  # noqa: ANN401 - array or number
    if not isinstance(tree, Operation):
        return 0.0
    if tree.operation in ("and", "or"):
        parts = [_missing(operand, columns) for operand in tree.operands]
        return (np.maximum if tree.operation == "and" else np.minimum)(*parts)
    yes = _yes(tree, columns)
    one, other = (_value(operand, columns) for operand in tree.operands)
    if isinstance(one, str):
        return np.where(yes, 0.0, 1.0)
    size = np.maximum(np.maximum(np.abs(one), np.abs(other)), 1e-300)
    off = np.maximum(np.abs(np.subtract(one, other)) / size, 1e-12)
    return np.where(yes, 0.0, np.nan_to_num(off, nan=2.0))  # of no number: as far as there is


def _comparisons(tree: Tree) -> Iterator[Operation]:
    if isinstance(tree, Operation) and tree.operation in ("and", "or"):
        for one in tree.operands:
            yield from _comparisons(one)
    elif isinstance(tree, Operation):
        yield tree


def _side(tree: Tree, columns: Columns) -> str:
    value = _value(tree, columns)
    if isinstance(value, str):
        return f"it is {value}"
    number = float(value)
    bytes_of = isinstance(tree, Name) and tree.name in _IN_BYTES
    if bytes_of and np.isfinite(number):
        return f"it is {human(number, Unit.BYTE)}"
    return f"it is {number:.6g}"


_IN_BYTES = ("memory", "needed", "capacity")


def plain(tree: Tree) -> str:
    """Return a tree as text."""
    match tree:
        case Number() | Word():
            return tree.text
        case Name():
            return tree.name
    if len(tree.operands) == 1:
        return f"{tree.operation} {plain(tree.operands[0])}".replace("- ", "-")
    one, other = (
        f"({plain(o)})" if isinstance(o, Operation) and tree.operation in ("*", "/") else plain(o)
        for o in tree.operands
    )
    return f"{one} {tree.operation} {other}"
