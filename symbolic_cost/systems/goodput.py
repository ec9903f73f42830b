"""Goodput: what part of a run's time trains, beside checkpoints and failures.

Failures come at random with a mean time between them; a checkpoint is written every so often, and a
failure loses what was trained since, and a restart. Writing every sqrt(2 write mean) seconds is
nearly best (young-1974). The expected time of an interval of training and its checkpoint is
mean exp(restart/mean) (exp((interval + write)/mean) - 1) (daly-2006, equation 20).

For example 16,384 devices that each run 50,000 h between failures fail every 3 h; a checkpoint of
30 s every 14 min and a restart of 10 min leave 0.88 of the time.
"""

from __future__ import annotations

import math

from symbolic_cost.errors import quote, refuse
from symbolic_cost.records import dataclass

HOUR = 3600.0

DEVICE_MTBF = 50_000 * HOUR
"""Mean time between the failures of one device [s].

Source: grattafiori-2024, section 3.3.4: 419 in 54 days of 16,384 devices.
"""

RESTART = 600.0
"""Time from a failure to the next step of training [s]; assumed."""

WRITING = 1e9
"""What one rank writes to storage [byte/s]; assumed."""


@dataclass(frozen=True, slots=True)
class Goodput:
    """What failures and checkpoints leave.

    Args:
        write: of one checkpoint [s].
        interval: of training between two checkpoints [s].
        mean: time between two failures of the run [s].
        share: of the time that trains.
    """

    write: float
    interval: float
    mean: float
    share: float


def goodput(
    size: float,
    ranks: int,
    *,
    device_mtbf: float = DEVICE_MTBF,
    writing: float = WRITING,
    restart: float = RESTART,
) -> Goodput:
    """Return what checkpoints and failures leave of a run.

    Args:
        size: of what one rank writes [byte].
        ranks: of the run; each may fail.
        device_mtbf: mean time between the failures of one device [s].
        writing: bandwidth of one rank to storage [byte/s].
        restart: from a failure to the next step [s].

    Raises:
        InputError: every number that is not positive.
    """
    own = {"size": size, "ranks": ranks, "device_mtbf": device_mtbf, "writing": writing}
    problems = [
        f"{name} = {quote(value)}: a positive number is accepted"
        for name, value in (*own.items(), ("restart", restart))
        if not 0 < value < math.inf
    ]
    refuse(problems)
    mean, write = device_mtbf / ranks, size / writing
    interval = math.sqrt(2 * write * mean)
    lost = math.expm1(min((interval + write) / mean, _MOST)) * math.exp(min(restart / mean, _MOST))
    return Goodput(write, interval, mean, interval / (mean * lost))


_MOST = 300.0
"""Exponents above leave nothing."""
