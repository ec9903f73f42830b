"""Image networks from configurations."""

from symbolic_cost.models.cnn import CNN
from symbolic_cost.models.cnn_residual import basic, bottleneck, resnet
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.labels import classes_of
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model

_BRANCHES = {"bottleneck": bottleneck, "basic": basic}


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a residual network and declare it; the images have 224 pixels a side.

    Raises:
        InputError: every problem of the fields.
    """
    blocks = fields.items("depths", (3, 4, 6, 3))
    widths = fields.items("hidden_sizes", (256, 512, 1024, 2048))
    kind = fields.text("layer_type", "bottleneck", tuple(_BRANCHES))
    for name, items in (("depths", blocks), ("hidden_sizes", widths)):
        fields.require(
            holds=bool(items) and all(map(is_size, items)),
            problem=f"{list(items)} is not accepted: positive integers are",
            name=name,
        )
    fields.require(
        holds=len(blocks) == len(widths),
        problem=f"{len(blocks)} depths do not go with {len(widths)} hidden_sizes",
        name="depths",
    )
    for name in ("downsample_in_first_stage", "downsample_in_bottleneck"):
        value = fields.flag(name, default=False)
        fields.require(holds=not value, problem="only false is declared", name=name)
    fields.text("hidden_act", "relu", ("relu",))
    first, channels = fields.size("embedding_size", 64), fields.size("num_channels", 3)
    classes = classes_of(fields)
    fields.refuse()
    return CNN(
        "resnet",
        lambda classes: resnet(blocks, widths, _BRANCHES[kind], classes, first),
        channels=channels,
        classes=classes,
        b=shape.b,
        source="he-2015",
    ).model()
