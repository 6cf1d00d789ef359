#!/usr/bin/env python3
"""Prints the constants of src/num/sincos, src/num/tan, src/num/sinpi and src/num/inverse_trig:
polynomials in z = x^2, lowest power first, in binary64. They are fitted on Chebyshev nodes in 60
digits; after each coefficient is rounded the rest is fitted again, so that it makes up for the
rounding. The fit only has to be good; that the sequences are correctly rounded is shown by
invar_prove.

usage: trigonometric_coefficients.py [sin|tan|sinpi|asin|atan|atan2 ...]      (needs mpmath)
"""

import sys

from mpmath import asin, atan, cos, log, lu_solve, matrix, mp, mpf, pi, sin, sqrt, tan

mp.dps = 60


def nodes(end, n):
    return [end * (1 - cos(pi * (2 * i + 1) / (2 * n))) / 2 for i in range(n)]


def value(c, z):
    y = mpf(0)
    for a in reversed(c):
        y = y * z + a
    return y


def remaining(f, end, n, fixed):
    """Coefficients len(fixed) ... n-1 of f on [0, end], those before being given: least squares of
    the error of z f(z)."""
    k = len(fixed)
    z = nodes(end, 3 * n)
    a = matrix([[v ** (k + j + 1) for j in range(n - k)] for v in z])
    b = matrix([v * (f(v) - value(fixed, v)) for v in z])
    return lu_solve(a.T * a, a.T * b)


def polynomial(f, end, n, first=()):
    c = [mpf(v) for v in first]
    while len(c) < n:
        c.append(mpf(float(remaining(f, end, n, c)[0])))
    return c


def rational(f, end, n, d):
    """N of degree n and D of degree d with N(0) = D(0) = 1 and f = N / D; the numerator is fitted
    again after D is rounded."""
    z = nodes(end, n + d)
    a = matrix(
        [[v**j for j in range(1, n + 1)] + [-f(v) * v**j for j in range(1, d + 1)] for v in z]
    )
    u = lu_solve(a, matrix([f(v) - 1 for v in z]))
    den = [mpf(1)] + [mpf(float(u[n + j])) for j in range(d)]
    num = polynomial(lambda v: f(v) * value(den, v), end, n + 1, (1,))
    return num, den


def show(name, c):
    print("%s: %s" % (name, ", ".join(float(v).hex().replace("0000000000000p", "p") for v in c)))


def error(near, exact, end):
    """The largest relative error over x in (0, end], in bits."""
    worst = max(abs(near(x) / exact(x) - 1) for x in (end * i / 4000 for i in range(1, 4001)))
    return "relative error 2^%.1f" % (log(worst) / log(2))


def parts(name, v, n=2):
    rest, out = v, []
    for _ in range(n):
        out.append(float(rest))
        rest -= mpf(out[-1])
    print("%s = %s" % (name, " + ".join(h.hex() for h in out)))


def reduced(f, fill, eps=mpf("1e-12")):
    """(f(x) / x - 1) / z as a function of z = x^2, with its limit where the difference would
    cancel."""
    return lambda z: fill(z) if z < eps else (f(sqrt(z)) / sqrt(z) - 1) / z


def do_sin():  # sin(r) = r + r z P(z), |r| <= pi/2
    end = pi / 2 * mpf("1.0001")
    p = polynomial(reduced(sin, lambda z: -mpf(1) / 6 + z / 120), end**2, 8)
    show("P", p)
    print(error(lambda r: r + r**3 * value(p, r * r), sin, end))
    parts("pi", pi)
    parts("1/pi", 1 / pi, 1)


def do_tan():  # tan(r) = r N(z) / D(z), |r| <= pi/4
    end = pi / 4 * mpf("1.0001")
    n, d = rational(
        lambda z: tan(sqrt(z)) / sqrt(z) if z > mpf("1e-30") else 1 + z / 3, end**2, 3, 4
    )
    show("N", n)
    show("D", d)
    print(error(lambda r: r * value(n, r * r) / value(d, r * r), tan, end))
    parts("pi/2", pi / 2)
    parts("2/pi", 2 / pi, 1)


def do_sinpi():  # sin(pi r) = r pi + r (pi_low + z P(z)), |r| <= 1/2
    def f(z):
        return (
            (sin(pi * sqrt(z)) / sqrt(z) - pi) / z
            if z > mpf("1e-12")
            else -(pi**3) / 6 + z * pi**5 / 120
        )

    p = polynomial(f, mpf(1) / 4, 8)
    show("P", p)
    print(error(lambda r: r * pi + r**3 * value(p, r * r), lambda r: sin(pi * r), mpf(1) / 2))
    parts("pi", pi)


def do_asin():  # asin(s) = s + s z P(z), s <= 1/2
    p = polynomial(reduced(asin, lambda z: mpf(1) / 6 + z * 3 / 40), mpf(1) / 4, 13)
    show("P", p)
    print(error(lambda s: s + s**3 * value(p, s * s), asin, mpf(1) / 2))
    parts("pi/2", pi / 2)


def do_atan():  # atan(t) = t + t z P(z), |t| <= tan(pi/8)
    end = tan(pi / 8) * mpf("1.001")
    p = polynomial(reduced(atan, lambda z: -mpf(1) / 3 + z / 5), end**2, 11)
    show("P", p)
    print(error(lambda t: t + t**3 * value(p, t * t), atan, end))
    parts("pi/4", pi / 4)
    parts("tan(pi/8)", tan(pi / 8), 1)


def do_atan2():  # the table and the first coefficients of src/num/inverse_trig/atan2.h, as pairs
    for j in range(33):
        v = atan(mpf(j) / 32)
        print("{%s, %s}," % (float(v).hex(), float(v - mpf(float(v))).hex()))
    for k in (3, 5, 7):
        parts("1/%d" % k, 1 / mpf(k))
    parts("pi/4", pi / 4)


for name in sys.argv[1:] or ["sin", "tan", "sinpi", "asin", "atan", "atan2"]:
    print("--", name)
    {
        "sin": do_sin,
        "tan": do_tan,
        "sinpi": do_sinpi,
        "asin": do_asin,
        "atan": do_atan,
        "atan2": do_atan2,
    }[name]()
