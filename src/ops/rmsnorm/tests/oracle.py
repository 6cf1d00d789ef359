"""The outputs of rmsnorm from spec.md, without the C++ code (tests/conformance/oracle.py)."""

from fractions import Fraction

from oracle import add, canon, div, mul, rounded, row_sum, rows, sqrt


def rmsnorm(inputs, shapes, out, attrs):
    result, n = [], len(inputs[1])
    for x in rows(inputs[0], n):
        mean = div(row_sum(x, squares=True), rounded(Fraction(n)))
        scale = div(1.0, sqrt(add(mean, attrs["epsilon"])))
        result += [canon(mul(mul(v, scale), w)) for v, w in zip(x, inputs[1])]
    return result


OPERATIONS = {"rmsnorm": rmsnorm}
