"""The configurations that people run: answered as PyTorch counts them, or refused; never wrong.

`popular.json` holds configurations published with models that are loaded often, each whole or as
what differs from another's (`like`), and what PyTorch counts of them: parameters (two totals where
Transformers ties what the published weights do not) and FLOP of a forward pass of b sequences of l
tokens. Factors of long rotary positions are written as ones. `no truth` says why there is none: of
code beside the weights, parameters are those of the published weights. Of those that see, FLOP are
of language alone, and `image` holds tokens of one image and what it adds; those for images and
diffusion count an image of their size.

`popular_refused.txt` names what is refused, and why, so that the share that is answered is what
this file says: `python -m tests.models.test_popular` writes it anew, with the share by kind.
"""

import json
import re
from collections import Counter

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.models.count import count
from tests.models.test_families_truth import GOLDEN

ENTRIES = {
    entry["id"]: entry
    for entry in json.loads((GOLDEN / "popular.json").read_text(encoding="utf-8"))
}
PUBLIC = json.loads((GOLDEN / "public_configs.json").read_text(encoding="utf-8"))
REFUSED = GOLDEN / "popular_refused.txt"
FEW = sorted(ENTRIES)[::24]


def config_of(name):
    """A configuration, with what it says of labels and what it shares with another."""
    entry = ENTRIES[name]
    other = {"": {}, **PUBLIC, **ENTRIES}[entry.get("like", "")]
    config = other.get("config", {}) | entry["config"]
    config = {key: value for key, value in config.items() if value != "missing"}
    if "labels" in entry:
        names = [f"LABEL_{i}" for i in range(entry["labels"])]
        config |= {"id2label": {str(i): name for i, name in enumerate(names)}}
        config |= {"label2id": {name: i for i, name in enumerate(names)}}
    return config


def outcome(name):
    """Why an entry is refused, or that it is "exact", or "alike" where PyTorch cannot say all."""
    entry = ENTRIES[name]
    b, l = entry.get("at", (1, 64))
    try:
        answer = count(config_of(name), b, l)
    except InputError as error:
        problems = str(error).splitlines()
        first = problems[min(1, len(problems) - 1)].strip()
        return re.split(": (did you mean|accepted are|remove it)", first)[0]
    assert answer["params"] in entry.get("params", [answer["params"]])
    assert answer["flops_fwd"] == entry.get("flops", answer["flops_fwd"])
    if "image" in entry:
        tokens, seen = entry["image"]
        blind, pictured = (
            count(config_of(name), 1, l + tokens, image_tokens=number)["flops_fwd"]
            for number in (0, tokens)
        )
        assert pictured == blind + seen
    return "alike" if "no truth" in entry else "exact"


def refused():
    """Why an entry is refused, by its name, as it is recorded."""
    lines = REFUSED.read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if not line.startswith("#"))


def exact(names):
    """Entries that are answered as PyTorch counts them, if those are refused."""
    told = {name: entry for name, entry in ENTRIES.items() if "no truth" not in entry}
    return [entry for name, entry in told.items() if name not in names]


def shares(names):
    """How many are exact, if those are refused: a line for each kind, and one for all."""
    every = Counter(entry["kind"] for entry in ENTRIES.values())
    right = Counter(entry["kind"] for entry in exact(names))
    lines = [f"# {kind}: {right[kind]} of {number} exact" for kind, number in every.items()]
    share = 100 * right.total() / every.total()
    return [*lines, f"# all: {right.total()} of {every.total()} exact, {share:.1f} %"]


def check(name):
    entry = ENTRIES[name]
    assert refused().get(name, "alike" if "no truth" in entry else "exact") == outcome(name)


@pytest.mark.parametrize("name", FEW)
def test_a_sample_is_exact_or_refused(name):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ENTRIES.keys() - set(FEW)))
def test_every_other_is_exact_or_refused(name):
    check(name)


def test_most_are_exact():
    """At least 85 % of all, also of those that only code beside the weights could count."""
    names = refused().keys()
    assert names <= ENTRIES.keys()
    assert len(ENTRIES) >= 284
    lines = [line for line in REFUSED.read_text(encoding="utf-8").splitlines() if line[0] == "#"]
    assert lines == shares(names)
    assert 100 * len(exact(names)) >= 85 * len(ENTRIES)


if __name__ == "__main__":
    outcomes = {name: outcome(name) for name in sorted(ENTRIES)}
    found = {name: why for name, why in outcomes.items() if why not in {"exact", "alike"}}
    lines = [*shares(found), *(f"{name}: {why}" for name, why in found.items())]
    REFUSED.write_text("\n".join(lines) + "\n", encoding="utf-8")
