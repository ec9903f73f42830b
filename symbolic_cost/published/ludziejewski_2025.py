"""Ludziejewski et al.: one law for dense models and mixtures of experts.

For a number of experts it is a law of two powers, whose optimum is derived.

Source: ludziejewski-2025, Eq 1 and 4, Tables 1, 3 and 4.
"""

from symbolic_cost.published.cases import Values, Work
from symbolic_cost.scaling.declared import law
from symbolic_cost.scaling.optimum import optimum


def _reduced(inputs: Values) -> Values:
    values = law("moe-joint").at({"N": 1e9, "D": 1e9, "E": inputs["E"]})
    return {f"{name}_of_law": values[name] for name in ("m", "mu", "n", "nu")}


def _optimum(inputs: Values) -> Values:
    return optimum(law("moe-joint"), float(inputs["C"]), others={"E": inputs["E"]}).values


work = Work("ludziejewski-2025", {"ludziejewski-2025-table4": _reduced, "optimum": _optimum})
