"""Kaplan et al.: the first laws of loss by size, data, compute and steps, and what follows.

The numbers come from the laws kaplan, kaplan-size, kaplan-data, kaplan-compute and kaplan-steps.

Source: kaplan-2020, Tables 4 to 6 and Appendix B.
"""

from symbolic_cost.published.cases import Values, Work
from symbolic_cost.scaling.declared import law

PF_DAY = 86400 * 10**15
"""FLOP of one PFLOP/s for a day."""


def _constants(inputs: Values) -> Values:
    compute = law("kaplan-compute")
    return {
        "N_opt": compute.at({"C": inputs["days_N"] * PF_DAY})["N_opt"],
        "loss_of_compute": compute.at({"C": inputs["days_L"] * PF_DAY})["loss"],
        "loss_of_size": law("kaplan-size").at({"N": inputs["N"]})["loss"],
    }


def _appendix(inputs: Values) -> Values:
    critical = law("kaplan-steps").constants().values
    best = law("kaplan-compute").at({"C": inputs["days"] * PF_DAY})
    return {
        "loss_of_data": law("kaplan-data").at({"D": inputs["D"]})["loss"],
        "loss_of_size_and_data": law("kaplan").at({"N": inputs["N"], "D": inputs["D"]})["loss"],
        "B_crit": critical["B_s"] / float(inputs["loss"]) ** (1 / critical["alpha_B"]),
        **{name: best[name] for name in ("B_opt", "S_min", "D_opt")},
    }


work = Work("kaplan-2020", {"kaplan-constants": _constants, "kaplan-appendix-b": _appendix})
