"""Random jobs with degrees as numbers, and the same jobs with symbols for them."""

from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import strategies as st
from sympy import Integer

from symbolic_cost.conventions.questions import Saved
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.systems.overlap import overlap
from symbolic_cost.systems.step import Methods

SIZES = {
    "b": 8,
    "l": 1024,
    "e": 512,
    "f": 2048,
    "h": 16,
    "q": 32,
    "V": 5000,
    "n_layers": 96,
    "P": 1024,
}
LLAMA = {
    "b": 8,
    "l": 1024,
    "e": 512,
    "f": 1024,
    "h": 16,
    "k": 8,
    "q": 32,
    "V": 5000,
    "n_layers": 96,
}
EXPERTS = {**LLAMA, "E": 16, "E_t": 2, "f_m": 256}
FAMILIES = {"gpt": SIZES, "llama": LLAMA, "mixtral": EXPERTS}
MORE = {
    "gemma2": {**LLAMA, "W": 256},
    "gpt_oss": {**EXPERTS, "W": 256},
    "deepseek_v3": {
        **EXPERTS,
        "f_s": 256,
        "n_dense": 24,
        "r_kv": 64,
        "r_q": 128,
        "d_n": 32,
        "d_r": 16,
        "d_v": 32,
    },
    "bert-pretraining": {**SIZES, "T": 2},
    "t5": {**SIZES, "l_t": 512, "n_dec": 96, "n_rel": 32},
    "vit": {**SIZES, "N_p": 15, "s_p": 16, "n_ch": 3, "n_classes": 10},
    "mamba": {**SIZES, "J": 1024, "K": 4, "N": 16, "r_dt": 32},
    "mamba2": {**SIZES, "C": 64, "K": 4, "N": 16, "g": 8},
    "lstm": SIZES,
}
"""Numbers of families with other layers; many strategies are refused for them."""

GRAPH = str(Path(__file__).parents[1] / "golden" / "pt2" / "llama.pt2")
GRAPHS = {GRAPH: LLAMA}
"""Numbers of an exported graph, whose sizes have the symbols of its roles."""

ROUTED = {"mixtral", "gpt_oss", "deepseek_v3"}
"""Families with experts."""

SMALL = st.sampled_from((1, 1, 2, 4))


@dataclass(frozen=True)
class Job:
    """Everything that a step and its memory rest on, degrees as numbers.

    Args:
        family: of the model.
        strategy: with numbers.
        training: with numbers of microbatches and chunks.
        methods: of the time.
        stage: number of the stage among those that differ.
    """

    family: str
    strategy: Strategy
    training: Training
    methods: Methods
    stage: int

    def values(self):
        """Numbers of sizes and degrees by the name of the symbol."""
        return {
            **(FAMILIES | MORE | GRAPHS)[self.family],
            **self.strategy.bindings(),
            "M": int(self.training.microbatches),
            "v": int(self.training.chunks),
        }


@st.composite
def _degrees(draw, family, *, pipelined):
    schemes = ["none", "tp", "tp", "tp,sp", "tp,sp"]
    schemes += ["2d", "2.5d", "3d"] if family == "gpt" else []
    scheme = draw(st.sampled_from(schemes))
    degrees = {}
    if scheme.startswith("tp"):
        degrees["tp"] = (draw(SMALL),)
        degrees |= {"sp": ()} if scheme == "tp,sp" else {}
    elif scheme == "2d":
        degrees["2d"] = (draw(SMALL), draw(SMALL))
    elif scheme != "none":
        degrees[scheme] = tuple(draw(st.sampled_from((1, 2))) for _ in range(3))
    positions = ["none", "cp"]
    positions += ["ulysses", "ring", "ulysses,ring"] if scheme in {"none", "tp", "tp,sp"} else []
    chosen = draw(st.sampled_from(positions))
    for name in chosen.split(","):
        if name != "none":
            degrees[name] = (draw(st.sampled_from((1, 2))),)
    if draw(st.booleans()) or family in ROUTED:
        degrees["dp"] = (draw(st.sampled_from((1, 2, 4, 8))),)
        if family in ROUTED and scheme in {"none", "tp", "tp,sp"}:
            whole = [n for n in (1, 2, 4, 8) if degrees["dp"][0] % n == 0]
            degrees["ep"] = (draw(st.sampled_from(whole)),)
        if draw(st.integers(0, 3)) == 0:
            degrees["replicas"] = (draw(st.sampled_from((1, 2))),)
    if pipelined:
        degrees["pp"] = (draw(st.sampled_from((1, 2, 3, 4, 6))),)
    return degrees


@st.composite
def jobs(draw, family, *, pipelined):
    """A legal job."""
    degrees = draw(_degrees(family, pipelined=pipelined))
    sharding = {"dp", "cp", "ring", "ulysses"} & set(degrees)
    zero = draw(st.integers(0, 3)) if sharding else 0
    panels = draw(st.sampled_from((1, 2))) if "2d" in degrees else 1
    stages = degrees.get("pp", (1,))[0]
    names = ["1f1b", "gpipe", "interleaved", "zb-h1", "zb-h2", "zb-v"]
    names += ["dualpipe"] if stages % 2 == 0 or stages == 1 else []
    schedule = draw(st.sampled_from(names))
    chunks = draw(st.sampled_from((1, 2))) if schedule == "interleaved" else 2
    training = Training(
        precision=draw(st.sampled_from(("bf16-mixed", "fp16-mixed", "fp32", "fp8-deepseek"))),
        optimizer=draw(st.sampled_from(("adam", "sgd", "adafactor", "muon"))),
        recompute=recompute_policy(draw(st.sampled_from(("none", "selective", "full", "full/5")))),
        schedule=schedule,
        microbatches=Integer(12),
        chunks=Integer(chunks),
        layout=draw(st.sampled_from(("even", "uneven", "even"))),
    )
    hosted = st.frozensets(st.sampled_from(("optimizer", "master_weight", "weight", "saved")))
    saved = draw(st.sampled_from((None, *Saved)))
    training = replace(training, offload=draw(hosted), saved=saved)
    answers = ("none", "full", "partial=0.5", "panels=4")
    overlaps = {
        mesh: overlap(draw(st.sampled_from(answers)))
        for mesh in ("tp", "cp", "dp", "pp", "ep", "m1", "host")
        if draw(st.booleans())
    }
    strategy = Strategy(degrees, zero, panels)
    order = draw(st.permutations(list(strategy.mesh))) if draw(st.booleans()) else ()
    methods = Methods(overlaps=overlaps, scattered=draw(st.booleans()), order=tuple(order))
    return Job(family, strategy, training, methods, draw(st.integers(0, 2)))
