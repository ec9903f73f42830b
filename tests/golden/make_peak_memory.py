"""Make peak_memory.json: bytes of PyTorch's own storages, followed through a step of training.

    python make_peak_memory.py > peak_memory.json      # needs torch and transformers, and no GPU

Models are on the device "meta", where storages have sizes and no memory. What an op makes is
followed from its storage's creation to its end, through forward, backward and the optimizer; the
second of two steps counts. Fused attention is flash's op by name, of which the workspace inside is
not seen. Experts get equally many tokens each: "apart" one after the other, or "grouped" in one
product. Batches live while they are used; modes of mixed precision are Megatron's: 16-bit weights,
sums of gradients and master weights in single precision, a hook that adds.
"""

import copy
import gc
import json
import sys
import weakref

import torch
import transformers
from torch.nn.functional import linear
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers.integrations.moe import ExpertsInterface

ATEN = torch.ops.aten
ITEM = ATEN._local_scalar_dense.default  # noqa: SLF001 - its name
META = {"device": "meta"}
HEADS = {
    "bert": transformers.AutoModelForMaskedLM,
    "vit": transformers.AutoModelForImageClassification,
}


class Followed(TorchDispatchMode):
    """Bytes of live storages, and the most of them by phase of a step."""

    def __init__(self):
        super().__init__()
        self.known, self.live, self.phase, self.most = {}, 0, "", {}

    def add(self, tensor):
        """Follow a tensor's storage to its end."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()  # noqa: SLF001 - the storage's identity
        if key in self.known or not tensor.is_meta:
            return

        def gone(_):
            del self.known[key]
            self.live -= size

        self.known[key] = weakref.ref(storage, gone)
        self.live += size
        self.most[self.phase] = max(self.live, self.most.get(self.phase, 0))

    def unique(self, old, new):
        """Tell whether the engine would add to a gradient in place, which it does under no mode."""
        alike = isinstance(new, torch.Tensor) and (old.shape, old.dtype) == (new.shape, new.dtype)
        storages = torch._C._storage_Use_Count(old.untyped_storage()._cdata)  # noqa: SLF001
        return alike and (old._use_count(), storages) == (4, 2)  # noqa: SLF001 - with the mode's own

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run an op and follow what it makes."""
        if func is ITEM and args[0].is_meta:
            return args[0].dtype == torch.bool  # that nothing is packed or padded
        in_engine = self.phase == "backward" and not torch.is_grad_enabled()
        if func is ATEN.add.Tensor and in_engine and self.unique(*args):
            return args[0].add_(args[1])
        made = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(made):
            if isinstance(leaf, torch.Tensor):
                self.add(leaf)
        return made


def flash(module, *tensors, scaling=None, **options):
    """Call the fused kernel, to which a mask is a flag."""
    asked = options.get("is_causal")
    causal = getattr(module, "is_causal", True) if asked is None else asked
    kernel = ATEN._scaled_dot_product_flash_attention  # noqa: SLF001 - its name
    return kernel(*tensors[:3], 0.0, bool(causal), scale=scaling)[0].transpose(1, 2), None


def grouped(self, hidden, index, weights):
    """Run all experts in one product each."""
    width, k = hidden.size(-1), index.size(-1)
    _, order = torch.sort(index.reshape(-1))
    rows = hidden[order // k].view(self.num_experts, -1, width)
    up = torch.bmm(rows, self.gate_up_proj.transpose(1, 2))
    down = torch.bmm(self._apply_gate(up), self.down_proj.transpose(1, 2)).view(-1, width)
    weighted = down * weights.reshape(-1)[order].unsqueeze(-1)
    back = torch.empty_like(order)
    return weighted[back].view(-1, k, width).sum(dim=1).to(hidden.dtype)


def apart(self, hidden, index, weights):
    """Run one expert after the other, as Transformers' "eager" does."""
    result = torch.zeros_like(hidden)
    rows = index.numel() // self.num_experts
    for one in range(self.num_experts):
        tokens, places = (torch.zeros(rows, dtype=torch.int64, **META) for _ in range(2))
        gate, up = linear(hidden[tokens], self.gate_up_proj[one]).chunk(2, dim=-1)
        done = linear(self.act_fn(gate) * up, self.down_proj[one])
        done = done * weights[tokens, places, None]
        result.index_add_(0, tokens, done.to(result.dtype))
    return result


transformers.AttentionInterface.register("fused", flash)
transformers.AttentionMaskInterface.register("fused", lambda *_, **__: None)
ExpertsInterface.register("grouped", grouped)
ExpertsInterface.register("apart", apart)

LLAMA = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 1024, "intermediate_size": 2816,
    "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 4,
    "max_position_embeddings": 4096, "tie_word_embeddings": False, "attention_dropout": 0.0,
}  # fmt: skip
SMALL = {**LLAMA, "vocab_size": 512}
WIDE = {
    **LLAMA, "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "num_hidden_layers": 4,
}  # fmt: skip
GPT2 = {
    "model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
    "n_positions": 1024, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
}  # fmt: skip
BERT = {
    "model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 30522,
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "max_position_embeddings": 512, "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0, "tie_word_embeddings": True,
}  # fmt: skip
VIT = {
    "model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 768,
    "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
    "image_size": 224, "patch_size": 16, "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0, "num_labels": 1000,
}  # fmt: skip
NEOX = {
    **LLAMA, "model_type": "gpt_neox", "vocab_size": 50304, "intermediate_size": 4096,
    "hidden_dropout": 0.0, "rope_parameters": {"partial_rotary_factor": 0.25},
}  # fmt: skip
NEOX.pop("num_key_value_heads")
OPT = {
    "model_type": "opt", "vocab_size": 50272, "hidden_size": 768, "ffn_dim": 3072, "dropout": 0.0,
    "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 2048,
    "attention_dropout": 0.0, "word_embed_proj_dim": 768, "tie_word_embeddings": True,
}  # fmt: skip
NO_DROP = {"resid_pdrop": 0.0, "embd_pdrop": 0.0}
MODELS = {
    "llama": LLAMA,
    "llama, few words": SMALL,
    "llama, wide": WIDE,
    "llama, tied": {**WIDE, "hidden_size": 2048, "intermediate_size": 8192,
                    "num_hidden_layers": 16, "tie_word_embeddings": True},
    "qwen2": {**LLAMA, "model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896,
              "intermediate_size": 4864, "num_attention_heads": 14, "num_key_value_heads": 2,
              "tie_word_embeddings": True},
    "qwen3": {**SMALL, "model_type": "qwen3", "head_dim": 128},
    "mistral": {**LLAMA, "model_type": "mistral", "sliding_window": None, "hidden_size": 2048,
                "intermediate_size": 7168},
    "gpt2": GPT2,
    "gpt_neox": NEOX,
    "gemma": {**LLAMA, "model_type": "gemma", "vocab_size": 256000, "head_dim": 64,
              "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True},
    "phi3": {**SMALL, **NO_DROP, "model_type": "phi3", "pad_token_id": 0,
             "rope_parameters": {"partial_rotary_factor": 1.0}},
    "olmo2": {**SMALL, "model_type": "olmo2"},
    "cohere": {**SMALL, "model_type": "cohere", "tie_word_embeddings": True},
    "granite": {**SMALL, "model_type": "granite"},
    "starcoder2": {**SMALL, "model_type": "starcoder2", "residual_dropout": 0.0,
                   "embedding_dropout": 0.0, "hidden_act": "gelu_pytorch_tanh"},
    "opt": OPT,
    "bert": BERT,
    "vit": VIT,
    "mixtral": {**LLAMA, "model_type": "mixtral", "sliding_window": None, "num_hidden_layers": 4,
                "num_experts_per_tok": 2, "num_local_experts": 8},
    "qwen3_moe": {**LLAMA, "model_type": "qwen3_moe", "num_experts": 32, "num_experts_per_tok": 4,
                  "moe_intermediate_size": 384, "norm_topk_prob": True, "head_dim": 64,
                  "num_hidden_layers": 4},
    "olmoe": {**SMALL, "model_type": "olmoe", "num_experts": 16, "num_experts_per_tok": 2,
              "norm_topk_prob": False, "num_hidden_layers": 4},
}  # fmt: skip
SHAPES = {"bert": {"b": 8, "l": 512}, "vit": {"b": 32, "l": 197}}
PLAIN = {"attention": "flash", "dtype": "bfloat16", "b": 4, "l": 1024, "M": 1}
FEW = {"b": 1, "l": 128}
MANY = ("llama", "llama, tied", "llama, wide", "gpt2", "bert", "vit")
TRAINED = {
    "mlp": ("mlp.", "post_attention_layernorm"),
    "head": ("lm_head", "model.norm"),
    "all-but:embedding": ("layers", "lm_head", "model.norm"),
}


def cases():
    """Yield every run."""
    for name, config in MODELS.items():
        plain = PLAIN | SHAPES.get(name, {})
        half = {"attention": "eager", "b": plain["b"] // 2}
        changes = [{}, {"M": 2}, half, {"recompute": "full", "M": 2}]
        if name in MANY:
            changes += [{"precision": "bf16-mixed"}, {"dtype": "float32"}, {"recompute": "full"}]
            changes += [FEW, {**FEW, "M": 2, "optimizer": "sgd"}]
            changes += [{"dtype": "float32", "optimizer": "momentum", **half, "M": 2}]
            changes += [{"precision": "bf16-mixed", "recompute": "full", "M": 2}]
        if name == "llama":
            changes += [{"train": one, "M": times} for one in TRAINED for times in (1, 2)]
            changes += [{"b": 1, "l": 4096, "attention": "eager"}]
        if "experts_per_tok" in str(config):
            changes = [{**one, "experts": way} for one in changes for way in ("grouped", "apart")]
        for change in changes:
            yield name, plain | change


def built(config, run):
    """Return a model on no device, of which the run's weights are trained."""
    own = transformers.AutoConfig.for_model(**copy.deepcopy(config))
    attention = "fused" if run["attention"] == "flash" else "eager"
    own._attn_implementation = attention  # noqa: SLF001 - as configurations are asked
    own._experts_implementation = run.get("experts")  # noqa: SLF001
    kind = HEADS.get(config["model_type"], transformers.AutoModelForCausalLM)
    with torch.device("meta"):
        model = kind.from_config(own, dtype=getattr(torch, run["dtype"]))
    model.set_attn_implementation(attention)
    if "recompute" in run:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    for name, parameter in model.named_parameters():
        words = TRAINED.get(run.get("train"), ("",))
        parameter.requires_grad_(any(word in name for word in words))
    return model.train()


def batch(config, run):
    """Return the tokens or images of one microbatch."""
    b, l = run["b"], run["l"]
    ids = torch.zeros(b, l, dtype=torch.int64, **META)
    if config["model_type"] == "vit":
        size, dtype = config["image_size"], getattr(torch, run["dtype"])
        pixels = torch.zeros(b, 3, size, size, dtype=dtype, **META)
        return {"pixel_values": pixels, "labels": ids[:, 0].clone()}
    more = {} if config["model_type"] == "bert" else {"use_cache": False}
    return {"input_ids": ids, "labels": ids.clone(), **more}


def updating(weights, run):
    """Return the optimizer of a run."""
    name = run.get("optimizer", "adam")
    if name == "adam":
        return torch.optim.AdamW(weights, foreach=True)
    return torch.optim.SGD(weights, momentum=0.9 if name == "momentum" else 0.0, foreach=True)


def masters(weights):
    """Return copies in single precision, with gradients to which every microbatch's are added."""
    copies = [weight.detach().float() for weight in weights]
    for weight, master in zip(weights, copies, strict=True):
        master.grad = torch.zeros_like(master)

        def add(weight, master=master):
            master.grad.add_(weight.grad)
            weight.grad = None

        weight.register_post_accumulate_grad_hook(add)
    return copies


def step(model, optimizer, config, run, followed):
    """Run one step."""
    for _ in range(run["M"]):
        followed.phase = "forward"
        one = batch(config, run)
        loss = model(**one).loss
        followed.phase = "backward"
        loss.backward()
        del loss, one
    followed.phase = "step"
    optimizer.step()
    if "precision" not in run:
        optimizer.zero_grad(set_to_none=True)


def measured(config, run):
    """Return the bytes between two steps, and the most in each phase of the second."""
    model, followed = built(config, run), Followed()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    with followed:
        for tensor in (*model.parameters(), *model.buffers()):
            followed.add(tensor)
        optimizer = updating(masters(weights) if "precision" in run else weights, run)
        step(model, optimizer, config, run, followed)
        gc.collect()
        between = followed.live
        followed.most.clear()
        step(model, optimizer, config, run, followed)
    return {"between": between, **followed.most}


def main():
    """Write all runs; those named alone where names are given."""
    runs = []
    for name, run in cases():
        if not sys.argv[1:] or name in sys.argv[1:]:
            runs.append({"model": name, **run, **measured(MODELS[name], run)})
            sys.stderr.write(f"{runs[-1]}\n")
    versions = {m.__name__: m.__version__ for m in (torch, transformers)}
    made = {"versions": versions, "models": MODELS, "runs": runs}
    sys.stdout.write(json.dumps(made, separators=(",", ":")))


if __name__ == "__main__":
    main()
