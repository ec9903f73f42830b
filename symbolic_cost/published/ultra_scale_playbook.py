"""The Ultra-Scale Playbook: memory per parameter, overlap conditions, and the memory widget.

The 34 and 5 of its activations are those of the library's block; the widget's slips are kept.

Source: tazi-2025, memory table, Appendices A2 and A3, and the widget.
"""

from symbolic_cost.published.cases import Values, Work, numbered
from symbolic_cost.published.korthikanti_2022 import saved


def _block(inputs: Values) -> Values:
    return {"saved": int(saved("none").xreplace(numbered("b l=s e=h h=a", inputs.get)))}


work = Work("ultra-scale-playbook", {"playbook-memory": _block})
