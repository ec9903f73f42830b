"""Scaling laws of which few numbers are printed: routed, sparse, precise, over-trained and others.

Clark, Abnar, Kumar, Gadre, McCandlish, Zhang, Grattafiori (Llama 3), Pearce and their co-authors.

Source: clark-2022, abnar-2025, kumar-2024, gadre-2024, mccandlish-2018, zhang-2024,
grattafiori-2024, pearce-2024.
"""

import math

from symbolic_cost.published.cases import Values, Work
from symbolic_cost.scaling.closed import closed, numeric
from symbolic_cost.scaling.declared import law
from symbolic_cost.scaling.law import FLOP
from symbolic_cost.scaling.optimum import optimum


def _routed(inputs: Values) -> Values:
    return law("routed").at({"N": float(inputs["N"]), "E": inputs["E"]}, "s-base")


def _sparse(inputs: Values) -> Values:
    own, tokens = law("sparsity"), float(inputs["D"])
    dense = own.at({"N": float(inputs["N_dense"]), "D": tokens})
    sparse = own.at({"N": float(inputs["N_sparse"]), "D": tokens, "S": float(inputs["S"])})
    return {"loss_dense": dense["loss"], "loss_sparse": sparse["loss"]}


def _precise(_: Values) -> Values:
    """Solve 3 u exp(-u) = 1 - exp(-u): the best bits over gamma, whatever the compute."""
    low, high = 1.0, 4.0
    for _round in range(60):
        u = (low + high) / 2
        low, high = (u, high) if 3 * u * math.exp(-u) > 1 - math.exp(-u) else (low, u)
    return {"u": low}


def _over_trained(inputs: Values) -> Values:
    own, parameters = law("over-training"), float(inputs["N"])
    best = optimum(own, 1e20).values
    point = own.at({"N": parameters, "D": float(inputs["M"]) * parameters})
    return {"N_opt": best["N"], "D_opt": best["D"], "loss": point["loss"]}


def _critical(inputs: Values) -> Values:
    steps, examples = inputs["S_min"], inputs["E_min"]
    ratios = {}
    for times in (1, 4):
        point = law("critical-batch").at(
            {"B": times * examples / steps, "S_min": steps, "E_min": examples}
        )
        ratios[f"steps_{times}"] = point["steps"] / steps
        ratios[f"examples_{times}"] = point["examples"] / examples
    return ratios


def _batches(inputs: Values) -> Values:
    own = law("critical-batch-size")
    sizes = {"batch_302": inputs["N_1"], "batch_1200": inputs["N_2"]}
    return {name: own.at({"N": float(N)}, "chinchilla")["batch"] for name, N in sizes.items()}


def _tokens(inputs: Values) -> Values:
    own, compute = law("llama3"), {"C": float(inputs["C"])}
    return {
        "tokens": own.at(compute, "text")["tokens"],
        "tokens_digitised": own.at(compute, "digitised")["tokens"],
    }


def _total(inputs: Values) -> Values:
    """Return all parameters, and d ln N_E / d ln C along Chinchilla's optimum in all of them."""
    own, size = law("total-parameters"), float(inputs["N_E"])
    others = {"V": inputs["V"], "A": inputs["A"]}
    total = own.at({"N_E": size, **others})["parameters"]
    beside = own.at({"N_E": size * 1.0001, **others})["parameters"]
    chinchilla = law("chinchilla")
    values = chinchilla.constants("tex").values
    split = {name: float(value) for name, value in values.items()} | {FLOP: 1e21}
    exponent = numeric(closed(chinchilla).exponents["N"], split)
    elasticity = math.log(beside / total) / math.log(1.0001)
    # Kaplan's compute is 6 N_E D, and D moves with N_T whichever parameters are counted.
    tokens = (1 - exponent) / exponent
    return {"N_T": total, "exponent": 1 / (1 + elasticity * tokens)}


work = Work(
    "more-laws",
    {
        "clark-2022": _routed,
        "abnar-2025": _sparse,
        "kumar-2024": _precise,
        "gadre-2024": _over_trained,
        "mccandlish-2018": _critical,
        "zhang-2024": _batches,
        "llama3-law": _tokens,
        "pearce-2024": _total,
    },
)
