"""The glossary: every quantity of the library is one SymPy symbol, made here and nowhere else.

Counts and sizes are positive integers; rates, times and element sizes are positive reals.
The order of this file is the order in which factors are printed.
"""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from operator import index
from typing import Any

from sympy import Expr, Function, Integer, Rational, Symbol, nan, zoo

from symbolic_cost.algebra import OnTerms
from symbolic_cost.errors import InputError, looked_up, quote
from symbolic_cost.lazy_sympy import prepare
from symbolic_cost.records import dataclass

prepare()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the glossary.

    Args:
        meaning: what it counts, with its unit in brackets.
        integer: whether only positive integers may be bound to it.
    """

    symbol: Symbol
    latex: str
    meaning: str
    integer: bool


GLOSSARY: dict[str, Entry] = {}
"""Every entry by the symbol's name, in printing order."""


def _count(name: str, meaning: str, latex: str | None = None) -> Symbol:
    symbol = Symbol(name, positive=True, integer=True)
    GLOSSARY[name] = Entry(symbol, latex or name, meaning, integer=True)
    return symbol


def _mean(name: str, meaning: str, latex: str) -> Symbol:
    symbol = Symbol(name, nonnegative=True)
    GLOSSARY[name] = Entry(symbol, latex, meaning, integer=False)
    return symbol


def _rate(name: str, meaning: str, latex: str | None = None) -> Symbol:
    symbol = Symbol(name, positive=True)
    GLOSSARY[name] = Entry(symbol, latex or name, meaning, integer=False)
    return symbol


def register(name: str, meaning: str, latex: str | None = None, *, integer: bool = True) -> Symbol:
    """Add a symbol of a user: a positive integer, or a positive number.

    Raises:
        InputError: the name is taken, or is no name.
    """
    if name in GLOSSARY:
        raise InputError(f"symbol {quote(name)} exists already: {GLOSSARY[name].meaning}")
    if not str(name).isidentifier():
        raise InputError(f"symbol {quote(name)}: letters, digits and _ are accepted")
    return (_count if integer else _rate)(name, meaning, latex)


# Sizes of a model and its input.
n_layers = _count("n_layers", "transformer blocks", r"n_{\mathrm{layers}}")
B = _count("B", "global batch [sequences]")
M = _count("M", "microbatches per pipeline and step")
b = _count("b", "microbatch size [sequences]")
l = _count("l", "sequence length [tokens]")
t = _count("t", "key/value positions of attention [tokens]")
c = _count("c", "tokens in the key/value cache")
b_p = _count("b_p", "prompts prefilled beside a decode step [sequences]", "b_p")
c_p = _count("c_p", "tokens of these that are in the cache already", "c_p")
e = _count("e", "embedding (hidden) width")
f = _count("f", "MLP width")
h = _count("h", "attention heads")
k = _count("k", "key/value heads")
q = _count("q", "head width")
V = _count("V", "vocabulary")
P = _count("P", "positions of a learned position embedding")
n = _count("n", "length of the summed axis (in conventions)")
tokens = _count("tokens", "tokens trained on", r"n_{\mathrm{tokens}}")

# Sizes of variants.
g = _count("g", "query heads that share one key/value head")
W = _count("W", "window of sliding attention [tokens]")
n_dense = _count("n_dense", "dense blocks before the experts", r"n_{\mathrm{dense}}")
n_first = _mean("n_first", "blocks of the first stage of a pipeline", r"n_{\mathrm{first}}")
n_middle = _mean("n_middle", "blocks of a middle stage", r"n_{\mathrm{middle}}")
n_last = _mean("n_last", "blocks of the last stage of a pipeline", r"n_{\mathrm{last}}")
n_lead_first, n_lead_middle, n_lead_last = (
    _mean(f"n_lead_{end}", f"leading blocks of the {end} stage", rf"n_{{\mathrm{{lead,{end}}}}}")
    for end in ("first", "middle", "last")
)
n_rest_first, n_rest_middle, n_rest_last = (
    _mean(f"n_rest_{end}", f"other blocks of the {end} stage", rf"n_{{\mathrm{{rest,{end}}}}}")
    for end in ("first", "middle", "last")
)
E = _count("E", "experts")
E_t = _count("E_t", "experts per token", "E_t")
f_m = _count("f_m", "width of one expert", "f_m")
f_s = _count("f_s", "width of the shared experts together", "f_s")
r_m = _count("r_m", "rank of the latent that experts work on", "r_m")
e_p = _count("e_p", "width of the token table where it is projected", "e_p")
r_q = _count("r_q", "rank of the query latent", "r_q")
r_kv = _count("r_kv", "rank of the key/value latent", "r_{kv}")
d_n = _count("d_n", "head width without rotation", "d_n")
d_r = _count("d_r", "head width with rotation", "d_r")
d_v = _count("d_v", "head width of values", "d_v")
r_a = _count("r_a", "rank of adapters", "r_a")
h_x = _count("h_x", "heads of an indexer that chooses keys", "h_x")
d_x = _count("d_x", "head width of an indexer", "d_x")
T = _count("T", "token types")
l_t = _count("l_t", "target length of an encoder-decoder [tokens]", "l_t")
n_dec = _count("n_dec", "decoder blocks of an encoder-decoder", r"n_{\mathrm{dec}}")
n_rel = _count("n_rel", "buckets of relative positions", r"n_{\mathrm{rel}}")
n_classes = _count("n_classes", "classes", r"n_{\mathrm{classes}}")
N_p = _count("N_p", "patches along one side of an image", "N_p")
s_p = _count("s_p", "side of one patch [pixels]", "s_p")
n_ch = _count("n_ch", "channels of an image", r"n_{\mathrm{ch}}")
J = _count("J", "inner width of a state-space layer")
N = _count("N", "state size of a state-space layer")
K = _count("K", "kernel of a causal convolution")
r_dt = _count("r_dt", "rank of the time step", "r_{dt}")
h_s = _count("h_s", "heads of a state-space or linear layer", "h_s")
q_s = _count("q_s", "head width of a state-space or linear layer", "q_s")
g_s = _count("g_s", "groups of heads that share keys or states in such a layer", "g_s")
k_s = _count("k_s", "key width of a linear layer", "k_s")
C = _count("C", "chunk of a scan [tokens]")

# Degrees of the mesh axes.
R = _count("R", "ranks (GPUs)")
m1 = _count("m1", "tensor-parallel degree", "m_1")
m2 = _count("m2", "second tensor-parallel degree", "m_2")
m3 = _count("m3", "third tensor-parallel degree", "m_3")
s1 = _count("s1", "sequence-parallel degree", "s_1")
cp = _count("cp", "context-parallel degree", r"\mathit{cp}")
dp = _count("dp", "data-parallel degree", r"\mathit{dp}")
pp = _count("pp", "pipeline-parallel degree", r"\mathit{pp}")
ep = _count("ep", "expert-parallel degree", r"\mathit{ep}")
dr = _count("dr", "replicas of the data-parallel groups that keep shards", r"\mathit{dr}")
p = _count("p", "ranks of one collective (in conventions)")

# Pipelines and panels.
stage = _count("stage", "pipeline stage, from 1", r"\mathit{stage}")
v = _count("v", "model chunks per pipeline stage")
panels = _count("panels", "panels of a product that moves in steps", r"n_b")

# Sizes of elements and rates of machines.
s = _rate("s", "size of one element [byte]")
mu = _rate("mu", "size of one dropout-mask element [byte]", r"\mu")
T_F = _rate("T_F", "forward pass of one microbatch and stage [s]")
T_B = _rate("T_B", "input gradients of one microbatch and stage [s]")
T_W = _rate("T_W", "weight gradients of one microbatch and stage [s]")
F_m = _rate("F_m", "peak rate of matrix units [FLOP/s]", "F_m")
F_v = _rate("F_v", "peak rate of vector units [FLOP/s]", "F_v")
beta_m = _rate("beta_m", "bandwidth of the memory [byte/s]", r"\beta_m")
beta = _rate("beta", "bandwidth of a link [byte/s]", r"\beta")
alpha = _rate("alpha", "latency of one step over a link [s]", r"\alpha")
beta_h = _rate("beta_h", "bandwidth of the link to the host [byte/s]", r"\beta_h")
alpha_m = _rate("alpha_m", "latency of the memory [s]", r"\alpha_m")
beta_d = _rate("beta_d", "bandwidth of a link inside a domain [byte/s]", r"\beta_d")
alpha_d = _rate("alpha_d", "latency of one step inside a domain [s]", r"\alpha_d")
n_d = _count("n_d", "ranks of one domain", "n_d")
t_k = _rate("t_k", "launch of one kernel [s]", "t_k")
t_h = _rate("t_h", "time in which the host issues one op [s]", "t_h")
n_half = _rate("n_half", "product that reaches half of the best rate [FLOP]", r"n_{1/2}")
X = _rate("X", "achieved rate of one rank [FLOP/s]")
T_step = _rate("T_step", "one training step [s]", r"T_{\mathrm{step}}")
message = _rate("message", "full message of one collective [byte]", r"w")


_WORDS = {
    "b": "batch micro_batch micro_batch_size mbs",
    "B": "global_batch global_batch_size gbs",
    "l": "seq seq_len seq_length sequence",
    "e": "d_model hidden hidden_size n_embd width",
    "f": "d_ff ffn ffn_hidden_size intermediate_size",
    "h": "heads n_head n_heads num_heads num_attention_heads",
    "q": "d_head head_dim",
    "k": "kv_heads n_kv_heads num_key_value_heads",
    "n_layers": "layers n_layer num_layers num_hidden_layers depth",
    "V": "vocab vocab_size",
    "M": "microbatches",
    "E": "experts num_experts",
    "m1": "tp",
    "s1": "sp ulysses",
    "cp": "ring",
    "dr": "replicas",
    "R": "ranks gpus",
}
WORDS = {word: name for name, words in _WORDS.items() for word in words.split()}
"""Names of the glossary by other words of the field."""


def symbol(name: object) -> Symbol:
    """Return the symbol that a name or a symbol stands for.

    A symbol of the glossary's name with other assumptions, such as Symbol("l"), is another symbol
    to SymPy: what is derived by it is 0. It is taken for the glossary's.

    Raises:
        UnknownNameError: the glossary has no such name; the closest are offered.
    """
    known = name.name if isinstance(name, Symbol) else name
    return looked_up("symbol", known, GLOSSARY, WORDS).symbol


def of_glossary(expr: Expr) -> Expr:
    """Return an expression with the glossary's symbols for all others of their names."""
    expr = exact(expr)
    strange = {
        one: GLOSSARY[one.name].symbol
        for one in expr.free_symbols
        if one.name in GLOSSARY and GLOSSARY[one.name].symbol != one
    }
    return expr.xreplace(strange) if strange else expr


def exact(value: object) -> Expr:
    """Turn a number into an exact SymPy number; expressions pass unchanged.

    A float stands for the decimal that it prints as: 2e-9 is 2/10**9.

    Raises:
        InputError: not a number, or not finite. Text is never parsed as a formula.
    """
    if isinstance(value, Expr) and value not in (nan, zoo):
        return value
    if isinstance(value, bool):
        raise InputError(f"{quote(value)} is not a number")
    if isinstance(value, int):
        return Integer(value)
    if isinstance(value, Fraction):
        return Rational(value.numerator, value.denominator)
    if isinstance(value, float | Decimal) and Decimal(str(value)).is_finite():
        fraction = Fraction(str(value))
        return Rational(fraction.numerator, fraction.denominator)
    try:
        return Integer(index(value))  # type: ignore[arg-type]  # what is none is refused
    except TypeError:
        raise InputError(f"{quote(value)} is not a finite number") from None


def size(value: object, name: str) -> Expr:
    """Return a size: a positive integer, or an expression that may be one.

    Raises:
        InputError: zero, a negative number, a fraction, text, or not real.
    """
    accepted = f"{name} = {quote(value)}: a positive integer or a symbol is accepted"
    try:
        number = exact(value)
    except InputError:
        raise InputError(accepted) from None
    if number.is_number and not (number.is_Integer and number.is_positive):
        raise InputError(accepted)
    if number.is_commutative is False or number.is_real is False or number.is_positive is False:
        raise InputError(accepted)
    return number


@lru_cache(1 << 12)  # a step asks for most of its names several times
def named(name: str) -> Symbol:
    """Return the symbol of an intermediate result: a number that is not negative."""
    return Symbol(name, nonnegative=True)


class Active(OnTerms, Function):
    """Iverson bracket [p > 1]: one if a collective has more than one rank, else zero.

    >>> from symbolic_cost.symbols import Active, m1
    >>> Active(1), Active(4), Active(m1).diff(m1)
    (0, 1, 0)
    """

    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, ranks: Expr) -> Expr | None:
        """Evaluate for a number."""
        return Integer(int(bool(ranks > 1))) if ranks.is_number else None

    def fdiff(self, argindex: int = 1) -> Expr:  # noqa: ARG002 - the signature is SymPy's
        """Differentiate: a step is flat wherever a degree is an integer."""
        return Integer(0)

    def _latex(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        left, right = getattr(printer, "brackets", (r"\left[", r"\right]"))
        return rf"{left}{printer._print(self.args[0])} > 1{right}"  # noqa: SLF001 - SymPy's protocol

    def _sympystr(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        left, right = getattr(printer, "brackets", ("[", "]"))
        return f"{left}{printer._print(self.args[0])} > 1{right}"  # noqa: SLF001 - SymPy's protocol

    def _numpycode(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        # Times one, since NumPy's truth values neither subtract nor add up.
        return f"(1*(({printer._print(self.args[0])}) > 1))"  # noqa: SLF001 - SymPy's protocol

    _pythoncode = _numpycode
    _lambdacode = _numpycode


def in_glossary_order(symbols: Iterable[Symbol]) -> list[Symbol]:
    """Sort symbols as the glossary lists them; others follow by name."""
    rank = {name: place for place, name in enumerate(GLOSSARY)}
    return sorted(symbols, key=lambda item: (rank.get(item.name, len(rank)), item.name))
