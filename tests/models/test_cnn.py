"""Image networks against PyTorch's counts and published totals."""

from dataclasses import replace

import pytest

from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.errors import InputError
from symbolic_cost.layers.conv import Chain, Conv
from symbolic_cost.layers.maps import chain
from symbolic_cost.models.vision.cnn import CNN, NETWORKS
from symbolic_cost.ops.derive import cost


def table(name, batch, conventions):
    return cost(replace(NETWORKS[name], b=batch).model(), PRESETS[conventions])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("lenet-5", 61_706),
        ("alexnet", 61_100_840),
        ("vgg-16", 138_357_544),
        ("resnet-18", 11_689_512),
        ("resnet-50", 25_557_032),
        ("mobilenet-v2", 3_504_872),
    ],
)
def test_parameters(name, parameters):
    assert table(name, 1, "model-flop").total("parameter") == parameters


@pytest.mark.parametrize(
    ("name", "batch", "forward", "training"),
    [
        ("alexnet", 2, 2 * 1_428_376_960, 8_289_154_560),
        ("alexnet", 256, 365_664_501_760, None),
        ("vgg-16", 2, 2 * 30_940_528_640, 185_296_355_328),
        ("vgg-16", 256, 7_920_775_331_840, None),
    ],
)
def test_flop_of_products_as_pytorch_counts_them(name, batch, forward, training):
    rows = table(name, batch, "model-flop")
    assert rows.total("flop", phase="forward") == forward
    if training:
        assert rows.total("flop") == training


def test_alexnet_under_the_profiler():
    macs = table("alexnet", 256, "flops-profiler-macs").total("flop", phase="forward")
    flop = table("alexnet", 256, "flops-profiler").total("flop", phase="forward")
    assert (macs, flop) == (182_832_250_880, 366_013_743_104)


def test_resnet50_multiply_accumulates():
    rows = table("resnet-50", 1, "flops-profiler-macs")
    assert rows.total("flop", phase="forward") == 4_089_184_256  # the 4.09 G of torchvision


def test_batch_is_a_symbol_unless_given():
    (symbol,) = cost(NETWORKS["lenet-5"].model(), PRESETS["exact"]).total("flop").free_symbols
    assert symbol.name == "b"


def test_a_window_larger_than_the_maps_is_refused():
    network = CNN("small", lambda _: Chain({"two": chain(Conv(8, 5), Conv(8, 5))}), side=8)
    with pytest.raises(InputError, match=r"two\.1: a window of 5 does not fit into maps of 4 x 4"):
        network.model()


@pytest.mark.parametrize(
    ("name", "batch", "side", "total"),
    [
        ("alexnet", 1, 224, 3_745_196),
        ("alexnet", 2, 224, 7_490_388),
        ("vgg-16", 1, 64, 6_174_636),
        ("vgg-16", 2, 64, 12_349_268),
    ],
)
def test_saved_bytes_are_those_of_autograd(name, batch, side, total):
    """In single precision on the CPU, where dropout keeps a noise tensor as large as the values."""
    rules = PRESETS["torch-autograd-fp32"]
    rules = replace(rules, sizes=replace(rules.sizes, mask=rules.sizes.value))
    model = replace(NETWORKS[name], b=batch, side=side).model()
    assert cost(model, rules).total("saved") == total


def test_depthwise_weight_gradients_are_counted_by_pytorch_as_if_groups_met():
    true, counted = (
        table("mobilenet-v2", 2, rules) for rules in ("model-flop", "torch-flop-counter")
    )
    assert counted.total("flop") == 24_559_401_984
    assert true.total("flop") == 3_565_939_200
    phases = ("forward", "backward_input")
    assert counted.total("flop", phase=phases) == true.total("flop", phase=phases)
