"""Publications and public tools that formulas, sizes and conventions point at."""

from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """One source.

    Args:
        key: short name that rows carry.
        title: title of the publication or tool.
        where: identifier under which it is found (arXiv number, repository and commit).
        author: the first, and others, as BibTeX has it; empty for a tool.
    """

    key: str
    title: str
    where: str
    author: str = ""


REFERENCES: dict[str, Reference] = {
    key: Reference(key, **entry) for key, entry in package_data("references.json").items()
}
"""Every source by its key."""
