"""Builder of the hierarchical image networks from configurations."""

from symbolic_cost.layers.conv import Activation, BatchNorm, Chain, Conv, Layer, Linear
from symbolic_cost.layers.maps import Residual
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.labels import classes_of
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.vision import backbones
from symbolic_cost.models.vision.bit import bit
from symbolic_cost.models.vision.cnn import CNN
from symbolic_cost.models.vision.convolved_attention import cvt
from symbolic_cost.models.vision.hgnet import hgnet
from symbolic_cost.models.vision.hiera import hiera
from symbolic_cost.models.vision.inverted import inverted
from symbolic_cost.models.vision.maps_families import NETWORKS, SEMANTIC
from symbolic_cost.models.vision.mobile import MOBILE
from symbolic_cost.models.vision.pyramids import MORE
from symbolic_cost.models.vision.sides import square_side
from symbolic_cost.models.vision.written import written
from symbolic_cost.ops.graph import Model


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields and declare the network; images have 224 pixels a side unless they say."""
    if fields.head.endswith("Backbone"):
        return backbones.build(fields, shape)
    side, channels = square_side(fields, "image_size", 224), fields.size("num_channels", 3)
    own = {"timm_inverted": inverted, "hiera": hiera, "bit": bit, "hgnet_v2": hgnet, "cvt": cvt}
    own |= {"timm_written": written}
    layers = {**NETWORKS, **MORE, **MOBILE, **own}[fields.family](fields)
    classes = classes_of(fields)
    fields.refuse()

    def made(number: int) -> Chain:
        if fields.head.endswith("Model"):
            apart = _CLASSIFIED.get(fields.family)
            return Chain({name: one for name, one in layers.items() if name != apart})
        if fields.head.endswith("WithTeacher"):
            own = Chain({"norm": BatchNorm(), "linear": Linear(number)})
            taught: dict[str, Layer] = {
                "classifier": Residual(own, own),
                "half": Activation("scale"),
            }
            return Chain({name: one for name, one in layers.items() if name != "norm"} | taught)
        each = fields.head.endswith(SEMANTIC)
        last: Layer = Conv(number, 1) if each else Linear(number)
        head: dict[str, Layer] = {"classifier": last}
        return Chain(layers | head)

    network = CNN(fields.family, made, side, channels, classes, shape.b)
    return network.model()


_CLASSIFIED = {"cvt": "last", "levit": "norm", "poolformer": "last"}
"""The norm that is a part of what classifies, and not of the model."""
