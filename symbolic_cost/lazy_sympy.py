"""SymPy without the modules that nothing asks for.

`import sympy` loads four hundred modules, a tenth of a command's time and 9 MB of which formulas of
costs never need. SymPy's packages are lists of names with the modules that these come from: here
the lists are read, and a module is loaded with the first of its names.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_VERSION = "1.14."
"""Modules of another version may need each other in another order: that one loads as it is."""
_PACKAGES = frozenset(
    ["sympy"]
    + [
        f"sympy.{name}"
        for name in (
            *("assumptions", "calculus", "concrete", "discrete", "functions", "integrals", "logic"),
            *("matrices", "ntheory", "polys", "polys.domains", "polys.matrices"),
            *("polys.numberfields", "printing", "series", "simplify", "solvers", "strategies"),
            *("tensor", "tensor.array", "utilities"),
        )
    ]
)
"""Those whose modules can be loaded in any order, once the core and sets are."""


def load_by_name() -> None:
    """Let SymPy load by name in this process, which is the library's own, if it is not loaded."""
    if "sympy" not in sys.modules:
        sys.meta_path.insert(0, _Finder)


class _Finder:
    """Finds SymPy's packages before Python does."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a package is, and that its modules wait."""
        if name not in _PACKAGES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None or spec.origin is None:
            return spec
        if name == "sympy" and f'"{_VERSION}' not in _text(Path(spec.origin), "release.py"):
            sys.meta_path.remove(cls)
            return spec
        spec.loader_state, spec.loader = spec.loader, _Waiting()  # type: ignore[assignment]  # a loader
        return spec


def _text(package: Path, name: str = "__init__.py") -> str:
    return package.with_name(name).read_text("utf-8")


class _Waiting:
    """Loads a package without its modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the package."""
        return _Package(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Load the core and the sets, whose names the rest has without asking, as S.Reals."""
        if module.__name__ == "sympy":
            import_module("sympy.core")
            import_module("sympy.sets")


class _Package(ModuleType):
    """A package whose names are loaded when they are asked for."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a module holds
        """Return what a name stands for."""
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(name)
        own = self.__dict__
        if name in self._homes:
            home, original = self._homes[name]
            own[name] = getattr(import_module(home, self.__name__), original)
        elif PathFinder.find_spec(f"{self.__name__}.{name}", self.__path__):
            own[name] = import_module(f"{self.__name__}.{name}")
        elif name == "SYMPY_DEBUG":  # a module that is only half loaded asks for it
            own[name] = False
        else:
            self.__class__ = ModuleType  # type: ignore[assignment]  # all of it, as it is
            own["__spec__"].loader_state.exec_module(self)
        try:
            return own[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: object) -> None:
        """Keep a function's name from its module, as in `sympy.simplify.simplify`."""
        if not isinstance(value, ModuleType) or name not in self._homes:
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let workers of another process import it, as they import modules of Python's own kind."""
        return import_module, (self.__name__,)

    @cached_property
    def _homes(self) -> dict[str, tuple[str, str]]:
        return _names(_text(Path(self.__dict__["__spec__"].origin)))


def _names(text: str) -> dict[str, tuple[str, str]]:
    """Return the module that every name of a package comes from, and its name there.

    >>> _names("from .elementary.exponential import exp, log; ln = log")["ln"]
    ('.elementary.exponential', 'log')
    """
    import ast  # noqa: PLC0415 - once SymPy is asked for

    homes: dict[str, tuple[str, str]] = {}
    for one in ast.parse(text).body:
        if isinstance(one, ast.ImportFrom) and one.module:
            home = "." * one.level + one.module
            homes |= {name.asname or name.name: (home, name.name) for name in one.names}
        elif isinstance(one, ast.Assign) and isinstance(one.value, ast.Name):
            alias = homes.get(one.value.id)
            if alias is not None:
                homes |= {name.id: alias for name in one.targets if isinstance(name, ast.Name)}
    return homes


class _Tensors(ModuleType):
    """SymPy's tensors before they are loaded."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a module holds
        """Return what no expression is to a sum of SymPy's; to others what the module holds."""
        if name.startswith("__"):
            raise AttributeError(name)
        if sys._getframe(1).f_globals.get("__name__") == "sympy.core.add":  # noqa: SLF001 - who asks
            return _NoTensor
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class _NoTensor:
    """What no expression is."""


def without_tensors() -> None:
    """Let SymPy add without tensors, which its first sum would load, until anything else asks.

    They bring along groups of permutations, which take a fifth of the time of SymPy's import.
    """
    name = "sympy.tensor.tensor"
    if name not in sys.modules:
        tensors = sys.modules[name] = _Tensors(name)
        setattr(import_module("sympy.tensor"), "tensor", tensors)  # noqa: B010 - a module
