"""Every family that Transformers builds, exported at several sizes and lifted: is it as declared?

    python -m tests.golden.pt2.lifted [FAMILY ...]

`make lifted` runs it for all of them, half a minute each, and writes reports/lifted/output.md after
every one. What is compared are parameters, forward FLOP and FLOP as formulas in batch and length:
of every graph, and of the lifted family at sizes that no graph has. Needs the extra `lifted`.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sympy import expand, floor

import symbolic_cost as sc
from symbolic_cost import symbols
from symbolic_cost.errors import InputError
from symbolic_cost.models.traced.lift import family_of, member
from symbolic_cost.records import replace

OUTPUT = Path(__file__).parents[3] / "reports" / "lifted" / "output.md"
COUNTED = sc.preset("torch-flop-counter")
EQUAL = "equal"
OWN_SIZES = "equal at its own sizes"
OWN_LENGTH = "equal at its own sizes and length"
_TOTALS: Mapping[str, dict[str, str]] = {
    "parameters": {"quantity": "parameter"},
    "forward FLOP": {"quantity": "flop", "phase": "forward"},
    "FLOP": {"quantity": "flop"},
}
TRAINED_OTHERWISE = frozenset({"maskformer", "mask2former"})
"""Families of which graphs have fewer gradients than training: zeros that learn only then, and
masks between the blocks, of which a graph's results have none."""

STAND_INS = frozenset({"sarvam_mla", "sarvam_moe"})
"""Families whose files bring code of their own, so that Transformers builds another's class for
them: what their files leave out, it takes otherwise. They are left out."""

_LONGEST = 160
_PLAIN = str.maketrans("|\\_`*", "// '.")
"""What stands in a cell for characters that tables or their text mean otherwise."""


def differences(graph: Any, declared: Any, *, trained: bool = True) -> list[str]:
    """Return what a graph's network and the declared one say otherwise."""
    numbers = [
        {symbols.symbol(name): number for name, number in one.bindings.items()}
        for one in (graph, declared)
    ]
    numbers[0][symbols.symbol("l_t")] = floor(symbols.l / 2)  # as two lengths are declared
    tables = [sc.cost(one, COUNTED) for one in (graph, declared)]
    said = []
    for name, query in list(_TOTALS.items())[: None if trained else -1]:
        ours, theirs = (
            expand(table.total(**query).xreplace(known))
            for table, known in zip(tables, numbers, strict=True)
        )
        if expand(ours - theirs) != 0:
            said.append(f"{name}: {ours} in the graph, {theirs} declared")
    return said


def outcome(family: str) -> tuple[str, str]:
    """Return what comes of the graphs of a family, and of the lifted family."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tests.golden.pt2.members import bases

        base = bases()[family]
        graphs, said = _compared(base, Path(folder), one_depth=False)
        if graphs.startswith(("not exported", "refused")):
            own = _alone(base, Path(folder))
            return (own, graphs) if own.startswith(EQUAL) else (own, "")
        if " parts of " in said or " times: not affine" in said:
            _, again = _compared(base, Path(folder), one_depth=True)
            said = f"{EQUAL} at one depth" if again == EQUAL else said
    return graphs, said


def _alone(base: Mapping[str, Any], folder: Path, *, lengths: bool = True) -> str:
    """Return what comes of the graph of a configuration whose sizes do not vary."""
    from tests.golden.pt2.members import configuration, export_member

    config, path = configuration(base, {}), folder / "own.pt2"
    trained = base["model_type"] not in TRAINED_OTHERWISE
    try:
        fixed = export_member(path, config, {}, lengths=lengths)
    except Exception as error:  # noqa: BLE001 - whatever a network raises is told
        if lengths and "(l)" in str(error):
            return _alone(base, folder, lengths=False)
        return f"not exported: {_first(error)}"
    try:
        declared = sc.from_config(config)
        declared = replace(declared, bindings={**declared.bindings, **_named(fixed)})
        said = differences(member(path).model, declared, trained=trained)
    except InputError as error:
        return f"refused: {_first(error)}"
    equal = OWN_SIZES if lengths else OWN_LENGTH
    return f"DIFFERENT: {'; '.join(said)}" if said else equal


def _named(lengths: Mapping[str, int]) -> dict[str, int]:
    return {{"l": "l", "m": "l_t"}[name]: length for name, length in lengths.items()}


def _compared(base: Mapping[str, Any], folder: Path, *, one_depth: bool) -> tuple[str, str]:
    from tests.golden.pt2.members import configuration, export_member, members

    trained = base["model_type"] not in TRAINED_OTHERWISE
    *rows, last = members(base, one_depth=one_depth)
    graphs = []
    for number, sizes in enumerate(rows):
        config, path = configuration(base, sizes), folder / f"{number}.pt2"
        try:
            export_member(path, config, sizes)
        except Exception as error:  # noqa: BLE001 - whatever a network raises is told
            return f"not exported: {_first(error)}", ""
        try:
            graphs.append(member(path))
            said = differences(graphs[-1].model, sc.from_config(config), trained=trained)
        except InputError as error:
            return f"refused: {_first(error)}", ""
        if said:
            return f"DIFFERENT: {'; '.join(said)}", ""
    try:
        found = family_of(graphs).at(last)
        said = differences(found, sc.from_config(configuration(base, last)), trained=trained)
    except InputError as error:
        return EQUAL, f"refused: {_first(error)}"
    return EQUAL, f"DIFFERENT: {'; '.join(said)}" if said else EQUAL


def _first(error: Exception) -> str:
    """Return the first line of an error, without folders of its own."""
    if isinstance(error, InputError):
        text = error.problems[0].rpartition(".pt2'")[2].lstrip(": ")
    else:
        text = f"{type(error).__name__}: {str(error).strip()}"
    line = " ".join(text.split()).translate(_PLAIN)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def known() -> dict[str, tuple[str, str]]:
    """Return what the written report says of every family."""
    if not OUTPUT.exists():
        return {}
    lines = OUTPUT.read_text(encoding="utf-8").replace("\\", "").splitlines()
    rows = [[*map(str.strip, line.split("|")[1:-1])] for line in lines if line[:1] == "|"]
    return {family: (graphs, said) for family, graphs, said in rows[2:]}


def report(outcomes: Mapping[str, tuple[str, str]]) -> str:
    """Return the report as Markdown."""
    counts = [
        sum(each[place].startswith(start) for each in outcomes.values())
        for place, start in ((0, EQUAL), (1, EQUAL), (0, "DIFFERENT"), (1, "DIFFERENT"))
    ]
    return (
        "# Families lifted from their graphs\n\n"
        "Small networks of Transformers, exported at six sizes, beside the declared families:\n"
        "parameters and FLOP of every graph, and of the family that is lifted from five of them, "
        "at\nsizes that no graph has. All are formulas in batch and length.\n\n"
        f"Of {len(outcomes)} families {counts[0]} are equal in every graph and {counts[1]} lifted; "
        f"{counts[2] + counts[3]} differ.\n\n"
        + sc.markdown(
            ("family", "graphs", "lifted"),
            [(family, *each) for family, each in sorted(outcomes.items())],
        )
    )


def main() -> None:
    """Write the report anew after every family; those that it does not have come first."""
    from tests.golden.pt2.members import bases

    outcomes = known()
    for family in sys.argv[1:] or sorted(bases().keys() - STAND_INS, key=outcomes.__contains__):
        outcomes[family] = outcome(family)
        print(family, *outcomes[family], sep=" | ", flush=True)  # noqa: T201 - a script
        OUTPUT.write_text(report(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main()
