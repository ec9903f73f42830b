"""What a module writes out of several operators and this library knows as one op.

Root-mean-square norms, rotations of queries and keys, and attention op by op are found in the flow;
a node in the middle that something else uses as well is left as it is.
"""

from collections.abc import Iterable, Mapping

from symbolic_cost.grouping import grouped
from symbolic_cost.models.traced.acts import names_in
from symbolic_cost.models.traced.graph import Graph, Name, Node
from symbolic_cost.models.traced.rules.written import normed_weight, passed, rms_norm, rotation
from symbolic_cost.models.traced.trace import Rule
from symbolic_cost.records import dataclass, field


def _aten(names: str) -> frozenset[str]:
    return frozenset(f"aten.{name}" for name in names.split())


_SAME = _aten("to alias contiguous clone _to_copy type_as dropout float detach") | {
    "prims.convert_element_type"
}
_COMPARED, _TRIANGLES = _aten("le lt ge gt"), _aten("tril triu tril_ triu_")
_PRODUCTS = _aten("matmul bmm baddbmm")
_MASKING = _aten("add add_ mul mul_ div div_ masked_fill where")
_RESHAPED = _aten("view reshape expand unsqueeze")
_BETWEEN = _SAME | _MASKING | _RESHAPED | _aten("sub cat slice squeeze tanh")
"""What may stand between scores and their softmax, or between probabilities and their product."""

_OF_SHAPE = _aten("full_like zeros_like ones_like empty_like sym_size")
"""What takes of a tensor its shape alone."""

_TWO = 2
_LONGEST = 12
_MOST_SEEN = 400


@dataclass
class Patterns:
    """What was found.

    Args:
        replaced: rules of nodes that stand for others, None for those that they stand for.
        cores: products and softmax of attention written out, by number of the node.
        masked: attention with a causal mask, by number of the node.
    """

    replaced: dict[int, Rule | None] = field(default_factory=dict)
    cores: dict[int, str] = field(default_factory=dict)
    masked: set[int] = field(default_factory=set)


def patterns(graph: Graph) -> Patterns:
    """Find what a graph writes out."""
    finder = _Finder(graph)
    for node in graph.nodes:
        if node.target == "aten.rsqrt":
            finder.norm(node)
        elif node.target == "aten.add":
            finder.rotation(node)
        elif node.target == "aten.linalg_vector_norm":
            finder.weight_norm(node)
        elif node.target == "aten.view_as_real":
            finder.complex_rotation(node)
        elif node.target in ("aten.softmax", "aten._softmax"):
            finder.core(node)
        elif node.target == "aten.scaled_dot_product_attention":
            mask = node.args.get("attn_mask") or node.args.get("3")
            if isinstance(mask, Name) and finder.compared(mask.text):
                finder.patterns.masked.add(node.index)
    return finder.patterns


class _Finder:
    def __init__(self, graph: Graph) -> None:
        self.patterns = Patterns()
        self._graph = graph
        self._makers: Mapping[str, Node] = {
            name: node for node in graph.nodes for name in node.outputs if name
        }
        taken = ((node, arg) for node in graph.nodes for arg in node.args.values())
        self._users = grouped((name.text, node) for node, arg in taken for name in names_in(arg))
        self._compared: dict[str, bool] = {}

    def compared(self, name: str) -> bool:
        """Tell whether positions are compared somewhere in what makes a mask."""
        stack, seen = [name], {name}
        while stack:
            here = stack.pop()
            node = self._makers.get(here)
            if node is None:
                continue
            inputs = self._inputs_of(node)
            if node.target in _TRIANGLES or (node.target in _COMPARED and len(inputs) > 1):
                return True
            if any(one in self._graph.weights for one in inputs):
                continue
            stack += [one for one in inputs if one not in seen]
            seen.update(inputs)
        return False

    def _base(self, name: str, through: frozenset[str] = frozenset()) -> str:
        """Return the name under which a value was made, casts and some more aside."""
        node = self._makers.get(name)
        while node is not None and node.target in (_SAME | through):
            taken = self._inputs_of(node)
            if not taken or (node.target == "aten.dropout" and node.args.get("train") is True):
                break
            name = taken[0]
            node = self._makers.get(name)
        return name

    def _inputs_of(self, node: Node) -> list[str]:
        return [name.text for arg in node.args.values() for name in names_in(arg)]

    def _made_by(
        self, name: str, *targets: str, through: frozenset[str] = frozenset()
    ) -> Node | None:
        node = self._makers.get(self._base(name, through))
        return node if node is not None and node.target in targets else None

    def _only_user(self, name: str) -> Node | None:
        users: list[Node] = []
        stack = [name]
        while stack:
            for user in self._users.get(stack.pop(), ()):
                if user.target in _SAME:
                    stack.append(user.outputs[0])
                elif not user.target.startswith("aten._assert"):
                    users.append(user)
        return users[0] if len(users) == 1 else None

    # Norms.

    def norm(self, rsqrt: Node) -> None:
        """Replace x * rsqrt(mean(x**2) + eps), and a scale."""
        added = self._made_by(self._inputs_of(rsqrt)[0], "aten.add")
        mean = added and self._made_by(self._inputs_of(added)[0], "aten.mean")
        power = mean and self._made_by(
            self._inputs_of(mean)[0], "aten.pow", "aten.square", "aten.mul"
        )
        product = self._only_user(rsqrt.outputs[0])
        if not (added and mean and power and product) or product.target != "aten.mul":
            return
        x = self._base(self._inputs_of(power)[0])
        factors = [self._base(name) for name in self._inputs_of(product)]
        dims = mean.args.get("dim") or mean.args.get("1")
        one = len(set(map(self._base, self._inputs_of(power)))) == 1
        if x not in factors or dims not in ([-1], -1) or not one:
            return
        inner: tuple[Node, ...] = (power, mean, added, rsqrt)
        if any(self._only_user(node.outputs[0]) is None for node in (power, mean, added)):
            return
        last, function, weight = product, "rms_norm", None
        scaled = self._only_user(product.outputs[0])
        if scaled is not None and scaled.target == "aten.mul":
            others = [
                name for name in self._inputs_of(scaled) if self._base(name) != product.outputs[0]
            ]
            kind = self._scale(others[0]) if len(others) == 1 else None
            if kind is not None:
                weight, shifted = kind
                cast = scaled.index and product.outputs[0] not in self._inputs_of(scaled)
                function = (
                    "rms_norm_shifted" if shifted else "rms_norm" if cast else "rms_norm_wide"
                )
                inner, last = (*inner, product), scaled
        self._replace(inner, last, rms_norm(function, x, weight))

    def weight_norm(self, norm: Node) -> None:
        """Replace a weight over its lengths, times lengths that are learnt."""
        over = self._only_user(norm.outputs[0])
        product = over and self._only_user(over.outputs[0])
        if not over or not product or over.target != "aten.div" or product.target != "aten.mul":
            return
        direction, lengths = self._inputs_of(norm)[0], self._inputs_of(over)[0]
        weights = {*self._graph.weights} >= {direction, lengths}
        if weights and direction in self._inputs_of(product) and lengths != norm.outputs[0]:
            self._replace((norm, over), product, normed_weight(direction, lengths))

    def _replace(self, inner: Iterable[Node], last: Node, rule: Rule) -> None:
        """Let the last of some nodes stand for all of them."""
        self.patterns.replaced |= dict.fromkeys((node.index for node in inner), None)
        self.patterns.replaced[last.index] = rule

    def _scale(self, name: str) -> tuple[str, bool] | None:
        base = self._base(name)
        if base in self._graph.weights:
            return base, False
        node = self._makers.get(base)
        if node is None or node.target != "aten.add":
            return None
        taken = [self._base(one) for one in self._inputs_of(node)]
        return (taken[0], True) if len(taken) == 1 and taken[0] in self._graph.weights else None

    # Rotations.

    def rotation(self, total: Node) -> None:
        """Replace x cos + (-x[half:], x[:half]) sin."""
        terms = self._inputs_of(total)
        if len(terms) != _TWO:
            return
        for first, second in (terms, terms[::-1]):
            plain, turned = (self._made_by(name, "aten.mul") for name in (first, second))
            match = plain and turned and self._turned(turned)
            if not match or not plain or not turned:
                continue
            x, sin, inner = match
            factors = self._inputs_of(plain)
            cos = [name for name in factors if self._base(name) != x]
            if len(cos) != 1 or len(factors) != _TWO:
                continue
            nodes = (*inner, plain, turned)
            if all(self._only_user(node.outputs[0]) is not None for node in nodes):
                self._replace(nodes, total, rotation(x, cos[0], sin))
            return

    def _turned(self, product: Node) -> tuple[str, str, tuple[Node, ...]] | None:
        """Return the tensor whose turned halves a product takes, the table, and what is between."""
        factors = self._inputs_of(product)
        for joined, table in (factors, factors[::-1]) if len(factors) == _TWO else ():
            cat = self._made_by(joined, "aten.cat")
            parts = self._inputs_of(cat) if cat else []
            negative = self._made_by(parts[0], "aten.neg") if len(parts) == _TWO else None
            if cat is None or negative is None:
                continue
            ends = (self._inputs_of(negative)[0], parts[1])
            parted = ("aten.slice", "aten.split", "aten.chunk")
            halves = [self._made_by(name, *parted) for name in ends]
            sources = {self._base(self._inputs_of(half)[0]) for half in halves if half is not None}
            if len(sources) == 1 and None not in halves:
                return sources.pop(), table, (cat, negative, *(half for half in halves if half))
        return None

    def complex_rotation(self, result: Node) -> None:
        """Replace pairs that are multiplied by a table as complex numbers."""
        product = self._made_by(self._inputs_of(result)[0], "aten.mul")
        factors = self._inputs_of(product) if product else []
        if product is None or len(factors) != _TWO:
            return
        for pairs, table in (factors, factors[::-1]):
            view = self._made_by(pairs, "aten.view_as_complex")
            if view is None or not self._is_constant(table):
                continue
            if all(self._only_user(node.outputs[0]) is not None for node in (view, product)):
                rule = rotation(self._inputs_of(view)[0], table, of_pairs=True)
                self._replace((view, product), result, rule)
            return

    # Attention op by op.

    def core(self, softmax: Node) -> None:
        """Mark the two products around a softmax, and what only masks or scales between them."""
        row = softmax.args.get("dim") if "dim" in softmax.args else softmax.args.get("1")
        rank = len(self._graph.values[softmax.outputs[0]].sizes)
        scores = self._up(self._inputs_of(softmax)[0])
        attend = self._down(softmax.outputs[0])
        if scores is None or attend is None or row not in (-1, rank - 1):
            return
        first, between = scores
        self._scaled(first)
        kind = "softmax_single" if self._safe(softmax) else "softmax"
        roles = {first.index: "scores", softmax.index: kind, attend.index: "attend"}
        self.patterns.cores |= roles
        for node in between:
            moving = self._moving(node)
            others = [name for name in self._inputs_of(node) if name != moving]
            if any(self.compared(name) for name in others):
                self.patterns.masked |= {first.index, attend.index}
            if node.target in _MASKING and all(self._is_constant(name) for name in others):
                self.patterns.replaced[node.index] = passed(moving)

    def _scaled(self, product: Node) -> None:
        """Pass queries and keys, each times the root of the scale: so a decomposition writes it."""
        scales = [
            node
            for name in self._inputs_of(product)
            if (node := self._made_by(name, "aten.mul", through=_RESHAPED)) is not None
            and node.overload == "Scalar"
        ]
        if len(scales) == _TWO and scales[0].args.get("other") == scales[1].args.get("other"):
            for node in scales:
                self.patterns.replaced[node.index] = passed(self._inputs_of(node)[0])

    def _safe(self, softmax: Node) -> bool:
        """Pass what makes rows without any key zero, as PyTorch's attention does; tell whether."""
        result, found = softmax.outputs[0], False
        for user in self._users.get(result, ()):
            taken = self._inputs_of(user)
            zeros = self._makers.get(taken[1]) if user.target == "aten.where" else None
            if zeros is not None and zeros.target == "aten.full_like" and taken[2:] == [result]:
                self.patterns.replaced[user.index], found = passed(result), True
        return found

    def _up(self, name: str) -> tuple[Node, list[Node]] | None:
        """Return the product that scores come from, and the nodes since then."""
        between: list[Node] = []
        for _ in range(_LONGEST):
            node = self._makers.get(name)
            if node is None:
                return None
            if node.target in _PRODUCTS:
                return node, between
            if node.target not in _BETWEEN:
                return None
            between.append(node)
            name = self._moving(node)
        return None

    def _moving(self, node: Node) -> str:
        """Return the operand of a node that has a gradient, the first of several."""
        taken = self._inputs_of(node)
        return next((name for name in taken if not self._is_constant(name)), taken[0])

    def _is_constant(self, name: str) -> bool:
        stack, seen = [name], {name}
        while stack:
            here = stack.pop()
            if here in self._graph.weights:
                return False
            node = self._makers.get(here)
            inputs = (
                [] if node is None else [one for one in self._inputs_of(node) if one not in seen]
            )
            if len(seen) > _MOST_SEEN:
                return False
            stack += inputs
            seen.update(inputs)
        return True

    def _down(self, name: str) -> Node | None:
        """Return the product that takes probabilities as its first operand."""
        for _ in range(_LONGEST):
            every = self._users.get(name, ())
            users = [
                user
                for user in every
                if not user.target.startswith("aten._assert") and user.target not in _OF_SHAPE
            ]
            for user in users:
                if user.target in _PRODUCTS and self._inputs_of(user)[0] == name:
                    return user
            if len(users) != 1 or users[0].target not in _BETWEEN:
                return None
            name = users[0].outputs[0]
        return None
