"""Muennighoff et al.: repeated tokens are worth less, and so are parameters beyond their data.

Source: muennighoff-2023, Appendix A, Eq 17, and the README of its code.
"""

from symbolic_cost.published.cases import Values, Work
from symbolic_cost.scaling.declared import law
from symbolic_cost.scaling.law import Constants

_PARAMETERS = ("a", "b", "e", "alpha", "beta", "R_D", "R_N")


def _repeated(inputs: Values) -> Values:
    values = {name: float(inputs[name]) for name in _PARAMETERS}
    own = law("data-constrained").with_constants(Constants("given", values, "inputs"))
    unique = float(inputs["U"])

    def at(parameters: float, tokens: float) -> dict[str, float]:
        return own.at({"N": parameters, "D": tokens, "U": unique})

    first, second = (at(float(inputs[f"N_{run}"]), float(inputs[f"D_{run}"])) for run in (1, 2))
    epochs = at(1e30, float(inputs["epochs"]) * unique)  # a size beyond what the tokens can train
    return {
        **{name: first[name] for name in "ABE"},
        **{name: epochs[name] for name in ("D_eff", "U_D", "U_N")},
        "loss_1": first["loss"],
        "loss_2": second["loss"],
    }


work = Work("muennighoff-2023", {"muennighoff-2023": _repeated})
