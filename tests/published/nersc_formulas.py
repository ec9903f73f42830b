"""Closed forms of the layers of subramanian-2024-head, written down row by row.

FLOP, traffic, activations and weights in elements (masks by their size); messages in elements.
Nothing here is derived from declarations.
"""

from symbolic_cost.symbols import F_m, F_v, b, e, f, h, l, m1, m2, mu, panels, s

Q = e / h
PANELS = ("fc1", "fc2", "qkv", "vproj", "logits", "attend")
AGAIN = ("logits", "softmax", "dpr_at")
RHO = F_m / F_v


def linear(n, sizes, local, *, fwd, bwd):
    (k, f_), (kk, ff) = sizes, local
    return {
        "ff": n * ff * (2 * kk - 1),
        "fb": n * kk * (2 * ff - 1) + kk * ff * (2 * n - 1),
        "mem_fwd": n * kk + n * ff + kk * ff,
        "mem_bwd": 2 * kk * ff + 2 * n * kk + 2 * n * ff,
        "act": n * kk,
        "w": kk * ff,
        "comm_fwd": [("reduce-scatter", n * f_)] if fwd else [],
        "comm_bwd": [("reduce-scatter", n * k)] if bwd else [],
    }


def plain(*values):
    """FLOP forward and backward, traffic forward and backward, activation, weights."""
    names = ("ff", "fb", "mem_fwd", "mem_bwd", "act", "w")
    return {**dict(zip(names, values, strict=True)), "comm_fwd": [], "comm_bwd": []}


def bias(n, ff):
    return plain(n, n, n + ff, n + ff, 0, ff)


def activation(n):
    return plain(8 * n, 13 * n, 2 * n, 3 * n, n, 0)


def drop(n):
    mask = mu / s
    return plain(n, n, n * (2 + mask), n * (2 + mask), n * mask, 0)


def norm(n, w, message, kept):
    """`kept`: statistics that are kept and read again."""
    found = plain(
        9 * n * w,
        8 * n * w + 4 * n * (w - 1),
        2 * n * w + 2 * n + 2 * w,
        5 * n * w + 2 * w + kept,
        n * w + kept,
        2 * w,
    )
    moves = {"comm_fwd": [("all-gather", message)], "comm_bwd": [("all-gather", message)]}
    return {**found, **moves}


def norm_2d(w, kept):
    found = norm(b * l / m2, w, 0, kept)
    moves = {
        "comm_fwd": [("all-reduce", 2 * b * l / m2)],
        "comm_bwd": [("all-reduce", 2 * e / m1 + 2 * b * l / m2)],
    }
    return {**found, **moves}


def fused(c, *, gathered):
    g = b * h / m1
    soft, back, dropped = g * c * (3 * l - 1), g * c * (4 * l - 1), g * c * l
    again = g * c * l * (2 * Q - 1) + RHO * (soft + dropped)
    products = 2 * g * l * Q * (2 * c - 1) + g * c * Q * (2 * l - 1) + g * c * l * (2 * Q - 1)
    act = 4 * g * c * Q + 2 * g * c
    found = plain(
        g * c * l * (2 * Q - 1) + g * c * Q * (2 * l - 1) + RHO * (soft + dropped),
        products + RHO * (back + dropped) + again,
        2 * g * c * Q + 2 * g * l * Q + g * c,
        act + 2 * g * l * Q + 2 * g * c * Q,
        act,
        0,
    )
    if gathered:
        message = 2 * g * l * Q
        found["comm_fwd"] = [("all-gather", message)]
        found["comm_bwd"] = [("all-gather", message), ("reduce-scatter", message)]
    return found


def core(c, *, gathered, recompute):
    """Rows of the attention that is not fused."""
    g = b * h / m1
    square, queries, keys = g * c * l, g * c * Q, g * l * Q
    mask = mu / s
    logits = plain(
        square * (2 * Q - 1),
        queries * (2 * l - 1) + keys * (2 * c - 1),
        queries + keys + square,
        keys + 2 * square + 3 * queries,
        2 * queries,
        0,
    )
    softmax = plain(g * c * (3 * l - 1), g * c * (4 * l - 1), 2 * square, 3 * square, square, 0)
    attend = plain(
        queries * (2 * l - 1),
        square * (2 * Q - 1) + keys * (2 * c - 1),
        square + keys + queries,
        3 * queries + 2 * square + keys,
        square + queries,
        0,
    )
    dropout = plain(square, square, square * (2 + mask), square * (2 + mask), square * mask, 0)
    if recompute:
        softmax["act"], dropout["act"], attend["act"] = 0, 0, queries
    for row in (logits, attend) if gathered else ():
        row["comm_fwd"] = [("all-gather", keys)]
        row["comm_bwd"] = [("all-gather", keys), ("reduce-scatter", keys)]
    return {"logits": logits, "softmax": softmax, "dpr_at": dropout, "attend": attend}


def squares():
    """Attention in panels: heads whole, their width and the columns of scores over m1."""
    g, c, width = b * h, l / m2, Q / m1
    square, stays, keys = g * c * l, g * c * width, g * l * width
    part, mask = square / m1, mu / s
    logits = plain(
        square * (2 * width - 1),
        stays * (2 * l - 1) + keys * (2 * c - 1),
        keys + panels * stays + square,
        2 * (square + keys + panels * stays),
        2 * stays,
        0,
    )
    logits["comm_fwd"] = [("broadcast", keys), ("reduce", square)]
    logits["comm_bwd"] = [("broadcast", square), ("broadcast", keys)]
    logits["comm_bwd"] += [("broadcast", square), ("reduce", keys)]
    softmax = plain(g * c * (3 * l / m1 - 1), g * c * (4 * l / m1 - 1), 2 * part, 3 * part, part, 0)
    softmax["comm_fwd"] = softmax["comm_bwd"] = [("all-reduce", g * c)]
    attend = plain(
        2 * stays * l,
        square * (2 * width - 1) + keys * (2 * c - 1),
        square + keys + panels * stays,
        2 * (square + keys + panels * stays),
        part + stays,
        0,
    )
    attend["comm_fwd"] = [("broadcast", square), ("broadcast", keys)]
    attend["comm_bwd"] = [("broadcast", keys), ("reduce", square)]
    attend["comm_bwd"] += [("broadcast", square), ("reduce", keys)]
    dropout = plain(part, part, part * (2 + mask), part * (2 + mask), part * mask, 0)
    return {"logits": logits, "softmax": softmax, "dpr_at": dropout, "attend": attend}


def summa(k, f_):
    n, ff = b * l / m2, f_ / m1
    broadcasts = [("broadcast", n * k), ("broadcast", k * ff)]
    reduces = [("reduce", n * k), ("reduce", k * ff)]
    return {
        "ff": 2 * n * ff * k,
        "fb": n * k * (2 * ff - 1) + k * ff * (2 * n - 1),
        "mem_fwd": n * k + k * ff + panels * n * ff,
        "mem_bwd": 2 * (n * k + k * ff + panels * n * ff),
        "act": n * k / m1,
        "w": k * f_ / (m1 * m2),
        "comm_fwd": broadcasts,
        "comm_bwd": broadcasts + reduces,
    }


def layers(strategy, *, corrected, flash=True, recompute=False):
    """Every row of a strategy."""
    if strategy == "2d":
        return _two_dimensions(corrected=corrected, flash=flash)
    c = l if strategy == "1d" else l / m2
    n, scattered = b * c, b * c / m1
    fc2 = vproj = scattered * e if corrected else n * e
    widths = (e, e)
    if strategy == "2d-seqp" and not corrected:
        fc2, vproj, widths = scattered * e, n * e / m1, (e, e / m1)
    return {
        "fc1": linear(n, (e, f), (e, f / m1), fwd=False, bwd=True),
        "fc1-bias": bias(n * f / m1, f / m1),
        "act1": activation(n * f / m1),
        "dpr1": drop(n * f / m1),
        "fc2": linear(n, (f, e), (f / m1, e), fwd=True, bwd=False),
        "fc2-bias": bias(fc2, widths[0]),
        "dpr2": drop(scattered * e),
        "ln1": norm(scattered, e, n * e, 2 * scattered if corrected else 0),
        "qkv": linear(n, (e, 3 * e), (e, 3 * e / m1), fwd=False, bwd=True),
        **_attention(c, gathered=strategy == "2d-seqp", flash=flash, recompute=recompute),
        "vproj": linear(n, (e, e), (e / m1, e), fwd=True, bwd=False),
        "vproj-bias": bias(vproj, widths[1]),
        "dpr_v": drop(scattered * e),
        "ln2": norm(scattered, e, n * e, 2 * scattered if corrected else 0),
    }


def _attention(c, *, gathered, flash, recompute):
    if flash:
        return {"fusedla": fused(c, gathered=gathered)}
    return core(c, gathered=gathered, recompute=recompute)


def _two_dimensions(*, corrected, flash):
    n = b * l / m2
    width = e / m1 if corrected else l / m1
    return {
        "fc1": summa(e, f),
        "fc1-bias": bias(n * f / m1, f / m1),
        "act1": activation(n * f / m1),
        "dpr1": drop(n * f / m1),
        "fc2": summa(f, e),
        "fc2-bias": bias(n * e / m1, e / m1),
        "dpr2": drop(n * e / m1),
        "ln1": norm_2d(width, 2 * n if corrected else 0),
        "qkv": summa(e, 3 * e),
        **({"fusedla": fused(l / m2, gathered=True)} if flash else squares()),
        "vproj": summa(e, e),
        "vproj-bias": bias(n * e / m1, e / m1),
        "dpr_v": drop(n * e / m1),
        "ln2": norm_2d(width, 2 * n if corrected else 0),
    }


def collective(kind, message, ranks, inside, system, *, corrected):
    """Section 2 of the model: rings on two tiers [s]."""
    if message == 0 or ranks == 1:
        return 0.0
    domains = ranks // inside
    slow = system["ib_bandwidth"] * system["ib_eff"]
    fast = system["nvlink_bandwidth"] * system["nvlink_eff"]
    a_slow, a_fast = system["ib_latency"], system["nvlink_latency"]
    share = 1.0 if kind in {"broadcast", "reduce"} else (ranks - 1) / ranks
    twice = 2 if kind == "all-reduce" else 1
    alone = twice if corrected else 1
    if inside == 1:
        return a_slow * (ranks - 1) + alone * share * message / slow
    if domains == 1:
        return a_fast * (ranks - 1) + alone * share * message / fast
    nics = system["nic_factor"] * inside
    paced = twice * max(share * message / (nics * slow), share * message / fast)
    return paced + a_slow * (domains - 1) + a_fast * (ranks - domains)


def step(given, rows):
    """Sections 2 and 4 of the model, in floats.

    Args:
        given: inputs with nothing left out.
        rows: of `layers`, as functions of the sizes, by name; each a dict of numbers.
    """
    system, corrected = given["system"], given["corrected"]
    tensor = given["tp"]
    names = ["m1", "m2"][: len(tensor)]
    degrees = {"m2": 1, **dict(zip(names, tensor, strict=True))}
    inside = dict(zip([*names, "dp", "pp"], given["nv_assignment"], strict=True))
    inside.setdefault("m2", 1)
    size, unit = system["element_size"], system["flops_units"]
    nb = system["summa_nb"]
    sums = {"fwd": 0.0, "bwd": 0.0}
    found = {}
    for name, row in rows.items():
        matrix = name in {"fc1", "fc2", "qkv", "vproj", "fusedla", "logits", "attend"}
        peak = 0.8 * system["matrix_flops_fp16" if matrix else "vector_flops_fp16"]
        for one, flop in (("fwd", row["ff"]), ("bwd", row["fb"])):
            comp = 20e-6 + unit * flop / peak
            mem = size * row[f"mem_{one}"] / system["hbm_bandwidth"]
            summa = given["strategy"] == "2d" and name in PANELS
            panels = nb if summa else 1
            moves = 0.0
            for kind, message, mesh in row[f"comm_{one}"]:
                moves += collective(
                    kind,
                    size * message / panels,
                    degrees[mesh],
                    inside[mesh],
                    system,
                    corrected=corrected,
                )
            comm = moves + max(nb * moves - max(comp, mem), 0) if summa else moves
            found[name, one] = max(comp, mem) + comm
            if one == "bwd" and given.get("recompute_attention") and name in AGAIN:
                found[name, one] += found[name, "fwd"]
            sums[one] += found[name, one]
    pp, dp = given["pp"], given["dp"]
    micro = given["global_batch_size"] // dp // given["micro_batch_size"]
    n_st = given["depth"] // pp
    weights = size * sum(row["w"] for row in rows.values())
    context = degrees["m2"] if given["strategy"] == "2d-seqp" else 1
    near = inside["dp"] * (inside["m2"] if context > 1 else 1)
    took = collective("all-gather", weights, dp * context, near, system, corrected=corrected)
    data = sum(took + max(took - busy, 0) * (n_st - 1) for busy in sums.values())
    message = size * row_input(rows, given)
    sending = 2 * neighbours(message, pp, inside["pp"], system, corrected=corrected) * micro
    working = (sums["fwd"] + sums["bwd"]) * micro * n_st + sending
    total = working + (pp - 1) * working / micro + data
    per_stage = weights * n_st
    acts = size * sum(row["act"] for row in rows.values()) * n_st * min(pp, micro)
    per_weight = 12e-9 / size if corrected else 6
    memory = 2 * per_stage + per_weight * per_stage / (dp * context) + acts
    return {
        "rows": found,
        "t": total,
        "mem": memory,
        "throughput": given["global_batch_size"] / total,
    }


def row_input(rows, given):
    """Activation that the last norm keeps, statistics apart."""
    tokens = given["micro_batch_size"] * given["l"]
    ranks = given["tp"][1] if given["strategy"] == "2d" else 1
    for degree in given["tp"]:
        ranks *= degree if given["strategy"] != "2d" else 1
    kept = 2 * tokens / ranks if given["corrected"] else 0
    return rows["ln1"]["act"] - kept


def neighbours(message, pp, inside, system, *, corrected):
    if pp == 1:
        return 0.0
    slow = system["ib_latency"] + message / (system["ib_bandwidth"] * system["ib_eff"])
    fast = system["nvlink_latency"] + message / (system["nvlink_bandwidth"] * system["nvlink_eff"])
    if inside == 1:
        return slow
    apart = int(pp / inside - 1)
    crossing = slow if corrected else 0.0
    return ((pp - 1 - apart) * fast + apart * crossing) / (pp - 1)
