"""What settings of Megatron-LM and NeMo mean together: their defaults, and what several decide."""

import ast
from collections.abc import Callable
from typing import Any

from symbolic_cost.models.decoders.kinds import DENSE, EXPERTS
from symbolic_cost.models.fields import is_size

Values = dict[str, Any]
Refuse = Callable[[str, str], None]
"""Notes a problem: the target whose entry it is about, and what is wrong."""

OWN_LOSS = "megatron-core-own-loss"
"""The stack of Megatron-LM where nothing is said of the loss."""

_MULTIPLE = 128
_LONGEST = 1000  # letters of a list of layers


def megatron(values: Values, refuse: Refuse) -> None:
    """Complete a run of Megatron-LM, with the defaults of its arguments.

    Source: github.com/NVIDIA/Megatron-LM, megatron/training/arguments.py.
    """
    said = settings(values)
    if not said.get("group_query", False):
        values.pop("config.num_key_value_heads", None)
    elif "config.num_attention_heads" in values:
        values.setdefault("config.num_key_value_heads", 1)
    if "shared_heads" in said:  # of Megatron-DeepSpeed
        values["config.num_key_value_heads"] = said["shared_heads"]
    if said.get("rotary"):
        values["config.position_embedding"] = "rope"
    if values.get("config.latent") is True:
        values.pop("config.head_dim", None)  # latent attention has widths of its own
    _widths(values)
    _experts(values, said, refuse)
    context_parallel(values, said.get("context", "p2p"), refuse)
    _stages(values, said, refuse)
    if "checkpointed" in said:  # of 2021 and 2022
        values["run.recompute"], said["again_method"] = "full", said["checkpointed"]
    recomputed(values, said, refuse)
    if "run.global_batch" not in values:
        values["run.microbatches"] = 1  # Megatron's default: a microbatch of every replica
    # What FSDP keeps in shards.
    levels = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
    if said.get("fsdp") is True:
        values["degrees.zero"] = levels.get(str(said.get("sharding", "no_shard")), 0)
    elif said.get("fsdp2") is True:
        values["degrees.zero"] = 3
    _megatron_bytes(values, said, refuse)
    values["run.overlap"] = hidden(values, said)
    in_place = said.get("fused_loss") is True and said.get("loss") == "te"
    values["run.stack"] = "megatron-core" if in_place else OWN_LOSS


def hidden(values: Values, said: Values) -> str:
    """Return what hides less, or more, than in the tuned runs that a stack stands for.

    Linear layers alone hide what they reduce and gather in backward, beside their other product;
    gathers of weights hide only where reductions do. FSDP gathers ahead whatever is said, and
    stages hide nothing without chunks. What nothing is said of here, the stack says.

    Source: github.com/NVIDIA/Megatron-LM, training/arguments.py and core/distributed.
    """
    reduces, gathers = said.get("reduces_beside"), said.get("gathers_beside")
    sharded = values.get("degrees.zero", 0) != 0
    answers = {}
    if True not in (said.get("fsdp"), said.get("fsdp2")):
        alone = "full" if gathers or not sharded else "gradients"
        answers["dp"] = alone if reduces else "none"
    if not said.get("tensors_beside"):
        answers["tp"] = "gradients"
    if said.get("waits_for_stages"):
        answers["pp"] = "none"
    if said.get("experts_beside") or reduces:  # gradients are reduced over these ranks as well
        answers["ep"] = "full" if said.get("experts_beside") else "gradients"
    return ",".join(f"{mesh}={answer}" for mesh, answer in answers.items())


def nemo(values: Values, refuse: Refuse) -> None:
    """Complete a run of NeMo's megatron_gpt_config: Megatron by other names."""
    said = settings(values)
    values["run.stack"] = "nemo"
    values["run.overlap"] = _nemo_hidden(said)
    _widths(values)
    context_parallel(values, "p2p", refuse)
    recomputed(values, said, refuse)
    if said.get("optimizer") == "distributed_fused_adam":
        values["degrees.zero"] = 1
    elif said.get("optimizer") not in (None, "adam", "adamw", "fused_adam"):
        refuse("said.optimizer", "adam, adamw, fused_adam and distributed_fused_adam are read")
    if said.get("fp8") or said.get("fp8_hybrid"):
        values["run.policy"] = "fp8-hybrid"
    elif said.get("half") is False and values.get("run.precision") in ("bf16", "fp16"):
        values["run.policy"] = "bf16-fsdp"  # weights in single precision, cast for computing
    padded(values)


def _nemo_hidden(said: Values) -> str:
    """Return what is hidden, by NeMo's defaults; distributed_fused_adam reduces ahead, unless told.

    Source: github.com/NVIDIA/apex, contrib/optimizers/distributed_fused_adam.py, and
    github.com/NVIDIA/NeMo, examples/nlp/language_modeling/conf/megatron_gpt_config.yaml.
    """
    answers = [] if said.get("tensors_beside") else ["tp=gradients"]
    answers += [] if said.get("stages_beside") else ["pp=none"]
    if said.get("optimizer") == "distributed_fused_adam":
        reduces = "gradients" if said.get("reduces_beside", True) else "none"
        both = said.get("gathers_beside") and reduces == "gradients"
        answers.append("dp=full" if both else f"dp={reduces}")
    return ",".join(answers)


def settings(values: Values) -> Values:
    """Return what a format collected to be decided here."""
    prefix = "said."
    return {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}


def _widths(values: Values) -> None:
    """Take the width of a gated perceptron for a missing one: 8/3 of the hidden, in 64s."""
    hidden, gated = values.get("config.hidden_size"), values.get("config.gated")
    if gated and isinstance(hidden, int):
        values.setdefault("config.intermediate_size", hidden * 8 // 3 // 64 * 64)


def padded(values: Values) -> None:
    """Take the sequence for missing positions, and pad the vocabulary as Megatron does."""
    _take_positions(values)
    pad(values, _MULTIPLE)


def _take_positions(values: Values) -> None:
    if is_size(values.get("run.sequence")):
        values.setdefault("config.max_position_embeddings", values["run.sequence"])


def pad(values: Values, usual: int) -> None:
    """Pad the vocabulary to a multiple of what is said and of the ranks of tp."""
    multiple = values.get("run.vocab_multiple", usual) * values.get("degrees.tp", 1)
    words = values.get("config.vocab_size")
    if isinstance(words, int) and is_size(multiple):
        values["config.vocab_size"] = -(-words // multiple) * multiple


def context_parallel(values: Values, kind: object, refuse: Refuse) -> None:
    """Name context parallelism by how it communicates: keys go round unless said otherwise."""
    named = {"p2p": "ring", "a2a": "ulysses", "all_gather": "cp", "allgather": "cp"}
    degree = values.pop("degrees.cp", 1)
    if degree == 1:
        return
    if kind not in named:
        refuse("said.context", f"{', '.join(named)} are read, one for all layers")
        return
    values[f"degrees.{named[str(kind)]}"] = degree


def _experts(values: Values, said: Values, refuse: Refuse) -> None:
    """Say which layers are mixtures, and how their weights lie on tensor-parallel ranks."""
    if "config.num_experts" not in values:
        return
    values.setdefault("config.num_experts_per_tok", 2)
    if is_size(values.get("config.hidden_size")):
        values.setdefault("config.intermediate_size", 4 * values["config.hidden_size"])
    _capacity(said, refuse)
    layers, every = values.get("config.num_hidden_layers"), said.get("frequency", 1)
    if isinstance(layers, int) and (every is True or every != 1):
        listed = _frequency(every, layers)
        if listed is None or len(listed) != layers:
            refuse("said.frequency", f"a number, or a list as ([0]*3+[1]*{layers - 3}), is read")
        else:
            values["config.mlp_layer_types"] = listed
    tp, ep = values.get("degrees.tp", 1), values.get("degrees.ep", 1)
    inner = said.get("expert_tensor", tp)
    if inner == tp or not is_size(tp):
        return
    if inner == 1 and ep % tp == 0:
        values["switches.spread"], values["degrees.ep"] = True, ep // tp
    else:
        refuse(
            "said.expert_tensor",
            f"{tp}, as all weights, is read, or 1 with expert parallelism of a multiple of {tp}",
        )


def _capacity(said: Values, refuse: Refuse) -> None:
    """Accept experts of bounded capacity where an even share of the tokens is what they take.

    Each takes up to factor x tokens x chosen / experts, of which an even share is one factor;
    experts that are filled up always take all of it.
    """
    try:
        factor = float(str(said.get("capacity", 1)))
    except ValueError:
        factor = 0
    if not factor >= 1 or (said.get("filled") is True and factor > 1):
        refuse("said.capacity", "1 is read, or more where experts are not filled up to it")


def _frequency(every: object, layers: int) -> list[str] | None:
    """Return what each layer is, of a number n (layers 0, n, 2n are mixtures) or a list.

    >>> _frequency("([0]*1+[1]*2)*2", 6)
    ['dense', 'sparse', 'sparse', 'dense', 'sparse', 'sparse']
    """
    if is_size(every):
        return [DENSE if layer % int(str(every)) else EXPERTS for layer in range(layers)]
    text = str(every).strip("\"'")
    try:
        tree = ast.parse(text if len(text) <= _LONGEST else "", mode="eval")
        listed = _list(tree.body, layers)
    except (SyntaxError, ValueError):
        return None
    return [EXPERTS if one else DENSE for one in listed]


def _list(node: ast.expr, layers: int) -> list[int]:
    """Return a list of 0 and 1 that is written with + and *, and not many more than layers."""
    match node:
        case ast.List(elts):
            listed = [one.value for one in elts if isinstance(one, ast.Constant)]
            if len(listed) == len(elts) and all(one in (0, 1) for one in listed):
                return [int(str(one)) for one in listed]
        case ast.BinOp(left, ast.Add(), right):
            return (_list(left, layers) + _list(right, layers))[: layers + 1]
        case ast.BinOp(left, ast.Mult(), ast.Constant(int(times))):
            return (_list(left, layers) * min(times, layers + 1))[: layers + 1]
    raise ValueError(ast.dump(node))


def _stages(values: Values, said: Values, refuse: Refuse) -> None:
    """Say how many blocks the ends of a pipeline hold less than the other stages."""
    if is_size(said.get("chunks")) and said["chunks"] > 1:
        values["run.chunks"] = said["chunks"]
    layers, stages = values.get("config.num_hidden_layers"), values.get("degrees.pp", 1)
    ends = [said.get("first_layers"), said.get("last_layers")]
    fewer = [int(said.get(name) is True) for name in ("embedding_counts", "loss_counts")]
    if not isinstance(layers, int) or not isinstance(stages, int):
        return
    sizes = [end for end in ends if isinstance(end, int)]
    if sizes and stages > len(sizes):
        full, left = divmod(layers - sum(sizes), stages - len(sizes))
        fewer = [full - end if isinstance(end, int) else 0 for end in ends]
        if left or min(fewer) < 0:
            refuse(
                "said.first_layers" if is_size(ends[0]) else "said.last_layers",
                "stages between the ends that hold as many layers each, and no fewer, are read",
            )
            return
    if any(fewer):
        values["run.layout"] = f"ends={fewer[0]}/{fewer[1]}"


def recomputed(values: Values, said: Values, refuse: Refuse) -> None:
    """Say what backward runs again: modules, every n-th block, or every block."""
    if said.get("all_again") is True:
        values["run.recompute"] = "full"
    what, number = values.get("run.recompute"), said.get("again_layers", 1)
    if what == "selective" and said.get("again_modules"):
        words = str(said["again_modules"]).replace(",", " ").split()
        values["run.recompute"] = "selective" if words == ["core_attn"] else "+".join(words)
    if what != "full":
        return
    if said.get("again_method") == "block":
        layers, stages = values.get("config.num_hidden_layers"), values.get("degrees.pp", 1)
        if number in (0, "0"):
            values["run.recompute"] = "none"
        elif not (is_size(layers) and is_size(number) and number * stages >= layers):
            refuse("said.again_method", "uniform is read: block recomputes some of the layers")
    elif number not in (None, 1, "1"):
        values["run.recompute"] = f"full/{number}"


_EIGHT_BITS = {
    (False, False): "fp8-hybrid",
    (True, False): "fp8-gradients",
    (False, True): "fp8-weights",
    (True, True): "fp8-params",
}
"""Policies by whether gradients are in 16 bits, and weights in 8 alone."""


def _megatron_bytes(values: Values, said: Values, refuse: Refuse) -> None:
    """Name precision, optimizer and kernel of attention as they are known here."""
    if values.get("run.bf16") and said.get("bf16_gradients") is True:
        values["run.policy"] = "bf16-gradients"
    if values.get("run.fp16") and said.get("fp32_gradients") is True:
        values["run.policy"] = "bf16-mixed"
    if said.get("fp8"):
        recipe = said.get("fp8_recipe", "delayed")
        narrow = (bool(said.get("bf16_gradients")), bool(said.get("fp8_weights")))
        values["run.policy"] = "mxfp8" if recipe == "mxfp8" else _EIGHT_BITS[narrow]
    if said.get("fp4"):
        values["run.policy"] = "nvfp4"
    optimizers = {"adam": "adam", "sgd": "momentum", "muon": "muon", "dist_muon": "muon"}
    named = said.get("optimizer", "adam")
    if named not in optimizers:
        refuse("said.optimizer", f"{', '.join(optimizers)} are read")
    values["run.optimizer"] = optimizers.get(named, "adam")
    if said.get("hosted") is True:
        values["run.offload"] = "master_weight,optimizer"
    backend = str(said.get("backend", ""))
    if backend in ("unfused", "local") or (
        said.get("implementation") == "local" and not said.get("flash") and not backend
    ):
        values["run.attention"] = "eager"
    if not is_size(said.get("padded")):
        padded(values)
        return
    words = values.get("config.vocab_size", said["padded"])
    if not is_size(words) or said["padded"] < words:
        refuse("said.padded", f"the vocabulary of {words} with its padding is read")
    values["config.vocab_size"] = said["padded"]
    _take_positions(values)
