"""Axes and their roles: what an axis counts, said once, where a layer is declared.

Strategies, recomputation, experts, caches and counts ask for roles, never for names, so two models
may use one letter for different things. A glossary is data:

    AXES = axes("b batch, r token residual, l token query, t key-token, e hidden, f inner")

After the role may stand the copy: a layer gives positions several names because a strategy splits
some of them and not others (Megatron's sequence parallelism splits residual positions alone).
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from symbolic_cost.checking import Names, checked
from symbolic_cost.errors import PatternError, refuse, unknown
from symbolic_cost.records import dataclass


class Role(Names):
    """What an axis counts."""

    BATCH = "batch"
    TOKEN = "token"  # noqa: S105 - positions of a sequence, no secret
    KEY_TOKEN = "key-token"  # noqa: S105 - positions that are attended to
    HIDDEN = "hidden"
    HEAD = "head"
    GROUP = "group"
    WIDTH = "width"
    INNER = "inner"
    VOCABULARY = "vocabulary"
    EXPERT = "expert"
    SLOT = "slot"
    LATENT = "latent"
    WHOLE = "whole"


MEANINGS: Mapping[Role, str] = MappingProxyType(
    {
        Role.BATCH: "sequences or samples",
        Role.TOKEN: "positions of the residual stream (residual) and of queries (query); tokens "
        "sorted by expert, as sent (posted) and as an expert sees them (routed)",
        Role.KEY_TOKEN: "positions of keys and values",
        Role.HIDDEN: "features of the residual stream",
        Role.HEAD: "attention or state heads; key/value heads where they are grouped",
        Role.GROUP: "query heads that share one key/value head",
        Role.WIDTH: "features of one head",
        Role.INNER: "features inside a layer (MLP width, state-space channels)",
        Role.VOCABULARY: "entries of the vocabulary",
        Role.EXPERT: "experts (routed), and their scores by the router (scored)",
        Role.SLOT: "experts chosen for a token",
        Role.LATENT: "a narrow projection that ranks sharing a layer compute alike",
        Role.WHOLE: "what is never split: a kernel, gates, pixels",
    }
)
"""One line for every role."""


@checked
@dataclass(frozen=True, slots=True)
class Axis:
    """A named axis.

    Args:
        copy: tells axes of one role apart that strategies place differently.
    """

    name: str
    role: Role
    copy: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.role, self.copy)))


@checked
@dataclass(frozen=True, slots=True)
class At:
    """Axes of one role, of all copies or of the given ones; a strategy places these.

    Args:
        copies: accepted ones; every one if None.
    """

    role: Role
    copies: tuple[str, ...] | None = None

    def __contains__(self, axis: Axis) -> bool:
        return axis.role is self.role and (self.copies is None or axis.copy in self.copies)

    def __str__(self) -> str:
        copies = " or ".join(copy or "plain" for copy in self.copies or ())
        return f"{self.role} ({copies})" if copies else str(self.role)


Glossary = Mapping[str, Axis]
"""Axes by name."""


def axes(text: str) -> Glossary:
    """Read a glossary: "b batch, r token residual" says name, role and, where needed, copy.

    Raises:
        PatternError: every entry that is no glossary entry, and names that stand twice.
    """
    problems: list[str] = []
    entries: dict[str, Axis] = {}
    for entry in (part.split() for part in text.split(",")):
        if len(entry) not in (2, 3):
            problems.append(
                f"axis {' '.join(entry)!r}: write name, role and copy: r token residual"
            )
            continue
        name, role, *copy = entry
        if role not in set(Role):
            problems.append(unknown("role", role, Role))
        elif name in entries:
            problems.append(f"axis {name!r} stands twice in the glossary")
        else:
            entries[name] = Axis(name, Role(role), *copy)
    refuse(problems, PatternError)
    return MappingProxyType(entries)


roles = axes
"""The same under a name that says what it reads, for scripts: sc.roles("b batch, e hidden")."""


def glossary(*parts: Glossary) -> Glossary:
    """Join the glossaries of a model's layers.

    Raises:
        PatternError: two layers give one name different roles.
    """
    joined: dict[str, Axis] = {}
    problems = []
    for part in parts:
        for name, axis in part.items():
            if joined.setdefault(name, axis) != axis:
                problems.append(f"axis {name!r} is '{joined[name]}' and '{axis}': rename one")
    refuse(problems, PatternError)
    return MappingProxyType(joined)


def of_role(known: Glossary, names: Iterable[str], *roles: Role) -> Iterator[str]:
    """Yield those of some axes that have one of the roles."""
    yield from (name for name in names if name in known and known[name].role in roles)
