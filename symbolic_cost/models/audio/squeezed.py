"""Encoders of samples whose blocks see fewer frames than the heads: SEW.

Axes: as in `recordings`; r_f and t_f frames, e_u features of one position that become several.

Source: wu-2021, section 4.
"""

from sympy import Expr

from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.speech_frontend import Sound, Step
from symbolic_cost.models.audio.recordings import (
    CTC,
    SAMPLES,
    WAV2VEC,
    extractor,
    having,
    placed,
    recorded,
    sizes_of,
    tokens_of,
    waved,
)
from symbolic_cost.models.build import Fields, Shape
from symbolic_cost.models.encoders.config import running
from symbolic_cost.models.encoders.encoder import SEQUENCE, TRUNK, Encoder
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.ops.declare import Model, Op, Part, axes, conv, einsum, scope, stored, view
from symbolic_cost.ops.elementwise import dropout, pointwise
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass, replace
from symbolic_cost.symbols import exact

_FRAMES = {"r": "r_f", "l": "r_f", "t": "t_f"}


@dataclass(frozen=True)
class Squeezed(Sound):
    """Frames of a recording, made fewer, with positions from a convolution that steps as far.

    Args:
        function: of the positions.
    """

    function: str = "gelu"

    def ops(self) -> tuple[Op, ...]:
        """Declare the front end."""
        front = Sound(self.waves, self.steps & ~Step.DROP).ops()
        # Channels that are as wide as the stream are normalised alone.
        bare = Step.PROJECT not in self.steps
        fine = (Norm.LAYER.op("norm", "x[b r e]", "y[b r e]"),) if bare else ()
        names = {"x": "heard", "y": "frames"} if bare else {}
        whole = "frames" if bare else "heard"
        last = "normed[b r e] -> x[b r e]"
        end = dropout("dropout", last) if Step.DROP in self.steps else view("end", last)
        kernel = "*w[g_c i_c o_c s_p] + *bias[g_c o_c]"
        return (
            *retitled(scope("", front, x="heard", wave="wave"), _FRAMES),
            *retitled(scope("front", fine, **names), _FRAMES),
            pointwise("pool", f"{whole}[b r_f e] -> pooled[b r e]", "sum", laid="r_f"),
            view("gather", f"{whole}[b r_f e] -> whole[b t_f e]"),
            pointwise("group", "whole[b t_f e] -> grouped[b g_c i_c y_p]", "copy", laid="t_f e"),
            conv("place", f"grouped[b g_c i_c y_p], {kernel} -> made[b g_c o_c z_p]"),
            stored("length", w="s_p"),
            pointwise(
                "trim", "made[b g_c o_c z_p] -> place[b r e]", self.function, laid="g_c o_c z_p"
            ),
            pointwise("add", "pooled[b r e], place[b r e] -> placed[b r e]", "add"),
            Norm.LAYER.op("norm_last", "placed[b r e]", "normed[b r e]"),
            end,
        )


@dataclass(frozen=True)
class Widened(Encoder):
    """An encoder whose head sees several frames for every position of the blocks.

    Args:
        function: of what makes frames.
    """

    function: str = "gelu"

    def parts(self, layers: Expr, head: str = TRUNK, groups: int = 1) -> tuple[Part, ...]:
        """Return the parts of the model."""
        parts = super().parts(layers, head, groups)
        trunk = parts if head == TRUNK else parts[:-1]
        wide = (
            einsum("project", "x[b r e], *w[e e_u] + *bias[e_u] -> u[b r e_u]"),
            pointwise("act", "u[b r e_u] -> a[b r e_u]", self.function),
            pointwise("frames", "a[b r e_u] -> y[b r_f e]", "copy", laid="r e_u"),
        )
        widened = Part("frames", wide, takes={"x": trunk[-1].path})
        heads = (
            replace(part, ops=retitled(part.ops, _FRAMES), takes={**part.takes, "x": "frames"})
            for part in parts[len(trunk) :]
        )
        return (*trunk, widened, *heads)


def sew(fields: Fields, shape: Shape) -> Model:
    """Declare a SEW."""
    family = running(fields, WAV2VEC)
    waves, numbers = extractor(fields), sizes_of(fields)
    squeezed, e = fields.size("squeeze_factor", 2), numbers["e"]
    _, sizes = placed(fields, e)
    name = fields.text("feat_extract_activation", "gelu", tuple(FUNCTIONS))
    function = FUNCTIONS[name]
    bare = waves[-1].channels == e
    steps = Step.ASK | (Step.NONE if bare else Step.PROJECT)
    steps |= Step.DROP if family.branch.drops else Step.NONE
    problem = f"{squeezed} frames for a position do not divide the width {e}"
    fields.require(holds=e % squeezed == 0, problem=problem, name="squeeze_factor")
    front = Squeezed(waves, steps, function=function)
    heads = {name: WAV2VEC.heads[name] for name in (CTC, SEQUENCE)}
    own = {**vars(family), "words": front, "heads": heads, "function": function}
    own["source"] = "wu-2021"
    source = waved(waves, 1, tokens_of(shape) * SAMPLES)
    frames, kernel = source.frames, exact(sizes["s_p"])
    sizes |= {"y_p": frames, "z_p": (frames - kernel % 2) // squeezed + 1, "e_u": e * squeezed}
    sizes |= {"r_f": frames, "t_f": frames}
    known = {**source.glossary, **axes("r_f token residual, t_f key-token, e_u inner")}
    fewer = replace(having(source, sizes), frames=frames // squeezed, glossary=known)
    return recorded(fields, shape, Widened(**own), numbers, fewer)
