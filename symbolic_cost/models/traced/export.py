"""PyTorch modules, exported and read at once; the one place that needs torch."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from symbolic_cost.errors import InputError, quote
from symbolic_cost.models.traced.imported import traced
from symbolic_cost.ops.graph import Model


def trace(
    module: Any,  # noqa: ANN401 - a torch.nn.Module, which is not imported
    example_inputs: tuple[Any, ...] | list[Any],
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,  # noqa: ANN401 - as torch.export takes them
    name: str = "",
) -> Model:
    """Return the model of a PyTorch module, by torch.export.

    Args:
        module: a torch.nn.Module; in evaluation mode unless dropout is to be counted.
        example_inputs: tensors of two or more sequences; what has size 1 is taken for constant.
        kwargs: inputs by name.
        dynamic_shapes: as torch.export takes them; unless given, the first dimension of every
            tensor and the second of indices, which are batch and length.
        name: of the model; that of the module's class unless given.

    Raises:
        InputError: torch is not installed (the extra "torch"), or cannot export the module.
    """
    try:
        import torch  # noqa: PLC0415 - the extra "torch"
    except ImportError:
        raise InputError("trace needs torch: pip install 'symbolic_cost[torch]'") from None
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"trace: module = {quote(type(module).__name__)}: a torch.nn.Module is accepted"
        )
    named = dict(kwargs or {})
    shapes = dynamic_shapes
    if shapes is None:
        shapes = _dynamic((*example_inputs, *named.values()), torch.export.Dim.AUTO)
    buffer = BytesIO()
    try:
        program = torch.export.export(
            module, tuple(example_inputs), named or None, dynamic_shapes=shapes, strict=False
        )
        torch.export.save(program, buffer)
    except Exception as error:  # whatever the module raises while it is traced
        first = str(error).strip().partition("\n")[0]
        raise InputError(
            f"trace: torch cannot export {type(module).__name__}: {quote(first, 200)}"
        ) from error
    return traced(buffer.getvalue(), name or type(module).__name__).model


def _dynamic(inputs: tuple[Any, ...], auto: object) -> list[Any]:
    return [
        dict.fromkeys(range(min(tensor.dim(), 1 if tensor.is_floating_point() else 2)), auto)
        if hasattr(tensor, "dim")
        else None
        for tensor in inputs
    ]
