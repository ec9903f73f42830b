"""Step time and memory of a language model of LSTM layers on a device with a power budget.

The log of one run: tiles, traffic, intensities and times of every product and elementwise step,
totals, parameters and memory. The model is a chain of named definitions (`chain`).

Source: lstm-roofline.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from sympy import Expr

from symbolic_cost.numeric.binding import value
from symbolic_cost.published.contract import Comparison, nearest, printed_data
from symbolic_cost.published.lstm_roofline.definitions import Definitions
from symbolic_cost.published.lstm_roofline.inputs import (
    SLIPS,
    Configured,
    Run,
    Structure,
    accepted,
    term,
)
from symbolic_cost.published.lstm_roofline.parts import parts
from symbolic_cost.published.lstm_roofline.totals import memory, parameters, step_limit, total_time
from symbolic_cost.published.results import Erratum
from symbolic_cost.systems.chain import Chain

PUBLISHED_INPUTS: Mapping[str, Any] = Run().model_dump(exclude={"mode", "slips"})
"""The run of the log."""

_REPEATED = {"par1": "schedule", "par2": "schedule"}
_SPELLED = {"kp_embedding": "kp_embedding_dim1", "kp_proejction_dim2": "kp_projection_dim2"}


def evaluate(inputs: Mapping[str, Any]) -> dict[str, int | Fraction]:
    """Compute every number of the log, exactly.

    Args:
        inputs: any of the groups of `inputs.Run`, or of their names alone; what is not given is
            as in the log. "mode" is "as printed" or "corrected"; "slips" lists those that are kept.

    Returns:
        Numbers by name, in the units of the log.
    """
    run = accepted(inputs)
    values = {**run.numbers(), **chain(run).evaluate(run.numbers(glossary=True))}
    return {row.key: value(values[_definition(row.key)]) for row in printed()}


def reproduce() -> Sequence[Comparison]:
    """Compare the 293 numbers of the log in the format in which they are printed."""
    values = evaluate({})
    return tuple(comparison(row, values[row.key]) for row in printed())


def errata() -> list[Erratum]:
    """Return what the log does instead of what its model means."""
    follows, proof = "what its model says", 'The mode "corrected" computes without it.'
    return [Erratum("lstm-roofline", name, what, follows, proof) for name, what in SLIPS.items()]


def formulas() -> dict[str, Expr]:
    """Return the definition of every number of the log, in inputs and earlier definitions."""
    declared = definitions(Run().structure)
    names = {row.key: _definition(row.key) for row in printed()}
    return {key: declared[name] for key, name in names.items() if name in declared}


def chain(run: Configured) -> Chain:
    """Return the model of a run: inputs that the glossary lacks, then every definition."""
    return Chain({**run.numbers(glossary=False), **definitions(run.structure)})


@cache
def definitions(structure: Structure) -> Mapping[str, Expr]:
    """Return the definitions of every run of one structure, in order."""
    to = Definitions(structure)
    to.hardware()
    parts(to)
    total_time(to)
    parameters(to)
    memory(to)
    step_limit(to)
    return to


def _definition(key: str) -> str:
    group, _, name = key.partition(".")
    if group not in _REPEATED:
        return key
    return term(_REPEATED[group], _SPELLED.get(name, name)).name


ROUNDINGS = Fraction(1, 2**50)
"""Relative error that a few roundings to double precision make."""


class Printed(NamedTuple):
    """One number of the log: place, text, and form.

    The form is "int", a number of decimals as "%.2f", or "repr" for all digits of a float.
    """

    key: str
    text: str
    form: str


def printed() -> list[Printed]:
    """Return the numbers of the log in its order."""
    return [Printed(*row) for row in printed_data("lstm_roofline")]


def comparison(row: Printed, exact: int | Fraction) -> Comparison:
    """Compare a number with its exact value, in the format of the log."""
    value = Fraction(exact)
    rounded, note = nearest(value), ""
    if row.form == "int":
        computed = f"{int(exact):,}" if "," in row.text else str(int(exact))
    else:
        computed = repr(rounded) if row.form == "repr" else row.form % rounded
    match = computed == row.text
    if row.form == "repr" and not match:
        match = abs(Fraction(row.text) - value) <= ROUNDINGS * abs(value)
        note = "equal inside the roundings of double precision"
    return Comparison(row.key, row.text, computed, match, note)
