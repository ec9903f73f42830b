"""The registry of families: which builder reads which model_type, and what it accepts.

The files of `registry/` are data. A file begins with what holds for all of its families; a family
is a table that says what is its own, or more:

    builder = "decoders.config:build"           # "module:function" of this package
    suffixes = ["ForCausalLM", "Model"]        # with its prefix: names of `architectures[0]`,
                                               # the usual one first
    [qwen2]
    prefix = "Qwen2"
    heads = ["Qwen2ForCausalLM"]               # in place of prefix and suffixes
    further = ["ForCausalLM"]                  # suffixes besides those of the file
    headed = ["Qwen2Model"]                    # of these, what has an output head despite its name
    aliases = {hidden_size = ["d_model"]}      # other names of fields that only it uses
    defaults = {vocab_size = 50265}            # of fields that its configurations leave out
    costless = ["special_token"]               # keys, as regular expressions, that no count needs
    fixed = {use_qk_norm = true}               # the only value that is declared, or a list of them
    section = "text_config"                    # object that holds the fields
    merged = ["attn_config"]                   # objects whose fields stand beside the others
    whole = "clip"                             # what it is read as a section of, and not alone
    alike = ["moe_topk"]                       # lists of one value per layer, which must be alike
    spare = {pad_token_id = 1}                 # positions begin behind the row of a field
    untrained = ["embedding.angles.w"]         # weights, as regular expressions, that never learn

A key of a configuration is understood if its builder read it, if it is costless for the family or
(keys.toml) for all, or if it stands at a fixed or harmless value; see `Fields.refuse`. A builder
notes every problem of the fields that it reads, and refuses them all at once by an `InputError`.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from symbolic_cost.records import dataclass, field

_FOLDER = Path(__file__).parent / "registry"
_HEADER = re.compile(r'^\["?([^"\]]+)"?\]$', re.MULTILINE)


@dataclass(frozen=True)
class Family:
    """One family; see above."""

    builder: str
    heads: tuple[str, ...]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    merged: tuple[str, ...] = ()
    headed: tuple[str, ...] = ()
    costless: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    alike: tuple[str, ...] = ()
    whole: str = ""
    spare: Mapping[str, int] = field(default_factory=dict)
    untrained: tuple[str, ...] = ()


class Registry(Mapping[str, Family]):
    """Families by model_type; a table is parsed when its family is asked for.

    A run needs one family of some two hundred, and tables are slow to parse.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Find the tables of some files, by the name of the file."""
        self._places: dict[str, tuple[str, str, str]] = {}
        for file, text in texts.items():
            headers = list(_HEADER.finditer(text))
            ends = [*(match.start() for match in headers[1:]), len(text)]
            for match, end in zip(headers, ends, strict=True):
                shared = text[: headers[0].start()]
                self._places[match[1]] = (file, shared, text[match.end() : end])

    def __getitem__(self, name: str) -> Family:
        """Return a family."""
        _, shared, own = self._places[name]
        return _family(_joined(_table(shared), _table(own)))

    def __iter__(self) -> Iterator[str]:
        """Yield every model_type."""
        return iter(self._places)

    def __len__(self) -> int:
        """Count the families."""
        return len(self._places)


@cache
def _table(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def _joined(shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return what holds for a family: tables and costless keys are added to those of the file."""
    joined = {**shared, **own}
    for key in shared.keys() & own.keys() & {"aliases", "defaults", "fixed"}:
        joined[key] = {**shared[key], **own[key]}
    return joined | {"costless": [*shared.get("costless", ()), *own.get("costless", ())]}


def _family(record: dict[str, Any]) -> Family:
    prefix, suffixes = record.pop("prefix", ""), record.pop("suffixes", ())
    suffixes = (*suffixes, *record.pop("further", ()))
    heads = tuple(record.pop("heads", (f"{prefix}{suffix}" for suffix in suffixes)))
    aliases = {name: tuple(others) for name, others in record.pop("aliases", {}).items()}
    lists = ("costless", "headed", "merged", "alike", "untrained")
    record |= {key: tuple(record.get(key, ())) for key in lists}
    return Family(heads=heads, aliases=aliases, **record)


FAMILIES = Registry({path.stem: path.read_text("utf-8") for path in sorted(_FOLDER.glob("*.toml"))})
"""Every family by model_type."""
