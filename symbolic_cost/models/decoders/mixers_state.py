"""State-space mixers: Mamba's and Mamba-2's layers inside a decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sympy import Expr, Integer, ceiling

from symbolic_cost import symbols
from symbolic_cost.axes import Glossary
from symbolic_cost.layers import duality, ssm
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.duality import Duality
from symbolic_cost.layers.ssm import SelectiveScan
from symbolic_cost.models.decoders.mixers import Chunked, Lettered
from symbolic_cost.models.shape import Shape
from symbolic_cost.records import dataclass, field, replace

if TYPE_CHECKING:
    from symbolic_cost.models.fields import Fields


def biases(fields: Fields) -> Bias:
    """Return which products of a state-space layer have a bias."""
    outer = Bias.OUTPUT if fields.flag("use_bias", default=False) else Bias.NONE
    return outer | (Bias.INNER if fields.flag("use_conv_bias", default=True) else Bias.NONE)


@dataclass(frozen=True)
class StateSpace(Lettered):
    """Mamba's layer; its inner width and its rank follow from the width unless given.

    Args:
        inner: field that may give the inner width.
    """

    layer: SelectiveScan = field(default_factory=SelectiveScan)
    inner: str = ""
    glossary: ClassVar[Glossary] = ssm.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        """Return the sizes of its own axes under the layer's letters."""
        rank, state = symbols.r_dt, symbols.N
        heads = {"n": symbols.h_s, "i": symbols.J / symbols.h_s} if self.layer.heads else {}
        return (
            super().lengths(shape)
            | heads
            | {
                "j": symbols.J,
                "s": state,
                "low": rank,
                "mixed": rank + 2 * state,
                "two": Integer(2),
            }
        )

    def read(self, fields: Fields) -> tuple[StateSpace, dict[str, int]]:
        """Return the layer as a configuration has it, and its sizes by symbol."""
        width = fields.size("hidden_size")
        rank = fields.source.values.get("mamba_dt_rank", fields.source.values.get("time_step_rank"))
        low = -(-width // 16)
        if rank == "auto":
            fields.ignore("mamba_dt_rank", "time_step_rank")
        inner = width * fields.size("expand", 2)
        numbers = {
            "J": fields.size(self.inner, inner) if self.inner else inner,
            "N": fields.size("state_size", 16),
            "K": fields.size("conv_kernel", 4),
            "r_dt": low if rank == "auto" else fields.size("time_step_rank", low),
        }
        if self.layer.heads:
            numbers["h_s"] = fields.size("n_mamba_heads", 2)
            if numbers["J"] % numbers["h_s"] != 0:
                fields.note(
                    "n_mamba_heads", f"{numbers['h_s']} heads do not divide {numbers['J']} channels"
                )
        return replace(self, layer=replace(self.layer, bias=biases(fields))), numbers


@dataclass(frozen=True)
class Dual(Chunked):
    """Mamba-2's layer.

    Args:
        free: whether the heads make the inner width, whatever `expand` says.
    """

    layer: Duality = field(default_factory=Duality)
    free: bool = False
    glossary: ClassVar[Glossary] = duality.AXES

    def lengths(self, shape: Shape) -> dict[str, Expr]:
        """Return the sizes of its own axes under the layer's letters."""
        chunks = ceiling(shape.l / symbols.C)
        heads, width, groups = symbols.h_s, symbols.q_s, symbols.g_s
        return super().lengths(shape) | {
            "h": heads,
            "d": width,
            "g": groups,
            "s": symbols.N,
            "m": heads * width + 2 * groups * symbols.N,
            "z": chunks,
            **dict.fromkeys(("i", "j"), symbols.C),
            **dict.fromkeys(("zo", "zi"), chunks + 1),
        }

    def read(self, fields: Fields) -> tuple[Dual, dict[str, int]]:
        """Return the layer as a configuration has it, and its sizes by symbol."""
        heads, groups = fields.size("mamba_num_heads", 128), fields.size("n_groups", 1)
        width = self._width(fields, heads)
        if heads % groups != 0:
            fields.note("n_groups", f"{groups} groups do not divide {heads} heads")
        numbers = {
            "h_s": heads,
            "q_s": width,
            "g_s": groups,
            "N": fields.size("state_size", 128),
            "K": fields.size("conv_kernel", 4),
            "C": fields.size("chunk_size", 256),
        }
        if numbers["N"] <= 1:
            fields.note("state_size", "1 is no product of states")
        fields.require(holds=numbers["C"] > 1, problem="1 is no chunk", name="chunk_size")
        normed = fields.flag("mamba_rms_norm", default=self.layer.normed)
        return replace(self, layer=replace(self.layer, bias=biases(fields), normed=normed)), numbers

    def _width(self, fields: Fields, heads: int) -> int:
        """Read the width of a head: as given, or what makes the inner width."""
        if self.free:
            return fields.size("mamba_head_dim", 64)
        stated = fields.optional_size("mamba_d_ssm")
        expanded = fields.size("hidden_size") * fields.size("expand", 2)
        inner = stated or expanded
        if fields.source.values.get("mamba_d_head") == "auto":
            fields.ignore("mamba_d_head")
            return max(inner // heads, 1)
        width = fields.size("mamba_head_dim", max(inner // heads, 1))
        fields.require(
            holds=heads * width == inner,
            problem=f"{heads} heads of width {width} do not make the inner width {inner}",
            name="mamba_num_heads",
        )
        return width
