"""Export small models with torch.export, and count them with PyTorch at sizes of their own.

    python tests/golden/pt2/export.py FOLDER [NAME ...]

writes NAME.pt2, weights and samples left out, and adds to FOLDER/truth.json parameters, forward and
training FLOP by FlopCounterMode. Needs torch and transformers; the tests read what it wrote.
"""

from __future__ import annotations

import json
import sys
import traceback
import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from torch.export import Dim, export, save
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

SIZES = ((3, 24), (2, 40))
"""Batch and length of the counts; the export itself runs at (2, 16)."""

_WIDE = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
_DECODER = {
    **_WIDE,
    "intermediate_size": 160,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_ENCODER = {**_WIDE, "intermediate_size": 128, "vocab_size": 96, "max_position_embeddings": 130}
_SEQ2SEQ = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 96,
    "vocab_size": 96,
    "max_position_embeddings": 128,
}
_IMAGE = {"image_size": 32, "num_channels": 3}


class Output(torch.nn.Module):
    """A model from named inputs to its logits, or its first result."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...], result: str = "") -> None:
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def forward(self, *inputs: torch.Tensor) -> Any:
        known = dict(zip(self.names, inputs, strict=True))
        made = self.model(**known)
        if self.result:
            return getattr(made, self.result)
        return made if isinstance(made, torch.Tensor) else made[0]


def _ids(b: int, l: int) -> tuple[torch.Tensor, ...]:
    return (torch.randint(3, 96, (b, l)),)


def _short(b: int, l: int) -> tuple[torch.Tensor, ...]:  # noqa: ARG001 - loops fix the length
    return _ids(b, 16)


def _pair(b: int, l: int) -> tuple[torch.Tensor, ...]:
    return (*_ids(b, l), torch.randint(3, 96, (b, l // 2 + 3)))


def _images(b: int, l: int) -> tuple[torch.Tensor, ...]:  # noqa: ARG001 - no length
    return (torch.randn(b, 3, 32, 32),)


def _clip(b: int, l: int) -> tuple[torch.Tensor, ...]:
    return (*_ids(b, l), torch.randn(b, 3, 32, 32))


def _sound(b: int, l: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(b, 40 * l),)


def _spectrum(b: int, l: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(b, 8, 48), *_ids(b, l))


def _frames(b: int, l: int) -> tuple[torch.Tensor, ...]:  # noqa: ARG001 - no length
    return (torch.randn(b, 64, 16),)


_TOKENS = (("input_ids",), _ids, ({0: "b", 1: "l"},))
_SHORT = (("input_ids",), _short, ({0: "b"},))
_PIXELS = (("pixel_values",), _images, ({0: "b"},))


def _shaped(*shape: int) -> tuple[Any, ...]:
    """Return inputs of a shape."""
    return (("pixel_values",), lambda b, l: (torch.randn(b, *shape),), ({0: "b"},))  # noqa: ARG005


_PAIRS = (("input_ids", "decoder_input_ids"), _pair, ({0: "b", 1: "l"}, {0: "b", 1: "m"}))


class Mixer(torch.nn.Module):
    """Tokens and channels mixed in turn (MLP-Mixer)."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = torch.nn.Conv2d(3, 48, 8, 8)
        self.blocks = torch.nn.ModuleList(MixerBlock() for _ in range(2))
        self.norm = torch.nn.LayerNorm(48)
        self.head = torch.nn.Linear(48, 10)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x = self.patch(pixel_values).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class MixerBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(48), torch.nn.LayerNorm(48)
        self.tokens = torch.nn.Sequential(
            torch.nn.Linear(16, 24), torch.nn.GELU(), torch.nn.Linear(24, 16)
        )
        self.channels = torch.nn.Sequential(
            torch.nn.Linear(48, 96), torch.nn.GELU(), torch.nn.Linear(96, 48)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class UNet(torch.nn.Module):
    """Down, across and up again, with transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.down1 = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU()
        )
        self.down2 = torch.nn.Sequential(
            torch.nn.Conv2d(8, 16, 3, stride=2, padding=1),
            torch.nn.GroupNorm(4, 16),
            torch.nn.SiLU(),
        )
        self.up = torch.nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.out = torch.nn.Conv2d(16, 3, 1)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        first = self.down1(pixel_values)
        return self.out(torch.cat([self.up(self.down2(first)), first], dim=1))


class Standardized(torch.nn.Conv2d):
    """A convolution whose kernel is standardised first (BiT, NFNet)."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - the name of the base
        rows = self.weight.reshape(1, self.out_channels, -1)
        kernel = torch.nn.functional.batch_norm(rows, None, None, training=True)
        return self._conv_forward(input, kernel.reshape_as(self.weight), self.bias)


class Normalized(torch.nn.Module):
    """Two convolutions of standardised kernels, one of them grouped."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Standardized(3, 16, 3, stride=2, padding=1)
        self.block = Standardized(16, 24, 3, padding=1, groups=4)
        self.head = torch.nn.Linear(24, 10)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.silu(self.block(torch.nn.functional.silu(self.stem(pixel_values))))
        return self.head(x.mean((2, 3)))


class Linear(torch.nn.Module):
    """Gated linear attention as one scan of outer products over chunks (RetNet's parallel form)."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(48, 48, bias=False) for _ in range(3))
        self.o = torch.nn.Linear(48, 48, bias=False)
        self.table = torch.nn.Embedding(96, 48)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.table(input_ids)
        b, l, _ = x.shape
        q, k, v = (m(x).view(b, l, 4, 12) for m in (self.q, self.k, self.v))
        scores = torch.einsum("blhd,bthd->bhlt", q, k)
        y = torch.einsum("bhlt,bthd->blhd", scores.tril(), v)
        return x + self.o(y.reshape(b, l, 48))


class Letters(torch.nn.Module):
    """Products by letters that sum nothing, or what one operand alone has; weights in parts."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(96, 48)
        self.pair = torch.nn.Parameter(torch.randn(2, 48, 8))
        self.lonely = torch.nn.Parameter(torch.randn(64, 24, 4))
        self.wide = torch.nn.Parameter(torch.randn(48, 24))
        self.offset = torch.nn.Parameter(torch.randn(48))
        self.scale = torch.nn.Parameter(torch.randn(24))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.table(input_ids)
        left, right = (x @ w for w in self.pair.unbind(0))
        pairs = torch.einsum("bid,bje->bijde", left, right).flatten(-2)
        y = torch.einsum("bijd,dfk->bijf", pairs, self.lonely)
        one, two = self.wide.chunk(2, 0)
        p, q = self.offset.chunk(2)
        y = torch.nn.functional.linear(y, one, p) * torch.nn.functional.linear(y, two, q)
        return torch.einsum("bijf,f->bijf", y, self.scale)


class Stopped(torch.nn.Module):
    """Layers through which gradients stop, weights that get none, and a low-rank pair."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(96, 48)
        self.first, self.teacher, self.held = (torch.nn.Linear(48, 48) for _ in range(3))
        self.frozen = torch.nn.Linear(48, 64).requires_grad_(requires_grad=False)
        self.down, self.up = (
            torch.nn.Linear(48, 4, bias=False),
            torch.nn.Linear(4, 64, bias=False),
        )

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.first(self.table(input_ids)).detach()
        with torch.no_grad():
            taught = self.teacher(x)
        y = x + torch.nn.functional.linear(taught, self.held.weight.detach())
        return self.frozen(self.held(y)) + self.up(self.down(y))


class Operators(torch.nn.Module):
    """What few networks call: bags of rows, vectors, pools to one, floors of lengths, a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(96, 24, mode="mean")
        self.table = torch.nn.EmbeddingBag(96, 24, mode="sum")
        self.rows = torch.nn.Embedding(96, 24)
        self.conv = torch.nn.Conv1d(24, 32, 3, padding=1)
        self.scale, self.offset = (torch.nn.Parameter(torch.randn(32)) for _ in range(2))
        self.vector = torch.nn.Parameter(torch.randn(32))
        self.head = torch.nn.Linear(32, 96)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        weights = torch.sigmoid(self.rows(input_ids).sum(-1))
        bags = self.bag(input_ids) + self.table(input_ids, per_sample_weights=weights)
        x = self.conv(self.rows(input_ids).transpose(1, 2) + bags.unsqueeze(-1))
        b, c, l = x.shape
        x = torch.ops.aten.native_group_norm(x, self.scale, self.offset, b, c, l, 4, 1e-5)[0]
        pooled = torch.nn.functional.adaptive_avg_pool1d(x, 1).squeeze(-1)
        gate = torch.sigmoid(x.transpose(1, 2) @ self.vector).unsqueeze(-1)
        x = (gate * x.transpose(1, 2) + pooled.unsqueeze(1)).transpose(1, 2)
        x = torch.nn.functional.interpolate(x, scale_factor=0.5, mode="nearest")
        scores = self.head(x.transpose(1, 2)).mean(1)
        loss = torch.nn.functional.cross_entropy(scores, input_ids[:, 0])
        near = torch.nn.functional.cosine_similarity(bags, self.table.weight[:1])
        return loss + torch.vdot(self.vector, self.vector) + near.mean()


class Steps(torch.nn.Module):
    """Recurrences, whole and step by step, transforms, products that are named otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = torch.nn.Embedding(96, 24)
        self.lstm, self.gru = torch.nn.LSTMCell(24, 32), torch.nn.GRUCell(24, 32)
        self.both = torch.nn.GRU(24, 16, num_layers=2, batch_first=True, bidirectional=True)
        self.wide = torch.nn.Parameter(torch.randn(40, 32))
        self.deep = torch.nn.Parameter(torch.randn(4, 10, 16))
        self.vector, self.other = (torch.nn.Parameter(torch.randn(n)) for n in (40, 16))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.rows(input_ids)
        h = c = g = torch.zeros(x.shape[0], 32)
        for place in range(3):
            h, c = self.lstm(x[:, place], (h, c))
            g = self.gru(x[:, place + 3], g)
        h = h + self.both(x[:, :7])[0].mean(1)
        mixed = torch.fft.fftn(x, dim=(1, 2)).real.sum(1)
        y = torch.inner(h + g, self.wide) + mixed.sum(-1, keepdim=True)
        z = torch.tensordot(y.view(-1, 4, 10), self.deep, dims=([1, 2], [0, 1]))
        far = torch.nn.functional.triplet_margin_loss(z, z.flip(0), self.other.expand_as(z))
        return torch.outer(torch.mv(y, self.vector), self.other) + z * far


class Written(torch.nn.Module):
    """Parts of tensors that are written in place, and copies that stay as they were."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (torch.nn.Linear(48, 48) for _ in range(2))
        self.factors = torch.nn.Parameter(torch.randn(48))
        self.one, self.two, self.three, self.four, self.five = (
            torch.nn.Linear(48, 8) for _ in range(5)
        )

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x = pixel_values
        added, scaled, kept = x.clone(), x.clone(), x.clone()
        added[:, :4].add_(self.first(x[:, :4]))
        scaled[:, :4].mul_(self.factors)
        rows = torch.zeros(x.shape[0], 16, 48)
        turned = rows.view(-1, 16, 4, 12).transpose(1, 2)
        rows.view(-1, 48)[torch.arange(4)] = self.second(x[0, :4])
        for place in range(2):
            rows[:, 4 * place : 4 * place + 4] += x[:, :4]
        kept[:, 0] = self.first(x[:, 1])
        whole = self.three(turned.transpose(1, 2).flatten(2)) + self.four(kept) + self.five(x)
        return self.one(added) + self.two(scaled) + whole


class Spectral(torch.nn.Module):
    """Complex weights of a spectrum, and kernels that every sample mixes for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Conv1d(8, 8, 1)
        self.modes = torch.nn.Parameter(torch.randn(8, 8, 5, dtype=torch.cfloat))
        self.kernels = torch.nn.Parameter(torch.randn(4, 16, 8, 3))
        self.router = torch.nn.Linear(8, 4)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x = self.inner(pixel_values)
        spectrum = torch.fft.rfft(x)
        low = torch.einsum("bix,iox->box", spectrum[:, :, :5], self.modes)
        spectrum = torch.cat([low, torch.zeros_like(spectrum[:, :, 5:])], -1)
        x = x + torch.fft.irfft(spectrum, n=x.shape[-1])
        b = x.shape[0]
        mixed = torch.sigmoid(self.router(x.mean(-1))) @ self.kernels.flatten(1)
        rows = x.reshape(1, b * 8, -1)
        made = torch.nn.functional.conv1d(rows, mixed.view(b * 16, 8, 3), groups=b, padding=1)
        return made.view(b, 16, -1)


class Thawed(torch.nn.Module):
    """Frozen blocks between those that learn: some before the first of these, some behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(96, 48)
        self.blocks = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(48, 64), torch.nn.GELU(), torch.nn.Linear(64, 48))
            for _ in range(6)
        )
        self.head = torch.nn.Linear(48, 96)
        for module in (self.table, *(self.blocks[place] for place in (0, 2, 3, 5))):
            module.requires_grad_(requires_grad=False)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.table(input_ids)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def _hf(cls: str, config: str, **fields: Any) -> Callable[[], torch.nn.Module]:
    return lambda: getattr(hf, cls)._from_config(  # noqa: SLF001 - the public door of a config
        getattr(hf, config)(**fields),
        **({"attn_implementation": "sdpa"} if cls not in _PLAIN else {}),
    )


_PLAIN = {
    "TimesformerForVideoClassification",
    "HieraForImageClassification",
    "Gemma2ForCausalLM",
    "ResNetForImageClassification",
    "ConvNextForImageClassification",
    "SwinForImageClassification",
    "MobileNetV2ForImageClassification",
    "EfficientNetForImageClassification",
    "T5ForConditionalGeneration",
    "DebertaV2ForMaskedLM",
    "Mamba2ForCausalLM",
    "SegformerForSemanticSegmentation",
    "BloomForCausalLM",
    "FalconMambaForCausalLM",
    "MambaForCausalLM",
    "RwkvForCausalLM",
    "GPTNeoForCausalLM",
    "PoolFormerForImageClassification",
    "GptOssForCausalLM",
    "ConvBertForMaskedLM",
}

MODELS: Mapping[str, tuple[Callable[[], torch.nn.Module], tuple[Any, ...]]] = {
    "llama": (_hf("LlamaForCausalLM", "LlamaConfig", **_DECODER), _TOKENS),
    "gpt2": (
        _hf(
            "GPT2LMHeadModel",
            "GPT2Config",
            n_embd=64,
            n_layer=3,
            n_head=4,
            vocab_size=96,
            n_positions=128,
        ),
        _TOKENS,
    ),
    "qwen3": (_hf("Qwen3ForCausalLM", "Qwen3Config", **_DECODER, head_dim=16), _TOKENS),
    "gemma2": (
        _hf(
            "Gemma2ForCausalLM",
            "Gemma2Config",
            **{**_DECODER, "num_hidden_layers": 4},
            head_dim=16,
            sliding_window=8,
        ),
        _TOKENS,
    ),
    "phi3": (_hf("Phi3ForCausalLM", "Phi3Config", **_DECODER), _TOKENS),
    "gpt_neox": (_hf("GPTNeoXForCausalLM", "GPTNeoXConfig", **_ENCODER), _TOKENS),
    "opt": (
        _hf(
            "OPTForCausalLM",
            "OPTConfig",
            hidden_size=64,
            ffn_dim=128,
            num_hidden_layers=3,
            num_attention_heads=4,
            vocab_size=96,
            max_position_embeddings=128,
            word_embed_proj_dim=64,
        ),
        _TOKENS,
    ),
    "falcon": (
        _hf(
            "FalconForCausalLM",
            "FalconConfig",
            hidden_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            vocab_size=96,
        ),
        _TOKENS,
    ),
    "albert": (_hf("AlbertForMaskedLM", "AlbertConfig", **_ENCODER, embedding_size=32), _TOKENS),
    "deepseek_v3": (
        _hf(
            "DeepseekV3ForCausalLM",
            "DeepseekV3Config",
            **{**_DECODER, "num_key_value_heads": 4},
            q_lora_rank=24,
            kv_lora_rank=16,
            qk_nope_head_dim=16,
            qk_rope_head_dim=8,
            v_head_dim=12,
            first_k_dense_replace=3,
            moe_intermediate_size=32,
            n_routed_experts=8,
            n_group=2,
            topk_group=1,
        ),
        _TOKENS,
    ),
    "qwen2_moe": (
        _hf(
            "Qwen2MoeForCausalLM",
            "Qwen2MoeConfig",
            **_DECODER,
            moe_intermediate_size=48,
            shared_expert_intermediate_size=56,
            num_experts=4,
            num_experts_per_tok=2,
        ),
        _TOKENS,
    ),
    "mixtral": (
        _hf("MixtralForCausalLM", "MixtralConfig", **_DECODER, num_local_experts=4),
        _TOKENS,
    ),
    "gpt_oss": (
        _hf(
            "GptOssForCausalLM",
            "GptOssConfig",
            **_DECODER,
            head_dim=16,
            num_local_experts=4,
            num_experts_per_tok=2,
            sliding_window=8,
        ),
        _TOKENS,
    ),
    "bert": (_hf("BertForMaskedLM", "BertConfig", **_ENCODER), _TOKENS),
    "distilbert": (
        _hf(
            "DistilBertForMaskedLM",
            "DistilBertConfig",
            dim=64,
            hidden_dim=128,
            n_layers=3,
            n_heads=4,
            vocab_size=96,
            max_position_embeddings=130,
        ),
        _TOKENS,
    ),
    "deberta_v2": (
        _hf(
            "DebertaV2ForMaskedLM",
            "DebertaV2Config",
            **_ENCODER,
            relative_attention=True,
            position_buckets=16,
            pos_att_type=["p2c", "c2p"],
            share_att_key=True,
        ),
        _TOKENS,
    ),
    "modernbert": (
        _hf(
            "ModernBertForMaskedLM",
            "ModernBertConfig",
            **_ENCODER,
            pad_token_id=0,
            local_attention=8,
        ),
        _TOKENS,
    ),
    "t5": (
        _hf(
            "T5ForConditionalGeneration",
            "T5Config",
            d_model=64,
            d_kv=16,
            d_ff=128,
            num_layers=2,
            num_heads=4,
            vocab_size=96,
            decoder_start_token_id=0,
        ),
        _PAIRS,
    ),
    "bart": (_hf("BartForConditionalGeneration", "BartConfig", **_SEQ2SEQ), _PAIRS),
    "whisper": (
        _hf(
            "WhisperForConditionalGeneration",
            "WhisperConfig",
            **{**_SEQ2SEQ, "vocab_size": 96},
            num_mel_bins=8,
            max_source_positions=24,
            max_target_positions=64,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        ),
        (("input_features", "decoder_input_ids"), _spectrum, ({0: "b"}, {0: "b", 1: "l"})),
    ),
    "vit": (
        _hf(
            "ViTForImageClassification",
            "ViTConfig",
            **_WIDE,
            **_IMAGE,
            intermediate_size=128,
            patch_size=8,
        ),
        _PIXELS,
    ),
    "dinov2": (
        _hf("Dinov2ForImageClassification", "Dinov2Config", **_WIDE, **_IMAGE, patch_size=8),
        _PIXELS,
    ),
    "clip": (
        _hf(
            "CLIPModel",
            "CLIPConfig",
            text_config={
                **_ENCODER,
                "max_position_embeddings": 64,
                "projection_dim": 32,
                "eos_token_id": 2,
            },
            vision_config={
                **_WIDE,
                **_IMAGE,
                "intermediate_size": 128,
                "patch_size": 8,
                "projection_dim": 32,
            },
            projection_dim=32,
        ),
        (("input_ids", "pixel_values"), _clip, ({0: "b", 1: "l"}, {0: "b"})),
    ),
    "swin": (
        _hf(
            "SwinForImageClassification",
            "SwinConfig",
            image_size=32,
            patch_size=2,
            embed_dim=24,
            depths=[2, 2],
            num_heads=[2, 4],
            window_size=4,
        ),
        _PIXELS,
    ),
    "convnext": (
        _hf(
            "ConvNextForImageClassification",
            "ConvNextConfig",
            hidden_sizes=[16, 32],
            depths=[2, 2],
            num_stages=2,
        ),
        _PIXELS,
    ),
    "resnet": (
        _hf(
            "ResNetForImageClassification",
            "ResNetConfig",
            embedding_size=16,
            hidden_sizes=[32, 64],
            depths=[2, 2],
        ),
        _PIXELS,
    ),
    "segformer": (
        _hf(
            "SegformerForSemanticSegmentation",
            "SegformerConfig",
            num_encoder_blocks=2,
            depths=[1, 2],
            sr_ratios=[2, 1],
            hidden_sizes=[16, 32],
            patch_sizes=[7, 3],
            strides=[4, 2],
            num_attention_heads=[1, 2],
            mlp_ratios=[2, 2],
            decoder_hidden_size=32,
        ),
        _PIXELS,
    ),
    "mobilenet_v2": (
        _hf(
            "MobileNetV2ForImageClassification",
            "MobileNetV2Config",
            image_size=32,
            depth_multiplier=0.35,
            min_depth=8,
        ),
        _PIXELS,
    ),
    "wav2vec2": (
        _hf(
            "Wav2Vec2ForCTC",
            "Wav2Vec2Config",
            **_WIDE,
            intermediate_size=128,
            vocab_size=32,
            conv_dim=[16, 16],
            conv_stride=[5, 2],
            conv_kernel=[10, 3],
            num_feat_extract_layers=2,
            num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4,
            apply_spec_augment=False,
        ),
        (("input_values",), _sound, ({0: "b", 1: "l*40"},)),
    ),
    "ast": (
        _hf(
            "ASTForAudioClassification",
            "ASTConfig",
            **_WIDE,
            intermediate_size=128,
            patch_size=8,
            frequency_stride=8,
            time_stride=8,
            max_length=64,
            num_mel_bins=16,
        ),
        (("input_values",), _frames, ({0: "b"},)),
    ),
    "mamba": (
        _hf(
            "MambaForCausalLM",
            "MambaConfig",
            hidden_size=32,
            state_size=8,
            num_hidden_layers=2,
            vocab_size=96,
            use_mambapy=False,
        ),
        _SHORT,
    ),
    "mamba2": (
        _hf(
            "Mamba2ForCausalLM",
            "Mamba2Config",
            hidden_size=32,
            num_heads=4,
            head_dim=16,
            state_size=16,
            expand=2,
            num_hidden_layers=2,
            vocab_size=96,
            n_groups=2,
            chunk_size=8,
        ),
        _SHORT,
    ),
    "yolos": (
        _hf(
            "YolosForObjectDetection",
            "YolosConfig",
            hidden_size=48,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=96,
            image_size=[32, 48],
            num_detection_tokens=5,
        ),
        _shaped(3, 32, 48),
    ),
    "timesformer": (
        _hf(
            "TimesformerForVideoClassification",
            "TimesformerConfig",
            hidden_size=48,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=96,
            image_size=32,
            patch_size=16,
            num_frames=4,
        ),
        _shaped(4, 3, 32, 32),
    ),
    "hiera": (
        _hf(
            "HieraForImageClassification",
            "HieraConfig",
            embed_dim=24,
            image_size=[64, 64],
            depths=[1, 1, 2, 1],
            num_heads=[1, 2, 4, 8],
        ),
        _shaped(3, 64, 64),
    ),
    "dpt": (
        _hf(
            "DPTForDepthEstimation",
            "DPTConfig",
            hidden_size=48,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=96,
            image_size=64,
            patch_size=16,
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[16, 24, 32, 32],
            fusion_hidden_size=16,
        ),
        _shaped(3, 64, 64),
    ),
    "deepseek_v2": (
        _hf(
            "DeepseekV2ForCausalLM",
            "DeepseekV2Config",
            **{**_DECODER, "num_key_value_heads": 4},
            q_lora_rank=None,
            kv_lora_rank=16,
            qk_nope_head_dim=16,
            qk_rope_head_dim=8,
            v_head_dim=12,
            first_k_dense_replace=1,
            moe_intermediate_size=32,
            n_routed_experts=8,
            num_experts_per_tok=2,
            n_group=1,
            topk_group=1,
        ),
        _TOKENS,
    ),
    "siglip": (
        _hf(
            "SiglipVisionModel",
            "SiglipVisionConfig",
            **_WIDE,
            **_IMAGE,
            intermediate_size=128,
            patch_size=8,
        ),
        _PIXELS,
    ),
    "convbert": (
        _hf("ConvBertForMaskedLM", "ConvBertConfig", **_ENCODER, embedding_size=48),
        _TOKENS,
    ),
    "one_expert": (
        _hf(
            "MixtralForCausalLM",
            "MixtralConfig",
            **_DECODER,
            num_local_experts=4,
            num_experts_per_tok=1,
        ),
        _TOKENS,
    ),
    "mixer": (Mixer, _PIXELS),
    "unet": (UNet, _PIXELS),
    "standardized": (Normalized, _PIXELS),
    "retention": (Linear, _TOKENS),
    "letters": (Letters, _TOKENS),
    "stopped": (Stopped, _TOKENS),
    "operators": (Operators, _TOKENS),
    "steps": (Steps, _TOKENS),
    "written": (Written, _shaped(16, 48)),
    "spectral": (Spectral, _shaped(8, 16)),
    "thawed": (Thawed, _TOKENS),
}


def _dims(shapes: tuple[dict[int, str], ...]) -> tuple[dict[int, Any], ...]:
    known = {
        "b": Dim("b", min=2, max=64),
        "l": Dim("l", min=9, max=64),
        "m": Dim("m", min=4, max=64),
    }
    return tuple(
        {place: 40 * known["l"] if "*" in name else known[name] for place, name in dims.items()}
        for dims in shapes
    )


def exported(name: str) -> tuple[bytes, dict[str, Any]]:
    """Return the archive of a model, and its counts."""
    torch.manual_seed(0)
    make, (names, inputs, shapes) = MODELS[name]
    model = Output(make().eval(), names)
    program = export(model, inputs(2, 16), dynamic_shapes=(_dims(shapes),), strict=False)
    buffer = BytesIO()
    save(program, buffer)
    counts = [dict(zip("bl", size, strict=True)) | _counted(model, inputs(*size)) for size in SIZES]
    params = sum(p.numel() for p in model.parameters())
    return lean(buffer.getvalue()), {"params": params, "sizes": counts}


def _counted(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> dict[str, int]:
    config = getattr(model.model, "config", None)
    if config is not None:  # a grouped product is one operator, which the counter does not know
        config._experts_implementation = "eager"  # noqa: SLF001 - it has no public setter
    with sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as forward:
            made = model(*inputs)
        with FlopCounterMode(display=False) as backward:
            made.float().sum().backward()
    more = {"m": inputs[1].shape[1]} if len(inputs) > 1 and inputs[1].dim() == 2 else {}
    flops = forward.get_total_flops()
    return {**more, "flops_fwd": flops, "flops_train": flops + backward.get_total_flops()}


def lean(archive: bytes) -> bytes:
    """Return an archive without weights, samples and traces of the stack."""
    source, made = zipfile.ZipFile(BytesIO(archive)), BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for name in source.namelist():
            if (
                "/data/weights/weight_" in name
                or "/data/constants/tensor_" in name
                or name.endswith("model.pt")
            ):
                continue
            data = source.read(name)
            if name.endswith(".json"):
                data = json.dumps(_plain(json.loads(data)), separators=(",", ":")).encode()
            target.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return made.getvalue()


_TRACES = {
    "stack_trace",
    "torch_fn",
    "source_fn_stack",
    "from_node",
    "guards_code",
    "strides",
    "hint",
}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if k not in _TRACES}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    folder = Path(sys.argv[1])
    truths = folder / "truth.json"
    for name in sys.argv[2:] or MODELS:
        try:
            archive, truth = exported(name)
        except Exception:  # noqa: BLE001 - one that cannot be exported is told, and the others go on
            print(name, "FAILED", traceback.format_exc()[-700:], flush=True)  # noqa: T201 - a script
            continue
        (folder / f"{name}.pt2").write_bytes(archive)
        known = json.loads(truths.read_text()) if truths.exists() else {}
        truths.write_text(json.dumps(known | {name: truth}, indent=1, sort_keys=True) + "\n")
        print(name, len(archive), truth["params"], flush=True)  # noqa: T201 - a script


if __name__ == "__main__":
    main()
