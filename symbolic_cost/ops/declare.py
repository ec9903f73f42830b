"""The words that layers and models are declared with: axes, operations, and the parts they make."""

from symbolic_cost.axes import Axis, Glossary, Role, axes, glossary
from symbolic_cost.ops.conv import conv, pool
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import cross_entropy, dropout, norm, pointwise, softmax
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.joined import joined
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part, Place, scope
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.scan import scan
from symbolic_cost.ops.unread import stored, unread
from symbolic_cost.ops.view import cache, split, view

__all__ = ["Axis", "Glossary", "Model", "Op", "Operand", "Part", "Place", "Role", "axes", "cache",
    "conv", "cross_entropy", "dropout", "einsum", "glossary", "joined", "lookup", "norm",
    "pointwise", "pool", "scan", "scope", "softmax", "split", "stored", "unread",
    "view"]  # fmt: skip
