"""Texts of sizes, as `sympy.srepr` writes them: parsed by `ast`, nothing evaluated.

Mul(Integer(64), Symbol('s70', positive=True, integer=True))   ->   64*l
"""

import ast
from collections.abc import Callable, Mapping

from sympy import Add, Expr, Integer, Mul, Pow, Rational, ceiling, expand, floor

from symbolic_cost import symbols
from symbolic_cost.errors import InputError, quote
from symbolic_cost.extrema import Max, Min

_LENGTHS = ("l", "l_t")
_LONGEST = 20_000
_MOST_DIGITS = 20
_LARGEST_POWER = 8
_FINEST = 2**20
"""Denominators of floating-point numbers, powers of two: finer ones are roundings of others."""


def _floor(size: Expr) -> Expr:
    """Return the floor, whole terms taken out: of b + 1 - 1/l it is b."""
    terms = Add.make_args(expand(size))
    whole = Add(*(term for term in terms if term.is_integer))
    rest = Add(*(term for term in terms if not term.is_integer))
    below = 1 / rest if rest else rest
    if below.is_integer and below.is_negative:  # -1/l is in [-1, 0)
        return whole - 1
    return whole + floor(rest)


def _floor_div(a: Expr, b: Expr) -> Expr:
    return _floor(Add(*(term / b for term in Add.make_args(expand(a)))))


def _exact(factor: Expr) -> Expr:
    """Return a floating-point number whose products with sizes are exact: 1.5, not 0.7."""
    if not factor.is_Rational or factor.q > _FINEST or factor.q & (factor.q - 1):
        raise ValueError
    return factor


def _mod(a: Expr, b: Expr) -> Expr:
    return expand(a - b * _floor_div(a, b))


_CALLS: Mapping[str, tuple[int, Callable[..., Expr]]] = {
    "Add": (0, Add),
    "Mul": (0, Mul),
    "Max": (0, Max),
    "Min": (0, Min),
    "Rational": (2, Rational),
    "FloorDiv": (2, _floor_div),
    "CleanDiv": (2, lambda a, b: a / b),
    "FloatTrueDiv": (2, lambda a, b: a * _exact(1 / b)),
    "IntTrueDiv": (2, lambda a, b: a / b),
    "CeilDiv": (2, lambda a, b: ceiling(a / b)),
    "Mod": (2, _mod),
    "PythonMod": (2, _mod),
    "floor": (1, _floor),
    "ceiling": (1, ceiling),
    "FloorToInt": (1, _floor),
    "CeilToInt": (1, ceiling),
    "TruncToInt": (1, _floor),
    "ToFloat": (1, lambda a: a),
    "Identity": (1, lambda a: a),
}
"""Functions of sizes by name: how many arguments they take (0: any), and what they mean."""

_CONSTANTS = {"Zero": 0, "One": 1, "NegativeOne": -1}


class Shapes:
    """Reads texts of sizes, each once.

    Args:
        place: how errors name the file.
        symbols: what stands for each symbol of the file.
    """

    def __init__(self, place: str, symbols: Mapping[str, Expr]) -> None:
        self._place, self._symbols = place, symbols
        self._known: dict[str, Expr] = {}

    def read(self, text: object) -> Expr:
        """Return the size that a text says.

        Raises:
            InputError: anything but sums, products and the like of known symbols.
        """
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise InputError(f"{self._place}: {quote(text)} is no text of a size")
        if text not in self._known:
            try:
                self._known[text] = self._expr(ast.parse(text, mode="eval").body, text)
            except (SyntaxError, ValueError, RecursionError, MemoryError, ArithmeticError):
                raise self._refusal(text, text) from None
        return self._known[text]

    def _refusal(self, part: str, text: str) -> InputError:
        return InputError(
            f"{self._place}: size {quote(text)}: {quote(part)} is not understood; accepted are "
            f"Symbol, Integer, Float, Pow, {', '.join(_CALLS)}"
        )

    def _expr(self, node: ast.expr, text: str) -> Expr:
        match node:
            case ast.Call(func=ast.Name(id="Float"), args=[ast.Constant(value=str(written))]):
                return _exact(Rational(*float(written).as_integer_ratio()))
            case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str(name))]):
                if name not in self._symbols:
                    raise InputError(
                        f"{self._place}: size {quote(text)}: {quote(name)} depends on data, or is "
                        "no dimension of an input; a dynamic dimension of an input is accepted"
                    )
                return self._symbols[name]
            case ast.Call(func=ast.Name(id="Integer"), args=[number], keywords=[]):
                return Integer(self._integer(number, text))
            case ast.Call(func=ast.Name(id="Pow"), args=[base, power], keywords=[]):
                exponent = self._expr(power, text)
                if not exponent.is_Integer or abs(int(exponent)) > _LARGEST_POWER:
                    raise self._refusal(ast.unparse(node), text)
                return Pow(self._expr(base, text), exponent)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS:
                count, function = _CALLS[name]
                if not args or (count and len(args) != count):
                    raise self._refusal(ast.unparse(node), text)
                return function(*(self._expr(arg, text) for arg in args))
            case ast.Attribute() | ast.Constant() | ast.UnaryOp():
                return Integer(self._integer(node, text))
        raise self._refusal(ast.unparse(node), text)

    def _integer(self, node: ast.expr, text: str) -> int:
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node).removeprefix("S.")
            if name not in _CONSTANTS:
                raise self._refusal(ast.unparse(node), text)
            return _CONSTANTS[name]
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, node = -1, node.operand
        value = node.value if isinstance(node, ast.Constant) else None
        if type(value) is not int or abs(value) >= 10**_MOST_DIGITS:
            raise self._refusal(ast.unparse(node)[:60], text)
        return sign * value


def dynamic(places: Mapping[str, tuple[str, str]]) -> dict[str, Expr]:
    """Return the symbol of every dynamic dimension, by its name in the file.

    Args:
        places: "batch" or "length", and what it is, by name.
    """
    named: dict[str, Expr] = {}
    lengths = [name for name, (kind, _) in places.items() if kind == "length"]
    for name, (kind, meaning) in places.items():
        if kind == "batch" and symbols.b not in named.values():
            named[name] = symbols.b
        elif name in lengths[: len(_LENGTHS)]:
            named[name] = symbols.symbol(_LENGTHS[lengths.index(name)])
        else:
            named[name] = _further(f"l_{len(named)}", meaning)
    return named


def _further(name: str, meaning: str) -> Expr:
    if name in symbols.GLOSSARY:
        return symbols.symbol(name)
    return symbols.register(name, f"{meaning} of an imported model")
