"""What nodes tell of their past, where a graph holds no `detach` and no `no_grad` any more.

`run_decompositions()` writes both out of a graph; what it makes still says which nodes it came
from. Source: torch/_export/serde/serialize.py, the entry from_node of a node's metadata, written
since torch 2.7.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from symbolic_cost.models.traced.acts import names_in
from symbolic_cost.models.traced.graph import DETACH, Name, Node, Value
from symbolic_cost.records import replace

_OFF = re.compile(r'"target":\s*"[\w.]*wrap_with_set_grad_enabled"')
_SILU = re.compile(r'"target":\s*"[\w.]*aten\.silu\b')
_CHECKPOINT = re.compile(r"\b_?(gradient_)?checkpoint(ing_func)?\(")
_DETACHED = re.compile(r'"target":\s*"[\w.]*aten\.detach(_|\b)')


def _aten(names: str) -> frozenset[str]:
    return frozenset(f"aten.{name}" for name in names.split())


_COMPOSITE = _aten(
    "linear matmul softmax log_softmax layer_norm group_norm batch_norm instance_norm rms_norm "
    "conv1d conv2d conv3d dropout to contiguous reshape flatten scaled_dot_product_attention "
    "einsum detach silu pad"
)
"""Operators of which a decomposition leaves none."""

_PLAIN = _aten(
    "mm bmm addmm convolution native_layer_norm native_group_norm _softmax _log_softmax _to_copy "
    "_native_batch_norm_legit _native_batch_norm_legit_no_training native_dropout"
)
"""Operators that hardly anybody calls by name, and that decompositions leave."""

UNTOLD = "decomposed, without its history: what detach or no_grad stopped has gradients here"
"""What is assumed of a graph that lost them."""

SWITCHED = "gradients were switched there before decomposition: taken for off (no_grad)"
"""What is assumed of nodes of a wrapper whose argument, on or off, their history leaves out."""

CHECKPOINTED = "called through a checkpoint: computed once here, as without recomputation"
"""What is assumed where lines that called an operator say that backward computes it again."""


def named(target: str, past: str) -> str:
    """Return the operator of a node: what was a detach is an alias after its decomposition."""
    return DETACH if target == "aten.alias.default" and _DETACHED.search(past) else target


def gradients_off(past: str) -> bool:
    """Tell whether a node was in a graph that ran with gradients off."""
    return bool(_OFF.search(past))


def checkpointed(lines: str) -> bool:
    """Tell whether one of the lines of code that led to a node calls a checkpoint."""
    return bool(_CHECKPOINT.search(lines))


def of_silu(past: str) -> bool:
    """Tell whether a node is a piece of a SiLU."""
    return bool(_SILU.search(past))


def composed(nodes: Iterable[Node], pieces: set[int]) -> list[Node]:
    """Return nodes where x * sigmoid(x) is one SiLU again, which keeps x alone for backward.

    Args:
        nodes: in order.
        pieces: numbers of those that are pieces of a SiLU.
    """
    nodes = list(nodes)
    uses = Counter(
        name.text for node in nodes for arg in node.args.values() for name in names_in(arg)
    )
    opened: dict[str, int] = {}
    written: dict[int, Node] = {}
    for node in nodes:
        written[node.index] = node
        if node.index not in pieces:
            continue
        own, other = node.args.get("self"), node.args.get("other")
        sigmoid = written.get(opened.get(other.text, -1)) if isinstance(other, Name) else None
        if node.target == "aten.sigmoid" and uses[node.outputs[0]] == 1:
            opened[node.outputs[0]] = node.index
        elif node.target == "aten.mul" and sigmoid and sigmoid.args["self"] == own:
            del written[sigmoid.index]
            about = {"self": own}
            written[node.index] = replace(node, target="aten.silu", overload="", args=about)
    return list(written.values())


def untold(nodes: Iterable[Node], told: bool) -> bool:  # noqa: FBT001 - what nodes tell
    """Tell whether a graph was decomposed, and nothing says what had no gradient before."""
    targets = {node.target for node in nodes}
    return not told and not targets & _COMPOSITE and bool(targets & _PLAIN)


def detached(
    nodes: Iterable[Node], off: set[int], values: dict[str, Value], outputs: Iterable[str]
) -> tuple[list[Node], tuple[str, ...]]:
    """Return nodes and outputs where what others take of nodes without gradients is detached.

    Args:
        nodes: in order.
        off: numbers of those that ran with gradients off.
        values: of the graph; detached ones are added.
        outputs: of the graph.
    """
    held: set[str] = set()
    written: list[Node] = []
    stands: dict[str, str] = {}

    def stop(name: str, path: str) -> str:
        if name in held and name not in stands:
            stands[name] = f"{name}/detached"
            values[stands[name]] = values[name]
            about: Mapping[str, Any] = {"self": Name(name)}
            written.append(Node(len(written), DETACH, "", about, (stands[name],), path, ""))
        return stands.get(name, name)

    for node in nodes:
        args = node.args
        if node.index in off:
            held.update(name for name in node.outputs if name in values and values[name].floating)
        elif any(name.text in held for arg in args.values() for name in names_in(arg)):
            args = {key: _stopped(arg, node.path, stop) for key, arg in args.items()}
        written.append(replace(node, index=len(written), args=args))
    ends = tuple(stop(name, "") for name in outputs)
    return written, ends


def _stopped(arg: Any, path: str, stop: Any) -> Any:  # noqa: ANN401 - any argument
    if isinstance(arg, Name):
        return Name(stop(arg.text, path))
    if isinstance(arg, list):
        return [_stopped(item, path, stop) for item in arg]
    return arg
