"""Runs every command once and prints a digest of what it wrote, for `test_same_bytes`."""

import hashlib
import shlex
import sys
import time
from pathlib import Path

from click.testing import CliRunner

from symbolic_cost.cli import main

RUN = "gpt2 --strategy tp=2,pp=2,dp=2,zero=1 --set l=128,b=1,n_layers=4"
TIMED = f"{RUN} --system h100 --global-batch 8"
FORMATS = ("table", "csv", "json", "markdown", "latex", "html")
LIGHT = (
    *(f"table {RUN} --format {form}" for form in FORMATS),
    *(f"memory {TIMED} --format {form}" for form in FORMATS),
    f"table {RUN} --format latex --cite --notation megatron --width ieee",
    f"formula comm_step {RUN}",
    f"tree {RUN}",
    f"scale flops {RUN} --at gpt3-175b",
    f"comm {RUN} --set M=4",
    f"comm {RUN} --groups",
    f"time {TIMED}",
    f"time {TIMED} --ops",
    f"time {TIMED} --wrt b",
    f"time {TIMED} --explain --stack megatron-core",
    f"sensitivity {RUN}",
    "crossover gpt2 attention.core mlp --in l",
    "optimum gpt2 --of saved --in b",
    "solve 'params <= 1e9' gpt2 --for n_layers",
    "dominance gpt2 attention.core mlp head --set b=1",
    "roofline gpt2",
    "flops-per-token gpt2 --seq 128",
    "mfu gpt2 --tokens-per-second 1000 --system h100 --seq 128",
    "diff gpt2 --conventions palm verl --seq 128",
    "check s*b gpt2 --cost params",
    "derive gpt2 --cost params --path head",
    "profile gpt2 --seq 64",
    "compare-conventions gpt2 torch-flop-counter fvcore",
    "reproduce korthikanti-2022",
    "report megatron",
    "laws chinchilla --flops 1e24",
    "schedule --schedule zb-h1",
    "schema",
    *("models", "systems", "systems h100", "symbols", "conventions", "strategies", "precisions"),
    *("publications", "prices", "errata", "laws"),
    "serve-plan llama-3-8b --system h100 --gpus 1 --input 500 --output 100 --strategy tp=1",
)
SHORT = (
    f"table {RUN} --format latex --cite --notation megatron --width ieee",
    f"comm {RUN} --set M=4 --format html",
    f"time {TIMED} --explain --stack megatron-core",
    "schedule -o a.svg",
)
"""What writes in every way, in a few seconds."""

FILES = (
    f"sheet {RUN} --cite -o a.tex",
    f"sheet {RUN} -o a.bib",
    f"sheet {RUN} -o a.html",
    f"trace {TIMED} -o a.json",
    f"trace {TIMED} --chakra .",
    "schedule -o a.svg",
    f"memory {TIMED} -o a.pdf",
    f"export step_time {TIMED} --language c -o a.c",
    "dominance gpt2 attention.core mlp --set b=1 --over l=512:100000 e=512:8192 -o a.png",
)
HEAVY = (
    f"report run {TIMED} -o a.html",
    f"report run {TIMED} -o a.md",
    f"workbook {TIMED} -o a.xlsx",
    "calculator gpt2 -o a.html",
    "search gpt2 --gpus 4 --global-batch 8 --system h100",
    "fit gpt2 --gpus 2 --choose recompute=full --choose zero=1 --choose cp=1",
    "sweep gpt2 --system h100 --global-batch 8 tp=1,2 dp=1,2",
    "pareto gpt2 --system h100 --global-batch 8 tp=1,2,4 pp=1,2 dp=1,2",
)


def ran(line, folder):
    """The digest of what a line prints and of every file it leaves."""
    for file in folder.iterdir():
        file.unlink()
    done = CliRunner().invoke(main, shlex.split(line))
    whole = hashlib.sha256(done.stdout.encode())
    for file in sorted(folder.iterdir()):
        whole.update(file.read_bytes())
    return f"{done.exit_code} {whole.hexdigest()[:16]}", done


if __name__ == "__main__":
    chosen = {"short": SHORT, "light": LIGHT + FILES, "heavy": HEAVY}[sys.argv[1]]
    for one in chosen:
        start = time.process_time()
        told, done = ran(one, Path.cwd())
        why = done.output[:200] if done.exit_code else ""
        more = f"\n   {time.process_time() - start:.1f} {why}" if "-v" in sys.argv else ""
        sys.stdout.write(f"{told} {one}{more}\n")
