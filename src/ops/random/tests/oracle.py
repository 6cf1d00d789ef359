"""The outputs of random_bits, random_uniform and random_dropout from spec/ops/random.md, without
the C++ code (tests/conformance/oracle.py)."""

import math

from oracle import add, canon, div, mul, read_bits, write_bits

M0, M1, W0, W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85
MASK = 2**32 - 1


def philox(counter, key):
    """sampling.2."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = M0 * c[0], M1 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & MASK, (p >> 32) ^ c[3] ^ k[1], p & MASK]
        k = [(k[0] + W0) & MASK, (k[1] + W1) & MASK]
    return c


def words(seed, offset, n):
    """random.2."""
    for i in range(n):
        e = (offset + i) % 2**64
        yield philox([e // 4 & MASK, e // 4 >> 32, 0, 2**31], [seed & MASK, seed >> 32])[e % 4]


def count(outputs):
    return math.prod(outputs[0][1])


def random_bits(tensors, outputs, attrs):
    return [list(words(tensors[0][2][0], tensors[1][2][0], count(outputs)))]


def random_uniform(tensors, outputs, attrs):
    drawn = words(tensors[0][2][0], tensors[1][2][0], count(outputs))
    return [[write_bits("f32", (w >> 8) / 2**24) for w in drawn]]


def random_dropout(tensors, outputs, attrs):
    ratio = attrs["ratio"]
    scale = div(1.0, add(1.0, -ratio))
    result = []
    for bits, w in zip(tensors[0][2], words(tensors[1][2][0], tensors[2][2][0], count(outputs))):
        kept = (w >> 8) / 2**24 >= ratio
        result.append(write_bits("f32", canon(mul(read_bits("f32", bits), scale)) if kept else 0.0))
    return [result]


ON_BITS = {
    "random_bits": random_bits,
    "random_uniform": random_uniform,
    "random_dropout": random_dropout,
}
