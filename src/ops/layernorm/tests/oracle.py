"""The outputs of layernorm and its gradients from spec/ops/layernorm.md, without the C++ code
(tests/conformance/oracle.py)."""

import math
from fractions import Fraction

from oracle import add, canon, div, fma, mul, rounded, row_dot, row_sum, rows, sqrt, sub


def centred(x, epsilon):
    """layernorm.2, layernorm.3: the row about its mean, and the factor."""
    count = rounded(Fraction(len(x)))
    mean = div(row_sum(x), count)
    d = [sub(v, mean) for v in x]
    variance = div(row_sum(d, squares=True), count)
    return d, div(1.0, sqrt(add(variance, epsilon)))


def layernorm(inputs, shapes, out, attrs):
    result, n = [], len(inputs[1])
    for x in rows(inputs[0], n):
        d, scale = centred(x, attrs["epsilon"])
        y = [mul(mul(v, scale), w) for v, w in zip(d, inputs[1])]
        if len(inputs) == 3:
            y = [add(v, b) for v, b in zip(y, inputs[2])]
        result += [canon(v) for v in y]
    return result


def backward(inputs, shapes, out, attrs):
    """layernorm.7."""
    grad, x, w = inputs
    result, n = [], len(w)
    count = rounded(Fraction(n))
    for g, v in zip(rows(grad, n), rows(x, n)):
        d, r = centred(v, attrs["epsilon"])
        u, h = [mul(a, b) for a, b in zip(g, w)], [mul(e, r) for e in d]
        mean, c = div(row_sum(u), count), div(row_dot(u, h), count)
        result += [canon(mul(fma(-b, c, sub(a, mean)), r)) for a, b in zip(u, h)]
    return result


def backward_weight(inputs, shapes, out, attrs):
    """layernorm.8."""
    n = math.prod(out)
    products = []
    for g, v in zip(rows(inputs[0], n), rows(inputs[1], n)):
        d, r = centred(v, attrs["epsilon"])
        products.append([canon(mul(a, canon(mul(e, r)))) for a, e in zip(g, d)])
    return [canon(row_sum(column)) for column in zip(*products)]


OPERATIONS = {
    "layernorm": layernorm,
    "layernorm_backward": backward,
    "layernorm_backward_weight": backward_weight,
}
