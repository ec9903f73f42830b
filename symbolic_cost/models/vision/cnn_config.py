"""Image networks from configurations."""

from collections.abc import Callable

from symbolic_cost.layers.conv import Chain
from symbolic_cost.models.build import Fields, Model, Shape, classes_of, is_size
from symbolic_cost.models.vision.cnn import CNN
from symbolic_cost.models.vision.cnn_residual import basic, bottleneck, resnet, trunk
from symbolic_cost.models.vision.config import last_alone

_BRANCHES = {"bottleneck": bottleneck, "basic": basic}


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields and declare a residual network; images have 224 pixels a side by default.

    Raises:
        InputError: every problem of the fields.
    """
    blocks, widths, branch, first = read(fields)
    side, channels = fields.size("image_size", 224), fields.size("num_channels", 3)
    classes = classes_of(fields)
    last_alone(fields, len(blocks), "depths")
    fields.refuse()
    bare = fields.head.endswith(("Model", "Backbone"))

    def made(classes: int) -> Chain:
        if bare:
            return Chain(trunk(blocks, widths, branch, first))
        return resnet(blocks, widths, branch, classes, first)

    return CNN(
        "resnet",
        made,
        side=side,
        channels=channels,
        classes=classes,
        b=shape.b,
        source="he-2015",
    ).model()


def read(
    fields: Fields,
) -> tuple[tuple[int, ...], tuple[int, ...], Callable[[int, int], Chain], int]:
    """Read the blocks and channels of every stage, what makes a branch, and the first channels."""
    blocks = fields.items("depths", (3, 4, 6, 3))
    widths = fields.items("hidden_sizes", (256, 512, 1024, 2048))
    kind = fields.text("layer_type", "bottleneck", tuple(_BRANCHES))
    for name, items in (("depths", blocks), ("hidden_sizes", widths)):
        if not (items and all(map(is_size, items))):
            fields.note(name, f"{list(items)} is not accepted: positive integers are")
    if len(blocks) != len(widths):
        fields.note("depths", f"{len(blocks)} depths do not go with {len(widths)} hidden_sizes")
    for name in ("downsample_in_first_stage", "downsample_in_bottleneck"):
        value = fields.flag(name, default=False)
        fields.require(holds=not value, problem="only false is declared", name=name)
    fields.text("hidden_act", "relu", ("relu",))
    return blocks, widths, _BRANCHES[kind], fields.size("embedding_size", 64)
