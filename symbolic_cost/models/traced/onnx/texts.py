"""Dimensions that a file names by a sum or a product of others: "past + sequence"."""

import ast
from collections.abc import Callable, Mapping
from operator import add, mul, sub

from sympy import Expr, Integer, floor

from symbolic_cost.errors import InputError, quote
from symbolic_cost.models.traced.graph import Size
from symbolic_cost.models.traced.onnx.sizes import as_integer

_OPERATORS: Mapping[type[ast.operator], Callable[[Expr, Expr], Expr]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.FloorDiv: lambda one, other: floor(one / other),
}


def read_dim(text: str, symbols: Mapping[str, Expr], place: str) -> Size:
    """Return the size that a text says, which is parsed and never evaluated.

    Raises:
        InputError: anything but sums, differences, products and whole quotients of known names.
    """
    try:
        return as_integer(_expr(ast.parse(text.strip(), mode="eval").body, symbols))
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError, ZeroDivisionError):
        raise InputError(
            f"{place}: dimension {quote(text)} is no sum, product or whole quotient of dimensions "
            f"of the inputs: {', '.join(symbols) or 'none is dynamic'}"
        ) from None


def _expr(node: ast.expr, symbols: Mapping[str, Expr]) -> Expr:
    match node:
        case ast.Name(id=name):
            return symbols[name]
        case ast.Constant(value=int(value)) if type(value) is int:
            return Integer(value)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_expr(left, symbols), _expr(right, symbols))
    raise ValueError(ast.unparse(node))
