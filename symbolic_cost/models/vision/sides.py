"""Sides of images and patches, as configurations write them."""

from symbolic_cost.models.fields import Fields, is_size


def side_lengths(fields: Fields, name: str, default: int, number: int = 2) -> tuple[int, ...]:
    """Read a side, or a side for each dimension."""
    fields.need(name)
    stated = fields.source.values.get(name, fields.record.defaults.get(name))
    if not isinstance(stated, list | tuple):
        return (fields.size(name, default),) * number
    sides = fields.items(name)
    fine = len(sides) == number and all(map(is_size, sides))
    fields.require(holds=fine, problem=f"{list(sides)[:4]}: {number} sizes are accepted", name=name)
    return sides if fine else (default,) * number


def square_side(fields: Fields, name: str, default: int) -> int:
    """Read a side of squares, or both: a list of another length makes another model."""
    side, other = side_lengths(fields, name, default)
    fields.require(holds=side == other, problem="two sides alike are accepted", name=name)
    return side
