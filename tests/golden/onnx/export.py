"""Export the small models of ../pt2/export.py by torch.onnx, weights left out.

    python tests/golden/onnx/export.py FILE.zip [NAME.dynamo | NAME.dynamo23 | NAME.script ...]

adds NAME.dynamo.onnx (from torch.export), NAME.dynamo23.onnx (the same in opset 23, which has
attention and rotations) or NAME.script.onnx (from a script, opset 14) to the archive. Counts are
those of ../pt2/truth.json. Needs torch, transformers, onnx and onnxscript.
"""

from __future__ import annotations

import sys
import warnings
import zipfile
from io import BytesIO
from pathlib import Path

import onnx
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "pt2"))
from export import MODELS, Output, _dims

_KEPT = 128
"""Elements of tensors whose numbers stay: shapes and axes."""

_TOLD = ("pkg.torch.export.graph_signature.InputSpec.kind", "namespace")


def exported(name: str, way: str) -> bytes:
    """Return the file of a model, without weights."""
    return lean(written(name, way))


def written(name: str, way: str) -> bytes:
    """Return the file of a model; parameters are random, so that none are stored as one."""
    torch.manual_seed(0)
    make, (names, inputs, shapes) = MODELS[name]
    model = Output(make().eval(), names)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(0.5, 1.5)
    buffer = BytesIO()
    if way == "script":
        axes = {given: dict(dims) for given, dims in zip(names, shapes, strict=True)}
        torch.onnx.export(model, inputs(2, 16), buffer, input_names=list(names), dynamo=False,
                          output_names=["logits"], dynamic_axes=axes, opset_version=14,
                          do_constant_folding=True)  # fmt: skip
    else:
        torch.onnx.export(model, inputs(2, 16), buffer, input_names=list(names), dynamo=True,
                          dynamic_shapes=(_dims(shapes),), external_data=False,
                          **({"opset_version": 23} if way == "dynamo23" else {}))  # fmt: skip
    return buffer.getvalue()


def lean(data: bytes) -> bytes:
    """Return a file without weights, texts of the stack, and shapes between nodes."""
    model = onnx.load_from_string(data)
    graph = model.graph
    kinds = {one.name: list(one.metadata_props) for one in graph.value_info}
    del model.metadata_props[:], graph.value_info[:], graph.metadata_props[:]
    tied = _tied(graph)
    for tensor in graph.initializer:
        _strip(tensor)
        if tensor.name in tied:
            tensor.raw_data = tied[tensor.name]
        tensor.metadata_props.extend(p for p in kinds.get(tensor.name, []) if p.key == _TOLD[0])
    for node in graph.node:
        told = [p for p in node.metadata_props if p.key in _TOLD]
        del node.metadata_props[:]
        node.metadata_props.extend(told)
        node.doc_string = ""
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _strip(attribute.t)
    for value in (*graph.input, *graph.output):
        del value.metadata_props[:]
    return model.SerializeToString()


def _tied(graph: onnx.GraphProto) -> dict[str, bytes]:
    """Return numbers that pack well for tables that are stored a second time, turned."""
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer if len(t.dims) == 2}
    found = {}
    for name, one in arrays.items():
        for other, table in arrays.items():
            if other != name and one.shape == table.shape[::-1] and (one == table.T).all():
                rows = one.shape[0] >= one.shape[1]
                plain = one * 0 + (1.0 + one.shape[0] * 0)
                plain += (
                    torch.arange(one.shape[0 if rows else 1]).numpy()[:, None]
                    if rows
                    else torch.arange(one.shape[1]).numpy()[None, :]
                )
                found[name] = plain.astype("float32").tobytes()
    return found


def _strip(tensor: onnx.TensorProto) -> None:
    size = 1
    for dim in tensor.dims:
        size *= dim
    del tensor.metadata_props[:]
    if 1 < len({tensor.raw_data[i : i + 4] for i in range(0, len(tensor.raw_data), 4)}) <= 2:
        return  # a mask
    if size > _KEPT or (tensor.data_type == onnx.TensorProto.FLOAT and size > 1):
        for field in ("raw_data", "float_data", "int64_data"):
            tensor.ClearField(field)


def main() -> None:
    warnings.filterwarnings("ignore")
    target = Path(sys.argv[1])
    for one in sys.argv[2:]:
        name, _, way = one.partition(".")
        try:
            data = exported(name, way)
        except Exception as error:  # noqa: BLE001 - one that cannot be exported is told, and the others go on
            print(one, "FAILED", str(error)[-300:], flush=True)  # noqa: T201 - a script
            continue
        with zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            archive.writestr(zipfile.ZipInfo(f"{one}.onnx"), data, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
