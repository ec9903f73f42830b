"""Keys of configurations that no count depends on, and how the names of others look.

A key that a family does not read is refused if its name looks as if it changed a count.
"""

import re
from collections.abc import Mapping

from symbolic_cost.reading import package_data

_KEYS = package_data("models/keys.toml")

ALIASES: Mapping[str, tuple[str, ...]] = {
    name: tuple(others) for name, others in _KEYS["aliases"].items()
}
"""Other names of a field, as families write them."""

_costless = re.compile("|".join(name for names in _KEYS["costless"].values() for name in names))
_structural = re.compile("|".join(_KEYS["structural"]["parts"]))


def may_change_cost(key: str) -> bool:
    """Return whether the name of a key that is not read looks as if it changed a count."""
    return _structural.search(key) is not None and _costless.fullmatch(key) is None
