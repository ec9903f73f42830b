"""Faults that a test must see: in which file which text, what stands in its place, which tests.

Texts occur exactly once in their file (tests/faults/test_table.py), so that the table does not go
stale unseen; `run.py` puts in one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

KERNELS = "tests/ops/test_kernels.py"
FLOW = "tests/laws/test_flow.py"
RANKS = "tests/laws/test_ranks.py"
COUNT = "tests/laws/test_count.py"
INVARIANCE = "tests/laws/test_invariance.py"
PLACEMENT = "tests/ops/test_placement.py"
OPS = "tests/ops"
MODELS = "tests/laws/test_models.py"
ACTED = f"{MODELS}::test_ranks_act_out_the_model"
GPT, LLAMA, MAMBA, VIT = (f"{ACTED}[{name}]" for name in ("gpt", "llama", "mamba", "vit"))
KINDS = "tests/models/test_kinds_of_layers.py"
STRATEGY = "tests/parallel/test_strategy.py"
MEMORY = "tests/parallel/test_memory.py"
SHARES = "tests/parallel/test_coverage.py::test_ranks_do_the_whole_and_what_is_named"
COVERAGE = f"{SHARES}[gpt]"
STAGES = "tests/parallel/test_stages.py"
TORCH = "tests/models/test_torch_truth_decoders.py"
SAVED = "tests/models/test_torch_saved_decoders.py"
ENCODERS = "tests/models/test_encoders.py"
SYSTEMS = "tests/systems"
VALUES = "tests/models/test_torch_saved_families.py::test_what_a_value_decides_is_exact_or_told"
QUANTIZED = "tests/models/test_quantized.py"
CHECKPOINTS = "tests/ops/test_torch_checkpoints.py"
SOFTWARE = "tests/parallel/test_kernels_of_software.py"
SHARDS = "tests/parallel/test_shards.py"


class Fault(NamedTuple):
    """One fault.

    Args:
        file: below the package.
        text: that stands there once.
        instead: what the fault puts there.
        tests: paths, quickest first; one of them must fail.
    """

    file: str
    text: str
    instead: str
    tests: tuple[str, ...]


FAULTS = (
    # What ops save and read.
    Fault(
        "ops/einsum.py",
        "and any(other.needs_gradient for j, other in enumerate(products) if j != place)",
        "",
        (KERNELS,),
    ),
    Fault(
        "ops/kernels.py",
        "own = book.unrepeated() if once else book",
        "own = book",
        ("tests/ops/test_shared_inputs.py",),
    ),
    Fault(
        "ops/fused.py",
        "gradients + self.saved + self.weights",
        "gradients + self.saved",
        (KERNELS,),
    ),
    Fault("ops/lookup.py", "(*ids, result.gradient())", "(result.gradient(),)", (KERNELS,)),
    Fault(
        "ops/flow.py",
        "region = self.book.region(user)",
        "region = self.book.region(source)",
        (KERNELS,),
    ),
    Fault("ops/lookup.py", "return self.inputs", "return ()", (GPT,)),
    Fault(
        "ops/elementwise.py",
        "(() if linear else self.weights[:1])",
        "self.weights[:1]",
        ("tests/laws/test_models.py::test_linear_functions_read_no_weight_in_backward",),
    ),
    Fault(
        "ops/elementwise.toml",
        '\nrms_norm = {keeps = "inputs", statistics = 1',
        '\nrms_norm = {keeps = "inputs", statistics = 2',
        (LLAMA,),
    ),
    Fault(
        "ops/elementwise.toml",
        '\ndropout = {keeps = "mask"',
        '\ndropout = {keeps = "nothing"',
        (GPT,),
    ),
    Fault(
        "ops/elementwise.toml",
        '\nexp = {keeps = "outputs"}',
        '\nexp = {keeps = "inputs"}',
        (MAMBA,),
    ),
    Fault("ops/scan.py", "(self.inputs[0], *self.outputs)", "self.inputs", (MAMBA,)),
    Fault(
        "ops/conv.py",
        "return self.outputs[0].axes if operand in self.pattern.biases else self.axes",
        "return self.axes",
        ("tests/ops/test_conv.py",),
    ),
    Fault(
        "ops/kernels.py",
        "if region is None and operand.tensor not in whole",
        "if region is None",
        (INVARIANCE, FLOW, LLAMA),
    ),
    Fault(
        "ops/kernels.py", "flow.kept_as.get(operand.tensor, operand)", "operand", (INVARIANCE, GPT)
    ),
    # What moves.
    Fault(
        "ops/moves.py", "elements = elements / placement.degree(sliced)", "pass", (PLACEMENT, FLOW)
    ),
    Fault("ops/moves.py", "elements = elements / ranks", "pass", (PLACEMENT, FLOW)),
    Fault(
        "ops/moves.py", "case Shard(axis), Replicate()", "case Shard(axis), Partial()", (PLACEMENT,)
    ),
    Fault(
        "ops/placement.py",
        "left = Shard(axis) if axis in own_axes else Partial()",
        "left = Shard(axis)",
        (RANKS,),
    ),
    Fault(
        "ops/placement.py",
        "for mesh in self.stored.get(what, ()) if mesh not in split",
        "for mesh in self.stored.get(what, ())",
        (PLACEMENT,),
    ),
    Fault(
        "ops/flow.py", "self._uses[whole.tensor] > 1", "self._uses[whole.tensor] > 9", (KERNELS,)
    ),
    Fault("ops/flow.py", "passed |= waiting", "pass", (KERNELS,)),
    Fault("ops/flow.py", "need[mesh] = Partial()", "pass", (FLOW, GPT)),
    Fault("ops/flow.py", "waiting -= late", "pass", (FLOW, GPT)),
    Fault(
        "ops/flow.py",
        "move = Move(CollectiveKind.ALL_REDUCE, meshes,",
        "move = Move(CollectiveKind.ALL_GATHER, meshes,",
        (FLOW, GPT),
    ),
    Fault(
        "ops/weights.py",
        "weight.gradient(), meshes is once",
        "weight.gradient(), True",
        (STRATEGY, "tests/parallel"),
    ),
    Fault(
        "ops/weights.py",
        "in ((Phase.FORWARD, viewed), (Phase.BACKWARD_INPUT, again)):",
        "in ((Phase.FORWARD, viewed),):",
        (PLACEMENT, GPT),
    ),
    Fault(
        "ops/weights.py",
        "if use.booked:",
        "if False:",
        (GPT, TORCH),
    ),
    Fault(
        "ops/weights.py",
        "return (*turned, *_gather(book, weight, shards))",
        "return _gather(book, weight, shards)",
        (f"{MODELS}::test_tied_tables_turn_before_both_passes_of_the_head",),
    ),
    Fault(
        "ops/weights.py",
        "_return_gradient(book, op, weight, flow.left_partial(op, weight), use)",
        "pass",
        (f"{MODELS}::test_tied_tables_under_tensor_grids",),
    ),
    Fault("ops/weights.py", "mesh not in passing)", "True)", (PLACEMENT, STRATEGY)),
    Fault(
        "ops/einsum.py",
        "return self.result.axes if operand in self.pattern.biases else self.axes",
        "return self.axes",
        (RANKS,),
    ),
    Fault(
        "ops/elementwise.py",
        "if axis in operand.axes or axis not in self.row",
        "if True",
        (FLOW, GPT),
    ),
    # What is counted.
    Fault(
        "ops/counting.py",
        "more_factors = mul(work.factors - 2, summed)",
        "more_factors = Integer(0)",
        (COUNT,),
    ),
    Fault(
        "ops/counting.py",
        "return applied(rule, *sizes) / (sizes[0] * sizes[1])",
        "return applied(rule, *sizes) / (sizes[0] * sizes[0])",
        (COUNT,),
    ),
    Fault("ops/counting.py", "if set(work.pairs) <= set(work.result)", "if False", (COUNT,)),
    Fault("ops/counting.py", "mul(operand.copies, size,", "mul(size,", (GPT, SAVED)),
    Fault(
        "ops/einsum.py",
        "                for bias in self.pattern.biases\n            ),",
        "                for bias in ()\n            ),",
        (COUNT,),
    ),
    Fault(
        "ops/book.py",
        "return ceiling(self.part.repeat / self.recompute.every)",
        "return self.part.repeat",
        (MEMORY,),
    ),
    Fault(
        "ops/book.py",
        "return self._occurring(Integer(1))",
        "return self",
        ("tests/models",),
    ),
    Fault(
        "ops/part.py",
        "if times > 1",
        "if times > 2",
        ("tests/laws/test_models.py::test_ops_of_one_path_are_refused",),
    ),
    Fault(
        "ops/conv.py",
        "(Correlation(weight.axes, self.space, self.among or self.groups),)",
        "(Correlation(weight.axes, self.space),)",
        ("tests/models/test_cnn.py",),
    ),
    # Strategies.
    Fault(
        "parallel/microbatch.py",
        '_OWN = ("ep", "dp", "replicas")',
        '_OWN = ("ep", "dp")',
        ("tests/parallel/test_microbatch.py",),
    ),
    Fault(
        "parallel/rules.py",
        "return op.regathering() if",
        "return op if",
        (f"{MODELS}::test_a_ring_saves_no_copies_of_keys",),
    ),
    Fault(
        "parallel/rules.py",
        'return {axis.name: _copy(axis, "core") for axis in exchanged}',
        "return {}",
        (STRATEGY, COVERAGE),
    ),
    Fault(
        "parallel/coverage.py",
        "if not op.bulk:",
        "if True:",
        ("tests/parallel/test_coverage.py::test_work_that_every_rank_would_do_is_refused",),
    ),
    Fault(
        "parallel/coverage.py",
        "roles & {Role.TOKEN, Role.KEY_TOKEN}",
        "roles & {Role.TOKEN}",
        ("tests/parallel/test_coverage.py::test_what_is_pooled_has_no_positions",),
    ),
    Fault(
        "parallel/sends.py",
        "both = (*there, added, *back) if stage in plan.exit else (added,)",
        "both = (added,)",
        ("tests/parallel/test_stages.py",),
    ),
    Fault(
        "parallel/sends.py",
        "return size / self.placement.degree(shards)",
        "return size",
        ("tests/parallel/test_stages.py",),
    ),
    Fault(
        "parallel/stages.py",
        "held = {Stage.FIRST: Min(leading, first)}",
        "held = {Stage.FIRST: leading * first / total}",
        ("tests/parallel/test_stages.py::test_layers_that_lead_are_on_the_first_stages",),
    ),
    Fault(
        "jobs/setup.py",
        "chunks=chunks, saved=saved",
        "chunks=chunks",
        ("tests/jobs/test_order.py::test_memory_and_time_follow_one_decision",),
    ),
    Fault(
        "systems/overlap.py",
        "(times - 1) * self.exposed",
        "times * self.exposed",
        ("tests/published/test_lstm_roofline.py",),
    ),
    Fault(
        "parallel/catalogue.py",
        '_CORE_HEADS = (At(Role.HEAD, ("core",)),)',
        '_CORE_HEADS = (At(Role.HEAD, ("x",)),)',
        (STRATEGY, COVERAGE),
    ),
    Fault(
        "parallel/catalogue.py",
        'places={"tp": (At(Role.TOKEN, ("residual", "posted")),)}',
        'places={"tp": (At(Role.TOKEN, ("query",)),)}',
        (STRATEGY, COVERAGE),
    ),
    Fault(
        "parallel/catalogue.py",
        'DATA_AXES = ("ulysses", "cp", "ring", "ep", "dp")',
        'DATA_AXES = ("cp", "ring", "ep", "dp")',
        ("tests/parallel/test_shards.py",),
    ),
    Fault(
        "parallel/strategy.py",
        '{"dp": per_mesh["dp"] / per_mesh["ep"]}',
        '{"dp": per_mesh["dp"]}',
        ("tests/parallel/test_experts.py",),
    ),
    Fault(
        "parallel/strategy.py",
        "(*inner, *outer) if inmost else (*outer, *inner)",
        "(*outer, *inner)",
        ("tests/parallel/test_pair.py", STRATEGY, "tests/parallel"),
    ),
    Fault(
        "parallel/rules.py",
        "outside = operand.axes if declared.constant else declared.axes",
        "outside = declared.axes",
        (MODELS, COVERAGE),
    ),
    # Models and layers.
    Fault(
        "models/decoders/kinds.py",
        "(layer - self.full_at) % self.period != 0",
        "layer % self.period != 0",
        (KINDS, "tests/models"),
    ),
    Fault(
        "models/decoders/plan.py",
        "(layer + 1) % step == 0",
        "layer % step == 0",
        (KINDS,),
    ),
    Fault(
        "models/decoders/plan.py",
        "n >= first and",
        "n > first and",
        (KINDS,),
    ),
    Fault(
        "models/inference.py",
        'copies / (model.size(At(Role.BATCH, ("routed",))) * chosen)',
        "copies / chosen",
        (KINDS,),
    ),
    Fault("layers/recurrent.py", ", candidate[b l o]", "", (KINDS,)),
    Fault("layers/upsampling.py", "-(-length // self.side)", "length // self.side", (KINDS,)),
    Fault(
        "layers/latent.py",
        'cache("cache_k", f"turned[b l d_r]',
        'cache("cache_k", f"plain[b l d_r]',
        (KINDS,),
    ),
    Fault(
        "layers/moe.py",
        'view("dispatch", f"copied[b r a {e}] -> posted[u z_r x {e}]")',
        'view("dispatch", f"copied[b r a {e}] -> posted[u x z_r {e}]")',
        (MODELS, COVERAGE, TORCH),
    ),
    Fault("layers/ssm.py", 'along="l")', 'along="s")', (KINDS,)),
    Fault(
        "layers/tokens.py",
        "places[{rows}]:index, *table[p e] ->",
        "places[{rows}]:index, *table[r e] ->",
        (TORCH, "tests/models"),
    ),
    Fault(
        "models/decoders/sizes.py",
        "l * symbols.E_t * self.capacity / symbols.E",
        "l * symbols.E_t * self.capacity",
        (TORCH,),
    ),
    Fault(
        "models/decoders/sizes.py",
        "Min(c, symbols.W - 1) + l",
        "Min(c, symbols.W) + l",
        ("tests/models/test_symbolic_decoders.py", TORCH),
    ),
    # Times.
    Fault(
        "systems/collectives.py",
        "dict.fromkeys(_TWICE, (2 * (p - 1), 2 * _PART))",
        "dict.fromkeys(_TWICE, (p - 1, 2 * _PART))",
        (SYSTEMS,),
    ),
    Fault(
        "systems/collectives.py",
        "if kind in {_ALL_REDUCE, _SCATTER, _GATHER}",
        "if kind in {_ALL_REDUCE, _SCATTER}",
        (SYSTEMS,),
    ),
    Fault(
        "systems/passes.py",
        "works[group[0]] += self.to.add",
        "works[group[-1]] += self.to.add",
        (SYSTEMS,),
    ),
    Fault(
        "systems/step.py",
        '"gradients", "weights", "optimizer.exposed")',
        '"gradients", "optimizer.exposed")',
        (SYSTEMS,),
    ),
    Fault(
        "systems/step.py",
        'to.keep("mfu", microbatches * needed',
        'to.keep("mfu", microbatches * made',
        (SYSTEMS,),
    ),
    Fault(
        "ops/book.py",
        "units=op.units if quantity is Quantity.FLOP and collective is None else None",
        "units=op.units if quantity is Quantity.FLOP else None",
        (SYSTEMS,),
    ),
    Fault("ops/conv.py", "units = Units.MATRIX", "units = Units.VECTOR", (SYSTEMS,)),
    Fault(
        "ops/update.py",
        "flop[row.units].append(row.expr)",
        "flop[Units.MATRIX].append(row.expr)",
        ("tests/systems/test_step_work.py", SYSTEMS),
    ),
    Fault(
        "systems/times.py",
        'names = (outermost, "cp") if outermost in _POSITIONS else (outermost,)',
        "names = (outermost,)",
        ("tests/systems/test_overlap.py", "tests/systems/test_step_work.py", SYSTEMS),
    ),
    Fault(
        "systems/step.py",
        "            / setting.divided.stages\n",
        "            / (setting.divided.stages + 1)\n",
        ("tests/systems/test_step.py",),
    ),
    Fault(
        "parallel/sharded.py",
        "columns = tuple(axis for axis in weight.axes if axis in result - taken)",
        "columns = tuple(axis for axis in weight.axes if axis in result)",
        (MEMORY, "tests/systems/test_step_work.py"),
    ),
    Fault(
        "ops/recompute.py",
        'return bool(self.kept) or self.runs == "needed"',
        "return bool(self.kept)",
        (CHECKPOINTS,),
    ),
    Fault(
        "layers/attention_core.py",
        '(*(replace(op, core="core") for op in before), *core)',
        "(*before, *core)",
        (CHECKPOINTS,),
    ),
    Fault(
        "ops/kernels.py",
        "return (result,) if dropped or (products and not keep) else ()",
        "return (result,) if products and not keep else ()",
        (VALUES,),
    ),
    Fault(
        "models/decoders/gemma.py",
        "return (*own, *apart) if _apart(kinds) else own",
        "return own",
        (VALUES,),
    ),
    Fault(
        "models/weight_formats.py",
        "scales.append(Scale(SINGLE, (*blocks, (outer, Integer(_WORD // packed)))))",
        "scales.append(Scale(ONE, blocks))",
        (QUANTIZED,),
    ),
    Fault(
        "models/quantized.py",
        "own = replace(form, scales=left) if joined(model.family, path) else form",
        "own = form",
        (QUANTIZED,),
    ),
    Fault(
        "ops/kernels.py",
        "({*op.outputs}.difference(_saved(op, conventions)) for op in ops)",
        "(op.outputs for op in ops)",
        (SOFTWARE,),
    ),
    Fault(
        "ops/kernels.py",
        "return (made & taken) - others",
        "return made & taken",
        (SOFTWARE,),
    ),
    Fault(
        "ops/placement.py",
        "stays = self.whole if again else set(stored).difference(reduced)",
        "stays = set(stored).difference(reduced)",
        (SHARDS,),
    ),
    Fault(
        "parallel/table.py",
        'if (units or placed.whole) and ranks.degree("pp") != 1:',
        "if units or placed.whole:",
        (SHARDS,),
    ),
    # What stages hold and send beside the way of a microbatch, and what is trained side by side.
    Fault(
        "parallel/sends.py",
        "share = sizes.moved(Element.WEIGHT_GRADIENT) / sizes.weight_gradient",
        "share = Integer(1)",
        (STAGES,),
    ),
    Fault(
        "parallel/sends.py",
        'yield Collective(CollectiveKind.SEND_RECEIVE, ("pp",), stages, size / parts)',
        'yield Collective(CollectiveKind.SEND_RECEIVE, ("pp",), stages, size)',
        (STAGES,),
    ),
    Fault(
        "jobs/setup.py",
        "return replace(self.trained.pipeline, scattered=self.methods.scattered)",
        "return self.trained.pipeline",
        (STAGES,),
    ),
    Fault(
        "models/training.py",
        "own = own.union(*plain)",
        "own = own.union(*plain[:1])",
        ("tests/models/test_trained.py",),
    ),
    Fault(
        "models/positions.py",
        "if least > rows - spare:",
        "if least > rows:",
        ("tests/models/test_positions.py",),
    ),
    Fault(
        "models/nested/contrastive.py",
        "b_all batch all",
        "b_all whole",
        ("tests/parallel/test_microbatch.py",),
    ),
)
