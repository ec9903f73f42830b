"""How values show themselves in a notebook, and what they were made with."""

from __future__ import annotations

from importlib import import_module

_HOME = "symbolic_cost.cli.sheets.notebook"
"""Says which table shows a value; loaded when one is shown, for it knows them all."""

_PACKAGES = (
    *("symbolic_cost", "sympy", "numpy", "pandas", "rich", "click", "pydantic"),
    *("matplotlib", "latex2mathml", "llvmlite", "scipy", "pyarrow", "distributed", "torch"),
)


class NotebookTable:
    """A value that a notebook, and print, shows as a table: as text, LaTeX and HTML."""

    __slots__ = ()

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return the table in every form that a notebook may choose from."""
        bundle: dict[str, str] = import_module(_HOME).bundle(self)
        return bundle

    def __str__(self) -> str:
        text: str = import_module(_HOME).text(self)
        return text


def show_versions() -> None:
    """Print the versions of Python and of every package that results may depend on."""
    from platform import platform, python_version

    lines = {"python": python_version(), "platform": platform()}
    lines |= {name: _version(name) for name in _PACKAGES}
    for name, text in lines.items():
        print(f"{name:14} {text}")  # noqa: T201 - what it is for


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
