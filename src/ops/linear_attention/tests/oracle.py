"""The outputs of linear attention from spec/ops/linear_attention.md, without the C++ code
(tests/conformance/oracle.py)."""

import math
from fractions import Fraction

from oracle import canon, contract, exp, fma, mul, rounded, sub

CHUNK = 64  # linear_attention.2


def stored_exp(x):
    """linear_attention.3: x is binary64."""
    return canon(exp(rounded(Fraction(x), "f32", x) if math.isfinite(x) else x))


class Head:
    """One head of one sequence: lists of rows, the state S [D][Dv]."""

    def __init__(self, d, dv, per_channel):
        self.d, self.per_channel = d, per_channel
        self.state = [[0.0] * dv for _ in range(d)]
        self.keys, self.u, self.g = [], [], []

    def decay(self, t, i=None):
        """A_t, or d(t, i), of each channel."""
        before = self.g[i] if i is not None else [0.0] * len(self.g[t])
        values = [stored_exp(a - b) for a, b in zip(self.g[t], before)]
        return values if self.per_channel else values * self.d

    def weight(self, t, i, x):
        d = self.decay(t, i)
        if self.per_channel:
            return canon(contract([canon(mul(k, f)) for k, f in zip(self.keys[i], d)], x))
        return canon(mul(contract(self.keys[i], x), d[0]))

    def total(self, t, end, x):
        """linear_attention.4, and the sums of linear_attention.5 and linear_attention.6."""
        a = self.decay(t)
        n = [canon(mul(f, e)) for f, e in zip(a, x)] if self.per_channel else x
        w = [self.weight(t, i, x) for i in range(end)]
        result = []
        for c, column in enumerate(zip(*self.state)):
            r = contract(n, column)
            if not self.per_channel:
                r = mul(a[0], r)
            for i in range(end):
                r = fma(w[i], self.u[i][c], r)
            result.append(r)
        return result

    def step(self, q, k, v, g, beta, scale):
        t = len(self.keys)
        self.keys.append(k)
        # Python's floats are binary64
        self.g.append([a + b for a, b in zip(self.g[-1] if t else [0.0] * len(g), g)])
        if beta is None:
            self.u.append(v)
        else:
            found = self.total(t, t, k)
            self.u.append([canon(mul(beta, sub(a, b))) for a, b in zip(v, found)])
        y = [canon(mul(r, scale)) for r in self.total(t, t + 1, q)]
        if t == CHUNK - 1:
            self.close(t)
        return y

    def close(self, last):
        """linear_attention.7"""
        a = self.decay(last)
        d = [self.decay(last, i) for i in range(CHUNK)]
        for j, row in enumerate(self.state):
            m = [canon(mul(self.keys[i][j], d[i][j])) for i in range(CHUNK)]
            for c in range(len(row)):
                r = mul(a[j], row[c])
                for i in range(CHUNK):
                    r = fma(m[i], self.u[i][c], r)
                row[c] = canon(r)
        self.keys, self.u, self.g = [], [], []


def linear_attention(inputs, shapes, out, attrs):
    key_heads, heads, scale = attrs["key_heads"], attrs["value_heads"], attrs["scale"]
    batch, seq, width = out
    d = shapes[0][2] // key_heads
    decays = shapes[3][2] // heads
    result = [None] * math.prod(out)
    for b in range(batch):
        for h in range(heads):
            head = Head(d, width // heads, decays > 1)
            of = [h // (heads // key_heads)] * 2 + [h] * 3
            for i in range(seq):

                def row(n):
                    size = shapes[n][2] // (key_heads if n < 2 else heads)
                    at = (b * seq + i) * shapes[n][2] + of[n] * size
                    return inputs[n][at : at + size]

                beta = row(4)[0] if len(inputs) > 4 else None
                at = (b * seq + i) * width + h * (width // heads)
                result[at : at + width // heads] = head.step(
                    *(row(n) for n in range(4)), beta, scale
                )
    return result


OPERATIONS = {
    "gated_delta_rule": linear_attention,
    "gated_linear_attention": linear_attention,
}
