"""NVIDIA's estimator of the memory of one GPU: parameters of a shard, states, activations.

Its simplifications are kept: activations know no key/value heads, gates, latents or experts, and
without sequence parallelism 24/t is charged whatever the feed-forward width. A test compares its
parameters with those that the library derives.

Source: megatron-memory, compute_weight_and_optimizer_memory, compute_activation_memory and
compute_activation_memory_without_sp.
"""

from symbolic_cost.published.cases import Work

work = Work("megatron-memory")
