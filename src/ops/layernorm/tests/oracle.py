"""The outputs of layernorm from spec.md, without the C++ code (tests/conformance/oracle.py)."""

from fractions import Fraction

from oracle import add, canon, div, mul, rounded, row_sum, rows, sqrt, sub


def layernorm(inputs, shapes, out, attrs):
    result, n = [], len(inputs[1])
    count = rounded(Fraction(n))
    for x in rows(inputs[0], n):
        mean = div(row_sum(x), count)
        d = [sub(v, mean) for v in x]
        variance = div(row_sum(d, squares=True), count)
        scale = div(1.0, sqrt(add(variance, attrs["epsilon"])))
        y = [mul(mul(v, scale), w) for v, w in zip(d, inputs[1])]
        if len(inputs) == 3:
            y = [add(v, b) for v, b in zip(y, inputs[2])]
        result += [canon(v) for v in y]
    return result


OPERATIONS = {"layernorm": layernorm}
