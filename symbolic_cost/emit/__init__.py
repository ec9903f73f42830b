"""Output: formulas, tables, trees and documents made from cost tables, which are never changed."""
