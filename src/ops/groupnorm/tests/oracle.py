"""The outputs of groupnorm from spec/ops/groupnorm.md, without the C++ code
(tests/conformance/oracle.py)."""

from fractions import Fraction

from oracle import add, canon, div, mul, rounded, row_sum, rows, sqrt, sub


def groupnorm(inputs, shapes, out, attrs):
    x, weight, bias = inputs
    sample = len(x) // out[0]
    spatial, n = sample // out[1], sample // attrs["groups"]
    result, count = [], rounded(Fraction(n))
    for at, row in enumerate(rows(x, n)):
        mean = div(row_sum(row), count)
        d = [sub(v, mean) for v in row]
        variance = div(row_sum(d, squares=True), count)
        scale = div(1.0, sqrt(add(variance, attrs["epsilon"])))
        for i, v in enumerate(d):
            c = (at * n + i) // spatial % out[1]
            result.append(canon(add(mul(mul(v, scale), weight[c]), bias[c])))
    return result


OPERATIONS = {"groupnorm": groupnorm}
