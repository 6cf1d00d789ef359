"""The outputs of quantize_linear and dequantize_linear from spec/ops/quantize.md, without the C++
code (tests/conformance/oracle.py)."""

import math
from fractions import Fraction

from oracle import INF, canon, div, mul, read_bits, rounded, write_bits


def scale_index(shape, scales, attrs, i):
    """quantize.2, of element i."""
    block = attrs.get("block", 0)
    if not block and math.prod(scales) == 1:
        return 0
    place = []
    for size in reversed(shape):
        place.insert(0, i % size)
        i //= size
    axis = attrs.get("axis", 1) % len(shape)
    if not block:
        return place[axis]
    place[axis] //= block
    at = 0
    for size, p in zip(scales, place):
        at = at * size + p
    return at


def each(f):
    def run(tensors, outputs, attrs):
        (source, shape, bits), (_, scales, s), target = tensors[0], tensors[1], outputs[0][0]
        zeros = (
            [read_bits(tensors[2][0], z) for z in tensors[2][2]]
            if len(tensors) > 2
            else [0] * len(s)
        )
        at = [scale_index(shape, scales, attrs, i) for i in range(len(bits))]
        return [
            [
                write_bits(
                    target, f(read_bits(source, b), read_bits("f32", s[j]), zeros[j], target)
                )
                for b, j in zip(bits, at)
            ]
        ]

    return run


def quantize(x, s, z, target):
    d = div(x, s)
    low = -128 if target == "i8" else 0
    if d != d:
        return z
    if abs(d) == INF:
        return low + 255 if d > 0 else low
    return min(max(round(Fraction(d)) + z, low), low + 255)


def dequantize(q, s, z, target):
    return canon(mul(rounded(Fraction(q - z)), s))


ON_BITS = {"quantize_linear": each(quantize), "dequantize_linear": each(dequantize)}
