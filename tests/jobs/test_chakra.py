"""Traces for ASTRA-sim, read back by an independent reader: sums, groups, who waits for whom."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.jobs.chakra import chakra_traces
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.jobs.unrolled import Step

NUMBERS = {"b": 1, "l": 128, "n_layers": 4}
JOB = sc.job(
    "gpt2",
    "tp=2,sp,pp=2,dp=2,zero=1",
    {**NUMBERS, "M": 4},
    system="h100",
    precision="bf16-mixed",
    recompute="selective",
)


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def fields(data):
    """Fields of a message as (number, value), by the text of the encoding alone."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        assert key & 7 in (0, 2)
        content, at = varint(data, at)
        if key & 7 == 2:
            content, at = data[at : at + content], at + content
        found.append((key >> 3, content))
    return found


def integers(data):
    at, found = 0, []
    while at < len(data):
        one, at = varint(data, at)
        found.append(one)
    return found


def attribute(data):
    (_, name), (kind, held) = fields(data)
    name = name.decode()
    assert kind == {"pg_name": 29, "is_cpu_op": 27}.get(name, 9)
    return name, held.decode() if kind == 29 else held


def node(message):
    every = fields(message)
    assert {number for number, _ in every} <= {1, 2, 3, 5, 10}
    own = {number: content for number, content in every if number != 10}
    return {
        "id": own[1],
        "name": own[2].decode(),
        "type": own[3],
        "deps": integers(own.get(5, b"")),
        "attr": dict(attribute(content) for number, content in every if number == 10),
    }


def read(data):
    """Nodes of a file, behind its metadata."""
    at, messages = 0, []
    while at < len(data):
        size, at = varint(data, at)
        messages.append(data[at : at + size])
        at += size
    assert fields(messages[0]) == [(1, b"0.0.4")]
    return list(map(node, messages[1:]))


def traces(job, folder):
    folder.mkdir()
    *files, groups = chakra_traces(job, str(folder))
    return [read(Path(file).read_bytes()) for file in files], json.loads(Path(groups).read_text())


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return traces(JOB, tmp_path_factory.mktemp("chakra") / "own")


def expected(job, kind):
    """FLOP and bytes of one rank of a stage in a step, from the table that the step is of."""
    step = Step(_precise(job))
    table = Timed(_precise(job)).step.table[kind]
    once = step.update(kind)
    sums = Counter()
    for row in table:
        if row.per_step or row.collective is not None:
            continue
        name = {"flop": "num_ops", "read": "tensor_size", "write": "tensor_size"}
        if row.quantity.value in name:
            sums[name[row.quantity.value]] += int(job.value(row.total)) * step.microbatches
    return {
        "num_ops": sums["num_ops"] + int(once.flop),
        "tensor_size": sums["tensor_size"] + int(once.moved),
    }


def _precise(job):
    return replace(job, precise=True)


@pytest.mark.slow
def test_sums_are_those_of_the_job(small):
    made, _ = small
    assert len(made) == 8
    first, last = (expected(JOB, JOB.structure.stages[end]) for end in (0, -1))
    for rank, nodes in enumerate(made):
        sums = {
            name: sum(n["attr"].get(name, 0) for n in nodes) for name in ("num_ops", "tensor_size")
        }
        assert sums == (first if rank < 4 else last)


def test_collectives_are_those_of_the_job(small):
    made, groups = small
    job = _precise(JOB)
    table = Timed(job).step.table
    names = {0: "all-reduce", 2: "all-gather", 6: "all-to-all", 7: "reduce-scatter"}
    for rank, nodes in enumerate(made):
        kind = JOB.structure.stages[0 if rank < 4 else -1]
        found, wanted = Counter(), Counter()
        for node in nodes:
            if node["type"] == 7:
                own = names[node["attr"]["comm_type"]]
                ranks = groups[node["attr"]["pg_name"]]
                assert rank in ranks
                size = node["attr"]["comm_size"] * (len(ranks) if own == "all-gather" else 1)
                found[own, len(ranks)] += size
        for row in table[kind]:
            move = row.collective
            if move is None or move.kind.value == "send-receive":
                continue
            times = job.value(row.count * move.calls) * (1 if row.per_step else 4)
            wanted[move.kind.value, 2] += int(times * job.value(move.message))
        norm = [n for n in nodes if n["name"].startswith("all-reduce optimizer")]
        for node in norm:
            ranks = groups[node["attr"]["pg_name"]]
            found["all-reduce", len(ranks)] -= node["attr"]["comm_size"]
        assert +found == +wanted


def test_all_members_of_a_group_make_the_same_collectives_in_the_same_order(small):
    made, groups = small
    calls = defaultdict(dict)
    for rank, nodes in enumerate(made):
        for node in nodes:
            if node["type"] == 7:
                own = calls[node["attr"]["pg_name"]].setdefault(rank, [])
                own.append((node["attr"]["comm_type"], node["attr"]["comm_size"]))
    for name, ranks in groups.items():
        assert int(name) > 0
        assert set(calls[name]) == set(ranks)
        assert len({tuple(own) for own in calls[name].values()}) == 1


def test_what_is_sent_is_received_and_nothing_waits_for_ever(small):
    made, _ = small
    run(made)
    ends = Counter()
    for nodes in made:
        for node in nodes:
            if node["type"] in (5, 6):
                own = node["attr"]
                key = tuple(own[n] for n in ("comm_src", "comm_dst", "comm_size", "comm_tag"))
                ends[key] += 1 if node["type"] == 5 else -1
    assert ends
    assert not +ends
    assert not -ends


def run(made):
    """Runs the traces node by node: a receive waits for its send, a collective for its group."""
    at, sent, met = [0] * len(made), Counter(), defaultdict(Counter)
    moved = True
    while moved:
        moved = False
        for rank, nodes in enumerate(made):
            while at[rank] < len(nodes):
                node = nodes[at[rank]]
                assert node["deps"] == ([node["id"] - 1] if node["id"] > 1 else [])
                own = node["attr"]
                if node["type"] == 5:
                    sent[own["comm_src"], own["comm_dst"], own["comm_tag"]] += 1
                elif node["type"] == 6:
                    key = (own["comm_src"], own["comm_dst"], own["comm_tag"])
                    if not sent[key]:
                        break
                    sent[key] -= 1
                at[rank] += 1
                moved = True
    assert at == [len(nodes) for nodes in made], met


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "strategy", "options"),
    [
        ("gpt2", "pp=2,dp=2,zero=3", {"schedule": "interleaved", "numbers": {"v": 2}}),
        ("gpt2", "pp=4", {"schedule": "zb-h1"}),
        ("gpt2", "ring=2,dp=2", {}),
        ("mixtral-8x7b", "ep=2,dp=2", {"numbers": {"n_layers": 2}}),
        ("mamba-130m", "dp=2", {}),
    ],
)
def test_other_jobs(model, strategy, options, tmp_path):
    numbers = {**NUMBERS, "M": 4, **options.pop("numbers", {})}
    job = sc.job(model, strategy, numbers, system="h100", precision="bf16-mixed", **options)
    made, _ = traces(job, tmp_path / "own")
    run(made)
    for rank, nodes in ((0, made[0]), (len(made) - 1, made[-1])):
        kind = job.structure.stages[0 if rank == 0 else -1]
        want = expected(job, kind)
        for name, total in want.items():
            assert abs(sum(n["attr"].get(name, 0) for n in nodes) - total) <= len(nodes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schedule": "dualpipe", "strategy": "pp=2", "numbers": {**NUMBERS, "M": 4}}, "schedule"),
        ({"model": "gemma-2-9b", "strategy": "pp=2", "numbers": {"b": 1, "M": 4}}, "whole blocks"),
        ({"system": None}, "a time needs a machine"),
    ],
)
def test_what_cannot_be_told_is_refused(changes, said, tmp_path):
    with pytest.raises(InputError, match=said):
        chakra_traces(JOB.replace(**changes), str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_none(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is no folder"):
        chakra_traces(JOB, str(tmp_path / "file"))
    with pytest.raises(InputError, match="is in no folder"):
        chakra_traces(JOB, str(tmp_path / "none" / "inside"))
