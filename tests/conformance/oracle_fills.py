"""The inputs of vectors.txt as oracle.py makes them: the fills of src/conformance/fill.cc that
vectors use."""

import math
import re

from oracle_formats import write_bits

MASK = (1 << 64) - 1


def random_bits(seed, operand, i, draw=0):
    z = (
        seed * 0x9E3779B97F4A7C15
        + operand * 0xD1342543DE82EF95
        + (i * 4 + draw + 1) * 0xBF58476D1CE4E5B9
    ) & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def scattered(r, low, high):
    return (r >> 31 & 0x80000000) | (127 + low + (r >> 32) % (high - low + 1)) << 23 | r & 0x7FFFFF


def fill_bits(name, seed, operand, i):
    r = random_bits(seed, operand, i)
    if name == "normal":
        return write_bits("f32", (sum(r >> 16 * j & 0xFFFF for j in range(4)) - 2 * 0xFFFF) / 65536)
    if name == "wide":
        return scattered(r, -40, 40)
    if name == "spread":
        return scattered(r, -120, 120)
    if name == "one":
        return 0x3F800000
    if name == "steps":
        return write_bits("f32", -float((i // 128 + 1) % 2 * (92 + i // 128 * 3) + r % 4))
    if name == "minute":
        return scattered(r, -127, -120)
    if name == "huge":
        return scattered(r, 50, 64)
    if name == "tiny":
        return scattered(r, -80, -60)
    if name == "score":
        return write_bits("f32", (r % 40001 - 20000) / 128)
    if name == "cancel":
        first = scattered(random_bits(seed, operand, i // 2), -12, 12)
        return (first ^ 0x80000000) + r % 3 & 0xFFFFFFFF if i % 2 else first
    raise ValueError(f"no fill {name} here")


TENSOR = re.compile(r"@?(\w+)\[([\d,*+]*)\](?::([\w()]+)|=([0-9a-f,]*))?$")


def tensor(text, seed, operand):
    dtype, dims, fill, bits = TENSOR.match(text).groups()
    shape = [
        sum(math.prod(int(f) for f in t.split("*")) for t in d.split("+"))
        for d in dims.split(",")
        if d
    ]
    if bits is not None:
        return dtype, shape, [int(b, 16) for b in bits.split(",") if b]
    if fill is None:
        return dtype, shape, None
    if fill.startswith("below("):
        return (
            dtype,
            shape,
            [random_bits(seed, operand, i) % int(fill[6:-1]) for i in range(math.prod(shape))],
        )
    narrow = {"f32": 0, "bf16": 16}[dtype]
    return (
        dtype,
        shape,
        [fill_bits(fill, seed, operand, i) >> narrow for i in range(math.prod(shape))],
    )
