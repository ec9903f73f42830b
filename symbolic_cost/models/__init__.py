"""Models: layers, sizes and repetition, no formulas.

`models.llama()` declares a family with symbols for sizes, `models.from_config(path)` the model of
a config.json. Both are loaded when first used.
"""

from functools import partial
from importlib import import_module
from typing import Any

_HOME = {
    "from_config": "config",
    "imported": "config",
    "model": "catalog",
    "compare_conventions": "compare",
    "CNN": "vision.cnn",
    "Perceptron": "mlp",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function, whatever it returns
    """Load a public function, or the family of that name."""
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    families = import_module(f"{__name__}.decoders.families")
    if name not in families.DECODERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(families.symbolic, name)
