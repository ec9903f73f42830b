"""The edge of the published modules: inputs are checked here, all problems at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from symbolic_cost.errors import InputError, unknown

LARGEST = 10**15
"""No size or degree of a model is larger; what is, was mistyped."""

Count = Annotated[int, Field(ge=1, le=LARGEST)]
"""A positive integer."""

Index = Annotated[int, Field(ge=0, le=LARGEST)]
"""An integer from zero."""

Rate = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=False)]
"""A positive number."""


class Inputs(BaseModel):
    """Inputs of one publication; a subclass has one field per input."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def accepted(cls, inputs: Mapping[str, Any]) -> Self:
        """Check inputs one by one, then how they go together.

        Raises:
            InputError: every input that is missing, unknown or refused; if there is none, every
                contradiction between them.
        """
        try:
            found = cls.model_validate(dict(inputs))
        except ValidationError as error:
            raise InputError([cls._said(problem) for problem in error.errors()]) from None
        contradictions = found.contradictions()
        if contradictions:
            raise InputError(contradictions)
        return found

    def contradictions(self) -> list[str]:
        """Say which inputs do not go together."""
        return []

    @classmethod
    def _said(cls, problem: Any) -> str:  # noqa: ANN401 - pydantic's record of a problem
        name = ".".join(str(step) for step in problem["loc"])
        if problem["type"] == "extra_forbidden":
            return unknown("input", name, cls.model_fields)
        if problem["type"] == "missing":
            return f"input {name!r} is missing: needed are {', '.join(cls.required())}"
        message = problem["msg"][0].lower() + problem["msg"][1:]
        return f"input {name!r} is {problem['input']!r}: {message}"

    @classmethod
    def required(cls) -> list[str]:
        """Return the names of the inputs that have no default."""
        return [name for name, field in cls.model_fields.items() if field.is_required()]


def indivisible(name: str, size: int, degree_name: str, degree: int) -> list[str]:
    """Say that a degree does not divide a size, if so.

    >>> indivisible("layers", 36, "pp", 8)
    ['layers = 36 is not divisible by pp = 8']
    """
    if size % degree == 0:
        return []
    return [f"{name} = {size} is not divisible by {degree_name} = {degree}"]
