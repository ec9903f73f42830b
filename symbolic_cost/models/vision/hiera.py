"""Hiera: attention inside of units of a map, whose later stages attend to all of it."""

from symbolic_cost.layers.conv import Chain, Conv, Layer
from symbolic_cost.layers.maps import Mean, Mix, Normed, Placed, Residual, perceptron
from symbolic_cost.layers.upsampling import Pool
from symbolic_cost.layers.window_attention import Units
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.vision.maps_families import divided, function_of, lists, ratio_of
from symbolic_cost.models.vision.sides import square_side


def hiera(fields: Fields) -> dict[str, Layer]:
    """Return the stages, each of twice the channels of the one before, and the norm of the mean."""
    depths, heads = lists(fields, "depths", "num_heads")
    width, step = fields.size("embed_dim", 96), square_side(fields, "query_stride", 2)
    times = ratio_of(fields, "embed_dim_multiplier", 2)
    widths = tuple(int(width * times**stage) for stage in range(len(depths)))
    divided(fields, "num_heads", widths, heads)
    fields.require(holds=times > 1, problem="stages widen", name="embed_dim_multiplier")
    inside = _inside(fields, len(depths))
    pools = fields.optional_size("num_query_pool", 3) or 0
    unit = square_side(fields, "masked_unit_size", 8)
    fine = pools < len(depths) and unit % step ** (len(depths) - 1) == 0
    problem = f"{len(depths)} stages cannot be pooled so often"
    fields.require(holds=fine or bool(fields.problems), problem=problem, name="num_query_pool")
    ratio, function = ratio_of(fields, "mlp_ratio", 4), function_of(fields, "gelu")
    fields.ignore("hidden_size", "num_layers", "mask_ratio", "normalize_pixel_loss")
    layers: dict[str, Layer] = {"patch": _patch(fields, width, unit), "place": Placed()}
    before = width
    for stage, (depth, new, many) in enumerate(zip(depths, widths, heads, strict=True)):
        queries = unit**2 // step ** (2 * stage)
        for i in range(depth):
            pooled = step if i == 0 and 0 < stage <= pools else 1
            near = inside[stage] or (i == 0 and inside[max(stage - 1, 0)])
            attention = Units(many, new, queries if near else 0, pooled)
            mlp = perceptron(int(new * ratio), new, function)
            layers |= block(f"stage{stage}.{i}", attention, mlp, before)
            before = new
    return layers | {"mean": Mean(), "last": Normed()}


def block(name: str, attention: Units, mlp: Chain, before: int) -> dict[str, Layer]:
    """Return attention and a perceptron; where channels grow, what is passed by is mixed too."""
    rest = Residual(Chain({"norm": Normed(), "own": mlp}))
    if attention.width == before:
        first = Residual(Chain({"norm": Normed(), "own": attention}))
        return {f"{name}.attention": first, f"{name}.mlp": rest}
    short: dict[str, Layer] = {"proj": Mix(attention.width)}
    if attention.step > 1:
        short["most"] = Pool("max_pool", attention.step, attention.step)
    both = Residual(Chain({"own": attention}), Chain(short))
    return {f"{name}.norm": Normed(), f"{name}.attention": both, f"{name}.mlp": rest}


def _patch(fields: Fields, width: int, unit: int) -> Conv:
    """Read the first convolution, which leaves whole units of positions."""
    side, kernel = square_side(fields, "image_size", 224), square_side(fields, "patch_size", 7)
    stride = square_side(fields, "patch_stride", 4)
    padding = fields.optional_size("patch_padding", 3) or 0
    left = (side + 2 * padding - kernel) // stride + 1
    if not (left == side // stride and left % unit == 0):
        fields.note("image_size", f"{left} positions a side are no whole units of {unit}")
    return Conv(width, kernel, stride, padding)


def _inside(fields: Fields, stages: int) -> tuple[bool, ...]:
    inside = fields.items("masked_unit_attention", (True, True, False, False))
    fine = len(inside) == stages or bool(fields.problems)
    fine = fine and all(isinstance(one, bool) for one in inside)
    problem = f"{stages} truth values are accepted"
    fields.require(holds=fine, problem=problem, name="masked_unit_attention")
    return inside if fine and len(inside) == stages else (True,) * stages
