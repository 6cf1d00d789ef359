#!/usr/bin/env python3
"""A second reading of spec/reduction.md and spec/contraction.md, in another language and without
the code of src/num: computes the digests that src/num/reduce/reduce_test.cc and
src/num/contract/contract_test.cc expect.

usage: second_reading.py      exit 0: both digests stand in the tests; 1: one does not
"""

import hashlib
import math
import pathlib
import struct
import sys

MASK = 2**64 - 1


def f32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def to_f32(x):
    """A Python float (binary64) rounded once to binary32."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def bits64(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def add(a, b):
    return to_f32(a + b)  # innocuous double rounding: 53 >= 2 * 24 + 2


def fma(a, b, c):
    product = a * b  # exact in binary64
    s = product + c
    if math.isinf(s) or math.isnan(s):
        return s
    t = s - product
    lost = (product - (s - t)) + (c - t)
    if lost and not bits64(s) & 1:  # to odd, so that the second rounding is the only one
        away = (lost > 0) == (s > 0)
        s = struct.unpack("<d", struct.pack("<Q", bits64(s) + (1 if away else -1)))[0]
    return to_f32(s)


def stored(x):  # formats.5
    if math.isnan(x):
        return 0x7FC00000
    u = struct.unpack("<I", struct.pack("<f", x))[0]
    return u & 0x80000000 if u & 0x7FFFFFFF < 0x00800000 else u


def join(lane):  # reduction.4
    stride = len(lane) // 2
    while stride:
        for j in range(stride):
            lane[j] = add(lane[j], lane[j + stride])
        stride //= 2
    return lane[0]


def row(x, square):  # reduction.1, .2, .3, .5
    total = 0.0
    for g in range(0, len(x), 4096):
        lane = [0.0] * 256
        for i in range(g, min(len(x), g + 4096)):
            lane[i % 256] = fma(x[i], x[i], lane[i % 256]) if square else add(lane[i % 256], x[i])
        total = add(total, join(lane))
    return total


def block_sum(p):  # reduction.6
    return join([add(0.0, v) for v in p] + [0.0] * (128 - len(p)))


def contract(a, b):  # contraction.2, .3, .4
    nb = -(-len(a) // 256)
    per = -(-nb // 8)
    s = []
    for i in range(8):
        total = 0.0
        for block in range(min(nb, i * per), min(nb, (i + 1) * per)):
            c = 0.0
            for k in range(256 * block, min(len(a), 256 * block + 256)):
                c = fma(a[k], b[k], c)
            total = add(total, c)
        s.append(total)
    return add(add(add(s[0], s[1]), add(s[2], s[3])), add(add(s[4], s[5]), add(s[6], s[7])))


def adversarial(kind, n, seed):
    """src/num/testing/adversarial.h: inputs are no part of the specification, so they are made
    alike."""
    state = seed

    def draw():
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        return z ^ z >> 31

    def make(low, high):
        r = draw()
        return r & 0x807FFFFF | (127 + low + (r >> 32) % (high - low + 1)) << 23

    special = [
        0x7FC00000,
        0xFFC00001,
        0x7F800001,
        0x7F800000,
        0xFF800000,
        0x80000000,
        0x00000000,
        0x00000001,
        0x807FFFFF,
        0x7F7FFFFF,
    ]
    u = []
    for i in range(n):
        if kind == "near_one":
            u.append(make(-2, 1))
        elif kind == "wide":
            u.append(make(-30, 30))
        elif kind == "cancelling":
            u.append((u[i - 1] ^ 0x80000000) ^ (draw() & 7) if i % 2 else make(-30, 30))
        elif kind == "tiny":
            u.append(make(-100, -60) if draw() % 4 else draw() & 0x80FFFFFF)
        else:
            u.append(make(-30, 30) if draw() % 64 else special[draw() % 10])
    return [f32(v) for v in u]


KINDS = ["near_one", "wide", "cancelling", "tiny", "special"]
LENGTHS = [0, 1, 2, 127, 128, 129, 255, 256, 257, 511, 512, 2049, 4095, 4096, 4097, 8192, 10007]
DEPTHS = [
    0,
    1,
    2,
    64,
    255,
    256,
    257,
    511,
    512,
    513,
    2047,
    2048,
    2049,
    2304,
    4096,
    4352,
    5000,
    11008,
]


def main():
    source = pathlib.Path(__file__).resolve().parents[2] / "src" / "num"
    rows = hashlib.sha256()
    for kind in KINDS:
        for n in LENGTHS:
            x = adversarial(kind, n, 1000 + n)
            for value in (row(x, False), row(x, True), block_sum(x[:128])):
                rows.update(struct.pack("<I", stored(value)))
    products = hashlib.sha256()
    for kind in KINDS:
        for k in DEPTHS:
            value = contract(adversarial(kind, k, 3 * k), adversarial(kind, k, 3 * k + 1))
            products.update(struct.pack("<I", stored(value)))
    right = True
    for name, digest, test in (
        ("reduction", rows, "reduce/reduce_test.cc"),
        ("contraction", products, "contract/contract_test.cc"),
    ):
        found = digest.hexdigest() in (source / test).read_text()
        print(
            "%-12s %s %s %s"
            % (name, digest.hexdigest(), "stands in" if found else "is NOT in", test)
        )
        right = right and found
    return 0 if right else 1


sys.exit(main())
