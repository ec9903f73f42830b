"""Published sizes of GPT-2 and GPT-3, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """One published size.

    Args:
        name: of the preset.
        n_layers: transformer blocks.
        e: embedding width.
        h: attention heads.
        source: key of a reference.
        note: where the preset departs from the print, and why.
    """

    name: str
    n_layers: int
    e: int
    h: int
    source: str
    note: str = ""

    def bindings(self) -> dict[str, int]:
        """Return the number of every symbol; one sequence of the full context."""
        positions = 1024 if self.source == "radford-2019" else 2048
        return {
            "n_layers": self.n_layers,
            "b": 1,
            "l": positions,
            "e": self.e,
            "f": 4 * self.e,
            "h": self.h,
            "V": 50257,
            "P": positions,
        }


SIZES = (
    Size("gpt2", 12, 768, 12, "radford-2019"),
    Size("gpt2-medium", 24, 1024, 16, "radford-2019"),
    Size("gpt2-large", 36, 1280, 20, "radford-2019"),
    Size("gpt2-xl", 48, 1600, 25, "radford-2019"),
    Size("gpt3-125m", 12, 768, 12, "brown-2020"),
    Size("gpt3-350m", 24, 1024, 16, "brown-2020"),
    Size("gpt3-760m", 24, 1536, 16, "brown-2020"),
    Size(
        "gpt3-1.3b",
        24,
        2048,
        16,
        "brown-2020",
        "printed with 24 heads of width 128, which do not make 2048; 16 do",
    ),
    Size("gpt3-2.7b", 32, 2560, 32, "brown-2020"),
    Size("gpt3-6.7b", 32, 4096, 32, "brown-2020"),
    Size(
        "gpt3-13b",
        40,
        5120,
        40,
        "brown-2020",
        "printed with width 5140, which 40 heads do not divide; 40 heads of 128 make 5120",
    ),
    Size("gpt3-175b", 96, 12288, 96, "brown-2020"),
)
"""Four sizes of GPT-2 (Table 2) and eight of GPT-3 (Table 2.1)."""
