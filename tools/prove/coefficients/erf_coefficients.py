#!/usr/bin/env python3
"""Prints the constants of src/num/erf/erf.h: erf x = x P(z)/Q(z), z = x^2, |x| < 3.9375, and erfc x
= e^-z N(x)/M(x),
0 <= x < 10.0625.  All coefficients come out positive, so no sum cancels.

usage: erf_coefficients.py      (needs mpmath; a minute)
"""

from mpmath import erf, erfc, exp, mp, mpf, pi, sqrt
from remez import fit_rational, show, worst_rational

mp.dps = 80


def f(z):
    return erf(sqrt(z)) / sqrt(z) if z > mpf("1e-20") else 2 / sqrt(pi)


def g(x):
    return exp(x * x) * erfc(x)


for what, h, m, n, top, names in (
    ("erf", f, 9, 10, "15.51", "pq"),
    ("erfc", g, 9, 10, "10.0626", "nm"),
):
    ps, qs = fit_rational(h, m, n, 0, top)
    print(
        "%s: 2^%.1f, all positive: %s" % (what, worst_rational(h, ps, qs, 0, top), min(ps + qs) > 0)
    )
    show(names[0], ps)
    show(names[1], qs)
