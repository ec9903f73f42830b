"""What a model runs on."""

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Shape:
    """Sequences, new tokens, and tokens that are in the cache already.

    Training and prefill have no cache; a decode step has one new token.

    Args:
        b: sequences.
        l: new tokens of each sequence.
        c: tokens that are in the key/value cache already.
        i: of the new tokens, those that stand for images.
    """

    b: Expr = symbols.b
    l: Expr = symbols.l
    c: Expr = Integer(0)
    i: Expr = Integer(0)

    def __post_init__(self) -> None:
        """Take plain integers as well; only the cache and images may be none.

        Raises:
            InputError: what is no size.
        """
        for name in ("b", "l", "c", "i"):
            value = getattr(self, name)
            empty = name in {"c", "i"} and isinstance(value, int | Expr) and value == 0
            object.__setattr__(self, name, Integer(0) if empty else symbols.size(value, name))

    @property
    def by_steps(self) -> bool:
        """Whether recurrences run token by token: a decode step, or a draft that it checks.

        A part of a prompt that follows cached tokens runs as a prompt does, from the kept state.
        """
        return self.c != 0 and self.l.is_Integer and int(self.l) <= LONGEST_STEP


LONGEST_STEP = 16
"""New tokens of a sequence up to which a step is a decode step."""


TRAINING = Shape()
"""b sequences of l tokens, no cache."""

DECODE = Shape(l=Integer(1), c=symbols.c)
"""One new token for each of b sequences, c tokens in the cache."""
