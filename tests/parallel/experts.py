"""A mixture of experts on many ranks; see `algorithms`. Routing is fixed and even."""

import numpy as np

from tests.parallel import algorithms as one
from tests.parallel.simulator import full


def choices(tokens, experts, chosen):
    """Experts of every token."""
    return np.arange(tokens * chosen).reshape(tokens, chosen) % experts


def shares(x, router, choice):
    """Weights of the chosen experts, and all that their gradient needs."""
    p = one.softmax(x @ router)
    best = np.take_along_axis(p, choice, 1)
    return best / best.sum(1, keepdims=True), (p, best)


def shares_backward(ds, choice, made):
    """Gradient of the logits."""
    p, best = made
    total = best.sum(1, keepdims=True)
    dbest = ds / total - (ds * best).sum(1, keepdims=True) / total**2
    dp = np.zeros_like(p)
    np.put_along_axis(dp, choice, dbest, 1)
    return p * (dp - (dp * p).sum(1, keepdims=True))


def expert(x, share, weights):
    """share ((x gate)^2 * (x up)) down for the tokens of one expert."""
    gate, up, down = weights
    return share[:, None] * (((x @ gate) ** 2 * (x @ up)) @ down)


def expert_backward(x, share, weights, dy):
    gate, up, down = weights
    g, u = x @ gate, x @ up
    a = g**2 * u
    da = (share[:, None] * dy) @ down.T
    dg, du = 2 * g * u * da, g**2 * da
    return (
        dg @ gate.T + du @ up.T,
        (dy * (a @ down)).sum(1),
        (x.T @ dg, x.T @ du, a.T @ (share[:, None] * dy)),
    )


def layer(arrays, chosen):
    """All on one rank."""
    x, router, gate, up, down, dy = arrays
    b, l, e = x.shape
    flat, dflat = x.reshape(-1, e), dy.reshape(-1, e)
    choice = choices(b * l, len(gate), chosen)
    s, made = shares(flat, router, choice)
    y, dx, ds = np.zeros_like(flat), np.zeros_like(flat), np.zeros_like(s)
    grads = [np.zeros_like(w) for w in (gate, up, down)]
    for n in range(len(gate)):
        tokens, slots = np.nonzero(choice == n)
        ws = gate[n], up[n], down[n]
        y[tokens] += expert(flat[tokens], s[tokens, slots], ws)
        into, share, dws = expert_backward(flat[tokens], s[tokens, slots], ws, dflat[tokens])
        np.add.at(dx, tokens, into)
        ds[tokens, slots] = share
        for total, dw in zip(grads, dws, strict=True):
            total[n] = dw
    dlogits = shares_backward(ds, choice, made)
    dx += dlogits @ router.T
    return y.reshape(x.shape), dx.reshape(x.shape), flat.T @ dlogits, *grads


def sharded(ranks, arrays, chosen):
    """Experts over ep, tokens over ep and dp: dispatch, experts, return."""
    x, router, gate, up, down, dy = arrays
    cut, tokens_over = ranks.cut, "ep+dp"
    experts, parts = len(gate), ranks.mesh["ep"]
    xs, dys = (ranks.each(lambda r, a=a: cut(a, 0, r, tokens_over)) for a in (x, dy))
    shape = xs[0].shape
    flat, dflat = ([a.reshape(-1, a.shape[-1]) for a in group] for group in (xs, dys))
    tokens = len(flat[0])
    choice = choices(tokens, experts, chosen)
    order = np.argsort(choice.reshape(-1), kind="stable")
    ws = ranks.each(lambda r: [cut(w, 0, r, "ep") for w in (gate, up, down)])
    local, per = experts // parts, tokens * chosen // experts

    def dispatch(copies):
        """Copies in the order of tokens to (expert, token) on the expert's rank."""
        sent = ranks.all_to_all([c.reshape(-1, c.shape[-1])[order] for c in copies], "ep", 0, 0)
        by_source = [a.reshape(parts, local, per, -1) for a in sent]
        return [a.transpose(1, 0, 2, 3).reshape(local, parts * per, -1) for a in by_source]

    def give_back(arrived):
        """The inverse of `dispatch`."""
        by_source = [a.reshape(local, parts, per, -1).transpose(1, 0, 2, 3) for a in arrived]
        sent = ranks.all_to_all([a.reshape(tokens * chosen, -1) for a in by_source], "ep", 0, 0)
        back = [np.empty_like(a) for a in sent]
        for r in ranks.all:
            back[r][order] = sent[r]
        return [a.reshape(tokens, chosen, -1) for a in back]

    made = ranks.each(lambda r: shares(flat[r], router, choice))
    copies = [np.repeat(a[:, None], chosen, 1) for a in flat]
    into, weight = dispatch(copies), dispatch([s[:, :, None] for s, _ in made])
    done = ranks.each(
        lambda r: np.stack(
            [expert(into[r][n], weight[r][n, :, 0], [w[n] for w in ws[r]]) for n in range(local)]
        )
    )
    y = [a.sum(1) for a in give_back(done)]
    ranks.phase = "backward"
    back = dispatch([np.repeat(a[:, None], chosen, 1) for a in dflat])
    grads = ranks.each(
        lambda r: [
            expert_backward(into[r][n], weight[r][n, :, 0], [w[n] for w in ws[r]], back[r][n])
            for n in range(local)
        ]
    )
    dcopies = give_back([np.stack([g[0] for g in gs]) for gs in grads])
    ds = give_back([np.stack([g[1][:, None] for g in gs]) for gs in grads])
    dlogits = ranks.each(lambda r: shares_backward(ds[r][:, :, 0], choice, made[r][1]))
    dx = ranks.each(lambda r: dcopies[r].sum(1) + dlogits[r] @ router.T)
    drouter = ranks.all_reduce(ranks.each(lambda r: flat[r].T @ dlogits[r]), tokens_over)
    dws = [
        ranks.all_reduce([np.stack([g[2][n] for g in gs]) for gs in grads], "dp") for n in range(3)
    ]
    residual = (tokens_over, "", "")
    return (
        full([a.reshape(shape) for a in y], ranks, residual),
        full([a.reshape(shape) for a in dx], ranks, residual),
        full(drouter, ranks, ("", "")),
        *(full(dw, ranks, ("ep", "", "")) for dw in dws),
    )
