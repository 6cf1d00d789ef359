"""The outputs of attention and its gradients from spec/attention.md, without the C++ code
(tests/conformance/oracle.py)."""

import functools
import math
import struct
from decimal import Decimal
from fractions import Fraction

from oracle import (
    INF,
    add,
    canon,
    contract,
    div,
    exp,
    fma,
    joined,
    maximum,
    mul,
    rounded,
    row_sum,
    sub,
)


def tanh(x):
    if x != x or x == 0:
        return x
    if abs(x) > 20:
        return math.copysign(1.0, x)
    e = Decimal(2 * x).exp()
    return rounded(Fraction((e - 1) / (e + 1)))


def float_product(query, key):
    return contract(query, key)


def float_block(s, mb, block, keys, values):
    """attention.6 to attention.8: the sum and the results of the visible keys of a block."""
    w = [canon(exp(sub(x, mb))) for x in s]
    lane = [0.0] * 128
    for x, j in zip(w, keys):
        lane[j - block] = add(0.0, x)
    ob = [0.0] * len(values[0])
    for c in range(len(ob)):
        for x, row in zip(w, values):
            ob[c] = fma(x, row[c], ob[c])
    return joined(lane), ob


def exact_row(row):
    """exact16.1 and exact16.2: the scale and the integers; None: it has a NaN or an infinity."""
    if not all(math.isfinite(x) for x in row):
        return None
    m = max(abs(Fraction(x)) for x in row)
    if m == 0:
        return 0, [0] * len(row)
    e = math.frexp(m)[1] - 15
    if round(m / Fraction(2) ** e) > 32639:
        e += 1
    return e, [round(Fraction(x) / Fraction(2) ** e) for x in row]


def exact_result(total, e):
    """exact16.4"""
    extra = max(total.bit_length() - 24, 0)
    y = Fraction(round(Fraction(total, 2**extra)) * 2**extra) * Fraction(2) ** e
    if abs(y) < Fraction(2) ** -126:
        return -0.0 if total < 0 else 0.0
    return math.copysign(math.inf, y) if abs(y) >= 2**128 else float(y)


def exact_product(query, key):
    """attention_exact16.2"""
    a, b = exact_row(query), exact_row(key)
    if a is None or b is None:
        return math.nan
    return exact_result(sum(x * y for x, y in zip(a[1], b[1])), a[0] + b[0])


BINARY32 = lambda bits: struct.unpack(">f", bytes.fromhex(bits))[0]
WEIGHT = [BINARY32(x) for x in ("3c1d0166", "3d64fe23", "3e7601bc", "3f317096", "3f800000")]


def exact_block(s, mb, block, keys, values):
    """attention_exact16.3 to attention_exact16.5."""
    s, values = zip(*((x, row) for x, row in zip(s, values) if x != -INF))
    weights = []
    for x in s:
        d = sub(x, mb)
        d = d if d > -87 else -87.0
        n = sub(fma(d, BINARY32("3fb8aa3b"), 1.5 * 2**23), 1.5 * 2**23)
        f = fma(d, BINARY32("3fb8aa3b"), -n)
        y = functools.reduce(lambda total, c: fma(total, f, c), WEIGHT)
        weights.append((int(n), Fraction(y) * Fraction(2) ** int(n)))
    lb = float(rounded(Fraction(sum(round(p * 2**22) for _, p in weights)))) * 2**-22
    rows = [exact_row(row) for row in values]
    width = len(values[0])
    if None in rows:
        ob = [math.nan] * width
    else:
        used = [(n, p, *row) for (n, p), row in zip(weights, rows) if any(row[1])]
        top = max((n + e for n, p, e, q in used), default=None)
        integers = [round(p * Fraction(2) ** (14 + e - top)) for n, p, e, q in used]
        assert all(w <= 23171 for w in integers)
        ob = [
            exact_result(sum(w * row[3][c] for w, row in zip(integers, used)), top - 14)
            if used
            else 0.0
            for c in range(width)
        ]
    return (lb if math.isfinite(mb) else math.nan), ob


def attention(inputs, shapes, out, attrs, product=float_product, of_block=float_block):
    q, k, v = inputs[:3]
    more = list(zip(inputs[3:], shapes[3:]))
    mask, mask_shape = more.pop(0) if attrs.get("mask") else (None, ())
    sinks = more.pop(0)[0] if attrs.get("sinks") else None
    lengths = more.pop(0)[0] if attrs.get("lengths") else None
    slopes, slopes_shape = more.pop(0) if attrs.get("slopes") else (None, ())
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
                            product(query, k[row(b, j, g, total, kv_heads, d) :][:d]),
                            attrs["scale"],
                        )
                        for j in keys
                    ]
                    if cap:
                        s = [mul(cap, tanh(div(x, cap))) for x in s]
                    if slopes and len(slopes_shape) == 2:
                        far = slopes_shape[1] // 2
                        table = slopes[h * slopes_shape[1] :][: slopes_shape[1]]
                        s = [
                            add(x, table[max(-far, min(far, j - p)) + far]) for x, j in zip(s, keys)
                        ]
                    elif slopes:
                        s = [add(x, canon(mul(slopes[h], float(j - p)))) for x, j in zip(s, keys)]
                    if attrs.get("mask") and hidden_by_value(-INF):
                        s = [add(x, masked(b, h, i, j)) for x, j in zip(s, keys)]
                    mb = functools.reduce(maximum, s, -INF)
                    if mb == -INF:
                        continue
                    values = [v[row(b, j, g, total, kv_heads, dv) :][:dv] for j in keys]
                    lb, ob = of_block(s, mb, block, keys, values)
                    m, l, o = fold(mb, lb, ob, m, l, o)
                if sinks and sinks[h] != -INF:
                    m, l, o = fold(sinks[h], 1.0, [0.0] * dv, m, l, o)
                at = row(b, i, h, seq, heads, dv)
                result[at : at + dv] = [0.0 if m == -INF else canon(div(x, l)) for x in o]
    return result


def attention_exact16(inputs, shapes, out, attrs):
    return attention(inputs, shapes, out, attrs, exact_product, exact_block)


def gradients(inputs, shapes, out, attrs):
    """attention.20 to attention.24."""
    g, y = inputs[:2]
    inputs, shapes = inputs[2:], shapes[2:]
    f = Forward(inputs, shapes, attrs)
    q, k, v = inputs[:3]
    dq, dk, dv = ([0.0] * len(x) for x in (q, k, v))
    for b in range(f.batch):
        for head in range(f.kv_heads):
            rows = [(head * f.group + h, i) for h in range(f.group) for i in range(f.seq)]
            at = lambda r, size: f.row(b, r[1], r[0], f.seq, f.heads, size)
            key = lambda j, size: f.row(b, j, head, f.total, f.kv_heads, size)
            of = lambda x, start, size: x[start : start + size]
            P, dS = [], []
            for r in rows:
                s, bends, hidden = f.scores(b, r, head)
                top = functools.reduce(maximum, s, -INF)
                if f.sinks:
                    top = maximum(top, f.sinks[r[0]])
                top = 0.0 if top == -INF else canon(top)
                w = [canon(exp(canon(sub(x, top)))) for x in s]
                total = canon(row_sum(w))
                if f.sinks:
                    total = canon(add(total, canon(exp(canon(sub(f.sinks[r[0]], top))))))
                total = 1.0 if total == 0 else total
                P.append([canon(div(x, total)) for x in w])
                own = of(g, at(r, f.dv), f.dv)
                products = [canon(mul(a, c)) for a, c in zip(own, of(y, at(r, f.dv), f.dv))]
                mean = canon(row_sum(products))
                line = []
                for j, weight in enumerate(P[-1]):
                    d = canon(contract(own, of(v, key(j, f.dv), f.dv)))
                    d = canon(mul(weight, canon(sub(d, mean))))
                    if f.cap:
                        t = bends[j]
                        bent = canon(mul(canon(sub(1.0, t)), canon(add(1.0, t))))
                        d = canon(mul(d, bent))
                    line.append(0.0 if hidden[j] else canon(mul(d, attrs["scale"])))
                dS.append(line)
                for c in range(f.d):
                    column = [k[key(j, f.d) + c] for j in range(f.total)]
                    dq[at(r, f.d) + c] = canon(contract(line, column))
            for j in range(f.total):
                for x, by, size, result in ((q, dS, f.d, dk), (g, P, f.dv, dv)):
                    for c in range(size):
                        column = [x[at(r, size) + c] for r in rows]
                        result[key(j, size) + c] = canon(contract([a[j] for a in by], column))
    return dq + dk + dv


class Forward:
    """Operands and attributes of attention, and the scores of its gradient."""

    def __init__(self, inputs, shapes, attrs):
        more = list(zip(inputs[3:], shapes[3:]))
        take = lambda name: more.pop(0) if attrs.get(name) else (None, ())
        self.mask, self.mask_shape = take("mask")
        self.sinks, self.lengths, self.slopes = (take(n)[0] for n in ("sinks", "lengths", "slopes"))
        self.q, self.k = inputs[:2]
        self.first, axis = attrs.get("heads_first", 0), 2 if attrs.get("heads_first") else 1
        self.batch, self.seq, self.total = shapes[0][0], shapes[0][axis], shapes[1][axis]
        self.heads, self.kv_heads = attrs["q_heads"], attrs["kv_heads"]
        self.group, self.attrs, self.cap = self.heads // self.kv_heads, attrs, attrs.get("softcap")
        self.d, self.dv = (
            shapes[n][3] if self.first else shapes[n][2] // self.kv_heads for n in (1, 2)
        )

    def row(self, b, i, h, rows, of, size):
        return (((b * of + h) * rows + i) if self.first else ((b * rows + i) * of + h)) * size

    def masked(self, b, h, i, j):
        sizes = [self.batch, self.heads, self.seq][-(len(self.mask_shape) - 1) :]
        at = 0
        for index, size in zip([b, h, i][-len(sizes) :], self.mask_shape[:-1]):
            at = at * size + (0 if size == 1 else index)
        return self.mask[at * self.mask_shape[-1] + j]

    def scores(self, b, row, head):
        """Scores, bends, and whether keys are hidden, of a row (head, query)."""
        (h, i), attrs = row, self.attrs
        seen = min(max(self.lengths[b], 0), self.total) if self.lengths else self.total
        p = seen - self.seq + i if self.lengths else i
        left, right = attrs.get("left", -1), attrs.get("right", -1)
        start = self.row(b, i, h, self.seq, self.heads, self.d)
        s, bends, hidden = [], [], []
        for j in range(self.total):
            away = j >= seen or (attrs.get("causal", 1) and j > p) or (right >= 0 and j > p + right)
            away = away or (left >= 0 and j < p - left and j >= attrs.get("first", 0))
            added = None
            if attrs.get("mask") and not away:
                away = j >= self.mask_shape[-1]
                added = None if away else self.masked(b, h, i, j)
                if isinstance(added, int):
                    away, added = added == 0, None
                away = away or added == -INF
            begin = self.row(b, j, head, self.total, self.kv_heads, self.d)
            x = contract(self.q[start : start + self.d], self.k[begin : begin + self.d])
            x = canon(mul(canon(x), attrs["scale"]))
            bend = 0.0
            if self.cap:
                bend = canon(tanh(canon(div(x, self.cap))))
                x = canon(mul(bend, self.cap))
            if self.slopes and not away:
                x = canon(add(x, canon(mul(self.slopes[h], float(j - p)))))
            if added is not None and not away:
                x = canon(add(x, added))
            s.append(-INF if away else x), bends.append(bend), hidden.append(away)
        return s, bends, hidden


OPERATIONS = {
    "attention": attention,
    "attention_backward": gradients,
    "attention_exact16": attention_exact16,
}
