"""Trees of modules, as data: which ops of a declared model each module runs.

A module runs the ops whose paths start with one of its own, unless a longer path of another
module matches. What no module names, the top module runs itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sympy import Expr, Integer

from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op


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


BERT = """
: BertModel
  embeddings: BertEmbeddings <- embedding
    word_embeddings: Embedding <- embedding.token | {v}, {e}, padding_idx=0
    position_embeddings: Embedding <- embedding.position | {p}, {e}
    token_type_embeddings: Embedding <- embedding.type | {types}, {e}
    LayerNorm: LayerNorm <- embedding.norm | NORM
    dropout: Dropout <- embedding.dropout | p=0.1, inplace=False
  encoder: BertEncoder
    layer: ModuleList *
      : BertLayer
        attention: BertAttention
          self: BertSelfAttention <- block.attention.core
            query: Linear <- block.attention.q | in_features={e}, out_features={e}, bias=True
            key: Linear <- block.attention.k | in_features={e}, out_features={e}, bias=True
            value: Linear <- block.attention.v | in_features={e}, out_features={e}, bias=True
            dropout: Dropout <- block.attention.core.dropout | p=0.1, inplace=False
          output: BertSelfOutput <- block.attention.residual
            dense: Linear <- block.attention.proj | in_features={e}, out_features={e}, bias=True
            LayerNorm: LayerNorm <- block.attention.norm | NORM
            dropout: Dropout <- block.attention.dropout | p=0.1, inplace=False
        intermediate: BertIntermediate
          dense: Linear <- block.mlp.fc1 | in_features={e}, out_features={f}, bias=True
          intermediate_act_fn: GELUActivation <- block.mlp.act
        output: BertOutput <- block.mlp.residual
          dense: Linear <- block.mlp.fc2 | in_features={f}, out_features={e}, bias=True
          LayerNorm: LayerNorm <- block.mlp.norm | NORM
          dropout: Dropout <- block.mlp.dropout | p=0.1, inplace=False
  pooler: BertPooler <- pooler
    dense: Linear <- pooler.dense | in_features={e}, out_features={w}, bias=True
    activation: Tanh <- pooler.activation
""".replace("NORM", "({e},), eps=1e-12, elementwise_affine=True")
"""The modules of a bare BERT, by the names of Hugging Face."""

MEGATRON = """
: GPT2Model <- head.output
  language_model: TransformerLanguageModel
    embedding: Embedding <- embedding
      word_embeddings: VocabParallelEmbedding <- embedding.token
      position_embeddings: Embedding <- embedding.position | {p}, {e}
      embedding_dropout: Dropout <- embedding.dropout | p=0.1, inplace=False
    transformer: ParallelTransformer
      layers: ModuleList *
        : ParallelTransformerLayerPart1 <- block.attention
          input_layernorm: FusedLayerNorm <- block.attention.norm | NORM
          attention: ParallelSelfAttention <- block.attention.core
            query_key_value: ColumnParallelLinear <- block.attention.qkv
            scale_mask_softmax: FusedScaleMaskSoftmax <- block.attention.core.softmax
            attention_dropout: Dropout <- block.attention.core.dropout | p=0.1, inplace=False
            dense: RowParallelLinear <- block.attention.proj
        : ParallelTransformerLayerPart2 <- block.mlp
          post_attention_layernorm: FusedLayerNorm <- block.mlp.norm | NORM
          mlp: ParallelMLP <- block.mlp.act
            dense_h_to_4h: ColumnParallelLinear <- block.mlp.fc1
            dense_4h_to_h: RowParallelLinear <- block.mlp.fc2
      final_layernorm: FusedLayerNorm <- head.norm | NORM
""".replace("NORM", "torch.Size([{e}]), eps=1e-05, elementwise_affine=True")
"""The modules of a Megatron-LM GPT-2, whose layers are split in two."""


def tree(text: str, repeat: Expr) -> Module:
    """Return the modules of indented lines `name: class * <- op op | description`.

    Args:
        text: of the lines; what stands inside a module marked * is repeated.
        repeat: how often.
    """
    waiting: list[tuple[int, Module]] = []
    for line in reversed(text.strip().splitlines()):  # what is inside comes first
        depth = len(line) - len(line.lstrip())
        inside = [module for at, module in reversed(waiting) if at > depth]
        waiting = [(at, module) for at, module in waiting if at <= depth]
        head, _, extra = line.strip().partition(" | ")
        head, _, ops = head.partition(" <- ")
        name, _, cls = head.partition(": ")
        cls, *mark = cls.split()
        module = Module(name, cls, tuple(ops.split()), extra, tuple(inside))
        waiting.append((depth, replace(module, repeat=repeat) if mark else module))
    return waiting[0][1]


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
