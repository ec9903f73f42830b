"""Which files are launch files, told without the formats of these where a file names a model."""

from pathlib import Path

from symbolic_cost.errors import InputError
from symbolic_cost.importers import tree
from symbolic_cost.models.configfile import LARGEST_FILE
from symbolic_cost.reading import read_text

SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")


def is_launch_file(path: str | Path) -> bool:
    """Tell whether a path names a launch file: a script, a YAML file, or JSON of a known format."""
    file = Path(path)
    if file.suffix in (*SCRIPTS, ".yaml", ".yml", ".toml"):
        return True
    if file.suffix != ".json":
        return False
    try:
        keys = set(tree.keys(read_text(file, LARGEST_FILE, file.name), file.name))
    except InputError:
        return False  # told by who reads it as a config.json
    if not keys.isdisjoint(("architectures", "_class_name")):  # of a model alone: a Mask2Former
        return False
    from symbolic_cost.importers.formats import TREES  # noqa: PLC0415 - a table that takes time

    return any(not keys.isdisjoint(known.marks) for known in TREES)
