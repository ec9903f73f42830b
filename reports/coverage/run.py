"""What every strategy does of families of each kind: divided, named repeats, or refused.

Writes Markdown to standard output; `make reports` approves it.
"""

from __future__ import annotations

from fractions import Fraction

import symbolic_cost as sc

MODELS = (
    *("gpt2", "llama-3-8b", "gemma-2-9b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b"),
    *("mamba-2.8b", "mamba2-2.7b", "bert-base", "t5-large", "vit-b-16", "lstm-large"),
)
STRATEGIES = ("tp=4", "tp=4,sp", "cp=4", "ulysses=4", "ring=4", "2d=2x2", "dp=4,zero=3", "pp=4")


def report() -> str:
    """Return the report as Markdown."""
    reasons: list[tuple[str, str, str]] = []
    rows = [
        (name, *(_share(name, strategy, reasons) for strategy in STRATEGIES)) for name in MODELS
    ]
    return (
        "# Coverage\n\nForward FLOP of all ranks over those of one: 1 where every op is divided, "
        "more where\nranks repeat work, which every command names.\n\n"
        + sc.markdown(("model", *STRATEGIES), rows)
        + "\n## Why a strategy is refused\n\n"
        + sc.markdown(("model", "strategy", "reason"), reasons)
    )


def _share(name: str, strategy: str, reasons: list[tuple[str, str, str]]) -> str:
    """Return what all ranks do over what one does alone; a pipeline's ranks are not alike."""
    try:
        whole = Fraction(sc.job(name, "").total("flops_fwd"))
        if strategy.startswith("pp"):
            stages = [sc.job(name, strategy, stage=one) for one in ("first", "middle", "last")]
            ends, middle = stages[::2], stages[1]
            every = sum(Fraction(job.total("flops_fwd")) for job in ends)
            every += (int(strategy[3:]) - 2) * Fraction(middle.total("flops_fwd"))
        else:
            job = sc.job(name, strategy)
            every = int(job.strategy.ranks) * Fraction(job.total("flops_fwd"))
            every /= int(job.strategy.degree("dp"))
    except sc.errors.InputError as refused:
        reasons.append((name, strategy, refused.problems[0]))
        return "refused"
    return f"{float(every / whole):.4g}"


if __name__ == "__main__":
    print(report(), end="")
