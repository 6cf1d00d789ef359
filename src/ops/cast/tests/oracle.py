"""The outputs of cast from spec/ops/cast.md, without the C++ code (tests/conformance/oracle.py)."""

import math
from fractions import Fraction

from oracle import FORMATS, INF, NAN, WIDTH, canon, finite, read_bits, rounded, write_bits


def cast_element(b, source, target):
    """One element, bits to bits: cast.1 - 6."""
    x = read_bits(source, b)
    real = source in FORMATS
    if target == source:
        return write_bits(target, x) if x == x else write_bits(target, NAN)
    if target == "bool":
        return int(x != 0)
    if target in FORMATS:
        if not real:
            return write_bits(target, rounded(Fraction(x), target))
        if not finite(x):
            return write_bits(target, x)
        if target == "f64" or (target == "f32" and source in ("bf16", "f16")):
            return write_bits(target, x)
        return write_bits(target, rounded(Fraction(canon(x)), target, x))
    bits = 8 * WIDTH[target]
    low, high = (
        (0, (1 << bits) - 1) if target[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    )
    if real:
        x = (
            0
            if x != x
            else high
            if x == INF
            else low
            if x == -INF
            else min(max(math.trunc(x), low), high)
        )
    return x & ((1 << bits) - 1)


def cast(tensors, outputs, attrs):
    (source, _, bits), (target, _) = tensors[0], outputs[0]
    return [[cast_element(b, source, target) for b in bits]]


ON_BITS = {"cast": cast}
