"""What the logs print, step by step, as data: tensors with their dimensions, and memory events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Tensor:
    """One printed tensor.

    Args:
        name: as printed.
        dims: its dimensions as printed, terms of the run's sizes.
        unit: of its printed size.
        true: its dimensions, where the printed ones are not those of the shape.
    """

    name: str
    dims: str
    unit: str = "MB"
    true: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the program.

    Args:
        name: of its values.
        tensors: printed.
        events: allocations "+x" and frees "-x"; "x_copy" is a contiguous copy of x.
        flops: ops of which the FLOP of the whole cluster are printed.
        contiguous: whether the log says that the last tensor is contiguous.
        printed: the memory printed, "peak" and "current".
    """

    name: str
    tensors: tuple[Tensor, ...] = ()
    events: str = ""
    flops: tuple[str, ...] = ()
    contiguous: bool = False
    printed: tuple[str, ...] = ("peak",)


def _same(names: str, dims: str) -> tuple[Tensor, ...]:
    return tuple(Tensor(name, dims) for name in names.split())


_ATTENTION = (
    Step(
        "init",
        (Tensor("input", "N/P, d"), *_same("Q K V", "h, d, d/h"), Tensor("O", "h, d/h, d")),
        "+input +Q +K +V +O",
    ),
    Step(
        "qkv",
        _same("q k v", "h, N/P, d/h"),
        "+workspace +q +k +v",
        flops=("attention.q", "attention.k", "attention.v"),
    ),
    Step("a2a_qkv", _same("q_ k_ v_", "P, h/P, N/P, d/h"), "+q_ +k_ +v_"),
    Step(
        "reshape_qkv",
        _same("q_ k_ v_", "h/P, N, d/h"),
        "+q__copy -q_ +k__copy -k_ +v__copy -v_",
        contiguous=True,
    ),
    Step(
        "scores",
        (Tensor("A", "h/P, N, N", "GB"),),
        "+A",
        flops=("attention.scores",),
        contiguous=True,
    ),
    Step(
        "context",
        _same("c", "h/P, N, d/h"),
        "+c",
        flops=("attention.context",),
        contiguous=True,
    ),
    Step("transpose_c", _same("c", "N, h/P, d/h"), "+c_copy -c", contiguous=True),
    Step("a2a_c", _same("c_", "P, N/P, h/P, d/h"), "+c_"),
    Step(
        "reshape_c",
        (*_same("c_", "N/P, d"), *_same("O", "d, d")),
        "+c__copy -c_",
        contiguous=True,
    ),
    Step("output", _same("output", "N/P, d"), "+output", flops=("attention.output",)),
)

_RETURN = Step(
    "return",
    events="-input -Q -K -V -O -q -k -v -q__copy -k__copy -v__copy -A -c_copy -c__copy",
    printed=(),
)

_MLP = Step(
    "mlp",
    (
        Tensor("input_", "N/DP/TP, d", "GB", true="N/DP, d"),
        Tensor("W1", "L, d, d'/TP", "GB"),
        Tensor("W2", "L, d'/TP, d", "GB"),
        Tensor("inter", "N/DP, d'/TP"),
    ),
    "+input_ +W1 +W2 +inter",
    printed=("current", "peak"),
)


def _attention_only(step: Step) -> Step:
    """Return a step of the earlier log: c stays as it is, O has another name, two sizes in GB."""
    tensors = tuple(
        replace(
            tensor,
            name={"O": "proj"}.get(tensor.name, tensor.name),
            unit="GB" if tensor.name in {"input", "output", "A"} else "MB",
            true="h/P, N, d/h" if step.name == "transpose_c" else "",
        )
        for tensor in step.tensors
    )
    events = "" if step.name == "transpose_c" else step.events.replace("+O", "+proj")
    return replace(step, tensors=tensors, events=events, contiguous=False)


LOGS: Mapping[str, tuple[Step, ...]] = {
    "3b1a699": (*_ATTENTION, _RETURN, _MLP),
    "d7a62c8": (*_ATTENTION, _RETURN, replace(_MLP, flops=("mlp.inter",))),
    "5e270bf": tuple(map(_attention_only, _ATTENTION)),
}
"""Steps by the commit of the log: as published, with the perceptron's FLOP, attention alone."""
