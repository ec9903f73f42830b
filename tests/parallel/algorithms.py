"""A linear pair and an attention block on many ranks, one function per way to split them.

Every function takes `Ranks` and whole arrays, cuts them, runs forward and backward with local
products and collectives, and returns the whole results, so that they can be compared with one rank.
"""

from math import lcm

import numpy as np

from tests.parallel.simulator import full

# One rank.


def pair(x, w1, w2, dy):
    """y = (x w1)^2 w2 and its gradients."""
    u = x @ w1
    a = u**2
    du = 2 * u * (dy @ w2.T)
    flat = (-1, x.shape[-1]), (-1, w1.shape[-1])
    return (
        a @ w2,
        du @ w1.T,
        x.reshape(flat[0]).T @ du.reshape(flat[1]),
        a.reshape(flat[1]).T @ dy.reshape(flat[0]),
    )


def scores(q, k):
    return np.einsum("blhgd,bthd->bhglt", q, k)


def softmax(s):
    z = np.exp(s - s.max(-1, keepdims=True))
    return z / z.sum(-1, keepdims=True)


def core(q, k, v):
    """Attention of q[b l h g d] on k and v[b t h d]."""
    return np.einsum("bhglt,bthd->blhgd", softmax(scores(q, k)), v)


def core_backward(q, k, v, dc):
    p = softmax(scores(q, k))
    dp = np.einsum("blhgd,bthd->bhglt", dc, v)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    return (
        np.einsum("bhglt,bthd->blhgd", ds, k),
        np.einsum("bhglt,blhgd->bthd", ds, q),
        np.einsum("bhglt,blhgd->bthd", p, dc),
    )


def project(x, weights):
    wq, wk, wv = weights
    return (
        np.einsum("ble,ehgd->blhgd", x, wq),
        np.einsum("ble,ehd->blhd", x, wk),
        np.einsum("ble,ehd->blhd", x, wv),
    )


def project_input_gradient(grads, weights):
    (dq, dk, dv), (wq, wk, wv) = grads, weights
    return (
        np.einsum("blhgd,ehgd->ble", dq, wq)
        + np.einsum("blhd,ehd->ble", dk, wk)
        + np.einsum("blhd,ehd->ble", dv, wv)
    )


def project_weight_gradients(x, grads):
    dq, dk, dv = grads
    return (
        np.einsum("ble,blhgd->ehgd", x, dq),
        np.einsum("ble,blhd->ehd", x, dk),
        np.einsum("ble,blhd->ehd", x, dv),
    )


def out(c, wo):
    return np.einsum("blhgd,hgde->ble", c, wo)


def out_backward(c, wo, dy):
    return np.einsum("ble,hgde->blhgd", dy, wo), np.einsum("blhgd,ble->hgde", c, dy)


def block(x, weights, dy):
    """Attention block and its gradients; weights of q, k, v and of the result."""
    *ws, wo = weights
    q, k, v = project(x, ws)
    c = core(q, k, v)
    dc, dwo = out_backward(c, wo, dy)
    d = core_backward(q, k, v, dc)
    return (
        out(c, wo),
        project_input_gradient(d, ws),
        *project_weight_gradients(x, d),
        dwo,
    )


# What schemes share.


class Stored:
    """A weight that data-parallel ranks keep as ZeRO says; shards are cut along the first axis."""

    def __init__(self, ranks, parts, axes, zero):
        self.ranks, self.axes, self.zero = ranks, axes, zero
        self.parts = parts
        if zero == 3:
            self.parts = ranks.each(lambda r: ranks.cut(parts[r], 0, r, axes))

    def __call__(self):
        return self.ranks.all_gather(self.parts, self.axes, 0) if self.zero == 3 else self.parts

    def gradient(self, terms):
        """Sum the terms of all data-parallel ranks; return the whole gradient of every rank."""
        ranks = self.ranks
        if self.zero == 0:
            return ranks.all_reduce(terms, self.axes)
        shards = ranks.reduce_scatter(terms, self.axes, 0)
        if "replicas" in ranks.mesh:
            shards = ranks.all_reduce(shards, "replicas")
        if self.zero < 3:  # the updated weight comes back in one piece
            ranks.phase = "step"
            ranks.all_gather(shards, self.axes, 0)
            ranks.phase = "backward"
        quiet = type(ranks)(**ranks.mesh)  # only to look at it
        return quiet.all_gather(shards, self.axes, 0)


def enter(ranks, parts, sp):
    return ranks.all_gather(parts, "tp", 1) if sp else parts


def leave(ranks, parts, sp):
    return ranks.reduce_scatter(parts, "tp", 1) if sp else ranks.all_reduce(parts, "tp")


# The linear pair.


def megatron_pair(ranks, x, w1, w2, dy, *, sp=False, zero=0):
    """Tensor, sequence, context and data parallel: mesh tp, cp, dp and perhaps replicas."""
    positions = "tp+cp" if sp else "cp"
    sequences = "dp+replicas" if "replicas" in ranks.mesh else "dp"
    cut = ranks.cut
    xs, dys = (
        ranks.each(lambda r, a=a: cut(cut(a, 0, r, sequences), 1, r, positions)) for a in (x, dy)
    )
    data = "cp+dp"
    first = Stored(ranks, ranks.each(lambda r: cut(w1, 1, r, "tp")), data, zero)
    second = Stored(ranks, ranks.each(lambda r: cut(w2, 0, r, "tp")), data, zero)
    into, w = enter(ranks, xs, sp), first()
    u = ranks.each(lambda r: into[r] @ w[r])
    w = second()
    y = leave(ranks, ranks.each(lambda r: u[r] ** 2 @ w[r]), sp)
    ranks.phase = "backward"
    back, w = enter(ranks, dys, sp), second()
    grads = ranks.each(lambda r: pair_second(u[r], w[r], back[r]))
    dw2 = second.gradient([g[1] for g in grads])
    into, w = enter(ranks, xs, sp), first()
    dx = leave(ranks, ranks.each(lambda r: grads[r][0] @ w[r].T), sp)
    dw1 = first.gradient(ranks.each(lambda r: rows(into[r]).T @ rows(grads[r][0])))
    return (
        full(y, ranks, (sequences, positions, "")),
        full(dx, ranks, (sequences, positions, "")),
        full(dw1, ranks, ("", "tp")),
        full(dw2, ranks, ("tp", "")),
    )


def rows(array):
    return array.reshape(-1, array.shape[-1])


def pair_second(u, w, dy):
    """Gradient of u and of the second weight."""
    return 2 * u * (dy @ w.T), rows(u**2).T @ rows(dy)


def summa(ranks, x, w, panels):
    """y = x w: panels of x go along m1, panels of w along m2."""
    total = [0] * len(x)
    for root_x, root_w, xp, wp in _panels(ranks, x, w, panels):
        a, b = ranks.broadcast(xp, "m1", root_x), ranks.broadcast(wp, "m2", root_w)
        for r in ranks.all:
            total[r] = total[r] + a[r] @ b[r]
    return total


def summa_input_gradient(ranks, x, w, dy, panels):
    """dx = dy w^T: panels of w go along m2, panels of dx are summed along m1."""
    found = [[] for _ in x]
    for root_x, root_w, _, wp in _panels(ranks, x, w, panels):
        b = ranks.broadcast(wp, "m2", root_w)
        done = ranks.reduce(ranks.each(lambda r, b=b: dy[r] @ b[r].T), "m1", root_x)
        for r in ranks.all:
            if done[r] is not None:
                found[r].append(done[r])
    return [np.concatenate(parts, -1) for parts in found]


def summa_weight_gradient(ranks, x, w, dy, panels):
    """dw = x^T dy: panels of x go along m1, panels of dw are summed along m2."""
    found = [[] for _ in x]
    for root_x, root_w, xp, _ in _panels(ranks, x, w, panels):
        a = ranks.broadcast(xp, "m1", root_x)
        done = ranks.reduce(ranks.each(lambda r, a=a: rows(a[r]).T @ rows(dy[r])), "m2", root_w)
        for r in ranks.all:
            if done[r] is not None:
                found[r].append(done[r])
    return [np.concatenate(parts, 0) for parts in found]


def _panels(ranks, x, w, panels):
    """Owners and panels of x along its last axis and of w along its first."""
    columns, lines = ranks.mesh["m1"], ranks.mesh["m2"]
    for j in range(panels):
        mine_x, mine_w = panels // columns, panels // lines
        xp = [np.split(a, mine_x, -1)[j % mine_x] for a in x]
        wp = [np.split(a, mine_w, 0)[j % mine_w] for a in w]
        yield j // mine_x, j // mine_w, xp, wp


def grid_pair(ranks, x, w1, w2, dy, *, lines):
    """2D and 2.5D: features over m1, weights over m1 x m2; `lines` says what splits b and l."""
    sequences, positions = lines
    panels = lcm(ranks.mesh["m1"], ranks.mesh["m2"])
    cut = ranks.cut

    def tile(a, r):
        return cut(lined(ranks, a, r, sequences, positions), 2, r, "m1")

    xs, dys = ([tile(a, r) for r in ranks.all] for a in (x, dy))
    ws = [ranks.each(lambda r, w=w: cut(cut(w, 1, r, "m1"), 0, r, "m2")) for w in (w1, w2)]
    u = summa(ranks, xs, ws[0], panels)
    a = [value**2 for value in u]
    y = summa(ranks, a, ws[1], panels)
    ranks.phase = "backward"
    da = summa_input_gradient(ranks, a, ws[1], dys, panels)
    dw2 = summa_weight_gradient(ranks, a, ws[1], dys, panels)
    du = ranks.each(lambda r: 2 * u[r] * da[r])
    dx = summa_input_gradient(ranks, xs, ws[0], du, panels)
    dw1 = summa_weight_gradient(ranks, xs, ws[0], du, panels)
    if "m3" in ranks.mesh:
        dw1, dw2 = (ranks.all_reduce(dw, "m3") for dw in (dw1, dw2))
    activation = (sequences, positions, "m1")
    return (
        full(y, ranks, activation),
        full(dx, ranks, activation),
        full(dw1, ranks, ("m2", "m1")),
        full(dw2, ranks, ("m2", "m1")),
    )


def lined(ranks, a, r, sequences, positions):
    a = ranks.cut(a, 0, r, sequences) if sequences else a
    return ranks.cut(a, 1, r, positions) if positions else a


def cube_linear(ranks, x, w, gather, total):
    """Gather rows of x and shards of w, multiply, scatter the sum over the contracted axis."""
    plane, weight = ranks.all_gather(x, gather, 0), ranks.all_gather(w, "m3", 0)
    terms = ranks.each(lambda r: plane[r] @ weight[r])
    return ranks.reduce_scatter(terms, total, 0)


def cube_backward(ranks, x, w, dy, ways):
    """The adjoint, with x and w gathered again."""
    gather, total = ways
    dys = ranks.all_gather(dy, total, 0)
    plane, weight = ranks.all_gather(x, gather, 0), ranks.all_gather(w, "m3", 0)
    dx = ranks.reduce_scatter(ranks.each(lambda r: dys[r] @ weight[r].T), gather, 0)
    dw = ranks.reduce_scatter(ranks.each(lambda r: rows(plane[r]).T @ rows(dys[r])), "m3", 0)
    return dx, dw


def cube_pair(ranks, x, w1, w2, dy):
    """3D: f over m1, e over m2, rows over m3 and over m1 or m2 in turn."""
    cut = ranks.cut
    outer = "m1+m3"
    xs, dys = (ranks.each(lambda r, a=a: cut(cut(a, 0, r, outer), 2, r, "m2")) for a in (x, dy))
    first = ranks.each(lambda r: cut(cut(cut(w1, 0, r, "m2"), 1, r, "m1"), 0, r, "m3"))
    second = ranks.each(lambda r: cut(cut(cut(w2, 0, r, "m1"), 1, r, "m2"), 0, r, "m3"))
    u = cube_linear(ranks, xs, first, "m1", "m2")
    a = [value**2 for value in u]
    y = cube_linear(ranks, a, second, "m2", "m1")
    ranks.phase = "backward"
    da, dw2 = cube_backward(ranks, a, second, dys, ("m2", "m1"))
    du = ranks.each(lambda r: 2 * u[r] * da[r])
    dx, dw1 = cube_backward(ranks, xs, first, du, ("m1", "m2"))
    return (
        full(y, ranks, (outer, "", "m2")),
        full(dx, ranks, (outer, "", "m2")),
        full(dw1, ranks, ("m3+m2", "m1")),
        full(dw2, ranks, ("m3+m1", "m2")),
    )
