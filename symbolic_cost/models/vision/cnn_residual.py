"""Image networks with residual connections, named as torchvision names their layers."""

from collections.abc import Callable
from itertools import count

from symbolic_cost.layers.conv import (
    Activation,
    BatchNorm,
    Chain,
    Conv,
    Depthwise,
    Dropout,
    Layer,
    Linear,
)
from symbolic_cost.layers.maps import Residual, chain
from symbolic_cost.layers.upsampling import AdaptiveMean, Pool


def resnet18(classes: int) -> Chain:
    """Return ResNet-18, of blocks of two convolutions."""
    return resnet((2, 2, 2, 2), (64, 128, 256, 512), basic, classes)


def resnet50(classes: int) -> Chain:
    """Return ResNet-50, of bottlenecks with the stride on the middle convolution."""
    return resnet((3, 4, 6, 3), (256, 512, 1024, 2048), bottleneck, classes)


def resnet(
    blocks: tuple[int, ...],
    widths: tuple[int, ...],
    branch: Callable[[int, int], Chain],
    classes: int,
    first: int = 64,
) -> Chain:
    """Return a residual network, as `trunk` takes it, that tells classes apart."""
    head: dict[str, Layer] = {"avgpool": AdaptiveMean(1), "fc": Linear(classes)}
    return Chain(trunk(blocks, widths, branch, first) | head)


def trunk(
    blocks: tuple[int, ...],
    widths: tuple[int, ...],
    branch: Callable[[int, int], Chain],
    first: int = 64,
    last: int = 2,
) -> dict[str, Layer]:
    """Return a residual network up to its last map.

    Args:
        blocks: of every stage.
        widths: channels that every stage makes.
        branch: makes the branch of a block from its width and stride.
        first: channels before the first stage.
        last: stride of the last stage; 1 where its kernels are spread instead.
    """
    stages: dict[str, Layer] = {}
    inner = first
    for stage, (width, repeats) in enumerate(zip(widths, blocks, strict=True), 1):
        layers: list[Layer] = []
        for place in range(repeats):
            stride = 1 if stage == 1 or place else last if stage == len(blocks) else 2
            same = stride == 1 and inner == width
            short = None if same else chain(_conv(width, 1, stride), BatchNorm())
            layers.append(Residual(branch(width, stride), short, "relu"))
            inner = width
        stages[f"layer{stage}"] = chain(*layers)
    stem: dict[str, Layer] = {
        "conv1": _conv(first, 7, 2),
        "bn1": BatchNorm(),
        "relu": Activation(),
        "maxpool": Pool("max_pool", 3, 2, 1),
    }
    return stem | stages


def basic(width: int, stride: int) -> Chain:
    """Return two convolutions."""
    return Chain(
        {
            "conv1": _conv(width, 3, stride),
            "bn1": BatchNorm(),
            "relu1": Activation(),
            "conv2": _conv(width, 3),
            "bn2": BatchNorm(),
        }
    )


def bottleneck(width: int, stride: int) -> Chain:
    """Return a convolution of a quarter of the width between two of single places."""
    inner = width // 4
    return Chain(
        {
            "conv1": _conv(inner, 1),
            "bn1": BatchNorm(),
            "relu1": Activation(),
            "conv2": _conv(inner, 3, stride),
            "bn2": BatchNorm(),
            "relu2": Activation(),
            "conv3": _conv(width, 1),
            "bn3": BatchNorm(),
        }
    )


def _conv(channels: int, kernel: int, stride: int = 1) -> Conv:
    """Return a convolution that keeps the side at stride 1, without the bias a norm follows."""
    return Conv(channels, kernel, stride, kernel // 2, bias=False)


def mobilenet_v2(classes: int) -> Chain:
    """Return MobileNetV2 of width 1, of inverted residuals."""
    settings = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )
    number, inner = count(1), 32
    layers: dict[str, Layer] = {"0": _relu6(_conv(32, 3, 2))}
    for expansion, channels, repeats, first_stride in settings:
        for place in range(repeats):
            stride = first_stride if place == 0 else 1
            branch = _inverted(inner, expansion, channels, stride)
            same = stride == 1 and inner == channels
            layers[f"{next(number)}"] = Residual(branch) if same else branch
            inner = channels
    layers[f"{next(number)}"] = _relu6(_conv(1280, 1))
    return Chain(
        {
            "features": Chain(layers),
            "avgpool": AdaptiveMean(1),
            "classifier": chain(Dropout(), Linear(classes)),
        }
    )


def _relu6(conv: Layer) -> Chain:
    return chain(conv, BatchNorm(), Activation("relu6"))


def _inverted(inner: int, expansion: int, channels: int, stride: int) -> Chain:
    wide = (_relu6(_conv(inner * expansion, 1)),) if expansion > 1 else ()
    deep = _relu6(Depthwise(3, stride, 1, bias=False))
    return Chain({"conv": chain(*wide, deep, _conv(channels, 1), BatchNorm())})
