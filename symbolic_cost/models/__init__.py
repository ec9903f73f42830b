"""Models: layers, sizes and repetition, no formulas."""
