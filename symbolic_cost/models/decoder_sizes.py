"""Published sizes of decoder families, as data: name, family, sizes by symbol, source."""

from __future__ import annotations

from symbolic_cost.models.published_size import PublishedSize

_ROWS = (
    (
        "gpt-neox-20b",
        "gpt_neox",
        "n_layers=44 e=6144 f=24576 h=64 q=96 d_r=24 V=50432 l=2048",
        "black-2022",
    ),
    (
        "pythia-12b",
        "gpt_neox",
        "n_layers=36 e=5120 f=20480 h=40 q=128 d_r=32 V=50688 l=2048",
        "biderman-2023",
    ),
    (
        "opt-13b",
        "opt",
        "n_layers=40 e=5120 f=20480 h=40 q=128 V=50272 P=2050 l=2048",
        "zhang-2022",
    ),
    (
        "opt-66b",
        "opt",
        "n_layers=64 e=9216 f=36864 h=72 q=128 V=50272 P=2050 l=2048",
        "zhang-2022",
    ),
    (
        "bloom-176b",
        "bloom",
        "n_layers=70 e=14336 f=57344 h=112 q=128 V=250880 l=2048",
        "bloom-2022",
    ),
    (
        "falcon-7b",
        "falcon",
        "n_layers=32 e=4544 f=18176 h=71 k=1 q=64 V=65024 l=2048",
        "falcon-2023",
    ),
    (
        "llama-7b",
        "llama",
        "n_layers=32 e=4096 f=11008 h=32 k=32 q=128 V=32000 l=2048",
        "touvron-2023",
    ),
    (
        "llama-65b",
        "llama",
        "n_layers=80 e=8192 f=22016 h=64 k=64 q=128 V=32000 l=2048",
        "touvron-2023",
    ),
    (
        "llama-2-7b",
        "llama",
        "n_layers=32 e=4096 f=11008 h=32 k=32 q=128 V=32000 l=4096",
        "llama-2",
    ),
    (
        "llama-2-13b",
        "llama",
        "n_layers=40 e=5120 f=13824 h=40 k=40 q=128 V=32000 l=4096",
        "llama-2",
    ),
    (
        "llama-2-70b",
        "llama",
        "n_layers=80 e=8192 f=28672 h=64 k=8 q=128 V=32000 l=4096",
        "llama-2",
    ),
    (
        "llama-3-8b",
        "llama",
        "n_layers=32 e=4096 f=14336 h=32 k=8 q=128 V=128256 l=8192",
        "grattafiori-2024",
    ),
    (
        "llama-3-70b",
        "llama",
        "n_layers=80 e=8192 f=28672 h=64 k=8 q=128 V=128256 l=8192",
        "grattafiori-2024",
    ),
    (
        "llama-3-405b",
        "llama",
        "n_layers=126 e=16384 f=53248 h=128 k=8 q=128 V=128256 l=8192",
        "grattafiori-2024",
    ),
    (
        "mistral-7b",
        "mistral",
        "n_layers=32 e=4096 f=14336 h=32 k=8 q=128 V=32000 W=4096 l=8192",
        "jiang-2023",
    ),
    (
        "mixtral-8x7b",
        "mixtral",
        "n_layers=32 e=4096 f_m=14336 h=32 k=8 q=128 V=32000 E=8 E_t=2 W=4096 l=32768",
        "jiang-2024",
    ),
    (
        "qwen2-7b",
        "qwen2",
        "n_layers=28 e=3584 f=18944 h=28 k=4 q=128 V=152064 l=32768",
        "qwen2",
    ),
    (
        "qwen3-8b",
        "qwen3",
        "n_layers=36 e=4096 f=12288 h=32 k=8 q=128 V=151936 l=32768",
        "qwen3",
    ),
    (
        "qwen3-30b-a3b",
        "qwen3_moe",
        "n_layers=48 e=2048 f_m=768 h=32 k=4 q=128 V=151936 E=128 E_t=8 l=32768",
        "qwen3",
    ),
    (
        "qwen3-235b-a22b",
        "qwen3_moe",
        "n_layers=94 e=4096 f_m=1536 h=64 k=4 q=128 V=151936 E=128 E_t=8 l=32768",
        "qwen3",
    ),
    (
        "gemma-2-9b",
        "gemma2",
        "n_layers=42 e=3584 f=14336 h=16 k=8 q=256 V=256000 W=4096 l=8192",
        "gemma-2",
    ),
    (
        "phi-3-mini",
        "phi3",
        "n_layers=32 e=3072 f=8192 h=32 k=32 q=96 V=32064 l=4096",
        "phi-3",
    ),
    (
        "deepseek-v3",
        "deepseek_v3",
        (
            "n_layers=61 n_dense=3 e=7168 f=18432 f_m=2048 f_s=2048 h=128 V=129280 E=256 "
            "E_t=8 r_q=1536 r_kv=512 d_n=128 d_r=64 d_v=128 l=4096"
        ),
        "deepseek-2024",
    ),
    (
        "gpt-oss-120b",
        "gpt_oss",
        "n_layers=36 e=2880 f_m=2880 h=64 k=8 q=64 V=201088 E=128 E_t=4 W=128 l=4096",
        "gpt-oss",
    ),
    (
        "olmoe-1b-7b",
        "olmoe",
        "n_layers=16 e=2048 f_m=1024 h=16 k=16 q=128 V=50304 E=64 E_t=8 l=4096",
        "olmoe",
    ),
    (
        "command-r",
        "cohere",
        "n_layers=40 e=8192 f=22528 h=64 k=64 q=128 V=256000 l=8192",
        "command-r",
    ),
)

DECODER_SIZES = tuple(PublishedSize(*row) for row in _ROWS)
"""Published sizes."""
