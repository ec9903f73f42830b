"""Output: formulas, tables, trees and documents made from cost tables, which are never changed."""

FORMATS = ("table", "json", "csv", "markdown", "latex", "html")
"""The formats that a sheet is written in; each is a module with a function `write`."""

PICTURES = (".svg", ".png", ".pdf")
"""Endings of the files that are drawn."""
