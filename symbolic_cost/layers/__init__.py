"""Layers: declarations, no formulas."""
