"""Weights by their headers, pipelines, configurations of timm, names on the Hub."""

import json
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.models.catalog import model as named_model
from symbolic_cost.models.count import count
from symbolic_cost.models.stored.gguf import gguf, gguf_config
from symbolic_cost.models.stored.safetensors import safetensors

LLAMA = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
    "max_position_embeddings": 128, "tie_word_embeddings": False,
}  # fmt: skip
LAYER = {
    "input_layernorm.weight": [64], "post_attention_layernorm.weight": [64],
    "self_attn.q_proj.weight": [64, 64], "self_attn.k_proj.weight": [32, 64],
    "self_attn.v_proj.weight": [32, 64], "self_attn.o_proj.weight": [64, 64],
    "mlp.gate_proj.weight": [160, 64], "mlp.up_proj.weight": [160, 64],
    "mlp.down_proj.weight": [64, 160],
}  # fmt: skip
PARAMS = 98624


def shapes():
    layers = {f"model.layers.{i}.{name}": dims for i in range(2) for name, dims in LAYER.items()}
    ends = {"model.embed_tokens.weight": [96, 64], "model.norm.weight": [64]}
    return {**ends, **layers, "lm_head.weight": [96, 64]}


def header(tensors, dtype="BF16", size=2):
    entries, at = {"__metadata__": {"format": "pt"}}, 0
    for name, dims in tensors.items():
        count = size
        for dim in dims:
            count *= dim
        entries[name] = {"dtype": dtype, "shape": dims, "data_offsets": [at, at + count]}
        at += count
    return entries, at


def write(path, entries, room):
    """Write a header, and a hole in the place of the weights."""
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + room)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    write(tmp_path / "model.safetensors", *header(shapes()))
    return tmp_path


def refusal(source):
    with pytest.raises(InputError) as error:
        sc.count(str(source))
    result = CliRunner().invoke(main, ["count", str(source)])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    return str(error.value)


@pytest.mark.parametrize("name", ["", "model.safetensors"])
def test_a_folder_or_its_weights_are_counted_and_compared(name, folder):
    found = sc.count(str(folder / name))
    assert found["params"] == found["stored_params"] == PARAMS
    assert found["stored_bytes"] == 2 * PARAMS
    assert found["stored"] == f"BF16 {PARAMS} elements {2 * PARAMS} bytes"
    assert named_model(str(folder / name)).bindings["V"] == 96


def test_shards_are_one_checkpoint(folder):
    (folder / "model.safetensors").unlink()
    names = list(shapes())
    parts = {"a.safetensors": names[:9], "b.safetensors": names[9:]}
    for file, own in parts.items():
        write(folder / file, *header({name: shapes()[name] for name in own}))
    map_ = {name: file for file, own in parts.items() for name in own}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": map_}))
    assert sc.count(str(folder))["stored_params"] == PARAMS
    index.write_text(json.dumps({"weight_map": map_ | {"x": "../../etc/passwd"}}))
    assert "'../../etc/passwd' is not the name of a file beside it" in refusal(folder)
    index.write_text(json.dumps({"weight_map": map_ | {"x": "c.safetensors"}}))
    assert "c.safetensors: cannot be read" in refusal(folder)
    index.write_text(json.dumps({"weight_map": map_ | {"x": "b.safetensors"}}))
    assert "22 tensors are named, 21 stored: 'x'" in refusal(folder)


def test_a_difference_is_told_by_the_names_of_tensors(folder):
    more = {f"model.layers.{i}.self_attn.q_proj.bias": [63] for i in range(2)}
    less = {name: dims for name, dims in shapes().items() if name != "lm_head.weight"}
    write(folder / "model.safetensors", *header(less | more | {"rotary_emb.inv_freq": [8]}))
    assert sc.count(str(folder))["stored"].endswith(
        f"{PARAMS - 6144 + 126} parameters are stored, {PARAMS} declared; without a declared "
        "weight of as many elements: model.layers.*.self_attn.q_proj.bias (2 of them); declared "
        "and not stored: 1 of 6144 elements"
    )


@pytest.mark.parametrize(
    ("entries", "room", "told"),
    [
        (b"{", 0, "is not JSON"),
        (b"[1]", 0, "its header is no object"),
        (b"\xff\xfe", 0, "its header is not UTF-8"),
        (b"[" * 100_000, 0, "nested too deeply"),
        ({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, 8, "does not fill bytes"),
        ({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, 4, "0 to 8 of 4"),
        ({"w": {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}}, 8, "tensor 'w' is"),
        ({"w": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, 8, "tensor 'w' is"),
        ({"w": {"dtype": "F32", "shape": [10**30], "data_offsets": [0, 8]}}, 8, "does not fill"),
        ({"w": 3, "v": None}, 0, "2 problems"),
        (
            {n: {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]} for n in ("w", "v")},
            8,
            "tensors overlap",
        ),
    ],
)
def test_damaged_headers_are_refused(entries, room, told, folder):
    write(folder / "model.safetensors", entries, room)
    assert told in refusal(folder)


def test_a_header_longer_than_its_file_is_refused(folder):
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2**62) + b"{}")
    assert "a header of 4611686018427387904 bytes in 10" in refusal(folder)


# GGUF.


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def pair(key, kind, data):
    return text(key) + struct.pack("<I", kind) + data


def number(key, value):
    return pair(key, 4, struct.pack("<I", value))


SIZES = {
    "block_count": 2,
    "embedding_length": 256,
    "feed_forward_length": 512,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "context_length": 128,
}
Q4_K, Q6_K, F32 = 12, 14, 0
BLOCK = {
    "attn_norm": ([256], F32), "ffn_norm": ([256], F32), "attn_q": ([256, 256], Q4_K),
    "attn_k": ([256, 128], Q4_K), "attn_v": ([256, 128], Q6_K), "attn_output": ([256, 256], Q4_K),
    "ffn_gate": ([256, 512], Q4_K), "ffn_up": ([256, 512], Q4_K), "ffn_down": ([512, 256], Q6_K),
}  # fmt: skip


def tensors():
    found = {"token_embd.weight": ([256, 320], Q6_K), "output_norm.weight": ([256], F32)}
    found |= {f"blk.{i}.{n}.weight": one for i in range(2) for n, one in BLOCK.items()}
    return found | {"rope_freqs.weight": ([32], F32)}


def written(path, stored, *more, sizes=SIZES, version=3):
    pairs = [pair("general.architecture", 8, text("llama"))]
    pairs += [number(f"llama.{key}", value) for key, value in sizes.items()]
    words = struct.pack("<IQ", 8, 320) + b"".join(text(f"t{i}") for i in range(320))
    pairs += [pair("tokenizer.ggml.tokens", 9, words), *more]
    data = b"GGUF" + struct.pack("<IQQ", version, len(stored), len(pairs)) + b"".join(pairs)
    for name, (dims, kind) in stored.items():
        data += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, 0)
    with path.open("wb") as file:
        file.write(data)
        file.truncate(len(data) + 2**20)
    return path


def test_a_gguf_file_is_its_own_configuration(tmp_path):
    path = written(tmp_path / "model.gguf", tensors())
    config = gguf_config(path)
    assert config["model_type"] == "llama"
    assert config["tie_word_embeddings"] is True
    found = sc.count(str(path))
    # 256 elements take 144 bytes as Q4_K and 210 as Q6_K, scales included.
    packed = {Q4_K: 2 * (2 * 65536 + 32768 + 2 * 131072), Q6_K: 81920 + 2 * (32768 + 131072)}
    size = packed[Q4_K] // 256 * 144 + packed[Q6_K] // 256 * 210 + 4 * (5 * 256 + 32)
    assert found["params"] == found["stored_params"] == sum(packed.values()) + 5 * 256
    assert found["stored_bytes"] == size == gguf(path).size


@pytest.mark.parametrize(
    ("stored", "more", "told"),
    [
        (tensors() | {"output.bias": ([7], F32)}, (), "its metadata are not understood"),
        (tensors() | {"x": ([7], 99)}, (), "tensor 'x' is of type 99"),
        (tensors() | {"x": ([7], Q4_K)}, (), "rows of 7 in blocks of 256"),
        (tensors() | {"x": ([2**40, 2**20], F32)}, (), "larger than the file"),
        (tensors(), (number("llama.new_mixer", 4),), "key 'new_mixer' = 4 is not understood"),
        (tensors(), (number("llama.block_count", 3),), "is given more than once"),
        (tensors(), (pair("x", 9, struct.pack("<IQ", 8, 2**60)),), "elements of an array"),
        (tensors(), (pair("x", 9, struct.pack("<IQ", 9, 1)),), "an array of type 9"),
        (tensors(), (pair("x", 77, b""),), "a value of type 77"),
    ],
)
def test_damaged_gguf_files_are_refused(stored, more, told, tmp_path):
    assert told in refusal(written(tmp_path / "model.gguf", stored, *more))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"GGML", "does not begin with GGUF"),
        (b"GGUF" + struct.pack("<I", 1), "version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "tensors: at most"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", 2**60), "cut off"),
    ],
)
def test_cut_gguf_files_are_refused(data, told, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    assert told in refusal(path)


def test_the_import_of_weights_tells_their_data_types(folder):
    for source in (folder / "model.safetensors", written(folder / "model.gguf", tensors())):
        result = CliRunner().invoke(main, ["import", str(source)])
        assert result.exit_code == 0, result.output
        assert "elements of parameters" in result.output


# Pipelines.


def test_a_pipeline_is_told_part_by_part(folder):
    (folder / "text").mkdir()
    (folder / "config.json").rename(folder / "text" / "config.json")
    (folder / "model_index.json").write_text(json.dumps({
        "_class_name": "Pipeline", "text": ["transformers", "LlamaModel"],
        "tokenizer": ["transformers", "LlamaTokenizer"], "none": [None, None],
        "unet": ["diffusers", "UNet3DModel"], "..": ["transformers", "LlamaModel"],
        "scheduler": ["diffusers", "DDIMScheduler"],
    }))  # fmt: skip
    said = refusal(folder)
    assert "a pipeline of 3 parts is no one model" in said
    assert "'unet' is of class 'UNet3DModel', no known family" in said
    assert "'..' is no name of a folder" in said
    result = CliRunner().invoke(main, ["import", str(folder)])
    assert result.exit_code == 0
    assert str(PARAMS) in result.output
    assert "refused" in result.output


def test_networks_of_a_pipeline_are_counted_by_their_class(tmp_path):
    (tmp_path / "transformer").mkdir()
    values = {"_class_name": "DiTTransformer2DModel", "num_layers": 2, "sample_size": 8}
    (tmp_path / "transformer" / "config.json").write_text(json.dumps(values))
    listed = {"_class_name": "DiTPipeline"}
    listed["transformer"] = ["diffusers", "DiTTransformer2DModel"]
    (tmp_path / "model_index.json").write_text(json.dumps(listed))
    assert "these are read alone" in refusal(tmp_path)
    assert count(tmp_path / "transformer")["params"] == count(values)["params"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"_class_name": "UNet4DModel"}, "unknown _class_name 'UNet4DModel'"),
        ({"_class_name": 3}, "3 is not a family's name"),
        (
            {"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [4], "new_mixer": 1},
            "even widths that add up to that of a head, 128",
        ),
        ({"_class_name": "FluxTransformer2DModel", "new_mixer": 1}, "key 'new_mixer'"),
        ({"_class_name": "llama"}, "architectures"),
        ({"_class_name": "DiTTransformer2DModel", "sample_size": 1}, "do not fit latents"),
        ({"_class_name": "SD3Transformer2DModel", "sample_size": 512}, "positions end at 96"),
        ({"_class_name": "UNet2DConditionModel", "conv_in_kernel": 4}, "an odd kernel"),
        ({"_class_name": "UNet2DConditionModel", "down_block_types": ["Other"]}, "4 of Cross"),
        ({"_class_name": "AutoencoderKL", "block_out_channels": [0]}, "a list of sizes"),
    ],
)
def test_networks_of_pipelines_that_are_refused(values, said):
    with pytest.raises(InputError, match=said):
        count(values)


# timm.


@pytest.mark.parametrize(
    ("architecture", "size", "features", "params"),
    [
        ("vit_base_patch16_224.augreg_in21k", 224, 768, 85806346),
        ("resnet18", 224, 512, 11181642),
        pytest.param("resnet50", 224, 2048, 23528522, marks=pytest.mark.slow),
        pytest.param("efficientnet_b0", 224, 1280, 4020358, marks=pytest.mark.slow),
        pytest.param("convnext_tiny", 224, 768, 27827818, marks=pytest.mark.slow),
        pytest.param("swin_tiny_patch4_window7_224", 224, 768, 27527044, marks=pytest.mark.slow),
    ],
)
def test_timm_names_have_the_parameters_of_timm(architecture, size, features, params, tmp_path):
    config = {"architecture": architecture, "num_classes": 10, "num_features": features,
              "pretrained_cfg": {"input_size": [3, size, size]}}  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert sc.count(str(path))["params"] == params
    path.write_text(json.dumps(config | {"num_features": 5, "drop": 1, "model_args": {"a": 1}}))
    said = refusal(path)
    assert "3 problems" in said
    assert "by name" in said


def test_an_architecture_that_is_not_known_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"architecture": "efficientnet_b9", "num_classes": 10}))
    assert "'efficientnet_b9': did you mean efficientnet_b8" in refusal(path)


# The Hub.


@pytest.fixture
def hub(folder, monkeypatch):
    """A stand-in for huggingface_hub that has one model and counts what is asked of it."""
    tensor = SimpleNamespace(shape=[4, 2], dtype="BF16", data_offsets=(0, 16))
    metadata = SimpleNamespace(files_metadata={"a": SimpleNamespace(tensors={"w": tensor})})
    state = SimpleNamespace(size=500, asked=[], offline=False, known=None)

    def fetch(name, file, revision=None):
        state.asked.append((name, file, revision))
        if state.offline:
            raise ConnectionError("no route to the host\nand more")
        return str(folder / file)

    fake = SimpleNamespace(
        hf_hub_url=lambda name, file, revision=None: f"{name}/{file}@{revision}",
        get_hf_file_metadata=lambda _: SimpleNamespace(size=state.size),
        hf_hub_download=fetch,
        try_to_load_from_cache=lambda *_, **__: state.known,
        get_safetensors_metadata=lambda *_, **__: metadata,
        errors=SimpleNamespace(NotASafetensorsRepoError=KeyError),
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    return state


def test_a_name_on_the_hub_is_its_configuration_and_its_headers(hub):
    found = sc.count("hub:org/name@v1.0")
    assert found["params"] == PARAMS
    assert found["stored_params"] == 8
    assert set(hub.asked) == {("org/name", "config.json", "v1.0")}


def test_what_the_hub_does_not_give_is_one_error(hub, folder):
    hub.size = 2**25
    assert "config.json has 33554432 bytes; at most 16777216 are read" in refusal("hub:org/name")
    hub.size, hub.offline = 10, True
    said = refusal("hub:org/name")
    assert "cannot be fetched (ConnectionError: no route to the host); is there a network" in said
    hub.known = str(folder / "config.json")
    assert sc.count("hub:org/name")["params"] == PARAMS


@pytest.mark.parametrize(
    "name", ["hub:", "hub:../x", "hub:a/b/c", "hub:a b/c", "hub:org/..", "hub:x@"]
)
def test_what_is_no_name_is_refused(name, hub):
    assert "hub:org/name or hub:org/name@revision is accepted" in refusal(f"hub:{name}")
    assert not hub.asked


def test_the_hub_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "pip install 'symbolic_cost[hub]'" in refusal("hub:org/name")


def test_headers_are_read_and_nothing_else(tmp_path):
    """Weights are a hole of 4 GiB."""
    path = Path(tmp_path, "large.safetensors")
    write(path, *header({"w": [2**30, 2]}))
    assert safetensors(path).size == 2**32
