"""An attention block on many ranks, one function per way to split it; see `algorithms`."""

from math import lcm

import numpy as np

from tests.parallel import algorithms as one
from tests.parallel.simulator import full

HEAD_DIM = 2  # of b l h (g) d


class Gathered:
    """Keys and values gathered over the ranks that split positions (cp, or m2 of a grid)."""

    def __init__(self, ranks, axes):
        self.ranks, self.axes = ranks, axes

    def forward(self, q, k, v):
        ranks = self.ranks
        self.mine = q, k, v
        keys, values = (ranks.all_gather(a, self.axes, 1) for a in (k, v))
        return ranks.each(lambda r: one.core(q[r], keys[r], values[r]))

    def backward(self, dc):
        ranks, (q, k, v) = self.ranks, self.mine
        keys, values = (ranks.all_gather(a, self.axes, 1) for a in (k, v))
        grads = ranks.each(lambda r: one.core_backward(q[r], keys[r], values[r], dc[r]))
        dq, dk, dv = (list(column) for column in zip(*grads, strict=True))
        return dq, *(ranks.reduce_scatter(a, self.axes, 1) for a in (dk, dv))


class Local:
    """Every rank has all it needs."""

    def __init__(self, ranks):
        self.ranks = ranks

    def forward(self, q, k, v):
        self.mine = q, k, v
        return self.ranks.each(lambda r: one.core(q[r], k[r], v[r]))

    def backward(self, dc):
        q, k, v = self.mine
        grads = self.ranks.each(lambda r: one.core_backward(q[r], k[r], v[r], dc[r]))
        return tuple(list(column) for column in zip(*grads, strict=True))


class Ring:
    """Keys and values go round; no rank ever holds all of them."""

    def __init__(self, ranks, axes):
        self.ranks, self.axes = ranks, axes
        self.size = ranks.mesh[axes]

    def forward(self, q, k, v):
        ranks = self.ranks
        self.mine = q, k, v
        top = ranks.each(lambda r: np.full(one.scores(q[r], k[r]).shape[:-1], -np.inf))
        mass, total = [0.0] * len(q), [0.0] * len(q)
        for step in range(self.size):
            if step:
                k, v = ranks.pass_on(k, self.axes), ranks.pass_on(v, self.axes)
            for r in ranks.all:
                s = one.scores(q[r], k[r])
                new = np.maximum(top[r], s.max(-1))
                weight, old = np.exp(s - new[..., None]), np.exp(top[r] - new)
                mass[r] = mass[r] * old + weight.sum(-1)
                total[r] = total[r] * old[..., None] + np.einsum("bhglt,bthd->bhgld", weight, v[r])
                top[r] = new
        self.log = ranks.each(lambda r: top[r] + np.log(mass[r]))
        made = ranks.each(lambda r: total[r] / mass[r][..., None])
        self.made = [np.einsum("bhgld->blhgd", c) for c in made]
        return self.made

    def _terms(self, r, k, v, dc):
        q = self.mine[0]
        p = np.exp(one.scores(q[r], k) - self.log[r][..., None])
        dp = np.einsum("blhgd,bthd->bhglt", dc, v)
        row = np.einsum("blhgd,blhgd->bhgl", dc, self.made[r])
        ds = p * (dp - row[..., None])
        return (
            np.einsum("bhglt,bthd->blhgd", ds, k),
            np.einsum("bhglt,blhgd->bthd", ds, q[r]),
            np.einsum("bhglt,blhgd->bthd", p, dc),
        )

    def backward(self, dc):
        """A block's gradient starts behind its owner, which adds its own term last."""
        ranks, (_, k, v) = self.ranks, self.mine
        own = ranks.each(lambda r: self._terms(r, k[r], v[r], dc[r]))
        dq = [terms[0] for terms in own]
        dk, dv = ([0.0 * block for block in blocks] for blocks in (k, v))
        for step in range(1, self.size):
            k, v = ranks.pass_on(k, self.axes), ranks.pass_on(v, self.axes)
            if step > 1:
                dk, dv = ranks.pass_on(dk, self.axes), ranks.pass_on(dv, self.axes)
            for r in ranks.all:
                terms = self._terms(r, k[r], v[r], dc[r])
                dq[r] = dq[r] + terms[0]
                dk[r], dv[r] = dk[r] + terms[1], dv[r] + terms[2]
        if self.size > 1:
            dk, dv = ranks.pass_on(dk, self.axes), ranks.pass_on(dv, self.axes)
        return dq, *(
            ranks.each(lambda r, g=g, n=n: g[r] + own[r][n]) for n, g in ((1, dk), (2, dv))
        )


class Exchanged:
    """Ulysses: positions for heads before the inner core, heads for positions after it."""

    def __init__(self, ranks, axes, inner):
        self.ranks, self.axes, self.inner = ranks, axes, inner

    def _in(self, a):
        return self.ranks.all_to_all(a, self.axes, HEAD_DIM, 1)

    def _out(self, a):
        return self.ranks.all_to_all(a, self.axes, 1, HEAD_DIM)

    def forward(self, q, k, v):
        return self._out(self.inner.forward(self._in(q), self._in(k), self._in(v)))

    def backward(self, dc):
        return tuple(map(self._out, self.inner.backward(self._in(dc))))


def block(ranks, x, weights, dy, *, core, data, sp=False):
    """Tensor parallel over heads, positions and sequences over `data`; mesh tp, ..., dp."""
    cut, (*three, wo) = ranks.cut, weights
    context = data.removesuffix("dp").rstrip("+")
    positions = "+".join(filter(None, ("tp" if sp else "", context)))
    xs, dys = (ranks.each(lambda r, a=a: cut(cut(a, 0, r, "dp"), 1, r, positions)) for a in (x, dy))
    ws = [ranks.each(lambda r, w=w: cut(w, 1, r, "tp")) for w in three]
    wos = ranks.each(lambda r: cut(wo, 0, r, "tp"))
    into = one.enter(ranks, xs, sp)
    q, k, v = columns(ranks, lambda r: one.project(into[r], [w[r] for w in ws]))
    c = core.forward(q, k, v)
    y = one.leave(ranks, ranks.each(lambda r: one.out(c[r], wos[r])), sp)
    ranks.phase = "backward"
    back = one.enter(ranks, dys, sp)
    dc, dwo = columns(ranks, lambda r: one.out_backward(c[r], wos[r], back[r]))
    d = core.backward(dc)
    grads = ranks.each(lambda r: tuple(a[r] for a in d))
    terms = ranks.each(lambda r: one.project_input_gradient(grads[r], [w[r] for w in ws]))
    dx = one.leave(ranks, terms, sp)
    into = one.enter(ranks, xs, sp)
    dws = columns(ranks, lambda r: one.project_weight_gradients(into[r], grads[r]))
    sums = [ranks.all_reduce(list(dw), data) for dw in (*dws, dwo)]
    residual = ("dp", positions, "")
    return (
        full(y, ranks, residual),
        full(dx, ranks, residual),
        *(full(dw, ranks, ("", "tp", *[""] * (dw[0].ndim - 2))) for dw in sums[:3]),
        full(sums[3], ranks, ("tp", "", "", "")),
    )


def columns(ranks, function):
    return [list(column) for column in zip(*ranks.each(function), strict=True)]


def flat_weights(weights):
    """Matrices of shape (in, out), heads first among the features."""
    wq, wk, wv, wo = weights
    e = wq.shape[0]
    return [wq.reshape(e, -1), wk.reshape(e, -1), wv.reshape(e, -1), wo.reshape(-1, e)]


def grid_block(ranks, x, weights, dy, *, lines):
    """2D and 2.5D: products by SUMMA; keys and values are gathered where positions are split."""
    sequences, positions = lines
    panels = lcm(ranks.mesh["m1"], ranks.mesh["m2"])
    cut, (_, heads, group, width) = ranks.cut, weights[0].shape
    tile = [
        [cut(one.lined(ranks, a, r, sequences, positions), 2, r, "m1") for r in ranks.all]
        for a in (x, dy)
    ]
    xs, dys = tile
    ws = [
        ranks.each(lambda r, w=w: cut(cut(w, 1, r, "m1"), 0, r, "m2"))
        for w in flat_weights(weights)
    ]
    core = Gathered(ranks, positions) if positions else Local(ranks)
    local = heads // ranks.mesh["m1"]
    shapes = [(local, group, width), (local, width), (local, width)]
    fused = [np.concatenate(parts, 1) for parts in zip(*ws[:3], strict=True)]
    widths = np.cumsum([w[0].shape[1] for w in ws[:3]])[:2]
    made = one.summa(ranks, xs, fused, panels)
    split = [np.split(a, widths, -1) for a in made]
    q, k, v = (
        [parts[n].reshape(*parts[n].shape[:2], *shape) for parts in split]
        for n, shape in enumerate(shapes)
    )
    c = core.forward(q, k, v)
    cs = [a.reshape(*a.shape[:2], -1) for a in c]
    y = one.summa(ranks, cs, ws[3], panels)
    ranks.phase = "backward"
    dc = one.summa_input_gradient(ranks, cs, ws[3], dys, panels)
    dwo = one.summa_weight_gradient(ranks, cs, ws[3], dys, panels)
    d = core.backward([a.reshape(c[0].shape) for a in dc])
    joined = ranks.each(
        lambda r: np.concatenate([a[r].reshape(*a[r].shape[:2], -1) for a in d], -1)
    )
    dx = one.summa_input_gradient(ranks, xs, fused, joined, panels)
    dw = one.summa_weight_gradient(ranks, xs, fused, joined, panels)
    if "m3" in ranks.mesh:
        dw, dwo = ranks.all_reduce(dw, "m3"), ranks.all_reduce(dwo, "m3")
    dws = list(zip(*(np.split(a, widths, 1) for a in dw), strict=True))
    residual = (sequences, positions, "m1")
    whole = [full(list(a), ranks, ("m2", "m1")) for a in (*dws, dwo)]
    return (
        full(y, ranks, residual),
        full(dx, ranks, residual),
        *(a.reshape(w.shape) for a, w in zip(whole, weights, strict=True)),
    )


def cube_block(ranks, x, weights, dy):
    """3D: heads over m1, e over m2, sequences over m3 and over m1 or m2 in turn."""
    cut, (_, heads, group, width) = ranks.cut, weights[0].shape
    outer = "m1+m3"
    xs, dys = (ranks.each(lambda r, a=a: cut(cut(a, 0, r, outer), 2, r, "m2")) for a in (x, dy))
    flat = flat_weights(weights)
    ws = [
        ranks.each(lambda r, w=w: cut(cut(cut(w, 0, r, "m2"), 1, r, "m1"), 0, r, "m3"))
        for w in flat[:3]
    ]
    fused = [np.concatenate(parts, 1) for parts in zip(*ws, strict=True)]
    last = ranks.each(lambda r: cut(cut(cut(flat[3], 0, r, "m1"), 1, r, "m2"), 0, r, "m3"))
    widths = np.cumsum([w[0].shape[1] for w in ws])[:2]
    local = heads // ranks.mesh["m1"]
    made = one.cube_linear(ranks, xs, fused, "m1", "m2")
    split = [np.split(a, widths, -1) for a in made]
    q, k, v = (
        [parts[n].reshape(*parts[n].shape[:2], *shape) for parts in split]
        for n, shape in enumerate([(local, group, width), (local, width), (local, width)])
    )
    core = Local(ranks)
    c = core.forward(q, k, v)
    cs = [a.reshape(*a.shape[:2], -1) for a in c]
    y = one.cube_linear(ranks, cs, last, "m2", "m1")
    ranks.phase = "backward"
    dc, dwo = one.cube_backward(ranks, cs, last, dys, ("m2", "m1"))
    d = core.backward([a.reshape(c[0].shape) for a in dc])
    joined = ranks.each(
        lambda r: np.concatenate([a[r].reshape(*a[r].shape[:2], -1) for a in d], -1)
    )
    dx, dw = one.cube_backward(ranks, xs, fused, joined, ("m1", "m2"))
    dws = list(zip(*(np.split(a, widths, 1) for a in dw), strict=True))
    whole = [
        *(full(list(a), ranks, ("m3+m2", "m1")) for a in dws),
        full(dwo, ranks, ("m3+m1", "m2")),
    ]
    return (
        full(y, ranks, (outer, "", "m2")),
        full(dx, ranks, (outer, "", "m2")),
        *(a.reshape(w.shape) for a, w in zip(whole, weights, strict=True)),
    )
