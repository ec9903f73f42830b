"""Step times that papers print, and what the library predicts for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from sympy import Rational

from symbolic_cost.conventions.answers import CAUSAL
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.layers.core import Core
from symbolic_cost.models.catalog import model
from symbolic_cost.models.decoder_families import DECODERS, symbolic
from symbolic_cost.models.gpt import GPT
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.strategy import parse_strategy
from symbolic_cost.published.narayanan_2021 import evaluate as narayanan
from symbolic_cost.published.printed import printed_data, printed_rows
from symbolic_cost.systems.machines import Figure, Machine
from symbolic_cost.systems.overlap import FULL
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.runs import Run, Way, rates, step_seconds
from symbolic_cost.systems.step import Methods, step_time

MEGATRON = Way(scattered=True)
"""Megatron-LM of 2021: full recomputation, sends in parts."""

SEQUENCE_PARALLEL = Way(recompute="selective", split=True)
"""Korthikanti's present work."""


@dataclass(frozen=True, slots=True)
class Guess:
    """One number: printed and predicted, in one unit."""

    name: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Of the prediction, as a share."""
        return self.predicted / self.measured - 1


def a100() -> dict[str, float]:
    """Return what Selene's nodes reach: A100 with 25 GB/s per GPU between nodes."""
    return rates(machine("a100-80gb"))


def korthikanti() -> Iterator[Guess]:
    """Yield the iteration times of Table 5 [s]."""
    data = printed_data("korthikanti_2022")
    chunks = {"175B": 3, "530B": 3}
    for name, row in data["table3"].items():
        run = Run(
            e=row["h"],
            h=row["a"],
            n_layers=row["L"],
            l=data["inputs"]["s"],
            V=data["inputs"]["v"],
            global_batch=row["global_batch"],
            micro_batch=row["micro_batch"],
            tp=row["t"],
            dp=1,
            pp=row["p"],
        )
        printed = data["table5"]["rows"][name]
        for way, text, label in (
            (MEGATRON, printed[0], "full recomputation"),
            (SEQUENCE_PARALLEL, printed[1], "selective, sequence parallel"),
        ):
            interleaved = replace(way, chunks=chunks.get(name, 1))
            (seconds,) = step_seconds([run], a100(), interleaved)
            yield Guess(f"{name}, {label}", float(text), float(seconds))


LAYERS = (
    ("baseline", "none", "tp=8", 7.7, 11.9),
    ("sequence parallel", "none", "tp=8,sp", 7.2, 11.8),
    ("full recomputation", "full", "tp=8", 7.7, 19.5),
    ("selective recomputation", "selective", "tp=8", 7.7, 13.2),
    ("selective, sequence parallel", "selective", "tp=8,sp", 7.2, 13.1),
)
"""Rows of Table 4: forward and backward of one layer of the 22B model [ms]."""


def layers() -> Iterator[Guess]:
    """Yield the times of one layer of Table 4 [ms]."""
    sizes = {"b": 4, "l": 2048, "e": 6144, "f": 24576, "h": 64, "V": 51200, "n_layers": 1, "M": 1}
    for name, recompute, strategy, *printed in LAYERS:
        training = Training(precision="fp16-mixed", recompute=recompute_policy(recompute))
        made = step_time(
            GPT().model(), parse_strategy(strategy), machine("a100-80gb"), training, Methods()
        )
        passes = ("forward", "backward", "weight gradients")
        parts = [f"block.{way}.{part}" for way in passes for part in ("busy", "exposed")]
        chain = made.chain.compiled(*(part for part in parts if part in made.chain.definitions))
        found = chain({name: sizes[name] for name in chain.inputs})
        forward = sum(float(time) for part, time in found.items() if ".forward." in part)
        both = sum(float(time) for time in found.values())
        for label, measured, seconds in zip(
            ("forward", "backward"), printed, (forward, both - forward), strict=True
        ):
            yield Guess(f"{name}, {label}", measured, 1000 * seconds)


MICROBATCHES = {1.7: 4, 3.6: 4, 7.5: 4, 18.4: 4, 39.1: 4, 76.1: 2, 145.6: 2}
"""Microbatches that are assumed for Table 1, which prints none; one for larger models."""


def table_1() -> Iterator[Guess]:
    """Yield the iteration times of Narayanan's Table 1, from the printed throughput [s]."""
    columns = printed_data("narayanan_2021")["table1"]["columns"]
    for cells in printed_data("narayanan_2021")["table1"]["rows"]:
        row = dict(zip(columns, cells, strict=True))
        tp, pp, gpus, batch = (int(row[name]) for name in ("t", "p", "n_gpus", "batch"))
        sizes = {"e": int(row["h"]), "h": int(row["heads"]), "n_layers": int(row["l"])}
        run = Run(
            **sizes,
            l=2048,
            V=51200,
            global_batch=batch,
            micro_batch=MICROBATCHES.get(float(row["params_billion"]), 1),
            tp=tp,
            dp=gpus // (tp * pp),
            pp=pp,
        )
        rate = {"B": batch, "R": gpus, "tflops_per_gpu": float(row["tflops_per_gpu"])}
        measured = narayanan(sizes | rate)["iteration_s"]
        predicted = float(step_seconds([run], a100(), MEGATRON)[0])
        yield Guess(f"{row['params_billion']} B, {gpus} GPUs", float(measured), predicted)


# ---------------------------------------------------------------------- Llama 3

CHUNKS = 8
"""Chunks per stage that are assumed: one layer each, about."""


@cache
def _llama() -> Model:
    family = DECODERS["llama"]
    fused = family.attended(core=replace(family.attention.core, kernel=Core.FLASH))
    return symbolic("llama", decoder=fused)


def h100(share: Rational | None = None) -> Machine:
    """Return the machine, with another share of its matrix peak if given."""
    found = machine("h100")
    if share is None:
        return found
    return replace(found, efficiencies=replace(found.efficiencies, matrix=Figure(share)))


def llama(node: Machine) -> Iterator[Guess]:
    """Yield the throughputs of Table 4 of the Llama 3 report [TFLOP/s per GPU]."""
    made, sizes = _llama(), model("llama-3-405b").bindings
    for row in printed_rows("llama3_2024"):
        length, batch = int(row["seq"]), int(row["batch_per_dp"])
        degrees = ",".join(f"{name}={row[name]}" for name in ("tp", "cp", "dp", "pp"))
        strategy = parse_strategy(f"{degrees},sp,zero=1")
        step = step_time(
            on_every_rank(made, strategy),
            strategy,
            node,
            Training(recompute=recompute_policy("none"), schedule="interleaved"),
            Methods(overlaps={"dp": FULL}, conventions=replace(STANDARD, attention_pairs=CAUSAL)),
        )
        values = {**sizes, "b": 1, "l": length, "M": batch, "v": CHUNKS}
        seconds = step.chain.compiled("step")({s.name: values[s.name] for s in step.chain.symbols})
        ranks = int(row["gpus"])
        flop = _model_flop(sizes, length) * length * batch * int(row["dp"])
        predicted = flop / (float(seconds["step"]) * ranks) / 1e12
        yield Guess(f"{row['gpus']} GPUs, {length} tokens", float(row["tflops_per_gpu"]), predicted)


def _model_flop(sizes: Mapping[str, int], length: int) -> float:
    """Return the FLOP of one token, forward and backward, half of the attention square."""
    e, f, k, layers = (sizes[name] for name in ("e", "f", "k", "n_layers"))
    weights = layers * (2 * e**2 + 2 * e * k * sizes["q"] + 3 * e * f) + e * sizes["V"]
    return 6 * weights + 6 * layers * e * length
