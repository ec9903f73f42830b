"""Make compressed_tensors.json: bytes of models that compressed-tensors compressed.

    python make_compressed.py > compressed_tensors.json

Needs torch, transformers and compressed-tensors.
Bytes are those of every tensor of the state that a file of the model holds, each once.
"""

import copy
import json
import sys

import compressed_tensors
import torch
import transformers
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.quantization import (
    QuantizationConfig,
    QuantizationStatus,
    apply_quantization_config,
)

LLAMA = {
    "model_type": "llama", "vocab_size": 1000, "hidden_size": 256, "intermediate_size": 512,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "tie_word_embeddings": False, "dtype": "bfloat16",
}  # fmt: skip
QWEN = {**LLAMA, "model_type": "qwen3", "num_hidden_layers": 3, "intermediate_size": 768}
PHI = {**LLAMA, "model_type": "phi3", "pad_token_id": 0}
GLM = {**LLAMA, "model_type": "glm4", "pad_token_id": 0}
DEEPSEEK = {
    **LLAMA, "model_type": "deepseek_v3", "num_key_value_heads": 4, "q_lora_rank": 128,
    "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64,
    "first_k_dense_replace": 2, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
    "topk_group": 1, "moe_intermediate_size": 128, "n_shared_experts": 1,
}  # fmt: skip
DEEPSEEK.pop("head_dim")


def numbers(bits, strategy, group=None, **more):
    """What is said of the numbers of weights or inputs."""
    return {
        "num_bits": bits,
        "type": "int",
        "symmetric": True,
        "strategy": strategy,
        "group_size": group,
        "dynamic": False,
        **more,
    }


INT4, FP8 = numbers(4, "group", 128), numbers(8, "tensor", type="float")
PACKED, INTEGERS, FLOATS = "pack-quantized", "int-quantized", "float-quantized"
PER_TOKEN = numbers(8, "token", dynamic=True)
NVFP4 = numbers(4, "tensor_group", 16, type="float")
BLOCKS = numbers(8, "block", type="float", block_structure=[128, 128])
MXFP4 = numbers(4, "group", 32, type="float", scale_dtype="torch.uint8", zp_dtype="torch.uint8")
CACHE = numbers(8, "tensor", type="float")
SCHEMES = [
    (LLAMA, PACKED, INT4, None, {}),
    (LLAMA, PACKED, numbers(4, "group", 128, symmetric=False), None, {}),
    (LLAMA, PACKED, numbers(4, "channel"), None, {}),
    (LLAMA, PACKED, numbers(4, "group", 64, actorder="weight"), None, {}),
    (LLAMA, PACKED, numbers(8, "group", 128, symmetric=False), None, {}),
    (LLAMA, PACKED, numbers(2, "group", 64), None, {}),
    (LLAMA, INTEGERS, numbers(8, "channel"), PER_TOKEN, {}),
    (LLAMA, INTEGERS, numbers(8, "channel", symmetric=False), PER_TOKEN, {}),
    (LLAMA, INTEGERS, numbers(8, "channel"), numbers(8, "tensor", symmetric=False), {}),
    (LLAMA, INTEGERS, INT4, PER_TOKEN, {}),
    (LLAMA, FLOATS, numbers(8, "channel", type="float"), {**PER_TOKEN, "type": "float"}, {}),
    (LLAMA, FLOATS, FP8, FP8, {"kv_cache_scheme": CACHE}),
    (LLAMA, FLOATS, BLOCKS, numbers(8, "group", 128, type="float", dynamic=True), {}),
    (LLAMA, "nvfp4-pack-quantized", NVFP4, {**NVFP4, "dynamic": "local"}, {}),
    (LLAMA, "nvfp4-pack-quantized", NVFP4, None, {}),
    (LLAMA, "mxfp4-pack-quantized", MXFP4, None, {}),
    ({**LLAMA, "dtype": "float32"}, PACKED, INT4, None, {}),
    (QWEN, PACKED, INT4, None, {"ignore": ["re:.*self_attn.*", "lm_head"]}),
    (QWEN, FLOATS, FP8, FP8, {"ignore": [f"model.layers.{i}.mlp.down_proj" for i in range(3)]}),
    (QWEN, PACKED, INT4, None, {"targets": ["re:.*down_proj$", "re:.*o_proj$"]}),
    (QWEN, FLOATS, FP8, FP8, {"ignore": []}),
    (PHI, PACKED, INT4, None, {}),
    (PHI, FLOATS, FP8, FP8, {}),
    (GLM, PACKED, INT4, None, {}),
    (DEEPSEEK, PACKED, INT4, None, {}),
    (DEEPSEEK, FLOATS, FP8, FP8, {}),
]


def entry(config, layout, weights, inputs, more):
    """One model, compressed."""
    group = {
        "targets": more.get("targets", ["Linear"]), "weights": weights,
        "input_activations": inputs, "output_activations": None,
    }  # fmt: skip
    said = {
        "quant_method": "compressed-tensors", "format": layout, "ignore": ["lm_head"],
        "quantization_status": "compressed", "config_groups": {"group_0": group},
        "kv_cache_scheme": None, **{k: v for k, v in more.items() if k != "targets"},
    }  # fmt: skip
    own = transformers.AutoConfig.for_model(**copy.deepcopy(config))
    model = transformers.AutoModelForCausalLM.from_config(own)
    model = model.to(getattr(torch, config["dtype"]))
    asked = QuantizationConfig(**copy.deepcopy(said))
    asked.quantization_status = QuantizationStatus.INITIALIZED
    apply_quantization_config(model, asked)
    for name, parameter in model.named_parameters():
        if "scale" in name:
            parameter.data.fill_(127 if parameter.dtype == torch.uint8 else 1)
        elif name.endswith(("bias", "weight", "zero_point")) is False:
            raise ValueError(name)
    ModelCompressor(quantization_config=asked).compress_model(model)
    tensors = model.state_dict().values()
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return {"config": config, "quantization_config": said, "bytes": size}


def main():
    """Write all of them."""
    versions = {m.__name__: m.__version__ for m in (torch, transformers, compressed_tensors)}
    entries = [entry(*scheme) for scheme in SCHEMES]
    sys.stdout.write(json.dumps({"versions": versions, "entries": entries}, separators=(",", ":")))


if __name__ == "__main__":
    main()
