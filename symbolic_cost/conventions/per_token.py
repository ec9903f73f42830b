"""What frameworks and papers count as the FLOP of one token: questions, answers, presets.

Most say C = 6 N + attention, and differ in what N holds, which keys a query meets, and how wide a
head is. The presets are records of per_token.toml; a user's own TOML file has the same form:

    meaning = "6 per weight of a product, causal half"
    source = "our own trainer"
    counted = ["products", "head", "experts"]
    causal = "half"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from symbolic_cost.checking import checked
from symbolic_cost.conventions.token_questions import (
    AMONG_PRODUCTS,
    Causal,
    Core,
    Perceptron,
    Routed,
    State,
    StateRule,
    Tied,
    Unknown,
    Weights,
    Width,
    Window,
)
from symbolic_cost.errors import InputError, brief, looked_up, quote, refuse, unknown, visible
from symbolic_cost.reading import package_data, toml_record
from symbolic_cost.records import dataclass


@checked
@dataclass(frozen=True)
class TokenConventions:
    """One answer per question on the FLOP of a token.

    Args:
        counted: kinds of weights of which every element costs 2 FLOP a pass and token.
        tied: how a weight counts that is token table and head.
        routed: which experts count.
        core: width of the attention core: heads x width as declared, or the embedding's.
        heads: "hidden" takes a head for e/h wide in every product, whatever is declared.
        causal: share of the pairs below the mask.
        window: what a sliding window leaves.
        passes: 3 for forward and both gradients, 1 for forward, 4 with a whole recomputation.
        softmax: FLOP per score and forward pass.
        head_norm: "hidden" takes norms of queries and keys for as wide as the embedding.
        left_out: kinds among the products that do not count.
        perceptron: "gated" takes every feed-forward layer for a gated one, of three products.
        recurrence: what becomes of kinds of states that have no rule.
        states: rules by kind of state.
        families: other answers by family.
    """

    name: str
    meaning: str
    source: str
    counted: frozenset[Weights]
    tied: Tied = Tied.EACH_USE
    routed: Routed = Routed.ACTIVE
    core: Core = Core.DECLARED
    heads: Width = Width.DECLARED
    causal: Causal = Causal.FULL
    window: Window = Window.IGNORED
    passes: int = 3
    softmax: int = 0
    head_norm: Width = Width.DECLARED
    left_out: frozenset[Weights] = frozenset()
    perceptron: Perceptron = Perceptron.DECLARED
    recurrence: Unknown = Unknown.NONE
    states: Mapping[State, StateRule] = field(default_factory=dict)
    families: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take answers by name.

        Raises:
            InputError: every answer that is none.
        """
        refuse(_refused(vars(self)))
        for question, answers in _QUESTIONS.items():
            answer = getattr(self, question)
            several = question in _SEVERAL
            taken = frozenset(map(answers, _several(answer))) if several else answers(answer)
            object.__setattr__(self, question, taken)

    def counts(self, kind: Weights) -> bool:
        """Tell whether a kind of weights costs anything."""
        of = Weights.PRODUCTS if kind in AMONG_PRODUCTS else kind
        return of in self.counted and kind not in self.left_out

    def of_family(self, family: str) -> TokenConventions:
        """Return the answers for a family of models."""
        own = self.families.get(family)
        return self if own is None else replace(self, **own)


_QUESTIONS: Mapping[str, type[StrEnum]] = {
    "counted": Weights,
    "tied": Tied,
    "routed": Routed,
    "core": Core,
    "heads": Width,
    "causal": Causal,
    "window": Window,
    "head_norm": Width,
    "left_out": Weights,
    "perceptron": Perceptron,
    "recurrence": Unknown,
}
_SEVERAL = ("counted", "left_out")


def _several(answer: object) -> tuple[object, ...]:
    several = isinstance(answer, frozenset | set | tuple | list)
    return tuple(answer) if several else (answer,)  # type: ignore[arg-type]


def _refused(stated: Mapping[str, object]) -> Iterator[str]:
    for question, answers in _QUESTIONS.items():
        known = {one.value for one in answers}
        answer = stated[question]
        for one in _several(answer) if question in _SEVERAL else (answer,):
            if not isinstance(one, str) or one not in known:
                yield unknown(f"answer of {question!r}", one, known)
    for name in ("name", "meaning", "source"):
        if not isinstance(stated[name], str):
            yield f"{name} = {quote(stated[name])}: text is accepted"
    for name, least in (("passes", 1), ("softmax", 0)):
        number = stated[name]
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            yield f"{name} = {quote(number)}: an integer from {least} is accepted"
    if not isinstance(stated["families"], Mapping):
        yield f"families = {quote(stated['families'])}: a mapping is accepted"


class _Answers(BaseModel):
    """Answers as a file gives them; what is not said is as in `TokenConventions`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    counted: frozenset[Weights] | None = None
    tied: Tied | None = None
    routed: Routed | None = None
    core: Core | None = None
    heads: Width | None = None
    causal: Causal | None = None
    window: Window | None = None
    passes: int | None = Field(None, strict=True, ge=1, le=5)
    softmax: int | None = Field(None, strict=True, ge=0, le=100)
    head_norm: Width | None = None
    left_out: frozenset[Weights] | None = None
    perceptron: Perceptron | None = None
    recurrence: Unknown | None = None
    states: dict[State, StateRule] | None = None

    def given(self) -> dict[str, Any]:
        named = type(self).model_fields.keys() - {"meaning", "source", "families"}
        said = {name: getattr(self, name) for name in named}
        return {name: answer for name, answer in said.items() if answer is not None}


class _Record(_Answers):
    meaning: str = Field(max_length=300)
    source: str = Field(max_length=300)
    counted: frozenset[Weights]
    families: dict[str, _Answers] = Field(default_factory=dict)


def _read(name: str, record: Mapping[str, Any], place: str) -> TokenConventions:
    try:
        entry = _Record.model_validate(record)
    except ValidationError as error:
        raise InputError([_problem_text(place, problem) for problem in error.errors()]) from None
    families = {family: own.given() for family, own in entry.families.items()}
    return TokenConventions(name, entry.meaning, entry.source, families=families, **entry.given())


def _problem_text(place: str, problem: Any) -> str:  # noqa: ANN401 - pydantic's own record
    where = ".".join(str(step) for step in problem["loc"])
    if problem["type"] == "missing":
        return f"{place}: {where} is missing"
    if problem["type"] == "extra_forbidden":
        known = [*_Record.model_fields]
        return f"{place}: {unknown('question', where.rpartition('.')[2], known)}"
    return f"{place}: {where} = {quote(problem['input'])}: {visible(brief(problem['msg'], 200))}"


TOKEN_PRESETS: Mapping[str, TokenConventions] = {
    name: _read(name, record, name)
    for name, record in package_data("conventions/per_token.toml").items()
}
"""Every preset by name."""

_ALIASES = {"trl": "transformers", "palm-appendix-b": "palm", "chinchilla-appendix-f": "chinchilla"}
_MOST_BYTES = 2**16


def token_conventions(name: str) -> TokenConventions:
    """Return a preset by name, or the conventions of a TOML file.

    Raises:
        InputError: no such preset (the closest are offered), or every problem of the file.
    """
    if not name.endswith(".toml"):
        return looked_up("conventions", name, _KNOWN)
    record, place = toml_record(name, _MOST_BYTES, "conventions")
    return _read(Path(name).stem, record, place)


_KNOWN = {**TOKEN_PRESETS, **{alias: TOKEN_PRESETS[name] for alias, name in _ALIASES.items()}}
