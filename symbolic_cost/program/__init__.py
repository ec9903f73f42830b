"""Programs: costs as one graph of shared operations, evaluated exactly, in floats and in arrays."""
