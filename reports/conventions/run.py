"""One token's training FLOP under the conventions of every framework.

Writes Markdown to standard output; `make reports` approves it.
"""

from __future__ import annotations

import symbolic_cost as sc

MODELS = {"llama-3-8b": 8192, "qwen3-30b-a3b": 8192, "deepseek-v3": 4096, "gpt-oss-120b": 4096}
"""Length of a sequence by model."""
NAMES = (
    *("torchtitan", "megatron-lm", "verl", "nemo", "maxtext", "olmo", "palm", "nanogpt"),
    *("kaplan", "deepseek", "6nd"),
)


def report() -> str:
    """Return the report as Markdown."""
    lines = ["# FLOP per token as frameworks count them", ""]
    lines += ["Training: forward and backward, no recomputation. `symbolic-cost flops-per-token`"]
    lines += ["MODEL --conventions NAME` gives the terms of each as formulas.", ""]
    counts = {name: [_counted(model, seq, name) for model, seq in MODELS.items()] for name in NAMES}
    headings = ("conventions", *(f"{model}, {seq} tokens" for model, seq in MODELS.items()))
    lines += [sc.markdown(headings, [(name, *cells) for name, cells in counts.items()])]
    lines += ["## How they count llama-3-8b", ""]
    rows = [(name, sc.flops_per_token("llama-3-8b", 8192, name).formula) for name in NAMES]
    lines += [sc.markdown(("conventions", "FLOP per token"), rows).rstrip()]
    return "\n".join(lines) + "\n"


def _counted(model: str, seq: int, conventions: str) -> str:
    """Return a count, or why there is none."""
    try:
        return f"{float(sc.flops_per_token(model, seq, conventions).total):.5g}"
    except sc.errors.InputError as refused:
        return str(refused)


if __name__ == "__main__":
    print(report(), end="")
