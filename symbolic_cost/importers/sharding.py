"""What FSDP keeps in shards, by the names of its strategies, and what goes to the host."""

from collections.abc import Mapping

from symbolic_cost.importers.megatron import Refuse, Values
from symbolic_cost.models.fields import is_size

WEIGHTS = 3
"""The ZeRO stage that shards weights."""

UPDATED = "weight_gradient,master_weight,optimizer"
STATES = f"weight,{UPDATED}"

FSDP: Mapping[str, Mapping[str, int]] = {
    "FULL_SHARD": {"degrees.zero": WEIGHTS},
    "SHARD_GRAD_OP": {"degrees.zero": WEIGHTS, "degrees.reshard": 1},
    "NO_SHARD": {"degrees.zero": 0},
    "HYBRID_SHARD": {"degrees.zero": WEIGHTS},
    "HYBRID_SHARD_ZERO2": {"degrees.zero": WEIGHTS, "degrees.reshard": 1},
}
"""What FSDP shards; all but one keep weights in shards between steps."""


def shards_of_fsdp(values: Values, said: Values, refuse: Refuse) -> None:
    """Say what FSDP shards; hybrid, it does so within a machine, and machines keep copies.

    Source: github.com/pytorch/pytorch, torch/distributed/fsdp/api.py, ShardingStrategy.
    """
    named = {key: str(said[key]) for key in ("sharding", "after") if key in said}
    wrong = [key for key, name in named.items() if name not in FSDP]
    for key in wrong:
        refuse(f"said.{key}", f"{', '.join(FSDP)} are read")
    if wrong or not named:
        return
    name, *others = named.values()
    if others and FSDP[name] != FSDP[others[0]]:
        refuse("said.sharding", "fsdp_reshard_after_forward says otherwise")
    values |= FSDP[name]
    hybrid = any("HYBRID" in one for one in (name, *others))
    if hybrid and is_size(said.get("machines")):
        values.setdefault("degrees.replicas", said["machines"])
    elif hybrid:
        refuse("said.sharding", "num_machines says how many keep copies: give it")
