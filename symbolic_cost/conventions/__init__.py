"""Conventions: counting questions, their named answers, and presets of one answer each."""
