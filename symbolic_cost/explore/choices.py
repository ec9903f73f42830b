"""How a structure may be run: order of ranks, overlap, offload, what is kept of gathered inputs.

Words of one choice are joined by a plus, so that a comma may stand between choices:
`order=tp+dp+pp,tp+pp+dp`, `overlap=tp=full+dp=full`, `offload=none,optimizer+master_weight`. Of a
choice the words that a structure has no use for are left out, and choices that are then the same
are one: without data-parallel ranks `overlap=none,dp=full` is one choice.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import NamedTuple

from symbolic_cost.errors import InputError, looked_up, quote, unknown

OPEN = "open"
"""What an option says that is a number of a structure's candidates."""

CONTEXT = ("cp", "ulysses", "ring")
"""Ways to split the positions of a sequence; "cp" of an order or an overlap is any of them."""

EVERY = "all"
"""The order that stands for every order of a structure's mesh axes."""

UNSAID = {"order": "default", "overlap": "none", "offload": "none", "regather": "default"}
"""The word for what a job does where nothing is said, by choice."""

FLAGS = {
    "regather": ("regather", True),
    "no-regather": ("regather", False),
    "scattered": ("scattered", True),
}
"""Options of a job that are on or off, by the flag of a command line."""

DEGREES = {
    "tp": "m1",
    "ulysses": "s1",
    "cp": "cp",
    "ring": "cp",
    "ep": "ep",
    "dp": "dp",
    "pp": "pp",
}
"""Mesh axes of a search in the order of the catalogue, each with the symbol of its degree.

Names stand here once more, so that a search whose programs are kept need not load the catalogue.
"""

DATA_AXES = tuple(name for name in DEGREES if name not in ("tp", "pp"))
"""Mesh axes whose ranks may keep shards of states."""

MESHES = ("tp", *CONTEXT, "ep", "dp", "pp")
"""The same as a refusal lists them."""

HOST = "host"
"""The link of offloaded quantities, as overlap names it."""

OFFLOADED = ("weight", "weight_gradient", "master_weight", "optimizer", "saved")
"""What may be on the host."""

INSIDE = "inside "
"""Symbols that begin so tell the order of ranks."""

OPENED: Mapping[str, bool] = {
    **{f"inside {one} {other}": False for one, other in combinations(DEGREES, 2)},
    **{f"hidden {mesh}": False for mesh in (*DEGREES, HOST)},
    **{f"hosted {name}": False for name in OFFLOADED},
}
"""Symbols of the options that may stay open, and that none of them counts anything."""


def word_problems(name: str, choice: str) -> list[str]:
    """Say what of a choice is none.

    Args:
        name: "order", "overlap", "offload" or "regather".
        choice: words joined by a plus; empty where nothing is said.
    """
    words = _words(choice)
    if name == "regather":
        return [] if choice in ("", "on", "off") else [unknown(name, choice, ("on", "off"))]
    if name == "overlap":
        return [problem for word in words for problem in _overlap_problems(word)]
    accepted = OFFLOADED if name == "offload" else MESHES
    if name == "order" and choice == EVERY:
        return []
    problems = [unknown(name, word, accepted) for word in words if word not in accepted]
    return problems + [f"{name} {quote(choice)}: a word is there twice"] * (
        len(set(words)) < len(words)
    )


class Way(NamedTuple):
    """How a structure is run: options of a job that change its numbers and not its rows."""

    order: str = ""
    offload: str = ""
    overlap: str = ""


def ways(names: Collection[str], chosen: Mapping[str, Sequence[str]]) -> tuple[Way, ...]:
    """Return how structures may be run whose strategies split the same; each way once.

    Raises:
        InputError: an order that leaves out a mesh axis, or panels beside other ways.
    """
    choices = (
        Way(order, offload, _hidden(hidden, {*names, *([HOST] if offload else [])}))
        for order, offload, hidden in product(
            (one for text in chosen["order"] for one in orders(text, names)),
            (",".join(sorted(_words(offload))) for offload in chosen["offload"]),
            chosen["overlap"],
        )
    )
    listed = tuple(dict.fromkeys(choices))
    if len(listed) > 1 and any("panels" in way.overlap for way in listed):
        raise InputError("overlap panels=... goes alone: with one order, overlap and offload")
    return listed


def switches(
    names: Collection[str], *, sp: bool, chosen: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, str]]:
    """Yield what else of a structure may be chosen, as options of a job."""
    gathers = sp or "cp" in names
    sends = {"tp", "pp"} <= set(names) and not sp
    for gathered, scattered in product(
        chosen["regather"] if gathers else ("",), chosen["scattered"] if sends else ("",)
    ):
        words = {"on": "regather", "off": "no-regather"}
        yield {"regather": words.get(gathered, ""), "scattered": scattered}


def common(run: Sequence[Way]) -> Way:
    """Return what several ways say alike, and that the rest is open."""
    return Way(*(one[0] if len(set(one)) == 1 else OPEN for one in zip(*run, strict=True)))


def as_option(name: str, word: object) -> object:
    """Return a word of a choice as an option of a job.

    >>> as_option("order", "tp+dp"), as_option("offload", "none"), as_option("regather", "off")
    ('tp,dp', '', False)
    """
    if name in ("regather", "scattered") and word in _SWITCH:
        return _SWITCH[str(word)]
    if name in ("order", "offload", "overlap"):
        return "" if word == UNSAID[name] else ",".join(_words(str(word)))
    return None if (name, word) == ("regather", UNSAID["regather"]) else word


_SWITCH = {"on": True, "off": False}


def orders(text: str, names: Collection[str]) -> Iterator[str]:
    """Yield the orders that a choice stands for; empty for that of the catalogue.

    >>> list(orders("tp+cp+pp+dp", ("tp", "dp", "pp"))), list(orders("all", ("tp", "dp")))
    (['tp,pp,dp'], ['', 'dp,tp'])
    """
    usual = [name for name in DEGREES if name in names]
    if text == EVERY:
        listed = list(permutations(usual))
    else:
        own = next((name for name in usual if name in CONTEXT), "cp")
        said = [own if word == "cp" else word for word in _words(text)]
        missing = [name for name in usual if text and name not in said]
        if missing:
            raise InputError(f"order {text} does not say where {', '.join(missing)} lies")
        listed = [tuple(word for word in said if word in usual)]
    for order in listed:
        yield "" if order in ((), tuple(usual)) else ",".join(order)


def _hidden(text: str, names: Collection[str]) -> str:
    """Return the overlaps of what a structure has, as an option of a job."""
    own = next((name for name in CONTEXT if name in names), "cp")
    pairs = (word.partition("=") for word in _words(text))
    said = {(own if mesh == "cp" else mesh): answer for mesh, _, answer in pairs}
    return ",".join(f"{mesh}={answer}" for mesh, answer in said.items() if mesh in names)


_PLAIN = re.compile(r"none|full|partial=0\.[0-9]+", re.ASCII)
"""Answers of overlap that need not be looked up."""


def hidden_share(answer: str) -> float | None:
    """Return the share of a communication that an answer of overlap may hide, if that is all.

    >>> hidden_share("full"), hidden_share("partial=0.8"), hidden_share("panels=4")
    (1.0, 0.8, None)
    """
    name, _, number = answer.partition("=")
    if name == "partial":
        return float(Fraction(Decimal(number)))
    return {"none": 0.0, "full": 1.0}.get(name)


def _overlap_problems(word: str) -> list[str]:
    mesh, equals, answer = word.partition("=")
    if mesh in (*DEGREES, HOST) and _PLAIN.fullmatch(answer):
        return []
    from symbolic_cost.systems.overlap import overlap

    try:
        looked_up("mesh axis of overlap", mesh, dict.fromkeys((*MESHES, HOST)))
        overlap(answer if equals else "")
    except InputError as error:
        return list(error.problems)
    return []


def _words(choice: str) -> list[str]:
    return [word.strip() for word in choice.replace(",", "+").split("+") if word.strip()]


USUAL = 2.0
"""Share of a communication that stands for what the stack and the schedule hide: none is said."""


def numbers_of(run: Sequence[Way], names: Collection[str]) -> dict[str, list[float]]:
    """Return the numbers of ways by symbol; one of each.

    Args:
        run: the ways.
        names: strategies that split something.
    """
    usual = [name for name in DEGREES if name in names]
    listed = [_numbers(way, usual) for way in run]
    unsaid = {name: USUAL if name.startswith("hidden ") else 0.0 for name in OPENED}
    return {name: [one.get(name, other) for one in listed] for name, other in unsaid.items()}


def _numbers(way: Way, usual: Sequence[str]) -> dict[str, float]:
    order = [name for name in way.order.split(",") if name] or usual
    numbers = {
        f"inside {one} {other}": float(order.index(one) < order.index(other))
        for one, other in combinations(usual, 2)
    }
    for word in filter(None, way.overlap.split(",")):
        mesh, _, answer = word.partition("=")
        numbers[f"hidden {mesh}"] = hidden_share(answer) or 0.0
    return numbers | {f"hosted {name}": 1.0 for name in way.offload.split(",") if name}
