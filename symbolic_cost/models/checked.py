"""Families whose saved activations equal, byte for byte, what PyTorch keeps for backward."""

from collections.abc import Mapping

from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.scan import Recurrent, Scan

UNCHECKED = "saved bytes not checked against PyTorch"
SCANNED = f"{UNCHECKED}: scans keep every state and decay, where fused kernels keep fewer"
"""Scans are declared step by step, as Transformers' own loop runs, which keeps copies besides.

A Mamba of two layers keeps 2,312,900 bytes there for 1,780,420 here; the kernels of mamba-ssm keep
what the scan takes and every 2048th state, and make the others again.
"""

_BOTH = frozenset({"eager", "sdpa"})
_EAGER = frozenset({"eager"})

CHECKED: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("gpt2", "bert", "vit", "resnet"), _BOTH),
    **dict.fromkeys(("llama", "qwen2", "qwen3", "mistral", "phi3", "granite"), _BOTH),
    **dict.fromkeys(("gemma", "olmo", "olmo2", "cohere", "stablelm", "phi"), _BOTH),
    **dict.fromkeys(("starcoder2", "gpt_neox", "opt", "gemma3_text"), _BOTH),
    **dict.fromkeys(("mixtral", "olmoe", "qwen3_moe", "gpt_bigcode", "lfm2"), _BOTH),
    **dict.fromkeys(("gemma2", "gemma3", "bloom"), _EAGER),
}
"""Attention implementations by model_type; PyTorch 2.13, Transformers 5.23.

Of two sequences and more: PyTorch takes views of a single one where it copies several.
"""

WINDOWS = frozenset({"mistral", "qwen2", "qwen3", "phi3", "starcoder2", "gemma3_text"})
"""Families checked under sdpa with layers that slide, which keep a mask; PyTorch 2.15."""


FROZEN = frozenset({"llama", "gemma", "gpt2", "mixtral", "bert"})
"""Families checked with LoRA beside some products, and with some weights frozen; PyTorch 2.15."""


_RELU = {"hidden_act": frozenset({"relu"})}
"""An activation that keeps its result, whose input is kept with the other half of one product."""

_ANY = frozenset({"any"})
"""Every value but zero."""

UNLIKE: Mapping[str, Mapping[str, frozenset[object]]] = {
    **dict.fromkeys(("phi3", "mixtral", "olmoe", "qwen3_moe"), _RELU),
    "stablelm": {"hidden_dropout": _ANY},
    "gpt2": {"reorder_and_upcast_attn": frozenset({True})},
    "opt": {"layer_norm_elementwise_affine": frozenset({False})},
}
"""Values of configurations with which a family that is checked keeps other bytes."""


BEGUN = "training counts the gradient of a cell's state before its first step, which PyTorch lacks"
"""What is said of recurrent cells."""


def unlike(family: str, values: Mapping[str, object]) -> bool:
    """Return whether a configuration of a family has a value that was not checked."""
    return any(
        values.get(key) in others or (others is _ANY and bool(values.get(key)))
        for key, others in UNLIKE.get(family, {}).items()
    )


def has_scans(model: Model) -> bool:
    """Return whether layers of a model have a recurrence that is declared step by step."""
    return any(isinstance(op, Scan) for part in model.parts for op in part.ops)


def has_cells(model: Model) -> bool:
    """Return whether layers of a model are recurrent cells; see `BEGUN`."""
    return any(isinstance(op, Recurrent) for part in model.parts for op in part.ops)


def saved_note(
    family: str,
    attention: str = "eager",
    *,
    sliding: bool = False,
    trains: str = "all",
    scans: bool = False,
) -> str:
    """Return what to say of saved bytes beside them: nothing where they were checked.

    Args:
        family: as model_type.
        attention: how it runs, as configurations name it.
        sliding: whether layers slide; fused kernels may keep a mask then.
        trains: which weights are trained.
        scans: whether layers have a recurrence.
    """
    if scans:
        return SCANNED
    if trains != "all" and (family not in FROZEN or "adapter" in trains):
        return UNCHECKED
    known = attention in CHECKED.get(family, frozenset())
    return "" if known and (family in WINDOWS or not sliding or attention == "eager") else UNCHECKED
