"""The outputs of fixed-point sums from spec/ops/fixed.md, without the C++ code
(tests/conformance/oracle.py)."""

import math
from fractions import Fraction

from oracle import NAN, finite, read_bits, rounded, write_bits

LIMIT = 1 << 14
OVERFLOW = 1 << 30


def units(tensor):
    dtype, shape, bits = tensor
    n = math.prod(shape[1:])
    x = [read_bits(dtype, b) for b in bits]
    return n, [x[u * n : (u + 1) * n] for u in range(shape[0])]


def counts(v):
    return finite(v) and abs(v) < LIMIT


def fixed_sum(tensors, outs, attrs):
    n, x = units(tensors[0])
    total = [sum(round(Fraction(u[i]) * 2**49) for u in x if counts(u[i])) for i in range(n)]
    return [[write_bits("i64", t) for t in total]]


def fixed_magnitude(tensors, outs, attrs):
    n, x = units(tensors[0])
    total = 0
    for u in x:
        if not all(counts(v) for v in u):
            total += OVERFLOW
        elif u:
            total += math.ceil(max(abs(Fraction(v)) for v in u) * 2**16)
    return [[write_bits("i64", total)]]


def fixed_value(tensors, outs, attrs):
    magnitude = read_bits("i64", tensors[1][2][0])
    sums = [read_bits("i64", b) for b in tensors[0][2]]
    valid = 0 <= magnitude < OVERFLOW
    values = [rounded(Fraction(s, 2**49)) if valid else NAN for s in sums]
    return [[write_bits("f32", v) for v in values]]


ON_BITS = {
    "fixed_sum": fixed_sum,
    "fixed_magnitude": fixed_magnitude,
    "fixed_value": fixed_value,
}
