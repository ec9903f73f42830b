"""Write families_stored.json: bytes of weights as Transformers converts linear layers.

Run with torch and transformers: python -m tests.golden.make_stored_bytes > FILE; with `wide`, it
writes families_stored_wide.json, of families whose files hold weights as one that then end where
blocks of scales end. Models are built
without memory; of each linear layer that is converted the bytes follow from its shape, experts are
linear layers of their own, and what is converted is asked of Transformers, whose version 4 also
leaves out a last layer with a bias. Where versions differ stands null: that is not to be counted.
"""

import json
import re
import sys
from math import ceil

import torch
import transformers
from torch import nn
from transformers import AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.pytorch_utils import Conv1D
from transformers.quantizers.base import get_keys_to_not_convert
from transformers.quantizers.quantizers_utils import should_convert_module

from symbolic_cost.models.converted import JOINED
from tests.models.test_families_truth import GOLDEN, TRUTH, approved

RULES = {
    "nf4": lambda o, i: ceil(o * i / 2) + 4 * ceil(o * i / 64),
    "double": lambda o, i: ceil(o * i / 2) + ceil(o * i / 64) + 4 * ceil(o * i / 16384) + 4,
    "int8": lambda o, i: o * i + 4 * o + 1,
    "fp8": lambda o, i: o * i + 4 * ceil(o / 128) * ceil(i / 128),
}
ROUTERS = ["lm_head", "mlp.gate", "router", "block_sparse_moe.gate", "shared_expert_gate"]
MOST = 10**8
WIDTHS = (
    "hidden_size intermediate_size moe_intermediate_size shared_expert_intermediate_size head_dim "
    "linear_key_head_dim linear_value_head_dim linear_num_value_heads embed_dim out_hidden_size "
    "n_embd n_inner qk_nope_head_dim v_head_dim kv_lora_rank q_lora_rank mrope_section"
)


def built(config):
    config = dict(config)
    own = CONFIG_MAPPING[config.pop("model_type")].from_dict(config)
    made = getattr(transformers, (config.get("architectures") or [""])[0], None)
    with torch.device("meta"):
        model = made(own) if made else AutoModel.from_config(own)
    model.tie_weights()
    return model


def layers(model, left):
    """Yield result and summed features of every linear layer that is converted."""
    for name, module in model.named_modules():
        if not should_convert_module(name, left):
            continue
        if type(module) is nn.Linear or isinstance(module, Conv1D):
            o, i = module.weight.shape
            yield (i, o) if isinstance(module, Conv1D) else (o, i)
        elif name.endswith(".experts"):
            for key, weight in module.named_parameters(recurse=False):
                if weight.dim() == 3:
                    n, o, i = weight.shape
                    o, i = (i, o) if getattr(module, "is_transposed", False) else (o, i)
                    two = 2 if "gate_up" in key else 1
                    yield from [(o // two, i)] * (n * two)


def counted(model, left):
    plain = 2 * sum(p.numel() for p in model.parameters())
    every = list(layers(model, left))
    less = sum(2 * o * i for o, i in every)
    return [plain - less + sum(rule(*one) for one in every) for rule in RULES.values()]


def entry(config):
    """Return bytes by format where nothing is said, and where `lm_head` and routers are named."""
    model = built(config)
    wide = list(model._keep_in_fp32_modules or [])  # noqa: SLF001 - nowhere else
    left = get_keys_to_not_convert(model) + wide
    last = re.sub(r"\.(weight|bias)$", "", list(model.named_parameters())[-1][0])
    now, before = counted(model, left), counted(model, [*left, last])
    named = counted(model, ROUTERS + wide)
    return sum(p.numel() for p in model.parameters()), now if now == before else None, named


def known(name):
    return TRUTH[name]["config"]["model_type"] in JOINED


def widened(config, name=""):
    """Return a configuration all widths of which are 32 times as large."""
    if isinstance(config, dict):
        return {key: widened(value, key) for key, value in config.items()}
    if isinstance(config, list):
        return [widened(one, name) for one in config]
    return config * 32 if name in WIDTHS.split() and config else config


def wide():
    made, families = {}, set()
    for name in json.loads((GOLDEN / "families_stored.json").read_text(encoding="utf-8")):
        family = TRUTH[name]["config"]["model_type"]
        if JOINED.get(family) and family not in families:
            families.add(family)
            config = widened(TRUTH[name]["config"])
            made[name] = [config, *entry(config)[1:]]
    return made


def main():
    made = {}
    for name in () if "wide" in sys.argv else sorted(approved()):
        one = TRUTH[name]
        if "model_type" in one["config"] and one["params"][0] < MOST:
            try:
                params, *found = entry(one["config"])
            except Exception as error:  # noqa: BLE001 - a class that this version cannot build
                sys.stderr.write(f"{name}: {error!r}\n"[:200])
                continue
            if params in one["params"]:
                made[name] = found
    # all entries of families that are known, and some of the others, which are not counted
    some = {n: f for i, (n, f) in enumerate(made.items()) if known(n) or i % 8 == 0}
    some = wide() if "wide" in sys.argv else some
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in some.items())
    sys.stdout.write(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
