"""Branches of launch scripts: what is read is what bash runs, or is refused."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost.errors import InputError
from symbolic_cost.importers.launch import recipe
from symbolic_cost.importers.script import entries

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="bash is not installed")
OPTION = re.compile(r"--([a-z]+)=(\S*)")


def told_by_bash(script):
    """Return the options with which a script runs programs, in their order."""
    done = subprocess.run(
        [BASH, "--norc", "-c", f'launch() {{ echo "$@"; }}\n{script}'],
        capture_output=True,
        text=True,
        env={},
        timeout=10,
        check=False,
    )
    return OPTION.findall(done.stdout)


def read(script):
    """Return the options that are read, and whether any stands in a branch that is not decided."""
    found = entries(script, Path("run.sh"))
    return [(one.key[2:], str(one.value)) for one in found], any(one.branch for one in found)


VALUES = st.sampled_from(["fp8", "bf16", "8b", "70b", "1", "4", ""])
NAMES = st.sampled_from(["A", "B", "C"])
SUFFIX = st.sampled_from(["", "_x", "0"])


def quoted(name):
    return st.sampled_from([f'"${name}"', f'"${{{name}}}"', f'"${{{name}:-8b}}"', f'"x${name}"'])


@st.composite
def conditions(draw):
    """A test in one of its spellings; $1 is what the script does not say."""
    left = draw(st.one_of(*3 * [NAMES.flatmap(quoted)], st.just('"$1"')))
    right, number = draw(VALUES), draw(st.integers(0, 5))
    one = draw(st.sampled_from([
        f'[ {left} = "{right}" ]', f"[ {left} != '{right}' ]", f'[[ {left} == "{right}" ]]',
        f"[[ $A == {left} ]]", f"[ $B = {left} ]", "[ -n $C ]",
        f"[[ {left} == *b ]]", f"[ -z {left} ]", f"[[ -n {left} ]]", f"test {left} = '{right}'",
        f"[[ {left} -gt {number} ]]", f"(( ${{A:-2}} > {number} ))", f"! [ -n {left} ]",
        f"[[ ! -z {left} ]]", f'[[ {left} != b* && -n "$C" ]]', f'[ -n {left} -o "$A" = 8b ]',
    ]))  # fmt: skip
    if draw(st.booleans()):
        return one
    other = draw(st.sampled_from([f"[ {left} = 8b ]", '[ -n "$B" ]', "true", "false"]))
    return f"{one} {draw(st.sampled_from(['&&', '||']))} {other}"


ASSIGNED = st.one_of(
    st.builds(lambda name, value: f"{name}={value}", NAMES, VALUES),
    st.builds(lambda name, value, more: f'{name}="{value}"{more}', NAMES, VALUES, SUFFIX),
    st.builds(lambda name, other, more: f'{name}="${other}"{more}', NAMES, NAMES, SUFFIX),
    st.builds(lambda name, other: f'{name}+="${other}"', NAMES, NAMES),
)
SIMPLE = st.one_of(
    ASSIGNED,
    st.builds(lambda name, v: f"launch --{name.lower()}=${{{name}}}z --v={v}z", NAMES, VALUES),
)


def blocks(inner):
    body = st.lists(inner, min_size=1, max_size=2).map("\n".join)
    patterns = st.sampled_from(["8b", "fp8|bf16", "*b", '"4"', "(1", "*"])
    return st.one_of(
        st.builds(lambda t, a: f"if {t}; then\n{a}\nfi", conditions(), body),
        st.builds(lambda t, a, b: f"if {t}\nthen {a}\nelse {b}\nfi", conditions(), body, body),
        st.builds(lambda t, u, a, b, c: f"if {t}; then {a}\nelif {u}; then\n{b}\nelse\n{c}\nfi",
                  conditions(), conditions(), body, body, body),
        st.builds(lambda t, a, b: f"{t} && {a} || {b}", conditions(), ASSIGNED, SIMPLE),
        st.builds(lambda t, a: f"{t} && {{\n{a}\n}}\n", conditions(), body),
        st.builds(lambda t, a: f"{t} || {a}", conditions(), SIMPLE),
        st.builds(lambda n, p, q, a, b: f"case {n} in\n{p}) {a} ;;\n{q}) {b}\n;;\nesac",
                  st.sampled_from(["$A", '"$B"', "${C}", '"$A"0']), patterns, patterns, body, body),
    )  # fmt: skip


NESTED = st.recursive(SIMPLE, blocks, max_leaves=6)
SET = st.builds("A={}\nB={}\nC={}\n".format, VALUES, VALUES, VALUES)
FIRST = st.one_of(st.just(""), SET, SET)
SCRIPTS = st.builds(lambda first, rest: first + "\n".join(rest), FIRST,
                    st.lists(NESTED, min_size=2, max_size=6))  # fmt: skip


@pytest.mark.slow
@needs_bash
@settings(max_examples=150, deadline=None)
@given(SCRIPTS)
def test_what_is_read_is_what_bash_runs(script):
    """Bash with no arguments and an empty environment; what depends on these is marked."""
    options, open_ = read(script)
    said = [(key, value) for key, value in options if "<" not in value]
    if not open_ and len(said) == len(options) and "$1" not in script:
        assert said == [(key, value) for key, value in told_by_bash(script)]


MEGATRON = """#!/bin/bash
TOKENIZER=${2:-"MOCK"}
DTYPE="fp8"
NODES=2
MODEL_ARGS=(
    --num-layers 8
    --hidden-size 512
    --num-attention-heads 8
    --seq-length 1024
    --max-position-embeddings 1024
)
TRAINING_ARGS=(--micro-batch-size 1 --global-batch-size $((8*NODES)) --bf16)
DTYPE_ARGS=()
if [[ "$DTYPE" == "fp8" ]]; then
    DTYPE_ARGS+=(
        "--fp8-format hybrid"
    )
fi
if [[ "$TOKENIZER" == "MOCK" ]] || [[ -z "$TOKENIZER" ]]; then
    DATA_ARGS=(--mock-data --vocab-size 128256)
else
    DATA_ARGS=(--tokenizer-model "$TOKENIZER" --vocab-size 1000)
fi
if [ ! -f pretrain_gpt.py ]; then
    echo "there is no pretrain_gpt.py"
    exit 1
fi
torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py ${MODEL_ARGS[@]} \\
    ${TRAINING_ARGS[@]} ${DTYPE_ARGS[@]} ${DATA_ARGS[@]}
"""
DEEPSPEED = """#!/bin/bash
MODEL_SIZE=${MODEL_SIZE:-13b}
case $MODEL_SIZE in
    1.3b) LAYERS=24; HIDDEN=2048; HEADS=16; TP=1 ;;
    6.7b|7b)
        LAYERS=32
        HIDDEN=4096
        HEADS=32
        TP=2
        ;;
    13b) LAYERS=40; HIDDEN=5120; HEADS=40; TP=4 ;;
    *) echo "unknown $MODEL_SIZE"; exit 1 ;;
esac
PP=1
[ "$LAYERS" -ge 40 ] && PP=2
RUN="gpt_${MODEL_SIZE}"_tp"$TP"
options=" --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \\
    --num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads $HEADS \\
    --seq-length 2048 --max-position-embeddings 2048 --vocab-size 50257 \\
    --micro-batch-size 2 --global-batch-size 256 --fp16 --save checkpoints/$RUN"
if [ "${ACTIVATION_CHECKPOINT:-true}" = "true" ]; then
options="${options} \\
    --checkpoint-activations"
fi
deepspeed --num_nodes 4 --num_gpus 8 pretrain_gpt.py $options
"""
SLURM = """#!/bin/bash
#SBATCH --nodes=4
LAYERS=8
for host in a b; do echo $host; done
launch() {
    if [ "$LAYERS" -gt 4 ]; then EXTRA="--swiglu"; else EXTRA="--squared-relu"; fi
    srun python pretrain_gpt.py --num-layers $LAYERS --hidden-size 512 --num-attention-heads 8 \\
        --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 $EXTRA
}
launch
"""


def read_file(tmp_path, text):
    (tmp_path / "run.sh").write_text(text.replace("\\\\", "\\"), encoding="utf-8")
    return recipe(tmp_path / "run.sh")


def test_a_script_of_megatron_has_the_branches_of_its_own_variables(tmp_path):
    own = read_file(tmp_path, MEGATRON)
    assert own.run["policy"] == "fp8-hybrid"
    assert (own.config["vocab_size"], own.run["ranks"], own.run["global_batch"]) == (128256, 16, 16)
    other = read_file(tmp_path, MEGATRON.replace('DTYPE="fp8"', "DTYPE=bf16"))
    assert other.run.get("policy") != "fp8-hybrid"


def test_a_script_of_deepspeed_has_the_case_of_its_default(tmp_path):
    own = read_file(tmp_path, DEEPSPEED)
    assert (own.config["hidden_size"], own.degrees) == (5120, {"tp": 4, "pp": 2})
    assert (own.run["recompute"], own.run["ranks"]) == ("full", 32)
    small = read_file(tmp_path, DEEPSPEED.replace(":-13b", ":-7b"))
    assert (small.config["hidden_size"], small.degrees) == (4096, {"tp": 2, "pp": 1})


def test_a_function_takes_what_no_other_line_sets_again(tmp_path):
    assert read_file(tmp_path, SLURM).config["gated"] is True
    with pytest.raises(InputError, match="stands in the branch of line 6"):
        read_file(tmp_path, SLURM + "LAYERS=2\nlaunch\n")


@pytest.mark.parametrize("said", ["$1", "$DTYPE_OF_CLUSTER", "$(cat dtype)", "${DTYPE:-}"])
def test_what_a_script_does_not_say_is_refused_with_its_words(tmp_path, said):
    with pytest.raises(InputError) as error:
        read_file(tmp_path, MEGATRON.replace('DTYPE="fp8"', f"DTYPE={said}"))
    assert "key '--fp8-format': stands in the branch of line 14" in str(error.value)
    assert 'if [[ "$DTYPE" == "fp8" ]]; then' in str(error.value)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('X="$A"_x', "8_x"),
        ('X="$A"0; X+=1', 801),
        ("X=4\n[ $A = 8 ] || X=5", 4),
        ("X=4\nif (( A > 9 )); then X=5; fi", 4),
        ("X=4\nif (( A == 8 ));then X=5; fi", 5),
        ("X=4\n[ -f file ] && X=5", "<X: several values>"),
        ("X=4\n[ -f file ] && Y=5 || X=6", "<X: several values>"),
        ("X=4\nwhile [ $X -lt 9 ]; do X=$((X+1)); done", "<X: several values>"),
        ("X=1\nread X", "<X: several values>"),
        ("for X in 1 2; do :; done", "<X: several values>"),
    ],
)
def test_values(line, value):
    found = entries(f"A=8\n{line}\nlaunch --x $X", Path("run.sh"))
    assert found[-1].value == value


def test_quoted_values_with_more_behind_them():
    assert entries('A=8\nlaunch --x "$A"0 --y "$A"', Path("run.sh"))[0].value == 80


def test_a_branch_without_an_end_is_refused():
    with pytest.raises(InputError, match=r"run.sh: line 2: if without an end"):
        entries("A=8\nif [ $A = 9 ]; then\nlaunch --x 1\n", Path("run.sh"))


def sourcing(tmp_path, line, own="TP=${TP:-8}"):
    (tmp_path / "conf").mkdir(exist_ok=True)
    (tmp_path / "conf" / "model.sh").write_text("# sizes\nHIDDEN=64 # of a toy\nTP=2\n")
    (tmp_path / "run.sh").write_text(f"{line}\n{own}\nrun --hidden-size $HIDDEN --tp-size $TP\n")
    text = (tmp_path / "run.sh").read_text()
    return {one.key: (one.value, one.line) for one in entries(text, tmp_path / "run.sh")}


@pytest.mark.parametrize(
    "line",
    [
        "source conf/model.sh",
        ". ./conf/model.sh",
        'source "$(dirname "$0")/conf/model.sh"',
        'source "$(dirname "${BASH_SOURCE[0]}")/conf/model.sh"',
        'D=$(cd "$(dirname "$0")" && pwd); source $D/conf/model.sh'.replace("; ", "\n"),
        "source ${BASH_SOURCE%/*}/conf/model.sh",
        "source conf/model.sh small || exit 1",
    ],
)
def test_what_a_script_sources_beside_it_is_read_in_its_place(tmp_path, line):
    read = sourcing(tmp_path, line)
    last = 3 + line.count("\n")
    assert read == {"--hidden-size": (64, last), "--tp-size": (2, last)}


@pytest.mark.parametrize(
    "line",
    [
        "source ../model.sh",
        "source /etc/profile.d/modules.sh",
        "source $CLUSTER/conf/model.sh",
        "[ -f conf/model.sh ] && source conf/model.sh",
        "source missing.sh",
    ],
)
def test_what_lies_elsewhere_is_told(tmp_path, line):
    read = sourcing(tmp_path, line)
    name = line.rpartition(" ")[2]
    assert read[f"source {name}"] == (name, 1)
    assert read["--tp-size"][0] == 8


def test_what_stands_behind_a_source_is_read(tmp_path):
    read = sourcing(tmp_path, "source conf/model.sh && run --bf16 --x 1")
    assert read["source conf/model.sh"] == ("conf/model.sh", 1)
    assert read["--x"] == (1, 1)


def test_lines_of_sourced_files_are_theirs(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "model.sh").write_text("if [ $A = 9 ]; then\n")
    with pytest.raises(InputError, match=r"model\.sh: line 1: if without an end"):
        entries("A=1\nsource conf/model.sh\n", tmp_path / "run.sh")
    (tmp_path / "conf" / "model.sh").write_text("\nrun --fp8-format hybrid\n")
    (one,) = entries("A=1\nsource conf/model.sh\n", tmp_path / "run.sh")
    assert one.where == "model.sh: line 2, key '--fp8-format'"


@pytest.mark.parametrize(
    "line", ["source $(dirname '\0')/x", "source " + "x" * 5000, "source loop"]
)
def test_names_that_are_none_are_told(tmp_path, line):
    (tmp_path / "loop").symlink_to("loop")
    (one, _) = entries(f"{line}\nrun --bf16\n", tmp_path / "run.sh")
    assert one.key.startswith("source ")


def test_files_that_source_each_other_often_end(tmp_path):
    text = "source a.sh\n" * 100
    (tmp_path / "a.sh").write_text("source b.sh\n" * 100)
    (tmp_path / "b.sh").write_text("source a.sh\n" * 100)
    assert len(entries(text, tmp_path / "run.sh")) < 100 * 40


@pytest.mark.parametrize(
    "end", ['source "' + "$(a)" * 5000, "; " * 20000, "source " + "$(" * 20000]
)
def test_crafted_lines_take_no_time(tmp_path, end):
    assert entries(f"run --bf16\n{end}", tmp_path / "run.sh")[-1].key == "--bf16"


def test_a_file_that_sources_itself_ends(tmp_path):
    (tmp_path / "run.sh").write_text("source run.sh\nrun --bf16\n")
    read = entries((tmp_path / "run.sh").read_text(), tmp_path / "run.sh")
    assert {one.key for one in read} == {"source run.sh", "--bf16"}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (": ${X:=4}", 4),
        (': "${X:=$A}"', 8),
        ("X=2\n: ${X:=4}", 2),
        ("X=\n: ${X:=4}", 4),
        ("[ -f file ] && : ${X:=4}\nX=${X:-6}", "<X: set in the branch of line 2>"),
        ("if true; then : ${X:=4}; fi", 4),
    ],
)
def test_values_that_stand_where_there_is_none(line, value):
    found = entries(f"A=8\n{line}\nlaunch --x $X", Path("run.sh"))
    assert found[-1].value == value


def test_a_variable_that_nothing_sets_is_refused_by_name_of_its_option(tmp_path):
    with pytest.raises(InputError, match="'--num-layers': '' is not accepted; the script sets"):
        read_file(tmp_path, "run --num-layers $LAYERS --hidden-size 64 --num-attention-heads 4\n")
