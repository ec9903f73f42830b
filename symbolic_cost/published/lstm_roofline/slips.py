"""Where the log departs from its own model, each by name."""

from __future__ import annotations

from collections.abc import Mapping

SLIPS: Mapping[str, str] = {
    "gates of the backward cell": "elementwise work of the backward cell is counted for one gate",
    "bytes of weight sums": "adding up weight gradients counts elements for bytes",
    "projection left out": "the projection counts as parameters and memory, not in the time",
    "width of the softmax weight": "memory takes the projection for the width of the softmax "
    "weight, which time and parameters take the layer for",
    "memory of a model shard": "its weights, activations and elementwise memory repeat those of "
    "the data shard",
    "whole embedding": "a shard of the embedding keeps the whole weight",
    "batch of the time limit": "the time limit is computed for a batch of its own",
    "seconds of small exchanges": "an exchange below 128 byte adds its bytes as seconds",
    "gather counted twice": "the backward pass of CR counts its gather twice",
    "bytes of gate exchanges": "exchanging gates counts elements for bytes",
    "projection as forward": "the backward pass of an RC projection takes its forward time",
    "sum of the softmax": "a sharded softmax sums over the projection, over the layer in the "
    "backward pass of RC",
}
"""What is done instead, by the slip's name. Printing reload counts behind an unformatted format
string, in the order AB, AC, BC, changes no number."""
