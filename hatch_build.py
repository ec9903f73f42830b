"""Programs of common models go into the wheel, where what derives them is at hand."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NEEDED = ("sympy", "numpy", "click", "rich", "pydantic")


class CustomBuildHook(BuildHookInterface[Any]):
    """Derives them while a wheel is built.

    SYMBOLIC_COST_PROGRAMS names other jobs, as MODEL:SYSTEM:GPUS; empty for none. An isolated build
    has no SymPy, and its wheel none of them.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make them, and put them into the package."""
        jobs = os.environ.get("SYMBOLIC_COST_PROGRAMS")
        if version != "standard" or self.target_name != "wheel" or jobs == "":
            return
        missing = [name for name in _NEEDED if find_spec(name) is None]
        if missing:
            self.app.display_info(f"no programs are shipped: {', '.join(missing)} not installed")
            return
        folder = mkdtemp()
        line = [sys.executable, "-m", "symbolic_cost.explore.shipping", folder]
        subprocess.run(
            [*line, *(jobs or "").split()],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": self.root},
            check=True,
        )
        for path in Path(folder).iterdir():
            build_data["force_include"][str(path)] = f"symbolic_cost/shipped/{path.name}"
