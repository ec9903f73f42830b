"""Sardana et al.: the cheapest model of a loss, later inference included.

Source: sardana-2024, Eq 4, and the README of its code.
"""

from functools import lru_cache

from symbolic_cost.published.cases import Values, Work
from symbolic_cost.scaling.declared import law
from symbolic_cost.scaling.optimum import cheapest, optimum

_SOME_FLOP = 1e23


@lru_cache(8)
def _cheapest(loss: float, tokens: float) -> Values:
    own = law("inference")
    best = cheapest(own, loss, others={"D_inf": tokens}).values
    without = cheapest(own, loss).values
    return {**best, **{f"{name}_0": without[name] for name in "NDC"}}


def _compared(inputs: Values) -> Values:
    return _cheapest(float(inputs["loss"]), float(inputs["D_inf"]))


def _priced(inputs: Values) -> Values:
    """Weigh later tokens by what their FLOP cost beside those of training.

    p/(R u) dollars per FLOP of a peak R, used to a share u: 6 N D p/(R u) of training and
    2 N T p'/(R' u') of T tokens are least where 6 N D + 2 N T' is, T' = T (p'/(R' u'))/(p/(R u)).
    """
    one = inputs["usd_train"] / (inputs["peak_train"] * inputs["mfu_train"])
    rate = inputs["usd_infer"] / inputs["peak_infer"] / one
    read, written = (inputs[name] / inputs[f"mfu_{name}"] for name in ("read", "written"))
    tokens = float(inputs["requests"] * rate * (read + written))
    best = _cheapest(float(inputs["loss"]), tokens)
    costs = {end: best[f"C{end}"] for end in ("", "_0")}
    return {**best, "cost": costs[""], "cost_0": costs["_0"] + 2 * best["N_0"] * tokens}


def _best_of_size(inputs: Values) -> Values:
    """Return the tokens for which a size is the best one: both are powers of the compute."""
    own, size = law("chinchilla").with_constants(law("inference").constants()), float(inputs["N"])
    some = optimum(own, _SOME_FLOP)
    grown = (size / some.values["N"]) ** (some.exponents["D"] / some.exponents["N"])
    tokens = some.values["D"] * grown
    return {"D": tokens, "loss": own.at({"N": size, "D": tokens})["loss"]}


work = Work(
    "sardana-2024",
    {
        "sardana-2024": _compared,
        "sardana-2024-cost": _priced,
        "sardana-2024-calculator": _best_of_size,
    },
)
