"""The edge of the published modules: inputs are checked here, all problems at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sympy import Expr

from symbolic_cost.errors import InputError, quote, refuse, unknown
from symbolic_cost.published.cases import numbered
from symbolic_cost.reading import json_value, read_text

LARGEST = 10**15
"""No size or degree of a model is larger; what is, was mistyped."""

Count = Annotated[int, Field(ge=1, le=LARGEST)]
"""A positive integer."""

Index = Annotated[int, Field(ge=0, le=LARGEST)]
"""An integer from zero."""

Latency = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A number from zero."""

Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A positive number."""


class Inputs(BaseModel):
    """Inputs of one publication; a subclass has one field per input.

    Papers use our letters for other things (h is the width, l the layers): NAMES has our name by
    the paper's, of a subclass that takes both.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    NAMES: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def accepted(cls, inputs: Mapping[str, Any]) -> Self:
        """Check inputs one by one, then how they go together.

        Raises:
            InputError: every input that is missing, unknown or refused; if there is none, every
                contradiction between them.
        """
        try:
            if not isinstance(inputs, Mapping):
                raise InputError(f"inputs are {quote(inputs)}: a mapping by name is accepted")
            accepted = cls.model_validate(cls.in_our_names(inputs))
        except ValidationError as error:
            raise InputError([cls._problem_text(problem) for problem in error.errors()]) from None
        refuse(accepted.contradictions())
        return accepted

    @classmethod
    def in_our_names(cls, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return inputs with a paper's names replaced, if they are given under the paper's names.

        They are taken for the paper's if e, which every one of ours has, is missing and one of its
        own names is there.
        """
        own = cls.NAMES.keys() - cls.model_fields.keys()
        if "e" in inputs or not own & inputs.keys():
            return dict(inputs)
        return {cls.NAMES.get(name, name): value for name, value in inputs.items()}

    def contradictions(self) -> list[str]:
        """Say which inputs do not go together."""
        return []

    def bound(self, fields: str) -> dict[Expr, Expr]:
        """Return the exact number of every symbol that is given; see `cases.numbered`."""
        return numbered(fields, partial(getattr, self))

    @classmethod
    def _problem_text(cls, problem: Any) -> str:  # noqa: ANN401 - pydantic's record of a problem
        *groups, last = problem["loc"]
        name = ".".join(str(step) for step in problem["loc"])
        group = cls._group(groups)
        if problem["type"] == "extra_forbidden":
            place = f" of {'.'.join(groups)!r}" if groups else ""
            return unknown(f"input{place}", last, group.model_fields)
        if problem["type"] == "missing":
            return f"input {quote(name)} is missing"
        message = problem["msg"][0].lower() + problem["msg"][1:]
        return f"input {quote(name)} is {quote(problem['input'])}: {message}"

    @classmethod
    def _group(cls, groups: list[str]) -> type[Inputs]:
        """Return the inputs inside which a problem was found."""
        level: type[Inputs] = cls
        for group in groups:
            field = level.model_fields.get(group)
            inner = field.annotation if field is not None else None
            if isinstance(inner, type) and issubclass(inner, Inputs):
                level = inner
        return level


def indivisible(name: str, size: int, degree_name: str, degree: int) -> list[str]:
    """Say that a degree does not divide a size, if so.

    >>> indivisible("layers", 36, "pp", 8)
    ['layers = 36 is not divisible by pp = 8']
    """
    if size % degree == 0:
        return []
    return [f"{name} = {size} is not divisible by {degree_name} = {degree}"]


MOST_BYTES = 10**6
"""Inputs of a publication are a few lines; a larger file is another one."""


def read_inputs(path: str) -> dict[str, Any]:
    """Read inputs from a JSON file.

    Raises:
        InputError: the file cannot be read, is too large, or is not one JSON object.
    """
    place = f"inputs file {quote(path, 200)}"
    values = json_value(read_text(path, MOST_BYTES, place), place)
    if not isinstance(values, dict):
        raise InputError(f'{place}: holds no object; write for example {{"b": 1, "l": 2048}}')
    return values


@contextmanager
def of_file(path: str | None) -> Iterator[None]:
    """Have refusals of what a file holds name it.

    Raises:
        InputError: every problem, behind the name.
    """
    try:
        yield
    except InputError as error:
        if path is None or any(path in text for text in error.problems):
            raise
        raise InputError([f"{quote(path, 200)}: {text}" for text in error.problems]) from None
