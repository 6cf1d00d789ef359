#!/usr/bin/env python3
"""Prints the coefficients of 2^g for |g| <= 1/2 in src/num/pow/lanes.h, fitted on Chebyshev nodes
in 60 digits (those of log2 are log_coefficients.py's; 2 log2(e) is twice its log2(e)).

usage: pow_coefficients.py [DEGREE]      (needs mpmath)
"""

import sys

from mpmath import chebyfit, log, mp, mpf

mp.dps = 60
degree = int(sys.argv[1]) if len(sys.argv) > 1 else 12
half = mpf("0.5001")


def q(g):  # (2^g - 1) / g
    if abs(g) < mpf("1e-6"):
        return log(mpf(2)) * (
            1 + g * log(mpf(2)) / 2 + (g * log(mpf(2))) ** 2 / 6 + (g * log(mpf(2))) ** 3 / 24
        )
    return (mpf(2) ** g - 1) / g


c = [float(v) for v in chebyfit(q, [-half, half], degree)][::-1]
worst = max(
    abs((1 + g * sum(mpf(v) * g**k for k, v in enumerate(c))) / mpf(2) ** g - 1)
    for g in (half * i / 1000 for i in range(-1000, 1001))
)
print("relative error 2^%.1f" % (log(worst) / log(2)))
for k, v in enumerate(c):
    print("  c%d = %s" % (k + 1, v.hex()))
