"""SymPy without the modules that nothing asks for.

`import sympy` loads four hundred modules, a tenth of a command's time and 9 MB of which formulas of
costs never need. SymPy's packages are lists of names with the modules that these come from: here
the lists are read, and a module is loaded with the first of its names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

_VERSION = "1.14."
"""Modules of another version may need each other in another order: that one loads as it is."""
_PACKAGES = frozenset(
    ["sympy"]
    + [
        f"sympy.{name}"
        for name in (
            *("assumptions", "calculus", "concrete", "discrete", "functions", "integrals", "logic"),
            *("matrices", "matrices.expressions", "ntheory", "polys", "polys.domains"),
            *("polys.matrices", "polys.numberfields", "printing", "series", "simplify", "solvers"),
            *("strategies", "tensor", "tensor.array", "utilities"),
        )
    ]
)
"""Those whose modules can be loaded in any order, once the core and sets are."""
_MATRICES = "sympy.matrices.expressions"
"""Whose modules load together or not at all; every product looks for a class of theirs."""


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
        package = sys.modules.get(name.rpartition(".")[0])
        if isinstance(package, _Package) and package.__name__ == _MATRICES:
            package.load()
            if name in sys.modules:  # Python takes its own specification, and would load it anew
                sys.modules[name].__spec__ = ModuleSpec(name, _Loaded())  # type: ignore[arg-type]  # a loader
                return sys.modules[name].__spec__
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


class _Loaded:
    """Loads a module that its package has loaded."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing more."""


class _Package(ModuleType):
    """A package whose names are loaded when they are asked for."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a module holds
        """Return what a name stands for."""
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(name)
        own = self.__dict__
        if name in self._homes and self.__name__ == _MATRICES:
            if _sum_asks():
                return _NoExpression
            self.load()
        elif name in self._homes:
            home, original = self._homes[name]
            own[name] = getattr(import_module(home, self.__name__), original)
        elif PathFinder.find_spec(f"{self.__name__}.{name}", self.__path__):
            own[name] = import_module(f"{self.__name__}.{name}")
        elif name == "SYMPY_DEBUG":  # a module that is only half loaded asks for it
            own[name] = False
        else:
            self.load()
        try:
            return own[name]
        except KeyError:
            raise AttributeError(name) from None

    def load(self) -> None:
        """Load all of it, as it is."""
        self.__class__ = ModuleType  # type: ignore[assignment]  # it waits no more
        self.__dict__["__spec__"].loader_state.exec_module(self)

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


class _Unasked(ModuleType):
    """A module of SymPy's that nothing but sums and products has asked for."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a module holds
        """Return what no expression is to sums and products; to others what the module holds."""
        if name.startswith("__"):
            raise AttributeError(name)
        if _sum_asks():
            return _NoExpression
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class _NoExpression:
    """What no expression is, as that class is not loaded which it would be made of."""


def _sum_asks() -> bool:
    """Whether a sum or a product asks for a class, to which it compares its terms."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - who asks
    while frame and frame.f_globals.get("__name__") == "importlib._bootstrap":
        frame = frame.f_back
    return frame is not None and frame.f_globals["__name__"] in ("sympy.core.add", "sympy.core.mul")


def prepare() -> None:
    """Let SymPy add, multiply and take powers of numbers without what these would load first.

    Sums and products look for tensors, whose groups of permutations take a fifth of the time of
    SymPy's import, and for bounds of accumulation. The sign of a number is asked of its value as a
    decimal, which loads sums, integrals and series.
    """
    for name in ("sympy.calculus.accumulationbounds", "sympy.tensor.tensor"):
        if name not in sys.modules:
            package, _, own = name.rpartition(".")
            module = sys.modules[name] = _Unasked(name)
            setattr(import_module(package), own, module)
    classes = [import_module("sympy.core.numbers").Rational]
    for one in classes:
        classes += one.__subclasses__()
        vars(one).get("_prop_handler", {}).update(_SIGNS)  # SymPy's rules of a class


_SIGNS: dict[str, Callable[[Any], bool]] = {
    "extended_positive": lambda number: number.p > 0,
    "extended_negative": lambda number: number.p < 0,
}
"""Signs of rational numbers, by the numerator."""
