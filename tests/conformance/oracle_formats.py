"""Element types as oracle.py reads and writes their bits: a float is a Python float that happens to
be one of its type."""

import math
from fractions import Fraction

NAN, INF = math.nan, math.inf
WIDTH = {
    "f32": 4,
    "bf16": 2,
    "f16": 2,
    "f64": 8,
    "i64": 8,
    "i32": 4,
    "i8": 1,
    "u8": 1,
    "bool": 1,
    "i16": 2,
    "u16": 2,
    "u32": 4,
    "u64": 8,
}
FORMATS = {
    "f32": (24, -126, 127),
    "bf16": (8, -126, 127),
    "f16": (11, -14, 15),
    "f64": (53, -1022, 1023),
}


def read_bits(dtype, b):
    if dtype == "bool":
        return int(b != 0)
    if dtype not in FORMATS:
        bits = 8 * WIDTH[dtype]
        return b - (1 << bits) if dtype[0] == "i" and b >> (bits - 1) else b
    precision, low, high = FORMATS[dtype]
    fraction, exponent_bits = precision - 1, 8 * WIDTH[dtype] - precision
    sign, e, m = (
        b >> (8 * WIDTH[dtype] - 1),
        b >> fraction & ((1 << exponent_bits) - 1),
        b & ((1 << fraction) - 1),
    )
    if e == (1 << exponent_bits) - 1:
        return NAN if m else -INF if sign else INF
    value = (
        math.ldexp(m, low - fraction)
        if e == 0
        else math.ldexp(m | 1 << fraction, e - 1 + low - fraction)
    )
    return -value if sign else value


def write_bits(dtype, x):
    if dtype not in FORMATS:
        return x & ((1 << 8 * WIDTH[dtype]) - 1)
    precision, low, high = FORMATS[dtype]
    fraction = precision - 1
    top = ((1 << 8 * WIDTH[dtype] - 1) - 1) >> fraction << fraction
    if x != x:
        return top | 1 << (fraction - 1)
    sign = 1 << (8 * WIDTH[dtype] - 1) if math.copysign(1, x) < 0 else 0
    x = abs(x)
    if x == INF:
        return sign | top
    if x < 2.0**low:
        return sign | int(Fraction(x) / Fraction(2) ** (low - fraction))
    e = math.frexp(x)[1] - 1
    return (
        sign
        | (e - low) + 1 << fraction
        | int(Fraction(x) / Fraction(2) ** (e - fraction)) - (1 << fraction)
    )
