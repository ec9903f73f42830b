"""Krajewski et al.: mixtures of fine-grained experts, their FLOP and loss by granularity.

Source: krajewski-2024, Tables 1 and 2; c_f = 6 FLOP per parameter and 14 per routed feature and
expert, which the paper leaves open, give its column of FLOP.
"""

from symbolic_cost.published.cases import Values, Work
from symbolic_cost.scaling.declared import law


def _loss(inputs: Values) -> Values:
    attention, experts = 4, 8 * inputs["E"]  # of 12 d**2 parameters per layer of a dense model
    parameters = inputs["N_act"] * (attention + experts) / 12
    point = {"N": parameters, "D": inputs["D"], "G": inputs["G"]}
    values = law("moe-granularity").at({name: float(value) for name, value in point.items()})
    return {"loss_of_law": values["loss"]}


work = Work("krajewski-2024", {"krajewski-table2": _loss})
