"""Make torch_checkpoints.json: what PyTorch computes and keeps under torch.utils.checkpoint.

    python make_checkpoints.py > torch_checkpoints.json      # needs torch and transformers

FLOP are those of all products of a forward and a backward pass; saved bytes are the storages that
autograd packs in the forward pass, each once, without those of parameters and buffers. A checkpoint
of whole blocks keeps tables of angles besides, as arguments that no hook sees.
"""

import contextlib
import copy
import json
import math
import sys

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from transformers.models.llama import modeling_llama
from transformers.models.mixtral import modeling_mixtral

B, L = 3, 20
LLAMA = {
    "model_type": "llama", "vocab_size": 101, "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "max_position_embeddings": 64, "tie_word_embeddings": False,
}  # fmt: skip
MIXTRAL = {
    **LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2,
    "sliding_window": None,
}  # fmt: skip
MODULES = {"llama": modeling_llama, "mixtral": modeling_mixtral}


class Products(TorchDispatchMode):
    """Counts the FLOP of products of matrices, those of a recomputed pass included."""

    flop = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in {"mm", "bmm", "addmm", "baddbmm"}:
            left = args[0] if name in {"mm", "bmm"} else args[1]
            self.flop += 2 * math.prod(made.shape) * left.shape[-1]
        return made


class Group(torch.nn.Module):
    """Blocks in a row of which the first one's input is kept."""

    def __init__(self, blocks, *, again):
        super().__init__()
        self.blocks, self.again = torch.nn.ModuleList(blocks), again

    def forward(self, x, **other):
        def run(x):
            for block in self.blocks:
                x = block(x, **other)
            return x

        return checkpoint(run, x, use_reentrant=self.again)


def grouped(model, size, *, again=True):
    """Run blocks again in groups of a size; all of a block, or what backward needs."""
    blocks = list(model.model.layers)
    groups = [Group(blocks[i : i + size], again=again) for i in range(0, len(blocks), size)]
    model.model.layers = torch.nn.ModuleList(groups)
    model.model.config.num_hidden_layers = len(groups)


def perceptrons(model):
    """Run perceptrons again."""
    for block in model.model.layers:
        forward = block.mlp.forward
        block.mlp.forward = lambda x, forward=forward: checkpoint(forward, x, use_reentrant=True)


@contextlib.contextmanager
def cores(module):
    """Run attention cores again, copies of keys and values for every head with them."""
    plain = module.eager_attention_forward

    def run(layer, q, k, v, mask, **other):
        def core(q, k, v):
            return plain(layer, q, k, v, mask, **other)[0]

        return checkpoint(core, q, k, v, use_reentrant=True), None

    module.eager_attention_forward = run
    yield
    module.eager_attention_forward = plain


def measured(config, policy):
    """Run a model once under a policy."""
    torch.manual_seed(0)
    own = transformers.AutoConfig.for_model(**copy.deepcopy(config))
    own._attn_implementation = own._experts_implementation = "eager"  # noqa: SLF001 - as configurations are asked
    model = transformers.AutoModelForCausalLM.from_config(own).train()
    name, _, size = policy.partition("/")
    if name in {"full", "needed"}:
        grouped(model, int(size or 1), again=name == "full")
    elif name in {"mlp", "moe"}:
        perceptrons(model)
    ids = torch.randint(3, 98, (B, L))
    weights = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    kept, forward = {}, True

    def pack(tensor):
        storage = tensor.untyped_storage()
        if forward and storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    selective = name == "selective"
    module = MODULES[config["model_type"]]
    with (
        cores(module) if selective else contextlib.nullcontext(),
        Products() as counter,
        torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t),
    ):
        loss = model(input_ids=ids, labels=ids.clone(), use_cache=False).loss
        forward = False
        loss.backward()
    return {"flop": counter.flop, "saved": sum(size for size, _ in kept.values())}


def main():
    """Write every policy of two families."""
    versions = {m.__name__: m.__version__ for m in (torch, transformers)}
    policies = ("none", "full", "full/2", "full/3", "needed", "selective")
    cases = [(LLAMA, (*policies, "mlp")), (MIXTRAL, (*policies, "moe"))]
    entries = [
        {"config": config, "policy": policy, **measured(config, policy)}
        for config, names in cases
        for policy in names
    ]
    made = {"versions": versions, "b": B, "l": L, "entries": entries}
    sys.stdout.write(json.dumps(made, separators=(",", ":")))


if __name__ == "__main__":
    main()
