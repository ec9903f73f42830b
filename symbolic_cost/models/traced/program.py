"""The graph of an exported program, read from its archive.

What torch.export wraps for its own purposes (gradients off, autocast) is written out in place;
what is made with gradients off is detached.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from symbolic_cost.errors import InputError, quote
from symbolic_cost.models.traced import history
from symbolic_cost.models.traced.archive import Archive
from symbolic_cost.models.traced.graph import DETACH, Graph, Name, Node, Size, Value
from symbolic_cost.models.traced.shapes import Shapes, dynamic

_WRAPPERS = ("higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast")
_MOST_NODES = 1_000_000
_DEEPEST = 20


def graph(archive: Archive) -> Graph:
    """Read the graph of an archive.

    Raises:
        InputError: entries that are missing or are not what they should be.
    """
    try:
        return _Reader(archive).graph()
    except (KeyError, TypeError, AttributeError, StopIteration, IndexError) as error:
        said = f"{type(error).__name__} at {quote(str(error))}"
        raise InputError(
            f"{archive.place}: the graph is not as torch.export.save writes it: {said}"
        ) from None


def _only(tagged: Mapping[str, Any]) -> tuple[str, Any]:
    return next(iter(tagged.items()))


class _Reader:
    def __init__(self, archive: Archive) -> None:
        self._archive, self._place = archive, archive.place
        module = archive.program["graph_module"]
        self._graph, self._signature = module["graph"], module["signature"]
        self._values: dict[str, Value] = {}
        self._integers: dict[str, Size] = {}
        self._nodes: list[Node] = []
        self._renamed: dict[str, str] = {}
        self._dims: dict[str, str] = {}
        self._off: set[int] = set()
        self._silu: set[int] = set()
        self._notes: Counter[str] = Counter()
        self._told = False

    def graph(self) -> Graph:
        weights, constants, inputs = self._inputs()
        places = self._dynamic_places(inputs)
        named = dynamic({symbol: (kind, where) for symbol, (kind, where, _) in places.items()})
        self._shapes = Shapes(self._place, named)
        for symbol, (_, where, size) in places.items():
            read = self._size(size)
            more = "" if read == named[symbol] else f", which is {read}"
            self._dims[named[symbol].name] = where + more
        self._scope(self._graph, "", "", 0)
        outputs = tuple(
            value["arg"]["as_tensor"]["name"]
            for spec in self._signature["output_specs"]
            for tag, value in [_only(spec)]
            if tag in ("user_output", "loss_output") and "as_tensor" in value["arg"]
        )
        tied = {name: self._archive.stored.get(name, name) for name in weights.values()}
        first: dict[str, str] = {}
        for name in weights.values():
            first.setdefault(tied[name], name)
        named = {value: first[tied[name]] for value, name in weights.items()}
        parameters: dict[str, str] = {}
        for value, name in named.items():
            parameters.setdefault(name, value)
        for value, name in (*named.items(), *((value, value) for value in (*constants, *inputs))):
            if value not in self._values or not isinstance(name, str):
                raise InputError(
                    f"{self._place}: the signature names {quote(value)}, no value of the graph"
                )
        renamed = tuple(self._renamed.get(name, name) for name in outputs)
        whole = history.composed(self._nodes, self._silu)
        nodes, ends = history.detached(whole, self._off, self._values, renamed)
        if history.untold(nodes, self._told):
            self._notes[history.UNTOLD] = 1
        return Graph(
            self._place, self._values, tuple(nodes), named, parameters, frozenset(constants),
            tuple(inputs), ends, self._dims, self._frozen(named), self._notes,
        )  # fmt: skip

    def _frozen(self, weights: Mapping[str, str]) -> frozenset[str]:
        """Return the parameters that get no gradient; none where no parameter gets one."""
        told = self._graph["tensor_values"]
        frozen = {n for value, n in weights.items() if told[value].get("requires_grad") is False}
        return frozenset(frozen if frozen != {*weights.values()} else ())

    def _inputs(self) -> tuple[dict[str, str], list[str], list[str]]:
        weights: dict[str, str] = {}
        constants: list[str] = []
        inputs: list[str] = []
        for spec in self._signature["input_specs"]:
            tag, value = _only(spec)
            if tag == "parameter":
                weights[value["arg"]["name"]] = value["parameter_name"]
            elif tag in ("buffer", "tensor_constant"):
                constants.append(value["arg"]["name"])
            elif tag == "user_input" and "as_tensor" in value["arg"]:
                inputs.append(value["arg"]["as_tensor"]["name"])
        return weights, constants, inputs

    def _dynamic_places(self, inputs: list[str]) -> dict[str, tuple[str, str, Mapping[str, Any]]]:
        """Return batch or length, place and size of dynamic dimensions of the inputs, by symbol.

        The first dimension of an input is its batch.
        """
        places: dict[str, tuple[str, str, Mapping[str, Any]]] = {}
        for name in inputs:
            for place, size in enumerate(self._graph["tensor_values"][name]["sizes"]):
                if "as_expr" in size:
                    for symbol in _symbol_names(size["as_expr"]["expr_str"]):
                        kind = "batch" if place == 0 else "length"
                        where = f"dimension {place} of {name}"
                        places.setdefault(symbol, (kind, where, size))
        return places

    def _size(self, size: Mapping[str, Any]) -> Size:
        tag, value = _only(size)
        if tag == "as_int":
            if type(value) is not int or value < 0:
                raise InputError(f"{self._place}: size {quote(value)}: a whole number is accepted")
            return value
        read = self._shapes.read(value["expr_str"])
        return int(read) if read.is_Integer else read

    def _scope(self, scope: Mapping[str, Any], prefix: str, path: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise InputError(f"{self._place}: graphs are nested more than {_DEEPEST} deep")
        for name, entry in scope["tensor_values"].items():
            if prefix + name not in self._renamed:
                sizes = tuple(self._size(size) for size in entry["sizes"])
                self._values[prefix + name] = Value(sizes, entry["dtype"])
        for name, entry in scope["sym_int_values"].items():
            tag, _ = _only(entry)
            try:
                self._integers[prefix + name] = (
                    self._size(entry) if tag == "as_expr" else entry[tag]
                )
            except InputError:  # one that no shape has is no size
                continue
        for entry in scope["nodes"]:
            if len(self._nodes) >= _MOST_NODES:
                raise InputError(f"{self._place}: at most {_MOST_NODES} nodes are read")
            self._node(entry, prefix, path, depth)

    def _node(self, entry: Mapping[str, Any], prefix: str, outer: str, depth: int) -> None:
        target = str(entry["target"]).removeprefix("torch.ops.")
        about = entry.get("metadata", {})
        path, kind = _module(about.get("nn_module_stack", ""))
        path = path or outer
        past = about.get("from_node", "")
        target, self._told = history.named(target, past), self._told or bool(past)
        inner = [item["arg"]["as_graph"] for item in entry["inputs"] if "as_graph" in item["arg"]]
        if target in _WRAPPERS and len(inner) == 1:
            self._inline(entry, inner[0]["graph"], prefix, path, depth)
            return
        args = {
            item.get("name") or str(place): self._argument(item["arg"], prefix)
            for place, item in enumerate(entry["inputs"])
        }
        outputs = tuple(name for item in entry["outputs"] for name in self._outputs(item, prefix))
        if history.gradients_off(past):
            self._off.add(len(self._nodes))
            self._notes[history.SWITCHED] += 1
        if history.of_silu(past):
            self._silu.add(len(self._nodes))
        if history.checkpointed(about.get("stack_trace", "")):
            self._notes[history.CHECKPOINTED] += 1
        name, _, overload = target.rpartition(".") if target.count(".") > 1 else (target, "", "")
        self._nodes.append(Node(len(self._nodes), name, overload, args, outputs, path, kind))

    def _inline(
        self, entry: Mapping[str, Any], body: Mapping[str, Any], prefix: str, path: str, depth: int
    ) -> None:
        """Write a wrapped graph out: its inputs are the wrapper's, in order, and so its outputs."""
        start = len(self._nodes)
        within = f"{prefix}{start}/"
        place = next(i for i, item in enumerate(entry["inputs"]) if "as_graph" in item["arg"])
        taken = [item["arg"] for item in entry["inputs"][place + 1 :]]
        for own, outer in zip(body["inputs"], taken, strict=True):
            for mine, theirs in zip(_names(own), _names(outer), strict=True):
                self._renamed[within + mine] = self._current_name(prefix + theirs)
        self._scope(body, within, path, depth + 1)
        off = any(item["arg"].get("as_bool") is False for item in entry["inputs"][:1])
        inner = {name: node for node in self._nodes[start:] for name in node.outputs if name}
        for own, outer in zip(body["outputs"], entry["outputs"], strict=True):
            for mine, theirs in zip(_names(own), _names(outer), strict=True):
                made = _itself(self._current_name(within + mine), inner)
                if off and made in inner:
                    args, place = {"self": Name(made)}, len(self._nodes)
                    self._nodes.append(Node(place, DETACH, "", args, (prefix + theirs,), path, ""))
                else:
                    self._renamed[prefix + theirs] = made

    def _current_name(self, name: str) -> str:
        return self._renamed.get(name, name)

    def _argument(self, tagged: Mapping[str, Any], prefix: str) -> Any:  # noqa: ANN401 - any argument
        tag, value = _only(tagged)
        if tag in ("as_tensor", "as_optional_tensor"):
            inner = value if tag == "as_tensor" else value.get("as_tensor")
            return None if inner is None else Name(self._current_name(prefix + inner["name"]))
        if tag in ("as_tensors", "as_nested_tensors"):
            return [Name(self._current_name(prefix + item["name"])) for item in value]
        if tag == "as_optional_tensors":
            return [
                Name(self._current_name(prefix + item["as_tensor"]["name"]))
                if "as_tensor" in item
                else None
                for item in value
            ]
        if tag in ("as_sym_int", "as_sym_ints"):
            items = value if tag == "as_sym_ints" else [value]
            read = [
                self._integers.get(prefix + item["as_name"])
                if "as_name" in item
                else item["as_int"]
                for item in items
            ]
            return read if tag == "as_sym_ints" else read[0]
        return None if tag == "as_none" else value

    def _outputs(self, tagged: Mapping[str, Any], prefix: str) -> Iterator[str]:
        tag, value = _only(tagged)
        if tag == "as_tensors":
            yield from (prefix + item["name"] for item in value)
        else:
            yield prefix + value["name"] if tag == "as_tensor" else ""


def _itself(name: str, makers: Mapping[str, Node]) -> str:
    """Return the value that a name is: one that is changed in place keeps its gradient."""
    while name in makers and makers[name].changes:
        name = makers[name].changes
    return name


def _names(tagged: Mapping[str, Any]) -> list[str]:
    tag, value = _only(tagged)
    if tag == "as_tensor":
        return [value["name"]]
    return [item["name"] for item in value] if tag == "as_tensors" else []


def _symbol_names(text: str) -> list[str]:
    return [part.partition("'")[0] for part in text.split("Symbol('")[1:]]


def _module(stack: str) -> tuple[str, str]:
    """Return path and class of the innermost module: entries "key,path,class", ";" between."""
    for entry in reversed(stack.split(";")):
        _, _, rest = entry.partition(",")
        path, _, kind = rest.partition(",")
        if path and not path.startswith("_empty_nn_module_stack"):
            return path.partition("@")[0], kind.rpartition(".")[2]
    return "", ""
