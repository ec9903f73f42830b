"""Step times that papers print, and what the library predicts for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import symbolic_cost as sc

MEGATRON = sc.systems.Way(scattered=True)
"""Megatron-LM of 2021: full recomputation, sends in parts."""

SEQUENCE_PARALLEL = sc.systems.Way(recompute="selective", split=True)
"""Korthikanti's present work."""


@dataclass(frozen=True, slots=True)
class Guess:
    """One number: printed and predicted, in one unit.

    Args:
        ends: that four of five lie between; none where the efficiencies of a record stand alone.
    """

    name: str
    measured: float
    predicted: float
    ends: tuple[float, ...] = ()

    @property
    def error(self) -> float:
        """Of the prediction, as a share."""
        return self.predicted / self.measured - 1


def a100() -> dict[str, float]:
    """Return what Selene's nodes reach: A100 with 25 GB/s per GPU between nodes."""
    return sc.systems.rates(sc.systems.machine("a100-80gb"))


def korthikanti() -> Iterator[Guess]:
    """Yield the iteration times of Table 5 [s]."""
    data = sc.printed_data("korthikanti_2022")
    chunks = {"175B": 3, "530B": 3}
    for name, row in data["table3"].items():
        run = sc.systems.Run(
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
            (seconds,) = sc.systems.step_seconds([run], a100(), interleaved)
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
        training = sc.Training(precision="fp16-mixed", recompute=sc.recompute_policy(recompute))
        made = sc.systems.step_time(
            sc.GPT().model(),
            sc.parse_strategy(strategy),
            sc.systems.machine("a100-80gb"),
            training,
            sc.systems.Methods(),
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
    columns = sc.printed_data("narayanan_2021")["table1"]["columns"]
    for cells in sc.printed_data("narayanan_2021")["table1"]["rows"]:
        row = dict(zip(columns, cells, strict=True))
        tp, pp, gpus, batch = (int(row[name]) for name in ("t", "p", "n_gpus", "batch"))
        sizes = {"e": int(row["h"]), "h": int(row["heads"]), "n_layers": int(row["l"])}
        run = sc.systems.Run(
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
        measured = sc.publication("narayanan-2021").evaluate(sizes | rate)["iteration_s"]
        predicted = float(sc.systems.step_seconds([run], a100(), MEGATRON)[0])
        yield Guess(f"{row['params_billion']} B, {gpus} GPUs", float(measured), predicted)


# ---------------------------------------------------------------------- Llama 3

CHUNKS = 8
"""Chunks per stage that are assumed: one layer each, none at both ends."""


def llama() -> Iterator[Guess]:
    """Yield the throughputs of Table 4 of the Llama 3 report [TFLOP/s per GPU]."""
    for row in sc.printed_rows("llama3_2024"):
        degrees = ",".join(f"{name}={row[name]}" for name in ("tp", "cp", "dp", "pp"))
        job = sc.job(
            "llama-3-405b",
            f"{degrees},sp,zero=1",
            system="h100",
            schedule="interleaved",
            layout="ends=1",
            conventions="palm-mfu",
        )
        numbers = {"b": 1, "l": int(row["seq"]), "M": int(row["batch_per_dp"]), "v": CHUNKS}
        took = job.bind(**numbers).time()
        rate, step = (float(took.total(name)) for name in ("achieved", "step"))
        ends = tuple(rate * step / float(end) / 1e12 for end in (took.high, took.low))
        name = f"{row['gpus']} GPUs, {row['seq']} tokens"
        yield Guess(name, float(row["tflops_per_gpu"]), rate / 1e12, ends)
