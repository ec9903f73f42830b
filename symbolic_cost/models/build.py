"""The words that builders of families are written with: the fields they read, what they declare."""

from symbolic_cost.models.bound import bound
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.labels import classes_of, span_of
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model

__all__ = ["Fields", "Model", "Shape", "bound", "classes_of", "is_size", "span_of"]
