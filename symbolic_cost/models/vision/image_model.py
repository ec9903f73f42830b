"""Models of images that a trail declares: sides of the image, parts, and what is trained."""

from sympy import Integer

from symbolic_cost.layers.conv import Layer, Maps, Trail
from symbolic_cost.models.build import Fields, Shape
from symbolic_cost.models.trails import parts
from symbolic_cost.models.vision.sides import side_lengths
from symbolic_cost.ops.declare import Axis, Model, Role
from symbolic_cost.ops.trained import training_all_but


def sides_of(fields: Fields, default: tuple[int, int], *, said: bool = True) -> tuple[int, int]:
    """Read the sides of the image [pixels].

    Args:
        fields: of the whole.
        default: height and width where none are given.
        said: whether configurations of the family say them; what is assumed is noted if not.
    """
    if not (said or fields.has("image_size")):
        fields.assume("image_size", f"images of {default[0]} x {default[1]} pixels")
        fields.ignore("image_size")
        return default
    height, width = side_lengths(fields, "image_size", default[0])
    return height, width


def pictured(
    fields: Fields,
    shape: Shape,
    layer: Layer,
    sides: tuple[int, int],
    source: str,
    *,
    channels: int = 3,
    fixed: tuple[str, ...] = (),
) -> Model:
    """Declare a network on images.

    Args:
        fields: of the whole, all of which were read.
        shape: of the batch.
        layer: the network.
        sides: of the image [pixels].
        source: publication.
        channels: of the image.
        fixed: beginnings of the names of weights that are not trained.
    """
    fields.refuse()
    lengths = dict(zip(("y0", "x0"), map(Integer, sides), strict=True))
    image = Maps("image", ("b", "c0", "y0", "x0"), constant=True)
    trail = Trail(image, {"b": shape.b, "c0": Integer(channels), **lengths})
    layer.declare("", trail)
    known = {**trail.glossary, "b": Axis("b", Role.BATCH)}
    declared = parts(trail, fields.family)
    model = Model(fields.family, declared, trail.sizes, source=source, axes=known)
    return training_all_but(model, lambda _, tensor: tensor.startswith(fixed))
