"""Machines: from FLOP and bytes to time."""
