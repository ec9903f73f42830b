"""Networks with the blocks of Flux and less beside them: Bria, LongCat-Image, Ovis-Image.

Axes: as in `diffusion`.
"""

from __future__ import annotations

from collections.abc import Mapping

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.models.diffusion.flux import BEFORE, Streams, Usual, packed
from symbolic_cost.models.diffusion.transformers import FINE_PROMPT, TIME, declared, sizes_of
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part

_USUAL: Mapping[str, Usual] = {
    "BriaTransformer2DModel": Usual(),
    "LongCatImageTransformer2DModel": Usual({"joint_attention_dim": 3584}),
    "OvisImageTransformer2DModel": Usual(
        {"joint_attention_dim": 2048, "num_layers": 6, "num_single_layers": 27}
    ),
}


def unpooled(fields: Fields, shape: Shape) -> Model:
    """Declare a Flux that nothing but the time step conditions."""
    image, numbers, singles, own = packed(fields, shape, _USUAL[fields.family], closed=True)
    fields.refuse()
    parts = Streams().parts(singles, (Part("time", tuple(TIME.ops())), *BEFORE))
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)


def ovis(fields: Fields, shape: Shape) -> Model:
    """Declare an Ovis-Image: gated perceptrons, and a prompt that is normalised first."""
    image, numbers, singles, own = packed(fields, shape, _USUAL[fields.family])
    fields.refuse()
    rotation, _, embedding = BEFORE
    before = (Part("time", tuple(TIME.ops())), rotation, Part("prompt", FINE_PROMPT), embedding)
    parts = Streams(GatedMLP("silu", Bias.BOTH)).parts(singles, before)
    return declared(fields, parts, sizes_of(image, shape, **own), numbers)
