"""Publications and public tools that formulas, sizes and conventions point at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """One source.

    Args:
        key: short name that rows carry.
        title: title of the publication or tool.
        where: identifier under which it is found (arXiv number, repository and commit).
    """

    key: str
    title: str
    where: str


REFERENCES: dict[str, Reference] = {
    entry.key: entry
    for entry in (
        Reference("definition", "Follows from the declaration of the op", "this library"),
        Reference(
            "subramanian-2024",
            "transformer-perf-estimates, notebook with transformer block tables",
            "github.com/ShashankSubramanian/transformer-perf-estimates, "
            "commits cf96a49, 917b558 and 80b63dc",
        ),
        Reference(
            "korthikanti-2022",
            "Reducing Activation Recomputation in Large Transformer Models",
            "arXiv:2205.05198",
        ),
        Reference(
            "narayanan-2021",
            "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
            "arXiv:2104.04473",
        ),
        Reference(
            "shoeybi-2019",
            "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism",
            "arXiv:1909.08053",
        ),
        Reference(
            "lepikhin-2020",
            "GShard: Scaling Giant Models with Conditional Computation and Automatic Sharding",
            "arXiv:2006.16668",
        ),
        Reference(
            "rajbhandari-2019",
            "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
            "arXiv:1910.02054",
        ),
        Reference("dao-2022", "FlashAttention", "arXiv:2205.14135"),
        Reference(
            "radford-2019",
            "Language Models are Unsupervised Multitask Learners",
            "OpenAI technical report, Table 2",
        ),
        Reference("brown-2020", "Language Models are Few-Shot Learners", "arXiv:2005.14165"),
        Reference(
            "ring-collectives",
            "Bandwidth optimal all-reduce algorithms for clusters of workstations",
            "Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009)",
        ),
        Reference(
            "megatron-report",
            "get_training_info: offline report of the memory and communication of a GPT",
            "github.com/NVIDIA/Megatron-LM, commit bbbfed7, tools/get_training_info",
        ),
        Reference(
            "pycomm-prefill",
            "Log of an attention prefill with all-to-alls and a tensor-parallel perceptron",
            "github.com/sfc-gh-mhidayetoglu/PyComm, commits 3b1a699, d7a62c8 and 5e270bf",
        ),
        Reference(
            "jacobs-2023",
            "DeepSpeed Ulysses: System Optimizations for Enabling Training of Extreme Long "
            "Sequence Transformer Models",
            "arXiv:2309.14509",
        ),
        Reference(
            "liu-2023",
            "Ring Attention with Blockwise Transformers for Near-Infinite Context",
            "arXiv:2310.01889",
        ),
        Reference("qi-2024", "Zero Bubble Pipeline Parallelism", "arXiv:2401.10241"),
        Reference(
            "huang-2019",
            "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
            "arXiv:1811.06965",
        ),
        Reference("grattafiori-2024", "The Llama 3 Herd of Models", "arXiv:2407.21783"),
        Reference(
            "flops-profiler",
            "Flops Profiler, with profiles of BERT-base and of a Megatron-LM GPT-2",
            "github.com/cli99/flops-profiler, commits 9150c3a and ae04948",
        ),
        Reference(
            "devlin-2018",
            "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
            "arXiv:1810.04805",
        ),
        Reference(
            "raffel-2019",
            "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
            "arXiv:1910.10683",
        ),
        Reference(
            "dosovitskiy-2020",
            "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale",
            "arXiv:2010.11929",
        ),
        Reference(
            "gu-2023",
            "Mamba: Linear-Time Sequence Modeling with Selective State Spaces",
            "arXiv:2312.00752",
        ),
        Reference(
            "dao-2024",
            "Transformers are SSMs: Generalized Models and Efficient Algorithms Through "
            "Structured State Space Duality",
            "arXiv:2405.21060",
        ),
        Reference(
            "lecun-1998",
            "Gradient-Based Learning Applied to Document Recognition",
            "Proceedings of the IEEE 86 (1998)",
        ),
        Reference(
            "krizhevsky-2014",
            "One weird trick for parallelizing convolutional neural networks",
            "arXiv:1404.5997",
        ),
        Reference(
            "simonyan-2014",
            "Very Deep Convolutional Networks for Large-Scale Image Recognition",
            "arXiv:1409.1556",
        ),
        Reference("he-2015", "Deep Residual Learning for Image Recognition", "arXiv:1512.03385"),
        Reference(
            "sandler-2018",
            "MobileNetV2: Inverted Residuals and Linear Bottlenecks",
            "arXiv:1801.04381",
        ),
        Reference("zaremba-2014", "Recurrent Neural Network Regularization", "arXiv:1409.2329"),
        Reference("deepseek-2024", "DeepSeek-V3 Technical Report", "arXiv:2412.19437"),
        Reference("kingma-2014", "Adam: A Method for Stochastic Optimization", "arXiv:1412.6980"),
        Reference(
            "shazeer-2018",
            "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost",
            "arXiv:1804.04235",
        ),
        Reference(
            "dettmers-2021", "8-bit Optimizers via Block-wise Quantization", "arXiv:2110.02861"
        ),
        Reference(
            "jordan-2024",
            "Muon: An optimizer for hidden layers in neural networks",
            "kellerjordan.github.io/posts/muon",
        ),
        Reference(
            "transformer-engine",
            "Transformer Engine, with 8-bit floating point recipes",
            "github.com/NVIDIA/TransformerEngine",
        ),
        Reference(
            "torch-flop-counter",
            "PyTorch, torch.utils.flop_counter.FlopCounterMode",
            "github.com/pytorch/pytorch, version 2.13",
        ),
        Reference(
            "torch-autograd",
            "PyTorch, storages kept by autograd for the models of Transformers",
            "github.com/pytorch/pytorch, version 2.13; github.com/huggingface/transformers, 5.23",
        ),
        Reference("fvcore", "fvcore, flop counting", "github.com/facebookresearch/fvcore"),
        Reference(
            "chowdhery-2022", "PaLM: Scaling Language Modeling with Pathways", "arXiv:2204.02311"
        ),
        Reference("kaplan-2020", "Scaling Laws for Neural Language Models", "arXiv:2001.08361"),
        Reference(
            "xu-2021",
            "An Efficient 2D Method for Training Super-Large Deep Learning Models",
            "arXiv:2104.05343",
        ),
        Reference(
            "wang-2021",
            "Tesseract: Parallelize the Tensor Parallelism Efficiently",
            "arXiv:2105.14500",
        ),
        Reference(
            "bian-2021",
            "Maximizing Parallelism in Distributed Training for Huge Neural Networks",
            "arXiv:2105.14450",
        ),
        Reference(
            "subramanian-2024-head",
            "Comprehensive Performance Modeling and System Design Insights for Foundation Models, "
            "with its public code",
            "arXiv:2410.00273; github.com/ShashankSubramanian/transformer-perf-estimates, "
            "commit 54278b0",
        ),
        Reference(
            "williams-2009",
            "Roofline: An Insightful Visual Performance Model for Multicore Architectures",
            "Communications of the ACM 52 (2009)",
        ),
        Reference(
            "thakur-2005",
            "Optimization of Collective Communication Operations in MPICH",
            "Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19 (2005)",
        ),
        Reference(
            "graham-2016",
            "Scalable Hierarchical Aggregation Protocol (SHArP): A Hardware Architecture for "
            "Efficient Data Reduction",
            "COMHPC 2016",
        ),
        Reference(
            "lstm-roofline",
            "Log of a roofline model of a language model of LSTM layers on a device with an "
            "energy budget",
            "summary.txt of 2019-06-12, upstream commit e6a5da0",
        ),
        Reference(
            "black-2022",
            "GPT-NeoX-20B: An Open-Source Autoregressive Language Model",
            "arXiv:2204.06745",
        ),
        Reference(
            "biderman-2023",
            "Pythia: A Suite for Analyzing Large Language Models",
            "arXiv:2304.01373",
        ),
        Reference(
            "zhang-2022", "OPT: Open Pre-trained Transformer Language Models", "arXiv:2205.01068"
        ),
        Reference(
            "bloom-2022",
            "BLOOM: A 176B-Parameter Open-Access Multilingual Language Model",
            "arXiv:2211.05100",
        ),
        Reference("falcon-2023", "The Falcon Series of Open Language Models", "arXiv:2311.16867"),
        Reference(
            "touvron-2023",
            "LLaMA: Open and Efficient Foundation Language Models",
            "arXiv:2302.13971",
        ),
        Reference(
            "llama-2", "Llama 2: Open Foundation and Fine-Tuned Chat Models", "arXiv:2307.09288"
        ),
        Reference("jiang-2023", "Mistral 7B", "arXiv:2310.06825"),
        Reference("jiang-2024", "Mixtral of Experts", "arXiv:2401.04088"),
        Reference("qwen2", "Qwen2 Technical Report", "arXiv:2407.10671"),
        Reference("qwen3", "Qwen3 Technical Report", "arXiv:2505.09388"),
        Reference(
            "gemma-2",
            "Gemma 2: Improving Open Language Models at a Practical Size",
            "arXiv:2408.00118",
        ),
        Reference("phi-3", "Phi-3 Technical Report", "arXiv:2404.14219"),
        Reference("gpt-oss", "gpt-oss-120b and gpt-oss-20b Model Card", "arXiv:2508.10925"),
        Reference("olmoe", "OLMoE: Open Mixture-of-Experts Language Models", "arXiv:2409.02060"),
        Reference(
            "command-r",
            "Command R, configuration of the published weights",
            "huggingface.co/CohereForAI/c4ai-command-r-v01",
        ),
        Reference(
            "chung-2022", "Scaling Instruction-Finetuned Language Models", "arXiv:2210.11416"
        ),
        Reference(
            "fedus-2021",
            "Switch Transformers: Scaling to Trillion Parameter Models with Simple and "
            "Efficient Sparsity",
            "arXiv:2101.03961",
        ),
        Reference(
            "vtrain-2024",
            "vTrain: A Simulation Framework for Evaluating Cost-effective and Compute-optimal "
            "Large Language Model Training",
            "arXiv:2312.12391; github.com/VIA-Research/vTrain, commit f8dda84",
        ),
    )
}
"""Every source by its key."""
