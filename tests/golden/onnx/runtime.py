"""Write small models as ONNX Runtime's tools do: fused, quantised, built for generation.

    python -m tests.golden.onnx.runtime FILE.zip

adds MODEL.WAY.onnx to the archive, weights left out. Counts are those of ../pt2/truth.json, of the
configuration below, and of the networks of `RECURRENT` in PyTorch. Needs torch, transformers, onnx,
onnxruntime and onnxruntime-genai.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import onnx
import torch
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers import optimizer

from tests.golden.onnx.export import lean, written

LLAMA = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 160, "vocab_size": 96, "max_position_embeddings": 128,
    "tie_word_embeddings": False,
}  # fmt: skip
RECURRENT = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN"}
_FEEDS = {"bert": np.zeros((2, 16), "int64"), "resnet": np.zeros((2, 3, 32, 32), "float32")}


class Recurrent(torch.nn.Module):
    """A lookup, two layers in both directions, a head."""

    def __init__(self, kind: str) -> None:
        """Make the layers."""
        super().__init__()
        self.words = torch.nn.Embedding(50, 24)
        self.layers = getattr(torch.nn, kind)(24, 16, 2, batch_first=True, bidirectional=True)
        self.head = torch.nn.Linear(32, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return logits of every step."""
        return self.head(self.layers(self.words(ids))[0])


class _Feed(CalibrationDataReader):
    def __init__(self, feed: dict[str, np.ndarray]) -> None:
        self._rest = iter([feed])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._rest, None)


def recurrent(kind: str) -> bytes:
    """Return the file of a recurrence."""
    torch.manual_seed(0)
    buffer, axes = BytesIO(), {"ids": {0: "batch", 1: "steps"}}
    torch.onnx.export(
        Recurrent(kind).eval(), (torch.zeros(2, 8, dtype=torch.int64),), buffer, dynamo=False,
        input_names=["ids"], output_names=["logits"], dynamic_axes=axes, opset_version=17,
    )  # fmt: skip
    return buffer.getvalue()


def variants(folder: Path) -> Iterator[tuple[str, Path]]:
    """Write all files into a folder, and name them."""
    for name, feed in _FEEDS.items():
        plain = folder / f"{name}.onnx"
        plain.write_bytes(written(name, "script"))
        given = onnx.load(plain).graph.input[0].name
        quantize_dynamic(plain, folder / f"{name}.dynamic")
        yield f"{name}.dynamic", folder / f"{name}.dynamic"
        for form in (QuantFormat.QDQ, QuantFormat.QOperator):
            path = folder / f"{name}.{form.name.lower()}"
            quantize_static(plain, path, _Feed({given: feed}), quant_format=form)
            yield path.name, path
    fused = optimizer.optimize_model(str(folder / "bert.onnx"), "bert", 4, 64, opt_level=0)
    fused.save_model_to_file(str(folder / "bert.fused"))
    yield "bert.fused", folder / "bert.fused"
    packed = MatMulNBitsQuantizer(onnx.load(folder / "bert.onnx"), block_size=32)
    packed.process()
    packed.model.save_model_to_file(str(folder / "bert.4bits"))
    yield "bert.4bits", folder / "bert.4bits"
    for name, kind in RECURRENT.items():
        (folder / f"{name}.plain").write_bytes(recurrent(kind))
        yield f"{name}.plain", folder / f"{name}.plain"
    quantize_dynamic(folder / "lstm.plain", folder / "lstm.dynamic")
    yield "lstm.dynamic", folder / "lstm.dynamic"
    yield from generating(folder)


def generating(folder: Path) -> Iterator[tuple[str, Path]]:
    """Build a small Llama for generation."""
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    source = folder / "llama"
    words = Tokenizer(models.WordLevel({f"t{i}": i for i in range(96)}, unk_token="t3"))  # noqa: S106
    tokens = {"unk_token": "t3", "bos_token": "t1", "eos_token": "t2", "pad_token": "t0"}
    ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    LlamaForCausalLM(LlamaConfig(**LLAMA, **ids)).save_pretrained(source)
    PreTrainedTokenizerFast(tokenizer_object=words, **tokens).save_pretrained(source)
    for precision in ("fp32", "int4"):
        made = folder / precision
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(source)]
        command += ["-o", str(made), "-p", precision, "-e", "cpu", "-c", str(folder / "cache")]
        subprocess.run(command, check=True, capture_output=True)
        yield f"llama.{precision}", made / "model.onnx"


def main() -> None:
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(sys.argv[1], "a") as archive:
        for name, path in variants(Path(folder)):
            data = lean(onnx.load(path).SerializeToString())
            where = zipfile.ZipInfo(f"{name}.onnx")
            archive.writestr(where, data, zipfile.ZIP_DEFLATED, compresslevel=9)


if __name__ == "__main__":
    main()
