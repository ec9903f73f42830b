"""What kernels of a stack that run several declared ops keep for backward."""

import symbolic_cost as sc
from symbolic_cost.symbols import E_t, b, e, f_m, l, n_layers


def saved(model, stack):
    return sc.job(model, "", stack=stack, system="h100").memory().total("saved")


def number(model, expr):
    """Return the value of a formula for one sequence of a model."""
    values = {**sc.job(model).values, "b": 1}
    return expr.subs({one: values[one.name] for one in expr.free_symbols})


def test_rows_of_experts_are_weighed_before_their_last_product():
    """Megatron weighs in the activation: results of experts are kept by no one.

    The activation and its gate are one kernel as well, whose product alone the next op keeps.
    """
    change = saved("mixtral-8x7b", "fsdp") - saved("mixtral-8x7b", "nemo")
    rows = number("mixtral-8x7b", 2 * b * l * n_layers * E_t * e)
    assert change > rows
    job = sc.job("mixtral-8x7b", "", stack="nemo", system="h100")
    kept = {row.tensor for row in job.stages_memory.table(job.stage) if row.quantity == "saved"}
    assert "mlp.done" not in kept


def test_a_squared_relu_in_one_kernel_keeps_what_comes_in():
    job = sc.job("nemotron-3-nano", "", {"b": 1, "l": 512}, stack="nemo", system="h100")
    own, other = (
        {row.tensor: row for row in one.stages_memory.table(one.stage) if row.quantity == "saved"}
        for one in (job, job.replace(stack="fsdp"))
    )
    assert "mlp.experts.u" in own
    assert "mlp.experts.a.between" in other
    assert "mlp.experts.a.between" not in own
    assert f_m in other["mlp.experts.a.between"].expr.free_symbols


def test_a_scan_in_one_kernel_keeps_what_comes_in_and_its_result():
    """Mamba-2 in Triton: gate, channels and steps as the projection made them, and the scan's."""
    job = sc.job("mamba2-2.7b", "", {"b": 1, "l": 512}, stack="nemo", system="h100")
    rows = [row for row in job.stages_memory.table(job.stage) if row.quantity == "saved"]
    own = {row.tensor for row in rows if ".mixer." in row.path}
    wide = {"x", "mixer.gate", "mixer.plain_u", "mixer.skipped", "mixer.normed"}
    narrow = {"mixer.plain_into", "mixer.plain_outof", "mixer.raw"}
    assert {name for name in own if not name.endswith(".statistics")} == wide | narrow | {
        "mixer.entry"
    }
    notes = " ".join(job.memory().sheet.notes)
    assert "mixer.u_window to mixer.add: one kernel, whose backward makes what is inside" in notes
