"""Energy and carbon of training Llama models: hours, watts, PUE and the carbon of the grid.

Source: touvron-2023, Table 15; llama-2, Table 2; model card of Llama 3.1.
"""

from symbolic_cost.published.cases import Values, Work
from symbolic_cost.published.patterson_2021 import spent


def _trained(inputs: Values) -> Values:
    watts, pue, carbon = (float(inputs[name]) for name in ("watts", "PUE", "kg_per_kWh"))
    return spent(watts, pue, carbon, float(inputs["hours"]) * 3600)


work = Work("llama-carbon", {"llama-carbon": _trained, "llama-2-carbon": _trained})
