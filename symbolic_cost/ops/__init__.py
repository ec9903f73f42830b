"""Ops: declarations over named axes, and the derivation of every cost from them."""
