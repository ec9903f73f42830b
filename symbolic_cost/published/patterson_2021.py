"""Patterson et al.: days, energy and carbon of training five large models.

Energy and carbon are costs of device seconds, as of any machine with a price record.

Source: patterson-2021, Table 4; LLMCarbon's copy says 1000 chips for two of them, which need 1024.
"""

from symbolic_cost.published.cases import Values, Work
from symbolic_cost.systems.prices import rates


def spent(watts: float, pue: float, kg_per_kwh: float, device_seconds: float) -> Values:
    """Return energy [kWh] and carbon [kg CO2e] of so many seconds of a device."""
    costs = rates("given", power=watts, pue=pue, grid=kg_per_kwh).costs(device_seconds)
    return {"kwh": costs.kwh, "kg_co2e": costs.kg_co2e}


def _trained(inputs: Values) -> Values:
    seconds = (
        float(inputs["zetta"]) * 1e21 / (float(inputs["chips"]) * float(inputs["tera"]) * 1e12)
    )
    watts, pue, carbon = (float(inputs[name]) for name in ("W", "PUE", "kg"))
    return {"seconds": seconds, **spent(watts, pue, carbon, seconds * float(inputs["chips"]))}


work = Work("patterson-2021", {"patterson-table4": _trained})
