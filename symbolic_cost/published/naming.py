"""Inputs under the names of a paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symbolic_cost.published.inputs import Inputs


def in_our_names(
    given: Mapping[str, Any], names: Mapping[str, str], accepted: type[Inputs]
) -> dict[str, Any]:
    """Return inputs with a paper's names replaced, if they are given under the paper's names.

    Papers use our letters for other things (h is the width, l the layers). Inputs are taken for
    the paper's if e, which every one of ours has, is missing and one of its own names is there.

    Args:
        given: inputs by name.
        names: our name by the paper's name.
        accepted: whose fields are our names.
    """
    own = names.keys() - accepted.model_fields.keys()
    if "e" in given or not own & given.keys():
        return dict(given)
    return {names.get(name, name): value for name, value in given.items()}
