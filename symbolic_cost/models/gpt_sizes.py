"""Published sizes of GPT-2 (Table 2) and GPT-3 (Table 2.1), as data."""

from __future__ import annotations

from symbolic_cost.models.published_size import PublishedSize

_GPT2 = "V=50257 P=1024 l=1024"
_GPT3 = "V=50257 P=2048 l=2048"
_HEADS_1_3B = "printed with 24 heads of width 128, which do not make 2048; 16 do"
_WIDTH_13B = "printed with width 5140, which 40 heads do not divide; 40 heads of 128 make 5120"

_ROWS = (
    ("gpt2", 12, 768, 12, _GPT2, ""),
    ("gpt2-medium", 24, 1024, 16, _GPT2, ""),
    ("gpt2-large", 36, 1280, 20, _GPT2, ""),
    ("gpt2-xl", 48, 1600, 25, _GPT2, ""),
    ("gpt3-125m", 12, 768, 12, _GPT3, ""),
    ("gpt3-350m", 24, 1024, 16, _GPT3, ""),
    ("gpt3-760m", 24, 1536, 16, _GPT3, ""),
    ("gpt3-1.3b", 24, 2048, 16, _GPT3, _HEADS_1_3B),
    ("gpt3-2.7b", 32, 2560, 32, _GPT3, ""),
    ("gpt3-6.7b", 32, 4096, 32, _GPT3, ""),
    ("gpt3-13b", 40, 5120, 40, _GPT3, _WIDTH_13B),
    ("gpt3-175b", 96, 12288, 96, _GPT3, ""),
)

GPT_SIZES = tuple(
    PublishedSize(
        name,
        "gpt",
        f"n_layers={n_layers} e={e} f={4 * e} h={h} {shared}",
        "radford-2019" if shared is _GPT2 else "brown-2020",
        note,
    )
    for name, n_layers, e, h, shared, note in _ROWS
)
"""Four sizes of GPT-2 and eight of GPT-3; the MLP is four times as wide as the embedding."""
