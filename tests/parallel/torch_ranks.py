"""One rank of a run of DTensor; the first prints the collectives that were issued, as JSON.

Started once per rank with RANK and WORLD_SIZE, and with the file by which the ranks meet as its
argument; gloo on CPU.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.functional import gelu

E, H, L, B = 16, 4, 8, 2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(E, E, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (
            p(x).unflatten(-1, (-1, E // H)).transpose(1, 2) for p in (self.q, self.k, self.v)
        )
        weights = (q @ k.transpose(-1, -2)).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(-2))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(E, 4 * E, bias=False), nn.Linear(4 * E, E, bias=False)

    def forward(self, x):
        return self.fc2(gelu(self.fc1(x)))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(E, elementwise_affine=False) for _ in range(2))
        self.attention, self.perceptron = Attention(), Perceptron()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.perceptron(self.norm2(x))


COLUMNS = ("attention.q", "attention.k", "attention.v", "perceptron.fc1")
ROWS = ("attention.o", "perceptron.fc2")


def plan(sp):
    """Inputs of a layer are made whole once, its result is summed or scattered once."""
    outside = Shard(1) if sp else Replicate()
    enter = PrepareModuleInput(input_layouts=(outside,), desired_input_layouts=(Replicate(),))
    return {
        **({"norm1": SequenceParallel(), "norm2": SequenceParallel()} if sp else {}),
        "attention": enter,
        "perceptron": enter,
        **{name: ColwiseParallel() for name in COLUMNS},
        **{name: RowwiseParallel(output_layouts=outside) for name in ROWS},
    }


def counts(mode):
    found = {}
    for op, number in mode.get_comm_counts().items():
        found[str(op)] = found.get(str(op), 0) + number
    return found


def run(mesh, sp):
    torch.manual_seed(0)
    model = parallelize_module(Transformer(), mesh, plan(sp))
    x = torch.randn(B, L // mesh.size() if sp else L, E, requires_grad=True)
    forward, backward = CommDebugMode(), CommDebugMode()
    with forward:
        y = model(x)
    with backward:
        y.sum().backward()
    return {"forward": counts(forward), "backward": counts(backward)}


def sharded(mesh):
    """ZeRO 3: every product keeps shards of its weight."""
    torch.manual_seed(0)
    model = Transformer()
    for module in list(model.modules()):
        if isinstance(module, nn.Linear):
            fully_shard(module, mesh=mesh, reshard_after_forward=True)
    x = torch.randn(B, L, E, requires_grad=True)
    forward, backward = CommDebugMode(), CommDebugMode()
    with forward:
        y = model(x)
    with backward:
        y.sum().backward()
    return {"forward": counts(forward), "backward": counts(backward)}


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    meeting = f"file://{sys.argv[1]}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    found = {name: run(mesh, sp) for name, sp in (("tp", False), ("tp,sp", True))}
    found["dp,zero=3"] = sharded(mesh)
    if rank == 0:
        sys.stdout.write(json.dumps(found))
        sys.stdout.flush()
    dist.barrier()
    # Without the destructors: PyTorch's threads that still run can abort an interpreter that ends
    # ("terminate called without an active exception").
    os._exit(0)


if __name__ == "__main__":
    main()
