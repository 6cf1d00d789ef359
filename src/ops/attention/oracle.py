"""The outputs of attention from spec.md, without the C++ code (tests/conformance/oracle.py)."""

import functools

from oracle import INF, add, canon, contract, div, exp, fma, joined, maximum, mul, sub


def attention(inputs, shapes, out, attrs):
    q, k, v = inputs
    seq, heads, kv_heads = shapes[0][1], attrs["q_heads"], attrs["kv_heads"]
    d, dv = shapes[1][2] // kv_heads, shapes[2][2] // kv_heads
    result = []
    for i in range(seq):
        for h in range(heads):
            g = h // (heads // kv_heads)
            query = q[(i * heads + h) * d:][:d]
            m, l, o = -INF, 0.0, [0.0] * dv
            visible = i + 1 if attrs.get("causal", 1) else seq
            for first in range(0, visible, 128):
                keys = range(first, min(visible, first + 128))
                s = [mul(contract(query, k[(j * kv_heads + g) * d:][:d]), attrs["scale"]) for j in keys]
                mb = functools.reduce(maximum, s)
                if mb == -INF:
                    continue
                p = [canon(exp(sub(x, mb))) for x in s]
                lb = joined([add(0.0, x) for x in p] + [0.0] * (128 - len(p)))
                later = mb > m
                f = canon(exp(sub(m, mb) if later else sub(mb, m)))
                l = fma(l, f, lb) if later else fma(lb, f, l)
                for c in range(dv):
                    ob = 0.0
                    for x, j in zip(p, keys):
                        ob = fma(x, v[(j * kv_heads + g) * dv + c], ob)
                    o[c] = fma(o[c], f, ob) if later else fma(ob, f, o[c])
                m = maximum(m, mb)
            result += [0.0 if m == -INF else canon(div(x, l)) for x in o]
    return result


OPERATIONS = {"attention": attention}
