"""Besiroglu et al.: Chinchilla's third approach, fitted again to the digitised points.

The split follows from the law's optimum; `laws fit` fits such a law to any runs.

Source: besiroglu-2024, table of estimates.
"""

from symbolic_cost.published.cases import Values, Work
from symbolic_cost.scaling.declared import law
from symbolic_cost.scaling.law import Constants
from symbolic_cost.scaling.optimum import optimum


def _split(inputs: Values) -> Values:
    values = {name: float(inputs[name]) for name in ("E", "A", "B", "alpha", "beta")}
    chosen = law("besiroglu").with_constants(Constants("given", values, "inputs"))
    own, later = (optimum(chosen, float(inputs[name])) for name in ("C", "C_next"))
    other = optimum(law("chinchilla"), float(inputs["C"]), "tex")
    return {
        "a": own.exponents["N"],
        "N": own.values["N"],
        "D": own.values["D"],
        "N_tex": other.values["N"],
        "D_tex": other.values["D"],
        "N_1e24": later.values["N"],
        "D_1e24": later.values["D"],
    }


work = Work("besiroglu-2024", {"besiroglu-2024": _split})
