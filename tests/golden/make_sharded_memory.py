"""Make sharded_memory.json: bytes that one rank of FSDP2 allocates in a step of training.

    python make_sharded_memory.py > sharded_memory.json   # needs torch and transformers, and no GPU

Ranks are processes on CPU, and PyTorch's profiler follows what they allocate, from states between
steps on. What the collectives of gloo copy for themselves is left out: it is none of FSDP's.
Units of "root" are every block and the model, those of "apart" the embedding, every block, and the
last norm with the head, which stays whole between its passes, as in torchtitan. Where a run says
so, no unit is resharded after forward. What ranks gather and reduce is of all messages of a step.
"""

import gc
import json
import math
import os
import sys
from collections import defaultdict

import torch
import torch.distributed as dist
import transformers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.profiler import ProfilerActivity, profile, record_function

LLAMA = {
    "model_type": "llama", "vocab_size": 2000, "hidden_size": 512, "intermediate_size": 1408,
    "num_hidden_layers": 5, "num_attention_heads": 8, "num_key_value_heads": 4,
    "max_position_embeddings": 4096, "tie_word_embeddings": False, "attention_dropout": 0.0,
}  # fmt: skip
MODELS = {
    "llama": LLAMA,
    "llama, two blocks": {**LLAMA, "num_hidden_layers": 2},
    "llama, one block": {**LLAMA, "num_hidden_layers": 1},
    "llama, many words": {**LLAMA, "vocab_size": 32000, "num_hidden_layers": 3},
    "llama, tied": {**LLAMA, "vocab_size": 8000, "tie_word_embeddings": True},
    "gpt2": {
        "model_type": "gpt2", "vocab_size": 5000, "n_embd": 384, "n_layer": 4, "n_head": 6,
        "n_positions": 512, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    },
    "qwen3": {**LLAMA, "model_type": "qwen3", "head_dim": 64, "vocab_size": 12000},
    "albert": {
        "model_type": "albert", "vocab_size": 2000, "embedding_size": 64, "hidden_size": 256,
        "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 1024,
        "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "architectures": ["AlbertForMaskedLM"],
    },
}  # fmt: skip
PLAIN = {"ranks": 2, "ends": "apart", "dtype": "bfloat16", "b": 1, "l": 64, "M": 1}
CHANGES = ({}, {"M": 2}, {"ends": "root"}, {"dtype": "float32"}, {"l": 384}, {"ranks": 4, "M": 2})
MORE = (
    {"ends": "root", "M": 2},
    {"ends": "root", "dtype": "float32", "ranks": 4},
    {"recompute": "full", "l": 384},
    {"recompute": "full", "l": 384, "M": 2, "dtype": "float32"},
)
WHOLE = ({}, {"M": 2}, {"ends": "root"}, {"dtype": "float32", "l": 384}, {"ranks": 4, "M": 2})
MOVED = {"c10d::_allgather_base_": "gathered", "c10d::_reduce_scatter_base_": "reduced"}
BYTES = {"c10::BFloat16": 2, "float": 4}
BLOCKS = {"gpt2": "transformer.h", "albert": "albert.encoder.albert_layer_groups"}
INSIDE = ("c10d::", "gloo:")


def cases():
    """Yield every run; tied weights are the root's, for one unit must hold both."""
    for name, config in MODELS.items():
        tied = config.get("tie_word_embeddings", True)
        more = () if name == "albert" else WHOLE[:2]
        for change in CHANGES + (MORE if name in {"llama", "llama, tied"} else ()):
            run = PLAIN | change
            if name == "albert" and run["ranks"] > config["type_vocab_size"]:
                continue  # FSDP2 pads what has fewer rows than there are ranks
            if not (tied and run["ends"] == "apart"):
                yield name, run
            elif "ends" not in change:
                yield name, run | {"ends": "root"}
        for change in WHOLE + MORE if name in {"llama", "llama, tied", "gpt2"} else more:
            own = {"ends": "root"} if tied else {}
            yield name, PLAIN | {"whole": True} | change | own


def built(config, run):
    """Return a sharded model: weights in single precision are cast when they are gathered."""
    own = transformers.AutoConfig.for_model(**config)
    own._attn_implementation = "eager"  # noqa: SLF001 - as configurations are asked
    kind = "MaskedLM" if "architectures" in config else "CausalLM"
    make = getattr(transformers, f"AutoModelFor{kind}").from_config
    model = make(own, dtype=getattr(torch, run["dtype"]))
    if "recompute" in run:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    more = {"mp_policy": half} if run["dtype"] == "float32" else {}
    more |= {"reshard_after_forward": False} if "whole" in run else {}
    options = {"mesh": init_device_mesh("cpu", (run["ranks"],)), **more}
    for block in model.get_submodule(BLOCKS.get(config["model_type"], "model.layers")):
        fully_shard(block, **options)
    if run["ends"] == "apart":
        fully_shard(model.model.embed_tokens, **options)
        last = options | {"reshard_after_forward": False}
        fully_shard([model.model.norm, model.lm_head], **last)
    fully_shard(model, **options)
    return model.train()


def step(model, update, run):
    """Run a step."""
    for _ in range(run["M"]):
        ids = torch.zeros(run["b"], run["l"], dtype=torch.int64)
        with record_function("#forward"):
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        with record_function("#backward"):
            loss.backward()
        del loss
    with record_function("#step"):
        update.step()
    update.zero_grad()


def allocations(followed):
    """Yield times, addresses and sizes of what is allocated and freed, and whether by gloo."""
    todo = [(event, False) for event in followed.experimental_event_tree()]
    while todo:
        event, inside = todo.pop()
        if event.typed[0].name == "Allocation":
            fields = event.extra_fields
            yield event.start_time_ns, fields.ptr, fields.alloc_size, inside
        inside = inside or event.name.startswith(INSIDE)
        todo += [(child, inside) for child in event.children]


def most(followed):
    """Return the most that is there in every phase, beyond what was there before."""
    events = followed.events()
    spans = [(e.start_ns(), e.end_ns(), e.name()) for e in events]
    gloo = [(start, end) for start, end, name in spans if name.startswith(INSIDE)]
    phases = [span for span in spans if span[2].startswith("#")]
    live, skipped, found = 0, {}, defaultdict(int)
    for time, address, size, inside in sorted(allocations(followed)):
        if size > 0:
            skipped[address] = inside or any(start <= time <= end for start, end in gloo)
        if skipped.get(address):
            continue
        live += size
        for start, end, name in phases:
            if start <= time <= end:
                found[name[1:]] = max(found[name[1:]], live)
    return found


def ran(rank, ranks, answers):
    """Run one rank of every run of so many; the first answers with the less of two times.

    Gloo's threads may free late.
    """
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    for name, run in cases():
        if run["ranks"] == ranks:
            listed = [measured(MODELS[name], run) for _ in range(2)]
            least = {key: min(one[key] for one in listed) for key in listed[0]}
            if rank == 0:
                answers.put({"model": name, **run, **least})
    dist.destroy_process_group()


def measured(config, run):
    """Return bytes between steps, and the most in each phase of one."""
    model = built(config, run)
    update = torch.optim.AdamW(model.parameters(), foreach=True)
    step(model, update, run)
    moments = [t for state in update.state.values() for t in state.values() if t.dim()]
    held = [t.to_local() for t in (*model.parameters(), *moments)]
    between = sum(t.numel() * t.element_size() for t in held)
    gc.collect()
    dist.barrier()
    options = {"activities": [ProfilerActivity.CPU], "record_shapes": True}
    with profile(**options, profile_memory=True) as trace:
        step(model, update, run)
    dist.barrier()
    results = trace.profiler.kineto_results
    found = {phase: between + size for phase, size in most(results).items()}
    return {"between": between, **found, **moved(results.events())}


def moved(events):
    """Return the bytes of all messages of a kind: the whole that is gathered or reduced."""
    sizes = dict.fromkeys(MOVED.values(), 0)
    for event in events:
        if event.name() in MOVED:
            wide = max(zip(map(math.prod, event.shapes()), event.dtypes(), strict=False))
            sizes[MOVED[event.name()]] += wide[0] * BYTES[wide[1]]
    return sizes


def main():
    """Print every run."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
    runs = []
    for ranks in sorted({run["ranks"] for _, run in cases()}):
        answers = torch.multiprocessing.get_context("spawn").SimpleQueue()
        torch.multiprocessing.spawn(ran, (ranks, answers), ranks)
        while not answers.empty():
            runs.append(answers.get())
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    json.dump({**versions, "models": MODELS, "runs": runs}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
