"""The model of the LSTM log once more: plain functions of fractions, as the log's code runs."""

from fractions import Fraction as Fr
from math import ceil, floor, isqrt

NAMES = {
    "batch_size": "B", "vocab_size": "V", "num_layers": "L", "layer_size": "D",
    "projection": "P", "seq_len": "S", "num_gates": "G", "IB": "share",
}  # fmt: skip
DEFAULTS = {
    "B": 512, "V": 800000, "L": 2, "D": 19968, "P": 2048, "S": 20, "G": 4,
    "dp": 1, "lp": 1, "hlp": 1, "include_projection_in_time": False, "topology": "ring",
    "share": 0.2,
    **{f"kp_{part}_{end}": -1 if end == "type" else 1
       for part in ("hidden", "softmax", "embedding", "projection")
       for end in ("dim1", "dim2", "type")},
}  # fmt: skip
p, O, lam, ll = 4, Fr("37e-6"), Fr("50e-9"), Fr("16e-7")
GIB = 2**30


class Run:
    def __init__(self, given, *, corrected=False):
        self.__dict__ |= DEFAULTS | {NAMES.get(k, k): v for k, v in given.items()}
        self.fixed = corrected
        self.F = Fr("0.7") * Fr("0.2592") * 300 / Fr("119e-13")
        peak = Fr("0.2592") * 300 / (8 * Fr("6e-12"))
        self.W, self.memory = Fr("0.7") * peak, peak / (225 * GIB) * 4 * GIB
        self.l2 = Fr("0.16896000000000005") * 300 / (8 * Fr("5e-15"))
        sm = Fr("0.20275200000000007") * 300 / (8 * Fr("1e-15"))
        self.X1, self.X2 = (self.tile(rate / (4000 * GIB) * 32 * 2**10) for rate in (self.l2, sm))
        self.b = ceil(Fr(self.B, self.dp))
        self.IB = self.links()

    @staticmethod
    def tile(capacity):
        side = isqrt(floor(capacity / (3 * p)))
        return 1 << (side.bit_length() - 1)

    def links(self):
        kernels = max(v for k, v in self.__dict__.items() if k.startswith("kp_") and "dim" in k)
        g = (self.dp > 1) + (self.lp > 1) + (kernels > 1)
        if g == 0 or self.topology == "ring":
            return 0
        n = self.dp * self.kp_hidden_dim1 * (1, 2, 3 * self.lp)[g - 1]
        return Fr(str(self.share)) * 300 / (n * 8 * Fr("10e-12"))

    def roof(self, flop, gmem, l2=0):
        if Fr(flop) / gmem < self.F / self.W:
            return Fr(gmem) / self.W + lam + Fr(l2) / self.l2
        return Fr(flop) / self.F

    def gemm(self, m, k, n):
        def once(m, k, n):
            def moved(x):
                return p * (
                    m * k * (1 if k <= x else ceil(Fr(n) / x)) + k * n * ceil(Fr(m) / x) + m * n
                )

            flop = 2 * m * k * n + m * n * (15 + 5 * ceil(Fr(k) / self.X2))
            return self.roof(flop, moved(self.X1), moved(self.X2))

        return min(once(m, k, n), once(n, k, m)) + O

    def exchange(self, d0, d1, q, *, partial=False, reduce=False):
        if q == 1:
            return 0
        n = p * d0 * d1
        if n < 128:
            c = Fr(1, q) if partial else 1
            sent = n * c / self.IB if self.fixed else n * c
            return sent + (self.roof(d0 * d1 * (q - 1) * c, 3 * n * (q - 1) * c) if reduce else 0)
        f = 2 if reduce and not partial else 1
        added = (self.roof(d0 * d1 / Fr(q), 3 * n / Fr(q)) + O) * (q - 1) if reduce else 0
        return (n / (q * self.IB) + ll) * f * (q - 1) + added

    def forward(self, part, m, k, n):
        q1, q2, kind = (getattr(self, f"kp_{part}_{end}") for end in ("dim1", "dim2", "type"))
        if kind == 1:
            return self.gemm(m, Fr(k, q1), n) + self.exchange(m, n, q1, partial=True, reduce=True)
        if kind == 2:
            return self.gemm(Fr(m, q1), k, Fr(n, q2)) + self.exchange(Fr(m, q1), n, q2)
        return self.gemm(m, k, n)

    def backward(self, part, m, k, n):
        q1, q2, kind = (getattr(self, f"kp_{part}_{end}") for end in ("dim1", "dim2", "type"))
        x = self.exchange
        if kind == 1:
            twice = 1 if self.fixed else 2
            return self.gemm(Fr(k, q1), m, n) + self.gemm(m, n, Fr(k, q1)) + twice * x(m, n, q1)
        if kind == 2:
            return (
                self.gemm(Fr(k, q1), m, Fr(n, q2))
                + self.gemm(Fr(m, q1), n, Fr(k, q2))
                + x(k, m, q1, partial=True)
                + 2 * x(m, Fr(n, q2), q1)
                + x(Fr(m, q1), n, q2)
                + x(k, n, q2, partial=True)
                + x(Fr(m, q1), k, q2)
            )
        return self.gemm(k, m, n) + self.gemm(m, n, k)

    def cell(self, back):
        b, D, G = self.b, self.D, self.G
        q1, q2, kind = self.kp_hidden_dim1, self.kp_hidden_dim2, self.kp_hidden_type
        if kind == -1:
            gates = G if not back or self.fixed else 1
            flop, moved = b * D * gates * Fr(13, 4), p * b * D * gates * Fr(17, 2)
            if back:
                flop, moved = (
                    flop + 2 * D * G * D,
                    moved + 3 * (2 * D * G * D) * (p if self.fixed else 1),
                )
            return self.roof(flop, moved) + 15 * O
        E = Fr(b * G * D, q1) if kind == 1 else Fr(b, q1) * Fr(G * D, q2)
        sent = 3 * b * Fr(G * D, q2) if kind == 2 and back else 3 * E
        return self.roof(4 * E, 11 * p * E) + O + sent * (p if self.fixed else 1) / self.IB

    def words(self, back):
        T, V = self.b * self.S, self.V
        q1, q2, kind = self.kp_softmax_dim1, self.kp_softmax_dim2, self.kp_softmax_type
        if kind == -1:
            return (
                self.roof(5 * T * V, 11 * p * T * V)
                if back
                else self.roof(T * (3 * V - 1), 7 * p * T * V)
            ) + 4 * O
        E = Fr(T * V, q1) if kind == 1 else Fr(T, q1) * Fr(V, q2)
        sent = 0 if back else p * (T * q1 if kind == 1 else Fr(T, q1) * q2) / self.IB
        return self.roof((5 if back else 3) * E, (11 if back else 7) * p * E) + O + sent

    def gradient(self, N):
        return self.roof(4 * N, 3 * p * N) + self.roof(3 * N, 7 * p * N)

    def total(self):
        b, D, G, S, V, P, L = self.b, self.D, self.G, self.S, self.V, self.P, self.L
        Cf = self.forward("hidden", b, 2 * D, G * D) + self.cell(back=False)
        Cb = self.backward("hidden", b, 2 * D, G * D) + self.cell(back=True)
        R = self.exchange(2 * D, G * D, self.dp, reduce=True) + self.gradient(2 * D * G * D)
        kind, T = self.kp_softmax_type, b * S
        kf = P if kind in (1, 2) and not self.fixed else D
        kb = P if kind == 1 and not self.fixed else D
        base = self.forward("softmax", T, kf, V) + self.words(back=False)
        base += self.backward("softmax", T, kb, V) + self.words(back=True)
        looked = Fr(2 * p * T * D) / self.W + lam + O
        base += 2 * looked + self.gradient(D * V)
        if self.dp > 1:
            base += (p * T * D / self.IB + ll) * 2 * (self.dp - 1)
        if self.include_projection_in_time or self.fixed:
            pf = self.forward("projection", T, D, P)
            as_forward = self.kp_projection_type == 2 and not self.fixed
            base += (
                pf
                + (pf if as_forward else self.backward("projection", T, D, P))
                + self.gradient(D * P)
            )
        hlp = self.hlp
        n, w = Fr(L, hlp), (p * b * D / self.IB if self.lp > 1 else 0)
        shown = L * Cf + (S + hlp - 2) * w
        time = (L + n * (S - 1)) * Cf + w * (hlp - 1) if w <= Cf * n else shown
        if Cf * n < w and w >= Cb * n:
            self.branch = "B"
            back = L * Cb + (S + hlp - 2) * w + R
            if Cb < R:
                back = (L - n + 1) * Cb + (S + hlp - 2) * w + n * R
        else:
            self.branch = "A" if w <= Cf * n else "C"
            back = (L + n * (S - 1)) * Cb + w * (hlp - 1) + R
            if Cb < R:
                back = (L + n * (S - 2) + 1) * Cb + n * R
        self.branch += ">=" if Cb >= R else "<"
        return base + time + back

    def parameters(self):
        D, G, V, P, L = self.D, self.G, self.V, self.P, self.L
        return V * D + (2 * D + 1) * G * D * L + D * P + (D + 1) * V

    def shard(self, spread):
        b, D, G, S, V, P, L = self.b, self.D, self.G, self.S, self.V, self.P, self.L

        def kp(part, end):
            return getattr(self, f"kp_{part}_{end}") if spread else 1

        def split(part, rows, inner, columns):
            if kp(part, "type") == 2:
                return Fr(rows, kp(part, "dim1")), inner, Fr(columns, kp(part, "dim2"))
            return rows, Fr(inner, kp(part, "dim1")), columns

        L = Fr(L, self.hlp) if spread else L
        r, k, n = split("hidden", b, 2 * D, G * D)
        hidden = r * k * S * L + (k + 1) * n * L + r * k / 2 * 9 * L * S
        r, k, n = split("softmax", b, D if self.fixed else P, V)
        softmax = r * S * n + (k + 1) * n + 2 * r * S * n + r * S
        r, k, n = split("projection", b, D, P)
        projection = 2 * r * S * n + (k + 1) * n
        q = kp("embedding", "dim1") * (
            1 if kp("embedding", "type") == 1 else kp("embedding", "dim2")
        )
        embedding = Fr(b, q) * S * D + (Fr(V * D, q) if self.fixed else V * D)
        return p * (hidden + softmax + projection + embedding) / Fr(GIB)
