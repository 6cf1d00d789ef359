#!/usr/bin/env python3
"""Prints the constants of src/num/root/cbrt.h: the offset K for which e = 1 - d z^3 is least over
all d (the error repeats after a factor of 8), and (1 - e)^(-1/3) fitted over that range on
Chebyshev nodes in 60 digits.

usage: cbrt_coefficients.py [DEGREE]      (needs mpmath)
"""

import struct
import sys

from mpmath import chebyfit, log, mp, mpf

mp.dps = 60
degree = int(sys.argv[1]) if len(sys.argv) > 1 else 4


def upper(d):
    return struct.unpack("<q", struct.pack("<d", d))[0] >> 32


def residual(d, c):
    z = struct.unpack("<d", struct.pack("<q", (c - upper(d) // 3) << 32))[0]
    return 1 - d * z**3


points = [1 + 7 * i / 2000 for i in range(2001)]
lo, hi = 0x54000000, 0x56000000
# The residual falls everywhere as the offset grows: bisect until its two ends are equal and
# opposite.
while hi - lo > 1:
    mid = (lo + hi) // 2
    r = [residual(d, mid) for d in points]
    lo, hi = (mid, hi) if max(r) + min(r) > 0 else (lo, mid)
r = [residual(d, lo) for d in points]
bound = mpf(max(max(r), -min(r))) * mpf("1.001")
print("offset 0x%x: |e| < %.4f" % (lo, bound))
print("constant 2^52 * 4/3 + offset = %s" % float(mpf(2) ** 54 / 3 + lo).hex())


def f(e):
    return (1 - e) ** (mpf(-1) / 3)


c = [float(v) for v in chebyfit(f, [-bound, bound], degree + 1)][::-1]
worst = max(
    abs(sum(v * e**k for k, v in enumerate(c)) / f(e) - 1)
    for e in (bound * i / 500 for i in range(-500, 501))
)
print("relative error 2^%.1f" % (log(worst) / log(2)))
for k, v in enumerate(c):
    print("  c%d = %s" % (k, v.hex()))
