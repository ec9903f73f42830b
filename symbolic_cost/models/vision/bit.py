"""BiT: residual networks with norms of groups, whose convolutions standardise their weights."""

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer, Pad, Padding
from symbolic_cost.layers.maps import Mean, Normed, Residual, chain
from symbolic_cost.layers.upsampling import Pool
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.vision.maps_families import function_of, lists, rounded

_NORM = Normed("group_norm", "both")
_BEFORE = "preactivation"


def bit(fields: Fields) -> dict[str, Layer]:
    """Return the stem, the stages and the mean."""
    depths, widths = lists(fields, "depths", "hidden_sizes")
    function, inner = function_of(fields, "relu"), fields.size("embedding_size", 64)
    before = fields.text("layer_type", _BEFORE, (_BEFORE, "bottleneck")) == _BEFORE
    same = fields.text("global_padding", "", ("", "SAME", "same")) != ""
    moving = fields.flag("embedding_dynamic_padding", default=False)
    problem = 'goes with global_padding = "SAME" alone'
    fields.require(holds=same or not moving, problem=problem, name="embedding_dynamic_padding")
    groups = fields.size("num_groups", 32)
    narrow = [_narrow(width) for width in widths]
    uneven = [width for width in (inner, *widths, *narrow) if width % groups or width % 8]
    problem = f"{groups} groups do not divide {uneven[:3]} channels into eights"
    fields.require(holds=not uneven, problem=problem, name="num_groups")
    act = Activation(function)
    stem: dict[str, Layer] = {"conv": Conv(inner, 7, 2, Pad.SAME if same else 3, bias=False)}
    stem |= {} if before else {"norm": _NORM, "act": act}
    around: Padding = (Pad.SAME if moving else 0) if same else 1
    pool: Layer = Pool("max_pool", 3, 2, around)
    layers: dict[str, Layer] = {"stem": Chain({**stem, "pool": pool})}
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        for i in range(depth):
            stride = 2 if stage and i == 0 else 1
            make = _before if before else _behind
            layers[f"stage{stage}.{i}"] = make(width, stride, act, first=i == 0)
    last: dict[str, Layer] = {"norm": _NORM, "act": act} if before else {}
    return {**layers, **last, "mean": Mean()}


def _before(width: int, stride: int, act: Activation, *, first: bool) -> Chain:
    """Return a block whose norms and activations come before its convolutions."""
    own = chain(_conv(_narrow(width), 1), _NORM, act, _conv(_narrow(width), 3, stride), _NORM, act)
    rest: dict[str, Layer] = {"inner": own, "last": _conv(width, 1)}
    opened: dict[str, Layer] = {"norm": _NORM, "act": act}
    if first:
        short = chain(_conv(width, 1, stride))
        return Chain({**opened, "sum": Residual(Chain(rest), short)})
    return Chain({"sum": Residual(Chain({**opened, **rest}))})


def _behind(width: int, stride: int, act: Activation, *, first: bool) -> Chain:
    """Return a block whose norms and activations follow its convolutions."""
    inner = _narrow(width)
    own = chain(_conv(inner, 1), _NORM, act, _conv(inner, 3, stride), _NORM, act)
    whole = Chain({"inner": own, "last": _conv(width, 1), "norm": _NORM})
    short = chain(_conv(width, 1, stride), _NORM) if first else None
    return Chain({"sum": Residual(whole, short, act.function)})


def _conv(channels: int, kernel: int, stride: int = 1) -> Conv:
    return Conv(channels, kernel, stride, Pad.SAME, bias=False)


def _narrow(width: int) -> int:
    return rounded(width / 4, 8, 8)
