"""Trees of modules, as data: which ops of a declared model each module runs.

A module runs the ops whose paths start with one of its own, unless a longer path of another
module matches. What no module names, the top module runs itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sympy import Expr, Integer

from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op

DROPOUT = "p=0.1, inplace=False"
_LINEAR = "in_features={%s}, out_features={%s}, bias=True"
_NORM = "({e},), eps=1e-12, elementwise_affine=True"
_FUSED_NORM = "torch.Size([{e}]), eps=1e-05, elementwise_affine=True"


@dataclass(frozen=True)
class Module:
    """One module.

    Args:
        name: inside its parent.
        cls: its class.
        ops: paths of the ops that it runs itself.
        extra: its own description, with sizes of axes in braces.
        children: the modules inside.
        repeat: how often the children occur, one group after the other, named by numbers.
    """

    name: str
    cls: str
    ops: tuple[str, ...] = ()
    extra: str = ""
    children: tuple[Module, ...] = ()
    repeat: Expr = Integer(1)

    def paths(self) -> tuple[str, ...]:
        """Return the op paths that the module and those inside name."""
        inner = (path for child in self.children for path in child.paths())
        return (*self.ops, *inner)


def _list(name: str, repeat: Expr, *children: Module) -> Module:
    return Module(name, "ModuleList", children=children, repeat=repeat)


def _linear(name: str, op: str, inner: str, outer: str) -> Module:
    return Module(name, "Linear", (op,), _LINEAR % (inner, outer))


def bert_modules(n_layers: Expr) -> Module:
    """Return the modules of a bare BERT, by the names of Hugging Face."""
    return Module(
        "",
        "BertModel",
        children=(
            Module(
                "embeddings",
                "BertEmbeddings",
                ("embedding",),
                children=(
                    Module(
                        "word_embeddings",
                        "Embedding",
                        ("embedding.token",),
                        "{v}, {e}, padding_idx=0",
                    ),
                    Module("position_embeddings", "Embedding", ("embedding.position",), "{p}, {e}"),
                    Module(
                        "token_type_embeddings", "Embedding", ("embedding.type",), "{types}, {e}"
                    ),
                    Module("LayerNorm", "LayerNorm", ("embedding.norm",), _NORM),
                    Module("dropout", "Dropout", ("embedding.dropout",), DROPOUT),
                ),
            ),
            Module("encoder", "BertEncoder", children=(_list("layer", n_layers, _bert_layer()),)),
            Module(
                "pooler",
                "BertPooler",
                ("pooler",),
                children=(
                    _linear("dense", "pooler.dense", "e", "w"),
                    Module("activation", "Tanh", ("pooler.activation",)),
                ),
            ),
        ),
    )


def _bert_layer() -> Module:
    attention = "block.attention"
    projections = {"query": "q", "key": "k", "value": "v"}
    own = Module(
        "self",
        "BertSelfAttention",
        (f"{attention}.core",),
        children=(
            *(_linear(name, f"{attention}.{op}", "e", "e") for name, op in projections.items()),
            Module("dropout", "Dropout", (f"{attention}.core.dropout",), DROPOUT),
        ),
    )
    wide = Module(
        "intermediate",
        "BertIntermediate",
        children=(
            _linear("dense", "block.mlp.fc1", "e", "f"),
            Module("intermediate_act_fn", "GELUActivation", ("block.mlp.act",)),
        ),
    )
    attended = _bert_output("BertSelfOutput", attention, f"{attention}.proj", "e")
    return Module(
        "",
        "BertLayer",
        children=(
            Module("attention", "BertAttention", children=(own, attended)),
            wide,
            _bert_output("BertOutput", "block.mlp", "block.mlp.fc2", "f"),
        ),
    )


def _bert_output(cls: str, branch: str, dense: str, inner: str) -> Module:
    return Module(
        "output",
        cls,
        (f"{branch}.residual",),
        children=(
            _linear("dense", dense, inner, "e"),
            Module("LayerNorm", "LayerNorm", (f"{branch}.norm",), _NORM),
            Module("dropout", "Dropout", (f"{branch}.dropout",), DROPOUT),
        ),
    )


def megatron_modules(n_layers: Expr) -> Module:
    """Return the modules of a Megatron-LM GPT-2, whose layers are split in two."""
    embedding = Module(
        "embedding",
        "Embedding",
        ("embedding",),
        children=(
            Module("word_embeddings", "VocabParallelEmbedding", ("embedding.token",)),
            Module("position_embeddings", "Embedding", ("embedding.position",), "{p}, {e}"),
            Module("embedding_dropout", "Dropout", ("embedding.dropout",), DROPOUT),
        ),
    )
    layers = _list("layers", n_layers, _megatron_attention(), _megatron_mlp())
    last = Module("final_layernorm", "FusedLayerNorm", ("head.norm",), _FUSED_NORM)
    transformer = Module("transformer", "ParallelTransformer", children=(layers, last))
    language = Module(
        "language_model", "TransformerLanguageModel", children=(embedding, transformer)
    )
    return Module("", "GPT2Model", ("head.output",), children=(language,))


def _megatron_attention() -> Module:
    path = "block.attention"
    attention = Module(
        "attention",
        "ParallelSelfAttention",
        (f"{path}.core",),
        children=(
            Module("query_key_value", "ColumnParallelLinear", (f"{path}.qkv",)),
            Module("scale_mask_softmax", "FusedScaleMaskSoftmax", (f"{path}.core.softmax",)),
            Module("attention_dropout", "Dropout", (f"{path}.core.dropout",), DROPOUT),
            Module("dense", "RowParallelLinear", (f"{path}.proj",)),
        ),
    )
    norm = Module("input_layernorm", "FusedLayerNorm", (f"{path}.norm",), _FUSED_NORM)
    return Module("", "ParallelTransformerLayerPart1", (path,), children=(norm, attention))


def _megatron_mlp() -> Module:
    path = "block.mlp"
    mlp = Module(
        "mlp",
        "ParallelMLP",
        (f"{path}.act",),
        children=(
            Module("dense_h_to_4h", "ColumnParallelLinear", (f"{path}.fc1",)),
            Module("dense_4h_to_h", "RowParallelLinear", (f"{path}.fc2",)),
        ),
    )
    norm = Module("post_attention_layernorm", "FusedLayerNorm", (f"{path}.norm",), _FUSED_NORM)
    return Module("", "ParallelTransformerLayerPart2", (path,), children=(norm, mlp))


_CLASSES = {
    "einsum": "Linear",
    "embedding": "Embedding",
    "layer_norm": "LayerNorm",
    "rms_norm": "RMSNorm",
    "batch_norm": "BatchNorm2d",
    "conv": "Conv2d",
    "max_pool": "MaxPool2d",
    "avg_pool": "AvgPool2d",
    "relu": "ReLU",
    "relu6": "ReLU6",
}
"""Classes of PyTorch by the kind of an op; else the kind itself."""


@dataclass
class _Node:
    """A place in the tree of paths, while it grows."""

    op: Op | None = None
    repeat: Expr = Integer(1)
    children: dict[str, _Node] = field(default_factory=dict)


def declared_modules(model: Model) -> Module:
    """Return the paths of any model as modules; views, which run nothing, are left out."""
    root = _Node()
    single = len(model.parts) == 1
    for part in model.parts:
        place = root if single else _grown(root, part.path.split("."))
        place.repeat = part.repeat
        for op in part.ops:
            if op.kernels():
                _grown(place, op.path.split(".")).op = op
    return _named("", model.name, root, model.parts[0].path if single else "")


def _grown(node: _Node, segments: Iterable[str]) -> _Node:
    for segment in segments:
        node = node.children.setdefault(segment, _Node())
    return node


def _named(name: str, cls: str, node: _Node, path: str) -> Module:
    children = tuple(
        _named(own, _class_of(own), child, f"{path}.{own}" if path else own)
        for own, child in node.children.items()
    )
    if node.op is not None:
        kind = node.op.kind if node.op.weights or node.op.kind != "einsum" else "matmul"
        cls = _CLASSES.get(kind, _class_of(kind))
        return Module(name, cls, (path,), node.op.pattern.text, children)
    if node.repeat != 1:
        block = Module("", cls, children=children)
        return Module(name, "ModuleList", children=(block,), repeat=node.repeat)
    return Module(name, cls, children=children)


def _class_of(name: str) -> str:
    """Write a name as a class: "cross_entropy" is CrossEntropy."""
    return name.title().replace("_", "")
