"""Make pipelined_memory.json: what one rank of FSDP2 in a pipeline allocates, gathers and reduces.

    python make_pipelined_memory.py > pipelined_memory.json   # needs torch and transformers

As make_sharded_memory.py, of which it takes the models and the bookkeeping: two stages of PyTorch's
own 1F1B, each on two ranks. The first and the last stage answer. Their outputs are not returned.
"""

import gc
import json
import os
import sys

import torch
import torch.distributed as dist
import transformers
from make_sharded_memory import LLAMA, PLAIN, most, moved
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile, record_function

STAGES = 2
MODELS = {
    "llama": {**LLAMA, "num_hidden_layers": 4},
    "llama, many words": {**LLAMA, "vocab_size": 12000, "num_hidden_layers": 6},
}
CHANGES = (
    {}, {"M": 3}, {"M": 6}, {"l": 384}, {"ends": "root"},
    {"dtype": "float32"}, {"dtype": "float32", "l": 384, "M": 5},
)  # fmt: skip


def cases():
    """Yield every run.

    On CPU adding to a wider type makes a copy, which many words of few tokens would show.
    """
    for name in MODELS:
        for change in CHANGES:
            for whole in ({"whole": True}, {}):
                if name == "llama" or change != {"dtype": "float32"}:
                    yield name, PLAIN | {"M": 4} | change | whole


class Stage(torch.nn.Module):
    """The blocks of a stage, with the embedding before the first and the head behind the last."""

    def __init__(self, config, stage, dtype):
        """Take a stage's part of a whole model."""
        super().__init__()
        whole = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
        each = config.num_hidden_layers // STAGES
        self.embed = whole.model.embed_tokens if stage == 0 else None
        self.blocks = whole.model.layers[stage * each : (stage + 1) * each]
        self.head = torch.nn.Sequential() if stage < STAGES - 1 else self._head(whole)
        self.rotary = whole.model.rotary_emb

    @staticmethod
    def _head(whole):
        return torch.nn.Sequential(whole.model.norm, whole.lm_head)

    def forward(self, x):
        """Return the features, or the logits."""
        x = x if self.embed is None else self.embed(x)
        places = self.rotary(x, torch.arange(x.shape[1])[None])
        for block in self.blocks:
            x = block(x, position_embeddings=places, attention_mask=None)
        return self.head(x)


def sharded(config, run, mesh, stage):
    """Return a stage whose units are sharded, as in make_sharded_memory.py."""
    model = Stage(config, stage, getattr(torch, run["dtype"]))
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    options = {"mesh": mesh, **({"mp_policy": half} if run["dtype"] == "float32" else {})}
    options |= {"reshard_after_forward": False} if "whole" in run else {}
    for block in model.blocks:
        fully_shard(block, **options)
    if run["ends"] == "apart":
        if model.embed is not None:
            fully_shard(model.embed, **options)
        if len(model.head):
            fully_shard(model.head, **(options | {"reshard_after_forward": False}))
    fully_shard(model, **options)
    return model.train()


def loss_of(logits, labels):
    """Return the loss of a microbatch."""
    return cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def measured(config, run):
    """Return bytes between steps, the most in the passes and in the optimizer, and what moved."""
    own = transformers.AutoConfig.for_model(**config)
    own._attn_implementation = "eager"  # noqa: SLF001 - as configurations are asked
    mesh = init_device_mesh("cpu", (STAGES, run["ranks"]), mesh_dim_names=("pp", "dp"))
    place = mesh["pp"].get_local_rank()
    model = sharded(own, run, mesh["dp"], place)
    update = torch.optim.AdamW(model.parameters(), foreach=True)
    group = mesh["pp"].get_group()
    stage = PipelineStage(model, place, STAGES, torch.device("cpu"), group=group)
    plan = Schedule1F1B(stage, run["M"], loss_fn=loss_of)
    ids = torch.zeros(run["M"] * run["b"], run["l"], dtype=torch.int64)

    def step():
        given = ((ids,), {}) if place == 0 else ((), {"target": ids, "losses": []})
        with record_function("#passes"):
            plan.step(*given[0], **given[1], return_outputs=False)
        with record_function("#step"):
            update.step()
        update.zero_grad()

    step()
    moments = [t for state in update.state.values() for t in state.values() if t.dim()]
    held = [t.to_local() for t in (*model.parameters(), *moments)]
    between = sum(t.numel() * t.element_size() for t in held)
    answers = []
    for _ in range(3):
        gc.collect()
        dist.barrier()
        activities = [ProfilerActivity.CPU]
        with profile(activities=activities, record_shapes=True, profile_memory=True) as trace:
            step()
        dist.barrier()
        results = trace.profiler.kineto_results
        found = {phase: between + size for phase, size in most(results).items()}
        answers.append({"between": between, **found, **moved(results.events())})
    return {key: min(one[key] for one in answers) for key in answers[0]}


def ran(rank, ranks, answers):
    """Run one rank of every run; the first tells what the first and the last one measured."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    for name, run in cases():
        every = [None] * ranks
        dist.all_gather_object(every, measured(MODELS[name], run))
        if rank == 0:
            answers.put({"model": name, **run, "first": every[0], "last": every[-1]})
    dist.destroy_process_group()


def main():
    """Print every run."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29519")
    answers = torch.multiprocessing.get_context("spawn").SimpleQueue()
    ranks = STAGES * PLAIN["ranks"]
    torch.multiprocessing.spawn(ran, (ranks, answers), ranks)
    runs = []
    while not answers.empty():
        runs.append(answers.get())
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    json.dump({**versions, "models": MODELS, "runs": runs}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
