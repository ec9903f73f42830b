"""Image networks: LeNet-5, AlexNet, VGG-16, ResNet-18 and -50, MobileNetV2.

Each is a chain of layers, named as torchvision names them.
"""

from collections.abc import Callable
from dataclasses import replace

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.layers.conv import Activation, Chain, Conv, Dropout, Layer, Linear, Maps, Trail
from symbolic_cost.layers.maps import chain
from symbolic_cost.layers.upsampling import AdaptiveMean, Pool
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.trails import parts
from symbolic_cost.models.vision.cnn_residual import mobilenet_v2, resnet18, resnet50
from symbolic_cost.ops.elementwise import cross_entropy
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact


@dataclass(frozen=True)
class CNN:
    """An image network on square images.

    Args:
        layers: makes the chain for a number of classes.
        b: images.
    """

    name: str
    layers: Callable[[int], Chain]
    side: int = 224
    channels: int = 3
    classes: int = 1000
    b: Expr | int = symbols.b
    source: str = "definition"

    def model(self) -> Model:
        """Declare the network and its loss.

        Raises:
            InputError: a window does not fit into the maps.
        """
        sizes = {"b": exact(self.b), "c0": Integer(self.channels)}
        sizes |= dict.fromkeys(("y0", "x0"), Integer(self.side))
        trail = Trail(Maps("image", ("b", "c0", "y0", "x0"), constant=True), sizes)
        self.layers(self.classes).declare("", trail)
        row = trail.at.axes[1]
        rest = " ".join(axis for axis in trail.at.axes if axis != row)
        pattern = f"{trail.at}, !targets[{rest}]:index -> loss[{rest}]"
        loss = cross_entropy("loss", pattern, row=row)
        trail.ops.append(loss)
        return Model(
            self.name, parts(trail, self.name), sizes, source=self.source, axes=trail.glossary
        )


def lenet5(classes: int) -> Chain:
    """Return LeNet-5 with all maps connected and means without weights."""
    tanh = Activation("tanh")
    return Chain(
        {
            "c1": Conv(6, 5),
            "tanh1": tanh,
            "s2": Pool("avg_pool", 2, 2),
            "c3": Conv(16, 5),
            "tanh3": tanh,
            "s4": Pool("avg_pool", 2, 2),
            "c5": Conv(120, 5),
            "tanh5": tanh,
            "f6": Linear(84),
            "tanh6": tanh,
            "output": Linear(classes),
        }
    )


def alexnet(classes: int) -> Chain:
    """Return AlexNet on one device."""
    relu, pool = Activation(), Pool("max_pool", 3, 2)
    return Chain(
        {
            "features": chain(
                *(Conv(64, 11, 4, 2), relu, pool),
                *(Conv(192, 5, 1, 2), relu, pool),
                *(Conv(384, 3, 1, 1), relu),
                *(Conv(256, 3, 1, 1), relu),
                *(Conv(256, 3, 1, 1), relu, pool),
            ),
            "avgpool": AdaptiveMean(6),
            "classifier": chain(
                *(Dropout(), Linear(4096), relu), *(Dropout(), Linear(4096), relu), Linear(classes)
            ),
        }
    )


def vgg16(classes: int) -> Chain:
    """Return VGG-16, without batch norms."""
    relu = Activation()
    stages = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
    features: list[Layer] = []
    for channels, convs in stages:
        features += [layer for _ in range(convs) for layer in (Conv(channels, 3, 1, 1), relu)]
        features.append(Pool("max_pool", 2, 2))
    return Chain(
        {
            "features": chain(*features),
            "avgpool": AdaptiveMean(7),
            "classifier": chain(
                *(Linear(4096), relu, Dropout()), *(Linear(4096), relu, Dropout()), Linear(classes)
            ),
        }
    )


NETWORKS = {
    network.name: network
    for network in (
        CNN("lenet-5", lenet5, side=32, channels=1, classes=10),
        CNN("alexnet", alexnet),
        CNN("vgg-16", vgg16),
        CNN("resnet-18", resnet18),
        CNN("resnet-50", resnet50),
        CNN("mobilenet-v2", mobilenet_v2),
    )
}
"""Every image network by name."""


def declared(name: str, shape: Shape) -> Model:
    """Declare a network on the images of a shape."""
    return replace(NETWORKS[name], b=shape.b).model()
