"""Importers: model and strategy from the launch files of training frameworks."""
