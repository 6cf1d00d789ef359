"""The outputs of softmax, log_softmax and their gradients from spec/ops/softmax.md, without the C++
code (tests/conformance/oracle.py)."""

import functools
import math

import oracle
from oracle import canon, div, exp, fma, maximum, mul, row_dot, row_sum, sub


def weights(x):
    most = functools.reduce(maximum, x)
    e = [canon(exp(sub(v, most))) for v in x]
    return most, e, row_sum(e)


def softmax(x):
    most, e, total = weights(x)
    return [canon(div(v, total)) for v in e]


def log(x):
    if x != x or x in (1, math.inf):
        return 0.0 if x == 1 else x
    return oracle.rounded(oracle.Fraction(oracle.Decimal(x).ln()))


def log_softmax(x):
    most, e, total = weights(x)
    return [canon(sub(sub(v, most), log(total))) for v in x]


def softmax_backward(g, y):
    s = row_dot(g, y)
    return [canon(mul(b, sub(a, s))) for a, b in zip(g, y)]


def log_softmax_backward(g, y):
    s = row_sum(g)
    return [canon(fma(-canon(exp(0.0 if b > 0 else b)), s, a)) for a, b in zip(g, y)]


def along(f):
    def run(inputs, shapes, out, attrs):
        axis = attrs.get("axis", -1) % len(out)
        n, inner = out[axis], math.prod(out[axis + 1 :])
        result = [None] * math.prod(out)
        for row in range(math.prod(out) // n):
            places = [(row // inner * n + i) * inner + row % inner for i in range(n)]
            for place, y in zip(places, f(*([x[p] for p in places] for x in inputs))):
                result[place] = y
        return result

    return run


def cross_entropy(inputs, shapes, out, attrs):
    x, target = inputs
    n, result = shapes[0][1], []
    for i, t in enumerate(target):
        y = log_softmax(x[i * n : (i + 1) * n])
        result.append(0.0 if t == attrs["ignore"] else canon(-y[t]) if 0 <= t < n else math.nan)
    return result


def cross_entropy_backward(inputs, shapes, out, attrs):
    grad, x, target = inputs
    n, result = shapes[1][1], []
    for i, t in enumerate(target):
        there = t != attrs["ignore"] and 0 <= t < n
        u = canon(oracle.add(0.0, canon(-grad[i]))) if there else 0.0
        row = [u if there and j == t else 0.0 for j in range(n)]
        for y, here in zip(log_softmax(x[i * n : (i + 1) * n]), row):
            result.append(canon(fma(-canon(exp(0.0 if y > 0 else y)), u, here)))
    return result


OPERATIONS = {
    **{
        f.__name__: along(f) for f in (softmax, log_softmax, softmax_backward, log_softmax_backward)
    },
    "cross_entropy": cross_entropy,
    "cross_entropy_backward": cross_entropy_backward,
}
