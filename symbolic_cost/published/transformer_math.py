"""Transformer Math 101: memory and FLOP as EleutherAI's calculators print them.

Source: eleuther-cookbook; it divides gradients by no degree and ZeRO by all GPUs, and gives each
feed-forward layer two matrices.
"""

from symbolic_cost.published.cases import Work

work = Work("transformer-math")
