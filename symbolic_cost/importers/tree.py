"""Settings of JSON and YAML files, flattened to dotted keys, each with its line."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import accumulate
from math import isfinite
from typing import Any

from symbolic_cost.errors import InputError, brief, quote
from symbolic_cost.importers.recipe import Entry
from symbolic_cost.reading import MOST_DIGITS, json_value

_DEEPEST = 30
_MOST_BRACKETS = 100
LARGEST_TREE = 2**17
"""Characters of the largest file that is read; launch files are a few thousand."""


def entries(text: str, file: str) -> tuple[Entry, ...]:
    """Return every setting of a TOML, JSON or YAML file; JSON is read as the YAML that it is.

    Raises:
        InputError: not YAML, nested too deeply, or the YAML reader is not installed.
    """
    if file.endswith(".toml"):
        return _toml(text, file)
    try:
        yaml = import_module("yaml")
    except ImportError:
        raise InputError(
            f"{file}: reading it needs PyYAML: install symbolic_cost[config]"
        ) from None
    _refuse_long(text, file)
    if file.endswith(".json"):
        json_value(text, file)
    if max(accumulate((one in "[{") - (one in "]}") for one in text), default=0) > _MOST_BRACKETS:
        raise InputError(f"{file}: nested too deeply for a configuration")  # PyYAML takes hours
    try:
        for event in yaml.parse(text.replace("\t", " "), Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                where = f"{file}: line {event.start_mark.line + 1}"
                raise InputError(f"{where}: alias *{brief(event.anchor, 40)}: write the value out")
        root = yaml.compose(text.replace("\t", " "), Loader=yaml.SafeLoader)
        return tuple(_referred(tuple(_flattened(root, "", file, 0))))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise InputError(f"{file}: {line}neither JSON nor YAML") from None
    except RecursionError:
        raise InputError(f"{file}: nested too deeply for a configuration") from None


def keys(text: str, file: str) -> Iterator[str]:
    """Yield the dotted keys of a JSON file, without what YAML takes to read them.

    Raises:
        InputError: not JSON, or larger than a launch file.
    """
    _refuse_long(text, file)
    yield from _below(json_value(text, file), "", 0)


def _below(node: Any, prefix: str, depth: int) -> Iterator[str]:  # noqa: ANN401 - whatever JSON holds
    for key, value in node.items() if isinstance(node, dict) and depth <= _DEEPEST else ():
        yield f"{prefix}{key}"
        yield from _below(value, f"{prefix}{key}.", depth + 1)


def _refuse_long(text: str, file: str) -> None:
    if len(text) > LARGEST_TREE:
        raise InputError(f"{file}: {len(text)} characters: at most {LARGEST_TREE} are read")


def _toml(text: str, file: str) -> tuple[Entry, ...]:
    """Return the settings of a TOML file; tables of tables are left out."""
    try:
        _refuse_long(text, file)
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{file}: is not TOML: {quote(str(error))}") from None
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        key, equals, _ = line.partition("=")
        if line.strip().startswith("["):
            table = line.strip().strip("[] ").split("#")[0].strip("] ") + "."
        elif equals:
            lines.setdefault(table + key.strip(), number)

    def flat(node: Mapping[str, Any], prefix: str) -> Iterator[Entry]:
        for key, value in node.items():
            if isinstance(value, dict):
                yield from flat(value, f"{prefix}{key}.")
            elif not isinstance(value, list) or not any(isinstance(one, dict) for one in value):
                plain = ",".join(map(str, value)) if isinstance(value, list) else value
                yield Entry(prefix + key, plain, lines.get(prefix + key, 1), file)

    return tuple(flat(values, ""))


def _flattened(node: Any, prefix: str, file: str, depth: int) -> Iterator[Entry]:  # noqa: ANN401
    """Yield the settings below a node of the syntax tree, which knows its line."""
    if depth > _DEEPEST:
        raise InputError(f"{file}: nested too deeply for a configuration")
    if node is None or node.id != "mapping":
        return
    seen: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if key.id != "scalar":
            raise InputError(f"{file}: line {line}: a key that is no text")
        name = f"{prefix}{key.value}"
        if name in seen:
            raise InputError(f"{file}: line {line}: key {quote(name)} is given more than once")
        seen.add(name)
        if value.id == "mapping":
            yield from _flattened(value, f"{name}.", file, depth + 1)
        elif value.id == "scalar":
            yield Entry(name, _value(value, f"{file}: line {line}, key {quote(name)}"), line, file)
        else:
            alone = all(one.id == "scalar" for one in value.value)
            listed = ",".join(one.value for one in value.value) if alone else "[...]"
            yield Entry(name, listed, line, file)


def _referred(settings: tuple[Entry, ...]) -> Iterator[Entry]:
    """Put in settings that others name, as Hydra does: ${model.l}, or ${.l} of its own table."""
    values = {entry.key: entry.value for entry in settings}
    for entry in settings:
        key, value, times = entry.key, entry.value, 1
        for _ in range(_DEEPEST):
            product = _PRODUCT.fullmatch(value) if isinstance(value, str) else None
            referred = product["of"] if product else value
            match = _REFERENCE.fullmatch(referred) if isinstance(referred, str) else None
            above = key.split(".")[: -len(match["up"])] if match and match["up"] else []
            key = ".".join([*above, match["key"]]) if match else ""
            if key not in values:  # a value, or of something else: as it is written
                break
            value, times = values[key], times * int(product["times"] if product else 1)
        known = isinstance(value, int) and times != 1
        yield replace(entry, value=value * times if known else value if times == 1 else entry.value)


_REFERENCE = re.compile(r"\$\{(?P<up>\.*)(?P<key>\w[\w.]*)\}")
_PRODUCT = re.compile(r"\$\{multiply:\s*(?P<times>\d{1,9})\s*,\s*(?P<of>\$\{[^{}]+\})\s*\}")
"""What NeMo registers with Hydra: ${multiply:4, ${.hidden_size}}."""


def _value(node: Any, where: str) -> Any:  # noqa: ANN401 - a scalar of any type
    """Return a number, a truth value, nothing or text; other types of YAML are text."""
    kind = node.tag.removeprefix(_STANDARD)
    text: str = node.value
    if kind == node.tag or kind not in _KINDS:
        raise InputError(f"{where}: tag {quote(node.tag)} is not read")
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("true", "yes", "on")
    if kind not in ("int", "float"):
        return text
    try:
        read = (lambda text: int(text, 0)) if kind == "int" else float
        number = read(text) if len(text) <= MOST_DIGITS else None
    except ValueError:
        return text  # base sixty, base eight, .inf: no setting of a model is written so
    if number is None or not isfinite(number):
        raise InputError(f"{where}: {quote(text)} is not a number that is accepted")
    return number


_KINDS = ("null", "bool", "int", "float", "str", "timestamp", "binary", "value", "merge")
_STANDARD = "tag:yaml.org,2002:"
