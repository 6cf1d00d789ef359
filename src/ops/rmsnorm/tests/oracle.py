"""The outputs of rmsnorm and its gradients from spec/ops/rmsnorm.md, without the C++ code
(tests/conformance/oracle.py)."""

import math
from fractions import Fraction

from oracle import add, canon, div, fma, mul, rounded, row_dot, row_sum, rows, sqrt


def factor(x, epsilon):
    """rmsnorm.3."""
    mean = div(row_sum(x, squares=True), rounded(Fraction(len(x))))
    return div(1.0, sqrt(add(mean, epsilon)))


def rmsnorm(inputs, shapes, out, attrs):
    result, n = [], len(inputs[1])
    for x in rows(inputs[0], n):
        scale = factor(x, attrs["epsilon"])
        result += [canon(mul(mul(v, scale), w)) for v, w in zip(x, inputs[1])]
    return result


def backward(inputs, shapes, out, attrs):
    """rmsnorm.7."""
    grad, x, w = inputs
    result, n = [], len(w)
    for g, v in zip(rows(grad, n), rows(x, n)):
        r = factor(v, attrs["epsilon"])
        u, h = [mul(a, b) for a, b in zip(g, w)], [mul(e, r) for e in v]
        c = div(row_dot(u, h), rounded(Fraction(n)))
        result += [canon(mul(fma(-b, c, a), r)) for a, b in zip(u, h)]
    return result


def backward_weight(inputs, shapes, out, attrs):
    """rmsnorm.8."""
    n = math.prod(out)
    products = []
    for g, v in zip(rows(inputs[0], n), rows(inputs[1], n)):
        r = factor(v, attrs["epsilon"])
        products.append([canon(mul(a, canon(mul(e, r)))) for a, e in zip(g, v)])
    return [canon(row_sum(column)) for column in zip(*products)]


OPERATIONS = {
    "rmsnorm": rmsnorm,
    "rmsnorm_backward": backward,
    "rmsnorm_backward_weight": backward_weight,
}
