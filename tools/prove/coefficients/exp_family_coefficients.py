#!/usr/bin/env python3
"""Prints the constants of src/num/exp/exp2.h (A: 2^r = 1 + r A(r), |r| <= 1/2; also of exp10.h) and
of src/num/exp/reduced_sinh_cosh.h (sinh r = r + r z s(z), cosh r = 1 + z c(z), z = r^2, |r| <=
ln2/2; expm1 and the hyperbolic functions).

usage: exp_family_coefficients.py      (needs mpmath; half a minute)
"""

from mpmath import expm1, factorial, log, mpf
from remez import fit_rounded, show, worst

ln2 = log(mpf(2))


def a(r):
    if abs(r) < mpf("1e-4"):
        return sum(ln2**k * r ** (k - 1) / factorial(k) for k in range(1, 16))
    return expm1(r * ln2) / r


def series(z, first):
    return sum(z**k / factorial(2 * k + first) for k in range(16))


half = mpf("0.5001")
powers = list(range(11))
c = fit_rounded(a, powers, -half, half, lambda r: mpf(2) ** r / (abs(r) + mpf("0.1")), exact=6)
print("2^r: 2^%.1f" % worst(a, c, powers, -half, half, lambda r: mpf(2) ** r / abs(r)))
show("a", c)
top = (ln2 / 2 * mpf("1.0002")) ** 2
powers = list(range(5))
c = fit_rounded(lambda z: series(z, 3), powers, 0, top, lambda z: 1 / (z + mpf("0.01")))
print("sinh: 2^%.1f" % worst(lambda z: series(z, 3), c, powers, 0, top, lambda z: 1 / z))
show("s", c)
c = fit_rounded(lambda z: series(z, 2), powers, 0, top, lambda z: 1 / (z + mpf("0.01")))
print("cosh: 2^%.1f" % worst(lambda z: series(z, 2), c, powers, 0, top, lambda z: 1 / z))
show("c", c)
for name, v in (("log2(e)", 1 / ln2), ("ln2", ln2), ("log2(10)", log(mpf(10)) / ln2)):
    high = float(v)
    print("%s = %s + %s" % (name, high.hex(), float(v - mpf(high)).hex()))
