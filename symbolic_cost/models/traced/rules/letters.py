"""Products by letters."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from string import ascii_letters

from symbolic_cost.errors import InputError
from symbolic_cost.models.traced.acts import Nature, Ref, Tensor, Use
from symbolic_cost.models.traced.forest import Dim
from symbolic_cost.models.traced.rules.products import apart_from, lettered, product
from symbolic_cost.models.traced.trace import Trace, rule

Lettered = tuple[Ref, str]
"""A tensor, and a letter for every dimension; "1" where it is of size 1."""


@rule("aten.einsum")
def einsum(t: Trace) -> None:
    """A product as its letters say; of several tensors, two at a time."""
    refs = t.arg("tensors", 1)
    inputs, result = _letters_of(t, str(t.arg("equation", 0)).replace(" ", ""), refs)
    refs = [_diagonal(t, *pair) for pair in zip(refs, inputs, strict=True)]
    inputs = ["".join(dict.fromkeys(letters)) for letters in inputs]
    dims: dict[str, Dim] = {}
    operands = [
        (ref, _note_dims(t, ref, names, dims)) for ref, names in zip(refs, inputs, strict=True)
    ]
    left = "".join(name if name in dims else "1" for name in result)
    for one, other in _pairs(t.arg("path", 2), len(operands)):
        taken = [operands[one], operands[other]]
        rest = [pair for i, pair in enumerate(operands) if i not in (one, other)]
        needed = {*left, *(letter for _, letters in rest for letter in letters)}
        names = dict.fromkeys(letter for _, letters in taken for letter in letters)
        kept = "".join(n for n in names if n in needed and n != "1") if rest else left
        operands = [*rest, (_of_two(t, taken, kept, dims), kept)]
    if len(refs) == 1:
        (ref, letters), *_ = operands
        made = t.pointwise("sum", [Use(ref, lettered(letters, dims))], lettered(left, dims))
    else:
        made = operands[0][0]
    t.bind(made)


def _pairs(path: Sequence[int] | None, count: int) -> list[tuple[int, int]]:
    """Return which two of the tensors at hand are multiplied next: the first two unless told."""
    if path and count > 1:
        return list(zip(path[::2], path[1::2], strict=True))
    first_with_last = [(0, rest - 1) for rest in range(count - 1, 1, -1)]
    return [(0, 1), *first_with_last][: count - 1]


def _of_two(t: Trace, taken: Sequence[Lettered], left: str, dims: Mapping[str, Dim]) -> Ref:
    """Return the product of two tensors; one that sums nothing is none."""
    every = [*(letters for _, letters in taken), left]
    lonely = {name for name in dims if sum(name in letters for letters in every) == 1}
    operands = [_summed(t, ref, letters, lonely - {*left}, dims) for ref, letters in taken]
    names = {letter for _, letters in operands for letter in letters if letter != "1"}
    if names - {*left}:
        return product(t, operands, left, dims)
    uses = [Use(ref, lettered(letters, dims)) for ref, letters in operands]
    return t.pointwise("mul", uses, lettered(left, dims))


def _summed(
    t: Trace, ref: Ref, letters: str, lonely: set[str], dims: Mapping[str, Dim]
) -> Lettered:
    """Return an operand after the sum over what neither the other nor the result has."""
    if lonely.isdisjoint(letters):
        return ref, letters
    rest = "".join(name for name in letters if name not in lonely)
    taken = Use(ref, lettered(letters, dims))
    return t.pointwise("sum", [taken], lettered(rest, dims), "sum"), rest


def _letters_of(t: Trace, text: str, refs: Sequence[Ref]) -> tuple[list[str], str]:
    """Return the letters of every operand and of the result: "...k,kj" is "ak,kj->aj"."""
    where = f"{t.graph.place}: einsum {text!r} of {t.node.path or 'the model'}"
    if not re.fullmatch(r"(?:[A-Za-z,]|\.\.\.)+(?:->(?:[A-Za-z]|\.\.\.)*)?", text):
        raise InputError(f"{where}: letters, commas, three dots and one arrow are accepted")
    left, arrow, result = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(refs):
        raise InputError(f"{where}: letters of {len(inputs)} tensors, of which {len(refs)} stand")
    free = [letter for letter in reversed(ascii_letters) if letter not in text]
    sizes = [
        len(ref.dims) - len(one.replace("...", ""))
        for ref, one in zip(refs, inputs, strict=True)
        if "..." in one
    ]
    dots = "".join(free[: max(sizes, default=0)])
    if not arrow:  # letters that stand once, in the order of the alphabet
        times = Counter(letter for letter in left if letter.isalpha())
        once = sorted(letter for letter, count in times.items() if count == 1)
        result = "".join(["..." * bool(sizes), *once])
    inputs = [
        one.replace("...", dots[len(dots) - (len(ref.dims) - len(one.replace("...", ""))) :])
        if "..." in one
        else one
        for ref, one in zip(refs, inputs, strict=True)
    ]
    result = result.replace("...", dots)
    if len(set(result)) < len(result):
        raise InputError(f"{where}: a letter stands once in the result")
    return inputs, result


def _diagonal(t: Trace, ref: Ref, letters: str) -> Ref:
    """Return the elements at which dimensions of one letter have one position."""
    places = [place for place, letter in enumerate(letters) if letters.index(letter) == place]
    if len(places) == len(letters):
        return ref
    dims = tuple(ref.dims[place] for place in places)
    if ref.tensor.constant:
        return Ref(Tensor(dims, nature=Nature.CONSTANT), dims)
    twice = [ref.dims[place] for place, one in enumerate(letters) if letters.count(one) > 1]
    t.forest.moved.update(t.forest.axes(twice))
    return t.pointwise("copy", [ref], dims, "diagonal")


def _note_dims(t: Trace, ref: Ref, letters: str, dims: dict[str, Dim]) -> str:
    """Note the dimensions of an operand by letter, and return its letters, "1" for size 1."""
    own = ""
    for letter, dim in zip(letters, ref.dims, strict=True):
        if not t.forest.flat(dim):
            own += "1"
            continue
        own += letter
        if letter in dims:
            t.forest.unify(dims[letter], dim)
        else:
            dims[letter] = apart_from(t, dim, [*dims.values()])
    return own
