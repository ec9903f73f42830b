"""What a search may choose besides degrees: orders, overlaps, offload, regathering."""

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.explore.candidates import candidates
from symbolic_cost.explore.choices import USUAL, Way, numbers_of, orders, switches, ways
from symbolic_cost.explore.facts import subject
from symbolic_cost.explore.flags import megatron_flags, time_command
from symbolic_cost.explore.search_options import read_choices
from symbolic_cost.explore.search_table import search_sheet
from symbolic_cost.explore.space import Space
from tests.explore import test_search

NONE = {"order": ("",), "offload": ("",), "overlap": ("",), "regather": ("",), "scattered": ("",)}


@pytest.fixture(autouse=True, scope="module")
def _kept(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path_factory.mktemp("programs")))
        yield


def listed(names, *, sp=False, **chosen):
    run = [way._asdict() for way in ways(names, NONE | chosen)]
    both = [way | own for way in run for own in switches(names, sp=sp, chosen=NONE | chosen)]
    return [{name: text for name, text in one.items() if text} for one in both]


def test_a_choice_that_a_structure_cannot_use_is_none():
    assert listed(["tp"], overlap=("", "dp=full", "host=full", "tp=full+dp=full")) == [
        {},
        {"overlap": "tp=full"},
    ]
    assert listed(["dp"], regather=("on", "off"), scattered=("", "scattered")) == [{}]
    assert listed(["tp"], sp=True, regather=("on", "off")) == [
        {"regather": "regather"},
        {"regather": "no-regather"},
    ]
    assert len(listed(["tp", "pp"], scattered=("", "scattered"))) == 2
    assert len(listed(["tp", "pp"], sp=True, scattered=("", "scattered"))) == 1


def test_orders():
    assert len(list(orders("all", ["tp", "cp", "dp", "pp"]))) == 24
    assert list(orders("tp+cp+pp+dp", ["tp", "ring", "dp", "pp"])) == ["tp,ring,pp,dp"]
    assert list(orders("tp+cp+dp+pp", ["tp", "pp"])) == [""]
    with pytest.raises(InputError, match=r"order tp\+dp does not say where pp lies"):
        list(orders("tp+dp", ["tp", "pp"]))


def test_every_option_of_calculon_makes_more_candidates_than_it_has():
    """952,776 for gpt3-175b on 512 GPUs (isaev-2023), tiers by number instead of orders."""
    overlaps = [f"{a}{b}" for a in ("", "tp=partial=0.5", "tp=full") for b in ("", "+dp=full")]
    space = Space(
        512,
        512,
        cp=(1,),
        zero=(0, 1),
        overlap=tuple(overlaps),
        order=("all",),
        regather=("on", "off"),
        scattered=(False, True),
    )
    found = candidates(space, subject(sc.job("gpt3-175b", system="a100-80gb")).facts)
    assert found.count == 1_008_402
    assert len({s for listed in found.structures.values() for s in listed}) == 243


EVERY = {
    "gpt2-medium": Space(
        16,
        32,
        cp=(1, 2),
        zero=(1,),
        recompute=("selective",),
        schedule=("1f1b",),
        overlap=("", "tp=full+dp=partial=0.5+host=full"),
        order=("all",),
        offload=("", "optimizer+saved"),
        regather=("on", "off"),
        scattered=(False, True),
    ),
    "mixtral-8x7b": Space(
        32,
        64,
        cp=(1, 2),
        zero=(0, 3),
        recompute=("selective",),
        overlap=("", "tp=full+dp=full", "tp=full+dp=partial=0.5+ep=full+pp=full"),
        order=("all",),
        offload=("", "weight+saved", "weight_gradient"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_candidates_of_every_option_are_the_jobs_of_their_numbers(name, monkeypatch):
    monkeypatch.setitem(test_search.SPACES, name, EVERY[name])
    assert test_search.compared(name, structures=6, each=2) > 2


def test_panels_go_alone():
    chosen = NONE | {"overlap": ("tp=panels=4", "")}
    with pytest.raises(InputError, match="goes alone"):
        ways(["tp"], chosen)
    assert ways(["tp"], chosen | {"overlap": ("tp=panels=4",)}) == (Way("", "", "tp=panels=4"),)


def test_an_order_is_told_by_which_axis_lies_inside():
    ways = [Way(), Way("dp,tp"), Way("", "saved", "tp=partial=0.5")]
    numbers = numbers_of(ways, ["tp", "dp"])
    assert numbers["inside tp dp"] == [1, 0, 1]
    assert numbers["hidden tp"] == [USUAL, USUAL, 0.5]
    assert numbers["hidden dp"] == [USUAL] * 3
    assert numbers["hosted saved"] == [0, 0, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stack", "schedule"), [("megatron-core", "1f1b"), ("deepseek", "dualpipe")]
)
def test_what_a_way_does_not_say_is_hidden_as_the_job_hides_it(stack, schedule):
    """Sends between whole stages are waited for, those of DualPipe are not, whoever asks.

    That nothing is hidden on an axis is said as well.
    """
    base = test_search.small("mixtral-8x7b", stack=stack).bind(n_layers=4, l=512)
    choose = {"pp": (2,), "ep": (2,), "tp": 1, "cp": 1, "b": 1, "zero": (0,), "recompute": "none"}
    choose |= {
        "schedule": schedule,
        "overlap": ("", "pp=partial=0.5", "pp=full+ep=full", "ep=none"),
    }
    found = sc.search(base, 4, 16, choose=choose)
    assert len(found.best) == 4
    assert len({one.outputs["step"] for one in found.best}) > 2
    for one in found.best:
        step, _ = test_search.one_by_one(base, one.structure, one.numbers)
        assert one.outputs["step"] == pytest.approx(step, rel=1e-9)


def test_what_is_found_is_told_and_runs():
    choose = {
        "tp": (2,),
        "pp": (2,),
        "cp": 1,
        "b": 1,
        "zero": (1,),
        "recompute": "none",
        "schedule": "1f1b",
        "sp": (True,),
        "order": "tp+pp+dp",
        "regather": "off",
        "offload": "optimizer+master_weight",
        "overlap": "host=full",
    }
    found = sc.search("gpt2", 8, 8, system="h100", choose=choose)
    best, text = found.best[0], " ".join(search_sheet(found).notes)
    assert "order tp+pp+dp, overlap host=full, offload optimizer+master_weight" in text
    assert "regather off" in text
    command = time_command(found, best)
    assert "--order tp,pp,dp --offload master_weight,optimizer" in command
    assert "--no-regather" in command
    ran = CliRunner().invoke(main, command.removeprefix("symbolic-cost ").split())
    assert ran.exit_code == 0, ran.output
    assert not megatron_flags(found, best)
    assert "Megatron-LM: no flags for overlap host=full; offload master_weight,optimizer;" in text


def test_megatron_says_which_level_of_zero_it_lacks():
    """Its distributed optimizer shards states, beside expert parallelism as well, not gradients."""
    choose = {"tp": 1, "pp": 1, "cp": 1, "ep": 8, "b": 1, "recompute": "full"}
    found = {
        level: sc.search("mixtral-8x7b", 64, 64, system="h200", choose={**choose, "zero": level})
        for level in (1, 2)
    }
    text = {level: " ".join(search_sheet(one).notes) for level, one in found.items()}
    assert "--expert-model-parallel-size 8 --use-distributed-optimizer" in text[1]
    assert "Megatron-LM: no flags for zero=2: the distributed optimizer is zero=1" in text[2]


def test_megatron_has_a_flag_for_one_order():
    choose = {"tp": 2, "pp": 2, "cp": 1, "b": 1, "zero": 1, "recompute": "none", "sp": (True,)}
    found = {
        order: sc.search("gpt2", 8, 8, system="h100", choose={**choose, "order": order})
        for order in ("tp+pp+dp", "dp+tp+pp")
    }
    flags = {order: megatron_flags(one, one.best[0]) for order, one in found.items()}
    assert "--use-tp-pp-dp-mapping" in flags["tp+pp+dp"]
    assert not flags["dp+tp+pp"]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("order=tp+tp", "a word is there twice"),
        ("order=up+dp", "unknown order 'up'"),
        ("offload=heads", "unknown offload 'heads'"),
        ("overlap=tp", "unknown overlap ''"),
        ("overlap=up=full", "unknown mesh axis of overlap 'up'"),
        ("regather=often", "unknown regather 'often'"),
    ],
)
def test_refused(choice, said):
    with pytest.raises(InputError, match=said):
        Space(8, 8, **read_choices([choice]))


def test_what_is_typed():
    typed = read_choices(["order=default,all", "offload=none,saved", "scattered=on,off"])
    assert typed == {"order": ("", "all"), "offload": ("", "saved"), "scattered": (True, False)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "flags"),
    [
        ({"precision": "bf16-mixed"}, "--bf16"),
        (
            {"precision": "fp8-params"},
            "--bf16 --fp8-format hybrid --fp8-param-gather --grad-reduce-in-bf16",
        ),
        ({"precision": "bf16-fsdp"}, "no flags for precision bf16-fsdp"),
        ({"optimizer": "muon"}, "--optimizer muon"),
        ({"optimizer": "lion"}, "no flags for optimizer lion"),
        ({"attention": "eager"}, "--attention-backend unfused"),
    ],
)
def test_megatron_is_told_what_a_job_says(option, flags):
    found = sc.search(
        sc.job("gpt2", system="h100", **option), 8, 8, choose={"b": 1, "zero": (0, 1)}
    )
    told = next(note for note in search_sheet(found).notes if note.startswith("Megatron-LM: "))
    assert flags in told
