"""Every field of every family changed, one at a time: as PyTorch counts, or refused by its name.

`mutations.jsonl` is a sample of what `tests/golden/make_mutations.py` writes: a family, a field,
its new value ("missing" without it), and what PyTorch counts of the small model of
families_truth.json that is changed so, or that Transformers refuses it.
Models that see and hear have lines as well, of what is no field of their texts; those of
`mutations_wider.jsonl` are of families_wider.json.
"""

import json

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count
from tests.models.test_families_truth import GOLDEN, TRUTH

BATCH, LENGTH = 2, 40
COUNTED = {
    "params": "params",
    "forward": "flops_fwd",
    "decode": "flops_decode",
    "cache": "kv_cache_elements",
}
LINES = [
    line
    for file in ("mutations.jsonl", "mutations_wider.jsonl")
    for line in (GOLDEN / file).read_text(encoding="utf-8").splitlines()
]
CONFIGS = {
    entry["config"]["model_type"]
    if entry.get("category") == "causal"
    else name.rpartition("/")[0]: entry["config"]
    for name, entry in TRUTH.items()
    if name.endswith(("/a", "/text"))
}
FEW = LINES[::40]


def answered(config):
    """The counts and no refusal, or none and its text."""
    try:
        return count(config, BATCH, LENGTH), ""
    except InputError as error:
        return None, str(error)


def check(text):
    line = json.loads(text)
    kind, path, _ = line["what"]
    config = json.loads(json.dumps(CONFIGS[kind]))
    *sections, key = path.split(".")
    fields = config
    for name in sections:
        fields = fields[name]
    fields[key] = line["set"]
    if line["set"] == "missing":
        del fields[key]
    answer, refusal = answered(config)
    if answer is None:
        assert key in refusal or "refused" in line
        return
    # Transformers refuses more, such as widths that rotation cannot halve: no answer is wrong then.
    if "refused" not in line:
        wrong = {k: (answer[name], line[k]) for k, name in COUNTED.items() if k in line}
        assert {k: pair for k, pair in wrong.items() if pair[0] != pair[1]} == {}


@pytest.mark.parametrize("text", FEW, ids=lambda text: "-".join(json.loads(text)["what"]))
def test_a_few_changes(text):
    check(text)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [LINES[place::8] for place in range(8)])
def test_changes(lines):
    for text in lines:
        try:
            check(text)
        except AssertionError as error:
            error.add_note(text)
            raise
