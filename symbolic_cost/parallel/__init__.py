"""Parallel strategies as placements, pipeline schedules, memory per rank and rank groups."""
