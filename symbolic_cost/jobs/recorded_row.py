"""One row of a table of measured steps, read as the options of a job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from math import isfinite
from typing import Any

from symbolic_cost.errors import InputError, Problems, looked_up, quote
from symbolic_cost.jobs.job import Job, job
from symbolic_cost.jobs.recipes import settings
from symbolic_cost.models.catalog import CATALOG, model
from symbolic_cost.models.config import from_config
from symbolic_cost.models.published_size import configured
from symbolic_cost.ops.graph import Model
from symbolic_cost.reading import in_digits, package_data
from symbolic_cost.symbols import exact
from symbolic_cost.systems.kernel_records import clock, watts
from symbolic_cost.systems.machines import Figure, Machine
from symbolic_cost.systems.records import find_machine
from symbolic_cost.systems.stacks import UNKNOWN

_DATA: Mapping[str, Mapping[str, Any]] = package_data("jobs/recorded.toml")

NEEDED = ("seq", "micro_batch", "global_batch")
"""What every row must say."""

_COUNTS = (
    *("gpus", "tp", "pp", "vpp", "cp", "ep", "dp"),
    *("shard_ranks", "micro_batch", "global_batch"),
)
SIZES = ("n_layers", "hidden", "heads")
_NOT_SAID = re.compile(r"|recipe default|unknown|selective or none.*", re.DOTALL)
_LOCAL = re.compile(r"\blocal batch (\d+)\b.*\bassumed\b")
"""What a row says whose microbatch is not printed."""

_ASYNCHRONOUS = "tp=partial=0.75"
"""What asynchronous tensor parallelism hides, in pieces of a product beside each other."""


def number_in(text: str) -> float:
    """Return the number that a cell holds; -1 where it holds none that is finite."""
    try:
        read = in_digits(text)
    except ValueError:
        return -1
    return read if isfinite(read) else -1


class RowRead:
    """A row read: options of `job`, and what is assumed."""

    def __init__(self, cells: Mapping[str, str]) -> None:
        self.assumed: list[str] = []
        self.problems = Problems()
        said = {name: text for name, text in cells.items() if not _NOT_SAID.fullmatch(text)}
        self.cells = {**cells, **settings(cells), **said}
        if "async TP" in cells.get("assumed", ""):
            self.cells.setdefault("overlap", _ASYNCHRONOUS)
        self._split()

    def _split(self) -> None:
        """Divide a rank's batch of which microbatches are not printed into one for every stage.

        Source: torchtitan of 2024, pipeline_parallel_microbatches or the pipeline's degree.
        """
        batch = _LOCAL.search(self.cells.get("assumed", ""))
        stages = number_in(self.cells.get("pp", "1"))
        if batch is not None and stages > 1 and int(batch[1]) % stages == 0:
            self.cells["micro_batch"] = str(int(int(batch[1]) / stages))
            self.assumed.append("as many microbatches as stages, as the framework has it")

    def job(self) -> Job:
        """Return the job."""
        counts = {name: self._count(name) for name in _COUNTS}
        self.problems.refuse()
        degrees = self._degrees(counts)
        machine = self.problems.attempt(self._machine)
        declared = self.problems.attempt(self._model, degrees["tp"])
        options: dict[str, Any] = {
            name: self.problems.attempt(read)
            for name, read in (
                ("precision", self._precision),
                ("recompute", self._recompute),
                ("attention", self._attention),
            )
        }
        self.problems.refuse()
        options |= {
            name: self.cells[name]
            for name in ("offload", "overlap", "layout")
            if name in self.cells
        }
        options["stack"] = self._stack()
        numbers = {"b": counts["micro_batch"] or 1, "l": int(self.cells["seq"])}
        if degrees["vpp"] > 1:
            numbers["v"], options["schedule"] = degrees["vpp"], "interleaved"
        return job(
            declared,
            self._strategy(degrees),
            numbers,
            system=machine,
            global_batch=counts["global_batch"],
            optimizer=self.cells.get("optimizer", "adam").replace("adamw", "adam"),
            **options,
        )

    def _count(self, name: str) -> int | None:
        text = self.cells.get(name)
        if text is None:
            if name in NEEDED:
                self.problems.texts.append(f"{name} is not printed")
            return None
        number = number_in(text)
        if number != int(number) or not 0 < number < 10**9:
            self.problems.texts.append(f"{name} is {quote(text)}: a positive integer is accepted")
            return None
        return int(number)

    def _degrees(self, counts: Mapping[str, int | None]) -> dict[str, int]:
        """Return the degrees; the data-parallel one follows from the ranks where it is open."""
        degrees = {name: counts[name] or 1 for name in ("tp", "pp", "vpp", "cp", "ep")}
        whole = degrees["tp"] * degrees["pp"] * degrees["cp"]
        gpus = counts["gpus"] or whole * (counts["dp"] or 1)
        data = counts["dp"] or gpus // whole
        if whole * data != gpus:
            self.problems.texts.append(
                f"tp x pp x cp x dp = {whole * data} is another number of ranks than gpus = {gpus}"
            )
        shards = counts["shard_ranks"] or data
        degrees["ep"] = self._experts(degrees["ep"], data, degrees["tp"])
        return {**degrees, "dp": data, "shards": shards}

    @property
    def _sequences(self) -> bool:
        """Whether tensor-parallel ranks split the residual stream.

        Those of MaxText always split its features, which takes the room and the messages of split
        positions.

        Source: github.com/AI-Hypercomputer/maxtext, configs/base.yml: activation_embed.
        """
        said = self.cells.get("sp", "0") not in ("0", "false", "False")
        return said or self._stack() in _DATA["split_features"]["stacks"]

    def _experts(self, experts: int, data: int, tensor: int) -> int:
        """Return how many of the expert-parallel ranks are data-parallel ones.

        Frameworks place whole experts on tensor-parallel ranks first; where these share an expert,
        as without sp, that is as much work and as many weights, with other messages inside a node.
        """
        if tensor > 1 and self._sequences and experts % tensor == 0:
            return experts // tensor
        if experts <= data or experts % data or tensor % (experts // data):
            return experts
        self.assumed.append(
            f"of {experts} expert-parallel ranks the {experts // data} beyond data-parallel ones "
            "share experts by tensor parallelism"
        )
        return data

    def _strategy(self, degrees: Mapping[str, int]) -> str:
        parts = [
            f"{name}={degrees[name]}" for name in ("tp", "cp", "pp", "ep") if degrees[name] > 1
        ]
        if degrees["tp"] > 1 and self._sequences:
            parts[1:1] = ("sp", "spread") if degrees["ep"] > 1 else ("sp",)
        data, shards = degrees["dp"], degrees["shards"]
        zero = self._zero(degrees)
        if zero == "3" and shards < data:
            parts += [f"dp={shards}", f"replicas={data // shards}"]
        elif data > 1 or degrees["ep"] > 1:
            parts.append(f"dp={data}")
        sharded = data > 1 or degrees["cp"] > 1
        return ",".join(parts + ([f"zero={zero}"] if zero != "0" and sharded else []))

    def _zero(self, degrees: Mapping[str, int]) -> str:
        """Return the level of ZeRO; under a pipeline nothing is freed before its last microbatch.

        Weights then stay gathered and gradients whole from the first microbatch to the last, which
        is what level 1 keeps.
        """
        level = self.cells.get("zero", "0")
        if level in ("2", "3") and degrees["pp"] > 1:
            self.assumed.append("weights stay gathered and gradients whole while a pipeline runs")
            return "1"
        return level

    def _machine(self) -> Machine | None:
        """Return the machine with the row's network, where it gives one."""
        if "system" not in self.cells:
            return None
        record = find_machine(self.cells["system"])
        links = list(record.links)
        between, inside = (self.cells.get(n) for n in ("internode_GBps_per_gpu", "gpus_per_node"))
        if len(links) > 1 and between is not None and number_in(between) > 0:
            rate = Figure(exact(number_in(between)) * 10**9, "definition", "as the run says")
            links[-1] = replace(links[-1], bandwidth=rate)
        if len(links) > 1 and inside is not None and number_in(inside) > 1:
            ranks = Figure(exact(int(number_in(inside))), "definition", "as the run says")
            links[0] = replace(links[0], ranks=ranks)
        return self._boxed(replace(record, links=tuple(links)))

    def _boxed(self, machine: Machine) -> Machine:
        """Return a machine with the memory and the limit of power that a row notes of its box.

        For example "2.4 TB/s, 500 W limit" of an H100 of 700 W: 0.85 of its clock.
        """
        note = self.cells.get("system_note", "")
        memory, power = re.search(r"([\d.]+) TB/s", note), re.search(r"\b(\d+) W\b", note)
        if memory is not None and number_in(memory[1]) > 0:
            rate = Figure(exact(Decimal(memory[1])) * 10**12, "definition", "as the run says")
            machine = replace(machine, bandwidth=rate)
        usual = watts(machine.name)
        if power is not None and usual and 0 < int(power[1]) < usual:
            share = Figure(clock(int(power[1]) / usual), "definition", "as the run says")
            machine = replace(machine, efficiencies=replace(machine.efficiencies, clock=share))
        return machine

    def _stack(self) -> str:
        """Return the stack that the row names, or the one of its framework."""
        if "stack" in self.cells:
            return self.cells["stack"]
        framework = self.cells.get("framework", "").lower()
        stack = next((name for word, name in _DATA["stacks"].items() if word in framework), UNKNOWN)
        if stack == UNKNOWN:
            self.assumed.append("no software stack is named")
        if stack == "torchtitan" and "torch.compile" in self.cells.get("assumed", ""):
            return "torchtitan-compiled"
        many = _DATA["blocking"]
        if many["word"] in framework and number_in(self.cells.get("gpus", "1")) >= many["gpus"]:
            return str(many["stack"])
        return stack

    def _precision(self) -> str:
        """Return the policy; what is kept beside 16-bit products is the framework's."""
        word = self.cells.get("precision", "bf16")
        if word == "bf16" and self.cells.get("zero") == "3":
            return "bf16-fsdp"
        own: Mapping[str, str] = _DATA["precisions_under"].get(self._stack(), {})
        return own.get(word) or _DATA["precisions"].get(word, word)

    def _recompute(self) -> str:
        """Return the policy; some stacks run again what backward needs alone, not whole blocks."""
        word = self.cells.get("recompute", "")
        full = "needed" if self._stack() in _DATA["needed"]["stacks"] else "full"
        if word == "unknown":
            self.assumed.append("blocks run again, where nobody says what does")
            return full
        if _NOT_SAID.fullmatch(word):
            self.assumed.append("nothing is recomputed, where the row does not say")
            return "none"
        if word.startswith("selective op"):
            return "selective-op"
        if word == "full":
            return full
        if word in _DATA["offloaded"]:
            self.assumed.append("copies of what is kept on the host are hidden, and kept here")
        return _DATA["offloaded"].get(word, word)

    def _attention(self) -> str:
        words = re.split(r"[^a-z]", self.cells.get("attention", "").lower(), maxsplit=1)
        return str(looked_up("attention", words[0], _DATA["attention"]))

    def _model(self, ranks: int) -> Model:
        """Return the model by its sizes, else by its name in the catalogue."""
        sizes = [name for name in SIZES if number_in(self.cells.get(name, "")) > 0]
        if len(sizes) == len(SIZES):
            return from_config(self._config(ranks))
        if sizes:
            missing = ", ".join(name for name in SIZES if name not in sizes)
            raise InputError(f"sizes {', '.join(sizes)} are given without {missing}")
        return model(catalogue_name(self.cells.get("model", "")), self._size("predicted", 0))

    def _config(self, ranks: int) -> dict[str, Any]:
        """Return the sizes as a configuration of the family."""
        size = self._size
        gated = self.cells.get("gated", "0") not in ("0", "false", "False")
        family = self.cells.get("family", "llama" if gated else "gpt")
        own: Mapping[str, Any] = looked_up("family", family, _DATA["families"])
        e, h = size("hidden"), size("heads")
        record: dict[str, Any] = {
            **own,
            "num_hidden_layers": size("n_layers"),
            "hidden_size": e,
            "num_attention_heads": h,
            "num_key_value_heads": size("kv_heads", h),
            "head_dim": size("head_dim", e // h),
            "intermediate_size": size("ffn", 4 * e),
            "vocab_size": self._vocabulary(size("vocab"), ranks),
            "max_position_embeddings": size("seq"),
            "tie_word_embeddings": self.cells.get("tied_embeddings", "1") != "0",
        }
        if size("n_experts", 0):
            record |= {
                "model_type": "mixtral",
                "num_local_experts": size("n_experts"),
                "num_experts_per_tok": size("top_k"),
                "intermediate_size": size("moe_ffn", size("ffn", 4 * e)),
            }
        return record

    def _size(self, name: str, default: int | None = None) -> int:
        text = self.cells.get(name)
        if text is None and default is not None:
            return default
        number = number_in(text or "")
        if number != int(number) or number <= 0:
            raise InputError(f"{name} is {quote(text)}: a positive integer is accepted")
        return int(number)

    def _vocabulary(self, words: int, ranks: int) -> int:
        """Return the vocabulary, padded where tensor-parallel ranks do not divide it."""
        if words % ranks == 0:
            return words
        block = _PADDED * ranks
        self.assumed.append(f"the vocabulary of {words} is padded to a multiple of {block}")
        return -(-words // block) * block


_PADDED = 128
"""Tokens to multiples of which every tensor-parallel rank's share of the vocabulary is padded."""

_FOLDED = re.compile(r"[^a-z0-9]")


def catalogue_name(text: str) -> str:
    """Return the name of the catalogue that a text stands for, however it is punctuated.

    >>> [catalogue_name(name) for name in ("Llama3-70B", "llama3.1-405b", "GPT3_175B")]
    ['llama-3-70b', 'llama-3-405b', 'gpt3-175b']
    """
    known = {_FOLDED.sub("", name): name for name in (*CATALOG, *configured())}
    folded = _FOLDED.sub("", text.lower())
    plain = re.sub(r"^llama31", "llama3", folded)
    return known.get(folded) or known.get(plain) or text
