"""Many jobs at once: sweeps of numbers, searches over strategies, inverse questions."""
