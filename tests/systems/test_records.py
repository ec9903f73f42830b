"""Records of machines: those of the library, and refusals of a user's own."""

import re
from importlib.resources import files

import pytest
from sympy import Rational

from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.ledger import Units
from symbolic_cost.references import REFERENCES
from symbolic_cost.systems.machines import SYMBOLIC
from symbolic_cost.systems.records import load_machine, machine, machine_names, machine_of

DATA = files("symbolic_cost.systems") / "data"
RECORD = """
name = "mine"
meaning = "an example"
[sources]
sheet = "a data sheet"
[matrix]
bf16 = { value = 1e12, source = "sheet", includes = "dense" }
[vector]
fp32 = { value = 1e11, source = "sheet" }
[memory]
bandwidth = { value = 1e12, source = "sheet" }
capacity = { value = 16e9, source = "sheet" }
usable = { value = 15.5e9, source = "sheet" }
[[links]]
name = "fast"
ranks = { value = 8, source = "sheet" }
bandwidth = { value = 100e9, source = "sheet" }
latency = { value = 2.5e-6, source = "sheet" }
[[links]]
name = "slow"
bandwidth = { value = 10e9, source = "sheet" }
latency = { value = 5e-6, source = "sheet" }
efficiency = { value = 0.9, source = "sheet" }
"""


@pytest.mark.parametrize("name", machine_names())
def test_every_number_has_a_source_and_says_what_it_includes(name):
    made = machine(name)
    assert made.name == name
    given = [(w, f) for w, f in made.figures() if f.includes not in {"nominal", "neglected"}]
    assert len(given) > 10
    for where, figure in given:
        assert figure.includes, where
        assert figure.source in made.sources or figure.source in REFERENCES, where
    assert made.network().tiers
    assert all(made.device(precision).matrix > 0 for precision in made.matrix)


@pytest.mark.parametrize(
    ("name", "precision", "figures"),
    [
        ("v100", "fp16", (125e12, 900e9, 8, 150e9)),
        ("a100-40gb", "bf16", (312e12, 1555e9, 8, 300e9)),
        ("a100-80gb", "bf16", (312e12, 2039e9, 8, 300e9)),
        ("h100", "bf16", (989.4e12, 3.35e12, 8, 450e9)),
        ("h100", "fp8", (1978.9e12, 3.35e12, 8, 450e9)),
        ("h100-pcie", "bf16", (756e12, 2e12, 2, 300e9)),
        ("h200", "bf16", (989.4e12, 4.8e12, 8, 450e9)),
        ("b200", "bf16", (2.25e15, 8e12, 8, 900e9)),
        ("gb200-nvl72", "bf16", (2.5e15, 8e12, 72, 900e9)),
        ("mi250x", "bf16", (383e12, 3.2768e12, 4, 200e9)),
        ("mi300x", "bf16", (1307.4e12, 5.3e12, 8, 448e9)),
        ("tpu-v4", "bf16", (275e12, 1228e9, 4096, 150e9)),
        ("tpu-v5e", "bf16", (197e12, 819e9, 256, 100e9)),
        ("tpu-v5p", "bf16", (459e12, 2765e9, 8960, 300e9)),
        ("trillium", "bf16", (918e12, 1640e9, 256, 200e9)),
        ("transformer-tables", "fp16", (312e12, 1555e9, 4, 600e9)),
    ],
)
def test_dense_rates_as_published(name, precision, figures):
    """Peak, memory bandwidth, ranks of the inner domain, bandwidth of its link."""
    made = machine(name)
    link = made.links[0]
    found = (made.peak(precision), made.bandwidth.value, link.ranks.value, link.bandwidth.value)
    assert tuple(map(float, found)) == figures


def test_efficiencies_and_vector_fallback_reach_the_device():
    device = machine_of(
        RECORD.replace(
            "[[links]]", '[efficiencies]\nmatrix = { value = 0.5, source = "sheet" }\n[[links]]', 1
        )
    ).device("bf16")
    assert device.compute_time(Units.MATRIX, Rational(10**12)) == 2
    assert device.compute_time(Units.VECTOR, Rational(10**11)) == 1
    assert device.memory_time(Rational(10**12)) == 1


PRODUCTS = """
[[efficiencies.products]]
flop = { value = 1e9, source = "sheet" }
share = { value = 0.25, source = "sheet" }
[[efficiencies.products]]
flop = { value = 1e12, source = "sheet" }
share = { value = 0.5, source = "sheet" }
"""


def test_efficiencies_by_size():
    device = machine_of(RECORD + PRODUCTS).device("bf16")
    times = [device.compute_time(Units.MATRIX, Rational(10) ** n) for n in (9, 11, 12)]
    assert times == [Rational(4, 1000), Rational(4, 10), 2]


def test_efficiencies_by_size_in_order_and_alone():
    matrix = '[efficiencies]\nmatrix = { value = 0.5, source = "sheet" }\n'
    with pytest.raises(InputError) as caught:
        machine_of(RECORD + matrix + PRODUCTS.replace("1e9", "1e13"), "mine")
    assert list(caught.value.problems) == [
        "mine: efficiencies: give products, or matrix and half",
        "mine: efficiencies.products: sizes grow from one to the next",
    ]


def test_symbolic_machine_has_symbols_for_rates():
    device = machine("symbolic").device("bf16")
    assert machine("symbolic") is SYMBOLIC
    assert {s.name for s in (device.matrix, device.vector, device.memory)} == {
        "F_m",
        "F_v",
        "beta_m",
    }


def test_unknown_machine_offers_close_names():
    with pytest.raises(UnknownNameError, match="did you mean a100-80gb"):
        machine("a100-80g")


@pytest.mark.parametrize("name", machine_names())
def test_the_librarys_files_pass_the_check_of_users_files(name):
    text = (DATA / f"{name}.toml").read_text(encoding="utf-8")
    assert machine_of(text) == machine(name)


def test_user_record(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(RECORD)
    made = load_machine(path)
    assert made.links[1].bandwidth.value * made.links[1].efficiency.value == 9 * 10**9
    assert made.links[0].latency.value == Rational(25, 10**7)


def test_everything_wrong_is_said_at_once():
    wrong = (
        RECORD.replace('name = "mine"', 'colour = "red"')
        .replace("value = 1e12, source", 'value = "fast", source', 1)
        .replace("value = 1e11", "value = -1")
        .replace("value = 16e9", "value = true")
        .replace("value = 0.9", "value = 1.5")
        .replace("value = 100e9", "value = 1e99")
    )
    with pytest.raises(InputError) as caught:
        machine_of(wrong, "my file")
    assert list(caught.value.problems) == [
        "my file: name is missing",
        "my file: matrix.bf16.value: 'fast' is not a number",
        "my file: vector.fp32.value: -1: 0 or a number from 1E-30 to 1E+30 is accepted",
        "my file: memory.capacity.value: True is not a number",
        "my file: links.0.bandwidth.value: 1E+99: 0 or a number from 1E-30 to 1E+30 is accepted",
        "my file: links.1.efficiency.value: 1.5 is above 1: a share of the rate is accepted",
        "my file: colour is not part of a record",
    ]


def test_what_steps_left_open_is_finite_and_no_wider_than_machines_are():
    table = """
[cluster]
runs = 3
step = inf
software = ["nemo bf16"]
[cluster.open]
computing = [nan, 0.0, 0.0]
moving = [1e300, 0.1, 0.0]
issuing = [0.0, 0.0, 0.1]
"""
    with pytest.raises(InputError) as caught:
        machine_of(RECORD + table, "my file")
    assert list(caught.value.problems) == [
        "my file: cluster.step: input should be a finite number",
        "my file: cluster.open.computing.0: input should be a finite number",
        "my file: cluster.open.moving.0: input should be less than or equal to 10",
    ]


def test_contradictions_are_said_at_once():
    wrong = (
        RECORD.replace("bf16 =", "bf17 =")
        .replace("fp32 =", "fp16 =")
        .replace('15.5e9, source = "sheet"', '17e9, source = "memory"')
        .replace("ranks = { value = 8", "ranks = { value = 8.5")
    )
    with pytest.raises(InputError) as caught:
        machine_of(wrong, "my file")
    assert list(caught.value.problems) == [
        "my file: matrix: unknown precision 'bf17': did you mean bf16 or fp16?",
        "my file: vector.fp32 is missing",
        "my file: memory.usable: source 'memory' is neither in [sources] nor a reference",
        "my file: memory.usable is more than memory.capacity",
        "my file: links: ranks are integers that grow from the innermost link on",
    ]


def test_every_name_tells_one_thing():
    first, second = re.findall(r'\[\[links\]\]\s*name = "(\w+)"', RECORD)
    wrong = RECORD.replace(f'name = "{second}"', f'name = "{first}"').replace('"mine"', '""', 1)
    with pytest.raises(InputError) as caught:
        machine_of(wrong, "my file")
    assert list(caught.value.problems) == [
        "my file: links: two have one name",
        "my file: name is empty",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "is not TOML"),
        ("[" * 5000, "is not TOML"),
        ("name = 1", "missing"),
        ("matrix = { bf16 = 500e12 }", r"matrix\.bf16 is 5\.00E\+14: a table such as"),
    ],
)
def test_not_a_record(text, said):
    with pytest.raises(InputError, match=said):
        machine_of(text)


def test_unreadable_files(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_machine(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a text file in UTF-8"):
        load_machine(tmp_path / "bytes.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (10**6 + 1))
    with pytest.raises(InputError, match="at most"):
        load_machine(tmp_path / "large.toml")
