#!/usr/bin/env python3
"""An independent reading of spec/sampling.md, and the known answers that both it and the C++ are
tested with.

    python3 tools/sampling_vectors.py > src/sample/vectors.txt

One case per line: do_sample temperature top_k top_p seed position stream | logits | choices ->
token (floats as hexadecimal bits; choices are token:weight, "-" where greedy). Needs numpy.
"""

import random
import sys
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np

getcontext().prec = 60
MASK = 0xFFFFFFFF


def f32(bits):
    return np.uint32(bits).view(np.float32)


def bits(x):
    return int(np.float32(x).view(np.uint32))


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def random_u64(seed, position, stream):  # sampling.3
    c = philox(
        [position & MASK, position >> 32, stream & MASK, stream >> 32], [seed & MASK, seed >> 32]
    )
    return c[1] << 32 | c[0]


def nearest_even(x):  # of a Fraction
    return round(x)  # Python's round is to nearest, ties to even, and exact for Fraction


def exp32(x):
    """exp(x) rounded once to fp32, for -40 < x <= 0: the result is normal."""
    e = Fraction(Decimal(float(x)).exp())
    power = 0
    while e < 1:
        e, power = e * 2, power + 1
    m = nearest_even(e * 2**23)
    return Fraction(m, 2**23) / 2**power


def fixed40(x):  # sampling.1
    return nearest_even(Fraction(x) * 2**40)


def choices(logits, temperature, top_k, top_p):
    live = [i for i, l in enumerate(logits) if not np.isnan(l) and l != -np.inf]
    top = max(logits[i] for i in live)
    order = sorted(live, key=lambda i: (-float(logits[i]), i))  # sampling.7
    if top_k > 0:
        order = order[:top_k]

    def weight(i):  # sampling.6
        if logits[i] == top:
            return 2**40
        with np.errstate(all="ignore"):
            d = np.float32(np.float32(logits[i] - top) / temperature)
        return 0 if d < -40 else fixed40(exp32(d))

    order = [(i, weight(i)) for i in order]
    if top_p < 1:  # sampling.8
        whole, share, total, n = sum(w for _, w in order), fixed40(float(top_p)), 0, 0
        while n == 0 or total * 2**40 < share * whole:
            total, n = total + order[n][1], n + 1
        order = order[:n]
    return sorted((i, w) for i, w in order if w > 0)


def draw(chosen, u):  # sampling.9
    r = u * sum(w for _, w in chosen) >> 64
    for i, w in chosen:
        r -= w
        if r < 0:
            return i
    raise AssertionError


def case(do_sample, temperature, top_k, top_p, seed, position, stream, logits):
    logits = [np.float32(x) for x in logits]
    t, p = np.float32(temperature), np.float32(top_p)
    if do_sample:
        chosen = choices(logits, t, top_k, p)
        token = draw(chosen, random_u64(seed, position, stream))
        shown = " ".join(f"{i}:{w}" for i, w in chosen)
    else:
        live = [i for i, l in enumerate(logits) if not np.isnan(l) and l != -np.inf]
        token, shown = min(live, key=lambda i: (-float(logits[i]), i)), "-"
    return (
        f"{int(do_sample)} {bits(t):08x} {top_k} {bits(p):08x} {seed} {position} {stream} | "
        + " ".join(f"{bits(l):08x}" for l in logits)
        + f" | {shown} -> {token}"
    )


def cases():
    rng = random.Random(20)
    inf, nan = np.inf, np.nan
    spec = [1.5, -0.25, 1.5, 0.0, -np.inf, 3.0]  # the worked example of the specification
    yield case(True, 0.8, 4, 0.9, 42, 0, 0, spec)
    yield case(False, 1, 0, 1, 0, 0, 0, spec)
    for special in (
        [0.0, -0.0],
        [-0.0, 0.0],
        [nan, 1, nan, 2],
        [-inf, -inf, -5],
        [inf, 1, inf, -inf, nan],
        [-3e38, 3e38, 3.4e38],
        [7],
        [1e-38, 0, 2e-38],
        [5, 5, 5, 5, 5, 5, 5],
    ):
        yield case(False, 1, 0, 1, 0, 0, 0, special)
        for t, k, p in (
            (1, 0, 1),
            (0.5, 2, 1),
            (1.2e-38, 0, 0.5),
            (3e38, 3, 0.3),
            (1, 1, 1e-30),
            (2, 100, 0.999),
        ):
            yield case(True, t, k, p, 2**64 - 1, 2**63 + 5, 3, special)
    for _ in range(150):
        n = rng.choice([2, 3, 5, 17, 40])
        scale = rng.choice([0.01, 1, 5, 30])
        logits = [rng.gauss(0, scale) for _ in range(n)]
        for _ in range(n // 3):  # ties
            logits[rng.randrange(n)] = logits[rng.randrange(n)]
        yield case(
            rng.random() < 0.95,
            rng.choice([1, 0.8, 0.1, 1.7, 10]),
            rng.choice([0, 0, 1, 2, n // 2 + 1, n, 50]),
            rng.choice([1, 1, 0.95, 0.9, 0.5, 0.01]),
            rng.getrandbits(64),
            rng.choice([0, 1, rng.getrandbits(64)]),
            rng.choice([0, 0, 1, rng.getrandbits(64)]),
            logits,
        )


if __name__ == "__main__":
    sys.stdout.write("".join(line + "\n" for line in cases()))
