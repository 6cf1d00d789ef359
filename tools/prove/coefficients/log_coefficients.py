#!/usr/bin/env python3
"""Prints the constants of src/num/log/core.h and of the functions that stand on it
(src/num/inverse_hyperbolic too).

log(1 + r) = 2 atanh(s) = r - s (r - z P(z)), s = r / (2 + r), z = s^2, for 1 + r between sqrt(1/2)
and sqrt(2): P(z) = (atanh(s) - s) * 2 / s^3 is fitted on Chebyshev nodes in 60 digits and rounded
to binary64; times log2(e) or log10(e) for the other bases. The fit only has to be good;
`invar_prove log` shows that the sequence is correctly rounded.

usage: log_coefficients.py [TERMS]      (needs mpmath)
"""

import sys

from mpmath import atanh, chebyfit, log, mp, mpf, sqrt

mp.dps = 60
terms = int(sys.argv[1]) if len(sys.argv) > 1 else 7
s_max = (sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)


def p(z):
    if z < mpf("1e-4"):
        return sum(2 * z**k / (2 * k + 3) for k in range(14))
    s = sqrt(z)
    return 2 * (atanh(s) - s) / (s * z)


def show(name, scale, terms=terms, limit=s_max):
    c = [float(v * scale) for v in chebyfit(p, [mpf(0), limit**2 * mpf("1.0001")], terms)][::-1]
    worst = max(
        abs(
            2 * s
            + s**3 * sum(mpf(v) / scale * (s * s) ** k for k, v in enumerate(c))
            - 2 * atanh(s)
        )
        / (2 * atanh(s))
        for s in (limit * i / 1000 for i in range(1, 1001))
    )
    print("%s: relative error 2^%.1f" % (name, log(worst) / log(2)))
    for k, v in enumerate(c):
        print("  p%d = %s" % (k, v.hex()))


def pair(name, value):
    high = float(value)
    print("%s = %s + %s" % (name, high.hex(), float(value - mpf(high)).hex()))


ln2 = log(mpf(2))
show("log", mpf(1))
pair("  ln2", ln2)
show("log2", 1 / ln2)
pair("  log2(e)", 1 / ln2)
show("log10", 1 / log(mpf(10)))
pair("  log10(2)", ln2 / log(mpf(10)))
pair("  log10(e)", 1 / log(mpf(10)))
show("atanh, |s| < 1/5", mpf(1) / 2, terms + 1, mpf(1) / 5)
