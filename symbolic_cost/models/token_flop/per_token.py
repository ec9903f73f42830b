"""The FLOP of one token under the conventions of frameworks, from the declaration of a model.

Every weight and every product of queries and keys is classed by what its op does and by the roles
of its axes; a convention says which classes count. Nothing is written per family:

    6 V e (head) + 6 n_layers (weights of products) + 12 n_layers h q min(s, W)
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property, partial

from sympy import Add, Expr, Mul, Symbol

from symbolic_cost.checking import few, is_count
from symbolic_cost.conventions.per_token import TokenConventions, token_conventions
from symbolic_cost.display import NotebookTable
from symbolic_cost.errors import InputError, quote, refuse, unknown
from symbolic_cost.models.catalog import model as named_model
from symbolic_cost.models.lengths import of_length, with_length
from symbolic_cost.models.token_flop.terms import Term, TokenTerms, with_assumed_heads
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact
from symbolic_cost.symbols import l as length


@dataclass(frozen=True)
class TokenFlop(NotebookTable):
    """The FLOP of one token of a model under one set of conventions.

    Args:
        numbers: bound to symbols of the formulas, by symbol.
    """

    model: Model
    conventions: TokenConventions
    terms: tuple[Term, ...]
    numbers: Mapping[Symbol, Expr]

    __repr__ = NotebookTable.__str__

    @cached_property
    def formula(self) -> Expr:
        """The FLOP of a token in the model's symbols."""
        return Add(*(term.flop for term in self.terms))

    @property
    def total(self) -> Expr:
        """The FLOP of a token, known numbers in place."""
        return self.formula.xreplace(dict(self.numbers))

    def at(self, seq: int) -> Expr:
        """Return the FLOP of a token of a sequence of so many tokens.

        Raises:
            InputError: the model has its length as a number already.
        """
        if length not in self.model.symbols:
            raise InputError(
                f"model {self.model.name!r} has a length of its own: declare it with l"
            )
        return self.formula.xreplace({**self.numbers, length: exact(seq)})

    def batch(self, lengths: Iterable[int]) -> Expr:
        """Return the FLOP of a ragged batch: every sequence meets its own keys alone.

        For example weights cost 512 + 1024 tokens, attention 512**2 + 1024**2 pairs.

        Raises:
            InputError: no lengths, or one that is no positive integer.
        """
        chosen = few("a batch", lengths)
        wrong = [one for one in chosen if not is_count(one)]
        if wrong or not chosen:
            said = ", ".join(map(quote, wrong)) or "none"
            raise InputError(f"lengths of sequences: {said}: positive integers are accepted")
        return Add(*(Mul(count, one, self.at(one)) for one, count in Counter(chosen).items()))


def _of_length(name: str, numbers: Mapping[str, int | Fraction]) -> Model:
    return of_length(partial(named_model, name), numbers)


def flops_per_token(
    model: str | Model,
    seq: int | None = None,
    conventions: str | TokenConventions = "torchtitan",
    numbers: Mapping[str, int | Fraction] | None = None,
) -> TokenFlop:
    """Count the training FLOP of one token as a framework or a paper does.

    Args:
        model: name, path of a config.json, or a model with a glossary of axes.
        seq: tokens of a sequence; those of the model's own sizes unless given.
        conventions: name of a preset, path of a TOML file with answers, or conventions.
        numbers: further sizes by symbol name.

    Raises:
        InputError: a model without tokens or roles of axes, or every problem of the conventions.

    >>> int(flops_per_token("qwen3-30b-a3b", 8192).total)
    37578559488
    """
    rules = token_conventions(conventions) if isinstance(conventions, str) else conventions
    stated = with_length(numbers, seq)
    own = _of_length(model, stated) if isinstance(model, str) else model
    symbols = {symbol.name: symbol for symbol in own.symbols}
    stated = {name: number for name, number in stated.items() if own.fixed.get(name) != number}
    problems = [
        unknown("size of the model", name, symbols) for name in stated if name not in symbols
    ]
    problems += [
        f"{'seq' if name == 'l' else name} = {quote(number)}: a positive integer is accepted"
        for name, number in stated.items()
        if not is_count(number)
    ]
    refuse(problems)
    known = {**own.bindings, **stated}
    bound = {symbols[name]: exact(number) for name, number in known.items() if name in symbols}
    answers = rules.of_family(own.family)
    return TokenFlop(
        own, rules, tuple(TokenTerms(with_assumed_heads(own, answers), answers).terms()), bound
    )
