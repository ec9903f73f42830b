"""Parameters of `kernels` from measured kernels, by robust least squares on logarithms.

Every kind of kernel is fitted alone, from rows that are mappings with the columns of the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from symbolic_cost.errors import InputError, refuse
from symbolic_cost.reading import in_digits
from symbolic_cost.records import dataclass
from symbolic_cost.systems.machines import Machine

Column = Any  # an array of float64
Columns = Mapping[str, Column]
Rows = Sequence[Mapping[str, str]]

LEAST = 12
"""Kernels of one kind that a fit needs: twice its parameters."""

_BYTES = {"fp8": 1, "bf16": 2}
_DTYPES = {
    **dict.fromkeys(("bfloat16", "bf16", "fp16", "float16", "half"), "bf16"),
    **dict.fromkeys(("fp8", "fp8_e4m3", "float8_e4m3fn"), "fp8"),
}
_MOVED: Mapping[str, tuple[str, Callable[[Columns], Column]]] = {
    "add": ("addition", lambda c: 6 * c["tokens"] * c["hidden"]),
    "attn_rope": (
        "rotation",
        lambda c: 4 * c["tokens"] * c["hidden"] / c["tp"] * (1 + c["kv_heads"] / c["heads"]),
    ),
    "emb": ("lookup", lambda c: 4 * c["tokens"] * c["hidden"]),
    "input_layernorm": ("norm", lambda c: 4 * c["tokens"] * c["hidden"]),
    "post_attention_layernorm": ("norm", lambda c: 4 * c["tokens"] * c["hidden"]),
    "mlp_act": ("activation", lambda c: 6 * c["tokens"] * c["ffn"] / c["tp"]),
}
"""By measured kernel: the kind of pass, and what it reads and writes [byte]."""

CASTING = "torch_flow"
"""Layers of TensorRT-LLM without a scale on record, which find that of their input each time.

Source: github.com/ai-dynamo/aiconfigurator, collector/trtllm/collect_gemm.py
(quantize_e4m3_per_tensor).
"""

_TILE = 128
"""Rows of a tile; kernels in 8 bits show none."""

AMONG_OTHERS = ("attn_pre_proj", "attn_post_proj", "mlp_up_proj", "mlp_down_proj")
"""Products that Vidur measured among the other kernels of a layer, with operands in no cache.

Others run again and again by themselves, and find theirs in the second-level cache.
"""

_COLD = 0.18
"""Where no product was measured among others: the geometric mean of a100-80gb's and h100's."""

_CAST = 5
"""Bytes that a cast of an element from 16 to 8 bits moves: two to find the greatest, then three."""

PASSES = tuple(sorted({kind for kind, _ in _MOVED.values()}))


@dataclass(frozen=True)
class Form:
    """What a kind of kernel takes, as a function of its parameters.

    Args:
        columns: that rows need beside latency_ms.
        start: of every parameter: first value, least and largest.
        time: of parameters and columns [s].
        chosen: whether a row is of this kind.
    """

    name: str
    columns: tuple[str, ...]
    start: Mapping[str, tuple[float, float, float]]
    time: Callable[[Column, Columns], Column]
    chosen: Callable[[Mapping[str, str]], bool] = lambda row: True  # noqa: ARG005 - one signature

    def table(self, rows: Iterable[Mapping[str, str]]) -> dict[str, Column]:
        """Return columns of the rows of this kind: numbers, and the name of kernel or op.

        Raises:
            InputError: too few rows, a column that is missing, a value that is no positive number.
        """
        own, problems = [row for row in rows if self.chosen(row)], []
        if len(own) < LEAST:
            problems.append(f"{self.name}: {len(own)} measured kernels; {LEAST} are the least")
        table: dict[str, Column] = {}
        for name in (*self.columns, "latency_ms"):
            if any(name not in row for row in own):
                problems.append(f"{self.name}: column {name} is missing")
                continue
            table[name] = np.array([_number(row[name]) for row in own])
            wrong = int(np.sum(~(np.isfinite(table[name]) & (table[name] > 0))))
            if wrong:
                problems.append(f"{self.name}: {wrong} values of {name} are no positive numbers")
        refuse(problems)
        words = {name: np.array([row.get(name, "") for row in own]) for name in ("kernel", "op")}
        return {**table, **words}


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit gives.

    Args:
        bounds: parameters that stand on a bound of the fit, and so are not told by the rows.
        error: mean relative error of every third row, fitted to the others.
        count: of all rows.
    """

    values: Mapping[str, float]
    bounds: tuple[str, ...]
    error: float
    count: int


def products(machine: Machine, precision: str) -> Form:
    """Return the form of products in a precision, "bf16" or "fp8", of m, n, k and dtype.

    Products in 16 bits compute whole tiles: 513 rows take as long as 640. Passes of models are
    taken to have whole ones, as 2048 tokens are.

    A layer in 8 bits casts its input of m k elements first, two kernels more: the greatest is
    found, then all are scaled. 8192 x 6144 on h100 are 252 MB, 0.11 ms, beside 0.03 of a product
    with 512 features.

    Operands in no cache make computing longer by a part of the time in which memory supplies them.
    """
    wide = _BYTES[precision]
    peak, bandwidth = float(machine.peak(precision)), float(machine.bandwidth.value)

    def time(x: Column, c: Columns) -> Column:
        share, area, length, memory, call, last = x
        m, n, k = c["m"], c["n"], c["k"]
        rows = np.ceil(m / _TILE) * _TILE if precision == "bf16" else m
        compute = 2 * (rows * n * k) / (peak * share) * (1 + area / (m * n)) * (1 + length / k)
        traffic = (wide * (m * k + k * n) + 2 * m * n) / bandwidth
        if precision == "bf16":
            compute = compute + np.isin(c["kernel"], AMONG_OTHERS) * last * traffic
            return call + np.maximum(compute, traffic / memory)
        cast = 2 * call + _CAST * m * k / (last * bandwidth)
        return call + np.maximum(compute, traffic / memory) + (c["kernel"] == CASTING) * cast

    start = {
        "share": (0.7, 0.2, 1.0),
        "area": (1e5, 1.0, 1e8),
        "length": (100.0, 1.0, 1e4),
        "memory": (0.7, 0.1, 1.0),
        "call": (5e-6, 5e-7, 5e-5),
        **({"cast": (0.5, 0.05, 1.0)} if precision == "fp8" else {"cold": (_COLD, 0.01, 3.0)}),
    }
    return Form(
        f"products {precision}",
        ("m", "n", "k"),
        start,
        time,
        lambda row: _DTYPES.get(row.get("dtype", "").removeprefix("torch.")) == precision,
    )


def prefill(machine: Machine) -> Form:
    """Return the form of attention over prompts in 16 bits."""
    peak, bandwidth = float(machine.peak("bf16")), float(machine.bandwidth.value)

    def time(x: Column, c: Columns) -> Column:
        share, length, width, call, rows, moving = x
        q, t, d = c["q_len"], c["kv_len"], c["head_dim"]
        pairs = q * (t - q) + q * (q + 1) / 2
        flop = 4 * c["batch"] * c["heads"] * d * pairs
        narrow = (1 + width / d) / (1 + width / 128)
        idle = 1 + rows / (c["batch"] * c["heads"] * q)
        moved = 4 * c["batch"] * d * (q * c["heads"] + t * c["kv_heads"]) / (moving * bandwidth)
        return call + flop / (peak * share) * (1 + length / t) * narrow * idle + moved

    start = {
        "share": (0.5, 0.1, 1.0),
        "length": (500.0, 0.01, 1e4),
        "width": (25.0, 0.1, 1e3),
        "call": (5e-6, 5e-7, 1e-4),
        "rows": (1e3, 1.0, 1e6),
        "moving": (0.7, 0.05, 2.0),
    }
    return Form("attention prefill", _ATTENTION, start, time, _of_phase("prefill"))


def decode(machine: Machine) -> Form:
    """Return the form of attention of decode steps with a cache in 16 bits."""
    bandwidth = float(machine.bandwidth.value)

    def time(x: Column, c: Columns) -> Column:
        memory, queries, step = x
        cache = 4 * c["batch"] * c["kv_len"] * c["kv_heads"] * c["head_dim"]
        own = 4 * c["batch"] * c["heads"] * c["head_dim"]
        return step + (cache + queries * own) / (bandwidth * memory)

    start = {"memory": (0.7, 0.1, 1.0), "queries": (10.0, 1.0, 1e3), "step": (1e-5, 5e-7, 1e-4)}
    return Form("attention decode", _ATTENTION, start, time, _of_phase("decode"))


def passes(machine: Machine) -> Form:
    """Return the form of passes over memory: a share of the bandwidth by kind, one call for all."""
    bandwidth = float(machine.bandwidth.value)

    def time(x: Column, c: Columns) -> Column:
        moved: Column = 0
        for kernel, (kind, traffic) in _MOVED.items():
            moved = moved + (c["kernel"] == kernel) * traffic(c) / x[PASSES.index(kind)]
        return x[-1] + moved / bandwidth

    start = {**dict.fromkeys(PASSES, (0.5, 0.05, 1.0)), "call": (1e-6, 1e-7, 1e-4)}
    columns = ("tokens", "hidden", "ffn", "heads", "kv_heads", "tp")
    return Form("passes", columns, start, time, lambda row: row.get("kernel") in _MOVED)


def collectives(machine: Machine) -> Form:
    """Return the form of collectives inside one domain, of op, gpus and bytes.

    bytes are those of the whole message, of the local buffer of an all-to-all.
    """
    bandwidth = float(machine.links[0].bandwidth.value)

    def time(x: Column, c: Columns) -> Column:
        gathering, reducing, small, call, hop, large, copy = x
        others = c["gpus"] - 1
        twice = 1 + (c["op"] == "all_reduce")
        reduces = (c["op"] == "all_reduce") | (c["op"] == "reduce_scatter")
        share = np.where(reduces, reducing, gathering)
        shared = (c["gpus"] / 2) ** 2 if machine.links[0].name == "pcie" else 1
        sent = twice * c["bytes"] * (others + copy) / c["gpus"] * shared
        nominal = sent / (share * bandwidth)
        sending = np.minimum(nominal / small, large + nominal)
        hops = np.where(c["op"] == "alltoall", 1 + np.ceil(np.log2(c["gpus"])), twice * others)
        return call + hops * hop + sending

    start = {
        "gathering": (0.7, 0.05, 1.0),
        "reducing": (0.7, 0.05, 1.0),
        "small": (0.4, 0.1, 1.0),
        "call": (5e-6, 1e-6, 5e-5),
        "hop": (1e-6, 1e-7, 1e-5),
        "large": (1e-5, 1e-7, 1e-3),
        "copy_share": (0.5, 0.01, 3.0),
    }
    named = ("all_gather", "all_reduce", "reduce_scatter", "alltoall")
    return Form("collectives", ("gpus", "bytes"), start, time, lambda row: row.get("op") in named)


def fit_kernels(form: Form, rows: Iterable[Mapping[str, str]]) -> Fitted:
    """Fit a form; outliers weigh less than with squares.

    Raises:
        InputError: too few rows, or rows that are no measurements; SciPy is not installed.
    """
    table = form.table(rows)
    place = np.arange(len(table["latency_ms"])) % 3
    part, _ = _best(form, {name: column[place != 0] for name, column in table.items()})
    unseen = {name: column[place == 0] for name, column in table.items()}
    error = np.mean(np.abs(form.time(part, unseen) * 1000 / unseen["latency_ms"] - 1))
    values, bounds = _best(form, table)
    named = {name: float(value) for name, value in zip(form.start, values, strict=True)}
    return Fitted(named, bounds, float(error), len(place))


def _best(form: Form, table: Columns) -> tuple[Column, tuple[str, ...]]:
    """Return the parameters that fit best, and which of them stand on a bound."""
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise InputError("a fit needs SciPy: install symbolic_cost[fit]") from None
    first, low, high = (np.log([each[i] for each in form.start.values()]) for i in range(3))
    seconds = np.log(table["latency_ms"] / 1000)

    def residuals(x: Column) -> Column:
        off: Column = np.log(form.time(np.exp(x), table)) - seconds
        return np.concatenate([off, _PULL * (x - first)])

    best = least_squares(residuals, first, bounds=(low, high), loss="soft_l1", f_scale=0.1)
    edges = zip(form.start, best.x, low, high, strict=True)
    near = (name for name, x, under, over in edges if min(x - under, over - x) < _NEAR)
    return np.exp(best.x), tuple(near)


_PULL = 1e-3
"""Weight of the distance to the first value: parameters that the rows do not tell stay there."""

_NEAR = 1e-3
"""Distance of the logarithms of a parameter and its bound."""

KERNEL_FORMS: Mapping[str, Callable[[Machine], Form]] = {
    "products bf16": partial(products, precision="bf16"),
    "products fp8": partial(products, precision="fp8"),
    "attention prefill": prefill,
    "attention decode": decode,
    "passes": passes,
    "collectives": collectives,
}
"""What is measured of a machine, by kind."""

_ATTENTION = ("batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim")


def _of_phase(phase: str) -> Callable[[Mapping[str, str]], bool]:
    return lambda row: row.get("phase") == phase


def _number(text: str) -> float:
    try:
        return in_digits(text)
    except ValueError:
        return float("nan")
