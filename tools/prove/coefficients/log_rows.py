#!/usr/bin/env python3
"""Prints the rows and the polynomial of src/num/log/rows.h.

Row i is for 1 + r whose bits lie in interval i of 128 between those of sqrt(1/2) and sqrt(2): a
number c of at most 29 bits near 1 / (1 + r), so that d = (1 + r) c - 1 is exact for binary32, and
-log(c) in binary64. Among the numbers near the middle's reciprocal c is the one whose logarithm
lies nearest to a binary64 number. The interval with 1 has c = 1, so that results near 0 keep their
relative accuracy.

usage: log_rows.py      (needs mpmath)
"""

import struct

from mpmath import chebyfit, log, mp, mpf, nint, nstr

mp.dps = 50
ROWS, FIRST, STEP, BITS, TRIED = 128, 0x3FE6A09E, 1 << 13, 28, 1500


def boundary(i):
    return mpf(struct.unpack("<d", struct.pack("<Q", (FIRST + i * STEP) << 32))[0])


def row(low, high):
    if low <= 1 < high:
        return mpf(1), 0.0
    middle = int(nint(2 / (low + high) * 2**BITS))
    tried = (mpf(middle + k) / 2**BITS for k in range(-TRIED, TRIED + 1))
    return min(((c, float(-log(c))) for c in tried), key=lambda r: abs(r[1] + log(r[0])))


def polynomial(d):  # (log(1 + d) - d) / d^2
    if abs(d) < mpf("1e-6"):
        return sum((-1) ** (k + 1) * d**k / (k + 2) for k in range(9))
    return (log(1 + d) - d) / d**2


def hexadecimal(v):
    digits, exponent = float(v).hex().split("p")
    return "%sp%s" % (digits.rstrip("0").rstrip(".") if "." in digits else digits, exponent)


bounds = [(boundary(i), boundary(i + 1)) for i in range(ROWS)]
rows = [row(low, high) for low, high in bounds]
ends = [end * c - 1 for pair, (c, _) in zip(bounds, rows) for end in pair]
low, high = min(ends), max(ends)
worst = max(abs(value + log(c)) for c, value in rows)
print(
    "d from %s to %s; logarithms within 2^%s"
    % (nstr(low, 6), nstr(high, 6), nstr(log(worst, 2), 3))
)
c = [float(v) for v in chebyfit(polynomial, [low * mpf("1.0001"), high * mpf("1.0001")], 6)][::-1]
points = [low + (high - low) * k / 1000 for k in range(1001)]
error = max(
    abs((x + x * x * sum(v * x**k for k, v in enumerate(c)) - log(1 + x)) / log(1 + x))
    for x in points
    if x
)
print("polynomial: relative error 2^%s" % nstr(log(error, 2), 4))
print("    " + ", ".join(hexadecimal(v) for v in c))
for i in range(0, ROWS, 2):
    print(
        "    " + ", ".join("{%s, %s}" % tuple(map(hexadecimal, r)) for r in rows[i : i + 2]) + ","
    )
