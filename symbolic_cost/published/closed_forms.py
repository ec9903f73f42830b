"""Closed forms that need no one publication: pipelines, recomputation, products, decoding.

Bubbles come from the schedules, ZeRO's bytes and GPT's parameters from their own modules, kept
bytes from the declared block, ratios of collectives from strategies, rates from machine records.

Source: narayanan-2021, chen-2016, rajbhandari-2019, ballard-2011, solomonik-2011.
"""

import math
from collections.abc import Mapping

from sympy import Integer, cancel

from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.derive import cost
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.published import narayanan_2021, usp_2024, zero_2019
from symbolic_cost.published.cases import Values, Work, numbered
from symbolic_cost.published.korthikanti_2022 import saved
from symbolic_cost.symbols import T_B, T_F, T_W, B, M, b, e, l
from symbolic_cost.systems.records import machine


def _training(inputs: Values) -> Values:
    """Parameters (Eq 2) and FLOP per token (Eq 3) of two models; the time is Eq 4."""
    values: dict[str, float] = {}
    for run in ("175B", "1T"):
        numbers = numbered(f"e=h_{run} n_layers=l_{run} V l=s", inputs.get)
        values[f"params_{run}"] = int(narayanan_2021.parameters().xreplace(numbers))
        flop = (narayanan_2021.iteration_flop() / (B * l)).expand()
        values[f"flop_{run}"] = float(flop.xreplace(numbers))
    return values


def _bubbles(inputs: Values) -> Values:
    bound = numbered("pp=p M=m v", inputs.get)

    def bubble(name: str) -> float:
        ideal = M * (T_F + T_B + T_W)
        return float(cancel(schedule(name).step_time / ideal - 1).xreplace(bound))

    return {"bubble": bubble("gpipe"), "bubble_interleaved": bubble("interleaved")}


def _checkpoints(inputs: Values) -> Values:
    layers = int(inputs["n"])
    return {"least_1000": min(math.ceil(layers / size) + size for size in range(1, layers + 1))}


def _weighted(inputs: Values) -> Values:
    """Bytes of one checkpoint and of one live layer, as the block's rows have them."""
    numbers = numbered("b l=s e=h h=H", inputs.get)
    held = {"c": saved("full recomputation"), "a": saved("none")}
    return {name: int(expr.xreplace(numbers)) for name, expr in held.items()}


def _zero(inputs: Values) -> Values:
    own = {"psi": float(inputs["P"]), "nd": int(inputs["N"]), "K": float(inputs["K"])}
    results = zero_2019.evaluate(own)
    volumes: Mapping[str, float] = results["volume_elements"]
    states = {name.replace("+", "_"): results[name] for name in zero_2019.LEVELS}
    trillion = zero_2019.evaluate({"psi": 1e12, "nd": 1024})["P_os+g+p"]
    gpt2 = zero_2019.evaluate({"psi": 1.5e9, "nd": 1})["baseline"]
    moved = {"volume_0": volumes["baseline"], "volume_3": volumes["P_os+g+p"]}
    return {**states, **moved, "trillion": trillion, "gpt2": gpt2}


def _exchanges(inputs: Values) -> Values:
    """What gathering keys and values moves, and the all-to-alls of queries and these, forward."""
    numbers = numbered("h=H k=K cp=N s1=N", inputs.get)
    moved = {"all_gather": "cp", "all_to_all": "ulysses"}
    shares = {name: usp_2024.moved(strategy, Phase.FORWARD) for name, strategy in moved.items()}
    return {name: float(expr.xreplace(numbers)) for name, expr in shares.items()}


def _rates(_: Values) -> Values:
    rates: dict[str, float] = {}
    for short, name in (("h100", "h100"), ("a100", "a100-80gb"), ("a100_40", "a100-40gb")):
        record = machine(name)
        rates[f"F_{short}"] = float(record.peak("bf16"))
        rates[f"W_{short}"] = float(record.bandwidth.value)
    return rates


def _gpt2(inputs: Values) -> Values:
    numbers = numbered("n_layers=L e=h V P=s l=s h=heads", inputs.get) | {b: Integer(1)}
    table = cost(GPT(f=4 * e).model(), MODEL_FLOP)
    totals = {
        "parameters": table.total(Quantity.PARAMETER),
        "positions": table.total(Quantity.PARAMETER, path="embedding.position"),
    }
    return {name: int(expr.xreplace(numbers)) for name, expr in totals.items()}


work = Work(
    "closed-forms",
    {
        "narayanan-training-time": _training,
        "pipeline-bubble": _bubbles,
        "sqrt-checkpoint": _checkpoints,
        "weighted-checkpoint": _weighted,
        "zero-figure1": _zero,
        "allgather-cp-vs-ulysses": _exchanges,
        "decode-batch": _rates,
        "nanogpt-gpt2": _gpt2,
    },
)
