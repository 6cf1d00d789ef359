"""The outputs of softmax and log_softmax from spec.md, without the C++ code
(tests/conformance/oracle.py)."""

import functools
import math

import oracle
from oracle import canon, div, exp, maximum, row_sum, sub


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


def along(f):
    def run(inputs, shapes, out, attrs):
        axis = attrs.get("axis", -1) % len(out)
        n, inner = out[axis], math.prod(out[axis + 1 :])
        result = [None] * math.prod(out)
        for row in range(math.prod(out) // n):
            places = [(row // inner * n + i) * inner + row % inner for i in range(n)]
            for place, y in zip(places, f([inputs[0][p] for p in places])):
                result[place] = y
        return result

    return run


OPERATIONS = {"softmax": along(softmax), "log_softmax": along(log_softmax)}
