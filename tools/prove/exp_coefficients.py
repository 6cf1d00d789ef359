#!/usr/bin/env python3
"""Prints the constants of src/num/exp/exp.h.

exp(r) = 1 + r + r^2/2 + r^3 q(r) for |r| <= ln2/2: q is fitted on Chebyshev nodes in 60 digits and its coefficients are
rounded to binary64. The fit only has to be good; that the sequence is correctly rounded is shown by `invar_prove exp`.

usage: exp_coefficients.py [DEGREE]      (needs mpmath)
"""
import sys

from mpmath import mp, mpf, chebyfit, exp, factorial, log

mp.dps = 60
degree = int(sys.argv[1]) if len(sys.argv) > 1 else 12
half = log(mpf(2)) / 2 * mpf("1.0001")


def q(r):
    if abs(r) < mpf("1e-3"):
        return sum(r**k / factorial(k + 3) for k in range(20))
    return (exp(r) - 1 - r - r * r / 2) / r**3


coefficients = [float(c) for c in chebyfit(q, [-half, half], degree - 2)][::-1]
worst = max(
    abs(1 + r + r * r / 2 + r**3 * sum(mpf(c) * r**k for k, c in enumerate(coefficients)) - exp(r)) / exp(r)
    for r in (half * i / 1000 for i in range(-1000, 1001)))
print("relative error of the polynomial: 2^%.1f" % (log(worst) / log(2)))
for k, c in enumerate(coefficients):
    print("c%d = %s" % (k + 3, c.hex()))
ln2 = log(mpf(2))
high = float(ln2)
print("log2(e) = %s\nln2 high = %s\nln2 low = %s" % (float(1 / ln2).hex(), high.hex(), float(ln2 - mpf(high)).hex()))
