"""Decoders of whose layers some attend to the keys that an earlier layer chose, as in GLM 5.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from symbolic_cost.layers.latent import Expansion, LatentAttention
from symbolic_cost.models.decoders.blocks import Connected
from symbolic_cost.models.decoders.decoder import Decoder, path_of
from symbolic_cost.models.decoders.kinds import FULL, UNTURNED, Kind
from symbolic_cost.models.decoders.plan import unrotated
from symbolic_cost.ops.declare import Glossary, Op, Part, axes, stored, view

if TYPE_CHECKING:
    from symbolic_cost.models.decoders.layouts import Layout
    from symbolic_cost.models.fields import Fields

TAKING, TAKING_UNTURNED = "shared_attention", "unrotated_shared_attention"
"""Layers that take the choice of another; of the second kind, they do not rotate."""

_ALIKE = ("indexed_attention", "deepseek_sparse_attention")
_MODES = ("full", "shared")


def choosing(fields: Fields, layers: int) -> Layout:
    """Read which layers choose: as listed, by a pattern as "FFSSFS", or one of every so many.

    With a period of 4 and an offset of 3, layers 0, 1, 2, 6, 10 ... choose.
    """
    kinds = fields.items("layer_types", _ALIKE[:1] * layers)
    if not (len(kinds) == layers and all(kind in _ALIKE for kind in kinds)):
        fields.note("layer_types", f"{layers} of {' or '.join(_ALIKE)} are accepted")
    period = fields.size("index_topk_freq", 1)
    offset = fields.optional_size("index_skip_topk_offset", 2) or 0
    rule = tuple(_MODES[bool(max(n + 1 - offset, 0) % period)] for n in range(layers))
    pattern, name = fields.source.values.get("index_topk_pattern"), "indexer_types"
    fields.ignore("index_topk_pattern")
    if not fields.has(name) and isinstance(pattern, str):
        modes: tuple[object, ...] = tuple(
            {"F": "full", "S": "shared"}.get(sign) for sign in pattern
        )
        name = "index_topk_pattern"
    else:
        modes = fields.items(name, fields.items("index_topk_pattern", rule))
    if not (len(modes) == layers and modes[0] == "full" and all(one in _MODES for one in modes)):
        fields.note(
            name, f"{layers} of full (F) or shared (S) are accepted, of which the first is full"
        )
    return [TAKING if mode == "shared" else FULL for mode in modes], []


def turning(fields: Fields, layers: int) -> Layout:
    """Read the same of layers of which every fourth does not rotate, but those that are listed."""
    own = list(fields.items("kv_source_layers", tuple(range(layers))))
    fields.require(
        holds=own == list(range(layers)),
        problem="keys and values of their own are declared for all layers",
        name="kv_source_layers",
    )
    still = {FULL: UNTURNED, TAKING: TAKING_UNTURNED}
    modes, _ = choosing(fields, layers)
    turns = unrotated(fields, layers, 4)
    return [
        still[mode] if turn == UNTURNED else mode for mode, turn in zip(modes, turns, strict=False)
    ], []


class Choosing(Decoder):
    """A decoder of whose layers some hand on which keys they chose."""

    chosen: ClassVar[str] = "attention.chosen"

    def ports(self, kind: Kind) -> Mapping[str, str]:
        """Return the choice that layers of a kind take."""
        return {"chosen": "chosen"} if _takes(kind) and self._handed else {}

    @property
    def _handed(self) -> bool:
        """Whether the choice is a tensor that layers read; attention to latents reads none."""
        own = self.attention
        return isinstance(own, LatentAttention) and own.expansion is not Expansion.NEVER

    def further(self, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
        """Return the last kind that chooses: blocks for further tokens choose themselves."""
        return super().further(tuple(kind for kind in kinds if not _takes(kind)))

    def blocks(self, kinds: tuple[Kind, ...]) -> tuple[Part, ...]:
        """Declare the blocks; of those that choose, the last kind hands on its choice."""
        parts = super().blocks(kinds)
        if not self._handed or not any(map(_takes, kinds)):
            return parts
        giver = path_of(next(kind for kind in reversed(kinds) if not _takes(kind)), kinds)
        hand = view("hand_chosen", f"{self.chosen}[b l t]:index -> handed_chosen[b l t]:index")
        connected = []
        takers = {path_of(kind, kinds) for kind in kinds if _takes(kind)}
        for part in parts:
            if part.path in takers:
                connected.append(replace(part, takes={**part.takes, "chosen": giver}))
            elif part.path == giver:
                *ops, last = part.ops  # what the next block takes comes last
                connected.append(replace(part, ops=(*ops, hand, last)))
            else:
                connected.append(part)
        return tuple(connected)


def _takes(kind: Kind) -> bool:
    return kind.mixer in {TAKING, TAKING_UNTURNED}


class Learned(Choosing):
    """The same of which the frequencies of a rotation are learned: Mistral Large 4."""

    def turning(self, kinds: tuple[Kind, ...]) -> tuple[Op, ...]:
        """Declare the angles, and what their frequencies are multiplied by, one for a pair."""
        return (*super().turning(kinds), stored("frequencies", w="d_f"))

    @property
    def own_axes(self) -> Glossary:
        """Roles of axes that this family alone has."""
        return axes("d_f whole")


class ChoosingCopies(Choosing, Connected):
    """The same on copies of the residual stream, which branches do not mix: HY V4."""

    chosen = "attention.layer.chosen"
    mixed = False
