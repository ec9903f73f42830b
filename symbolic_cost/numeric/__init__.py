"""Numbers: exact values, compiled float64 arrays, and pandas frames."""
