"""The outputs of cumsum and cumprod from spec/ops/scan.md, without the C++ code
(tests/conformance/oracle.py)."""

import math

from oracle import add, canon, mul, read_bits, write_bits


def scan(x, start, join):
    """reduction.12."""
    result, carry = [], start
    for block in range(0, len(x), 256):
        offset = start
        for run in range(block, min(len(x), block + 256), 16):
            prefix = start
            for v in x[run : min(len(x), block + 256, run + 16)]:
                prefix = join(prefix, v)
                result.append(join(carry, join(offset, prefix)))
            offset = join(offset, prefix)
        carry = join(carry, offset)
    return result


def op(start, join, whole):
    def run(tensors, outs, attrs):
        dtype, shape, bits = tensors[0]
        x = [read_bits(dtype, b) for b in bits]
        axis = attrs.get("axis", -1) % len(shape)
        n, inner = shape[axis], math.prod(shape[axis + 1 :])
        result = [None] * len(x)
        for row in range(len(x) // n if n else 0):
            places = [(row // inner * n + i) * inner + row % inner for i in range(n)]
            if attrs.get("reverse"):
                places.reverse()
            if dtype[0] == "f":
                v = scan([x[p] for p in places], start, join)
            else:
                v, all_of = [], int(start)
                for p in places:
                    all_of = whole(all_of, x[p])
                    v.append(all_of)
            if attrs.get("exclusive"):
                v = [start if dtype[0] == "f" else int(start)] + v[:-1]
            for p, y in zip(places, v):
                result[p] = canon(y) if dtype[0] == "f" else y
        return [[write_bits(dtype, y) for y in result]]

    return run


ON_BITS = {"cumsum": op(0.0, add, lambda a, b: a + b), "cumprod": op(1.0, mul, lambda a, b: a * b)}
