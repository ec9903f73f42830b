"""Publications, one module each: inputs, declarations, printed numbers.

Every module offers the same three names (see `contract.Publication`): `PUBLISHED_INPUTS`,
`evaluate(inputs)` for any inputs, and `printed()` for the numbers as they were printed.
"""
