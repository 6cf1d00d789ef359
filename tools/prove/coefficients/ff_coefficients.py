#!/usr/bin/env python3
"""Prints the float-float constants of the *_ff.h files in src/num: each number as the sum of
binary32 numbers. ln 2, log2 e, pi, the Taylor coefficients 1/k! of e^r and ln(2)^k/k! of 2^r, of (2
atanh(s) - 2 s) / s^3 and sin(r) / r, and the fraction of erf.h.

usage: ff_coefficients.py      (needs mpmath)
"""

import re
from pathlib import Path

from mpmath import factorial, log, mp, mpf, pi
from remez import short, to_f32

mp.dps = 60


def parts(v, n):
    out = []
    for _ in range(n):
        out.append(to_f32(v))
        v -= mpf(out[-1])
    return "{" + ", ".join(short(p) for p in out) + "}"


ln2 = log(mpf(2))
print("ln2", parts(ln2, 3))
print("log2(e)", parts(1 / ln2, 1))
for k in range(2, 13):
    print("1/%d!" % k, parts(1 / factorial(k), 2 if k < 7 else 1))
for k in range(1, 13):
    print("ln2^%d/%d!" % (k, k), parts(ln2**k / factorial(k), 2 if k < 7 else 1))
for name, v in (
    ("log10(2)", ln2 / log(mpf(10))),
    ("log10(e)", 1 / log(mpf(10))),
    ("log(10)", log(mpf(10))),
    ("log2(e)", 1 / ln2),
):
    print(name, parts(v, 3))
print("pi", parts(pi, 4), "1/pi", parts(1 / pi, 1))
for k in range(1, 9):
    print("2/%d" % (2 * k + 1), parts(mpf(2) / (2 * k + 1), 2 if k < 4 else 1))
for k in range(1, 10):
    print(
        "(-1)^%d/%d!" % (k, 2 * k + 1), parts((-1) ** k / factorial(2 * k + 1), 2 if k < 6 else 1)
    )
source = (Path(__file__).resolve().parents[2] / "src/num/erf/erf.h").read_text()
body = source[source.index("F erf(F x)") : source.index("to_float(div")]
for name in "pq":
    found = re.search(r"D %s = horner\(z, ([^)]*)\)" % name, body)[1].split(",")
    print("erf", name, ", ".join(parts(mpf(float.fromhex(c)), 2) for c in reversed(found)))
