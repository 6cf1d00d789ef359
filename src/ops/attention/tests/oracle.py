"""The outputs of attention from spec.md, without the C++ code (tests/conformance/oracle.py)."""

import functools
import math
from decimal import Decimal
from fractions import Fraction

from oracle import INF, add, canon, contract, div, exp, fma, joined, maximum, mul, rounded, sub


def tanh(x):
    if x != x or x == 0:
        return x
    if abs(x) > 20:
        return math.copysign(1.0, x)
    e = Decimal(2 * x).exp()
    return rounded(Fraction((e - 1) / (e + 1)))


def attention(inputs, shapes, out, attrs):
    q, k, v = inputs[:3]
    more = list(zip(inputs[3:], shapes[3:]))
    mask, mask_shape = more.pop(0) if attrs.get("mask") else (None, ())
    sinks = more.pop(0)[0] if attrs.get("sinks") else None
    lengths = more.pop(0)[0] if attrs.get("lengths") else None
    slopes = more.pop(0)[0] if attrs.get("slopes") else None
    first_heads, axis = attrs.get("heads_first", 0), 2 if attrs.get("heads_first") else 1
    batch, seq, total = shapes[0][0], shapes[0][axis], shapes[1][axis]
    heads, kv_heads = attrs["q_heads"], attrs["kv_heads"]
    d, dv = (shapes[n][3] if first_heads else shapes[n][2] // kv_heads for n in (1, 2))
    left, right = attrs.get("left", -1), attrs.get("right", -1)
    cap = attrs.get("softcap", 0.0)
    result = [None] * (batch * seq * heads * dv)

    def row(b, i, h, rows, of, size):  # where row i of head h begins
        return (((b * of + h) * rows + i) if first_heads else ((b * rows + i) * of + h)) * size

    def masked(b, h, i, j):
        sizes = [batch, heads, seq][-(len(mask_shape) - 1) :]
        at = 0
        for index, size in zip([b, h, i][-len(sizes) :], mask_shape[:-1]):
            at = at * size + (0 if size == 1 else index)
        return mask[at * mask_shape[-1] + j]

    for b in range(batch):
        for i in range(seq):
            for h in range(heads):
                g = h // (heads // kv_heads)
                query = q[row(b, i, h, seq, heads, d) :][:d]
                keys_of = min(max(lengths[b], 0), total) if lengths else total
                p = keys_of - seq + i if lengths else i
                hidden_by_value = (
                    (lambda x: x == 0)
                    if mask and isinstance(mask[0], int)
                    else (lambda x: x == -INF)
                )

                def visible(j):
                    if (
                        j >= keys_of
                        or (attrs.get("causal", 1) and j > p)
                        or (right >= 0 and j > p + right)
                    ):
                        return False
                    if left >= 0 and j < p - left and j >= attrs.get("first", 0):
                        return False
                    return not attrs.get("mask") or (
                        j < mask_shape[-1] and not hidden_by_value(masked(b, h, i, j))
                    )

                m, l, o = -INF, 0.0, [0.0] * dv

                def fold(mb, lb, ob, m, l, o):
                    later = mb > m
                    f = canon(exp(sub(m, mb) if later else sub(mb, m)))
                    l = fma(l, f, lb) if later else fma(lb, f, l)
                    o = [fma(x, f, y) if later else fma(y, f, x) for x, y in zip(o, ob)]
                    return maximum(m, mb), l, o

                for block in range(0, total, 128):
                    keys = [j for j in range(block, min(total, block + 128)) if visible(j)]
                    s = [
                        mul(
                            contract(query, k[row(b, j, g, total, kv_heads, d) :][:d]),
                            attrs["scale"],
                        )
                        for j in keys
                    ]
                    if cap:
                        s = [mul(cap, tanh(div(x, cap))) for x in s]
                    if slopes:
                        s = [add(x, canon(mul(slopes[h], float(j - p)))) for x, j in zip(s, keys)]
                    if attrs.get("mask") and hidden_by_value(-INF):
                        s = [add(x, masked(b, h, i, j)) for x, j in zip(s, keys)]
                    mb = functools.reduce(maximum, s, -INF)
                    if mb == -INF:
                        continue
                    w = [canon(exp(sub(x, mb))) for x in s]
                    lane = [0.0] * 128
                    for x, j in zip(w, keys):
                        lane[j - block] = add(0.0, x)
                    ob = [0.0] * dv
                    for c in range(dv):
                        for x, j in zip(w, keys):
                            ob[c] = fma(x, v[row(b, j, g, total, kv_heads, dv) + c], ob[c])
                    m, l, o = fold(mb, joined(lane), ob, m, l, o)
                if sinks and sinks[h] != -INF:
                    m, l, o = fold(sinks[h], 1.0, [0.0] * dv, m, l, o)
                at = row(b, i, h, seq, heads, dv)
                result[at : at + dv] = [0.0 if m == -INF else canon(div(x, l)) for x in o]
    return result


OPERATIONS = {"attention": attention}
