"""Minimax polynomials by Remez's exchange in many digits, for the scripts that print constants of
src/num.

fit(f, powers, low, high, weight) gives coefficients c such that sum c_k x^powers[k] is nearest to f
on [low, high] with the error divided by weight(x); fit_rounded() rounds them to binary64 one by
one, lowest power first, and fits the others
again, so that what one rounding loses the rest takes up.  The fit only has to be good: that a
                                                           sequence is correctly
rounded is shown by `invar_prove`.
"""

import re
import struct

from mpmath import cos, log, lu_solve, matrix, mp, mpf, pi, qr_solve

mp.dps = 60


def value(coefficients, powers, x):
    return sum(c * x**p for c, p in zip(coefficients, powers))


def extrema(error, low, high, count):
    """Points of alternating sign, each the largest |error| between two changes of sign, on a grid
    that is denser at the ends."""
    n = 24 * count
    grid = [(low + high) / 2 - (high - low) / 2 * cos(pi * i / n) for i in range(n + 1)]
    runs = []
    for x in grid:
        e = error(x)
        if runs and (runs[-1][1] > 0) == (e > 0):
            if abs(e) > abs(runs[-1][1]):
                runs[-1] = (x, e)
        else:
            runs.append((x, e))
    while len(runs) > count:  # the smaller end goes
        runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
    return runs


def fit(f, powers, low, high, weight=lambda x: mpf(1), rounds=6):
    low, high, n = mpf(low), mpf(high), len(powers)
    points = [(low + high) / 2 - (high - low) / 2 * cos(pi * i / n) for i in range(n + 1)]
    if 0 in points and weight(mpf(0)) == 0:
        points[points.index(0)] = (high - low) / (64 * n)
    for _ in range(rounds):
        a = matrix(n + 1, n + 1)
        for i, x in enumerate(points):
            for k, p in enumerate(powers):
                a[i, k] = x**p
            a[i, n] = (-1) ** i * weight(x)
        solution = lu_solve(a, matrix([f(x) for x in points]))
        c = [solution[k] for k in range(n)]
        runs = extrema(lambda x: (value(c, powers, x) - f(x)) / (weight(x) or 1), low, high, n + 1)
        if len(runs) < n + 1:
            break
        points = [x for x, _ in runs]
    return c


def fit_rounded(f, powers, low, high, weight=lambda x: mpf(1), exact=0):
    """As fit(); `exact` of the highest powers are rounded together at the end."""
    fixed = []
    for k in range(len(powers)):
        rest = fit(
            lambda x: f(x) - value(fixed, powers, x),
            powers[k:],
            low,
            high,
            weight,
            6 if k == 0 else 3,
        )
        if len(powers) - k <= exact:
            return fixed + [mpf(float(c)) for c in rest]
        fixed.append(mpf(float(rest[0])))
    return fixed


def worst_rational(f, ps, qs, low, high, n=1000):
    """log2 of the largest relative error on a grid, denser at low."""
    xs = [mpf(low) + (mpf(high) - mpf(low)) * (i + mpf(1) / 2) ** 2 / mpf(n) ** 2 for i in range(n)]
    near = lambda x: value(ps, range(len(ps)), x) / value(qs, range(len(qs)), x)
    return float(log(max(abs(near(x) / f(x) - 1) for x in xs)) / log(2))


def worst(f, coefficients, powers, low, high, weight=lambda x: mpf(1), n=2000):
    """log2 of the largest weighted error on a grid."""
    xs = [mpf(low) + (mpf(high) - mpf(low)) * (i + mpf(1) / 2) / n for i in range(n)]
    return float(
        log(max(abs((value(coefficients, powers, x) - f(x)) / weight(x)) for x in xs)) / log(2)
    )


def fit_rational(f, m, n, low, high, rounds=6):
    """P of degree m over Q of degree n with Q(0) = 1, of small relative error: least squares of (P
    - f Q) / (f Q') on Chebyshev nodes, Q' being the Q of the round before."""
    low, high, count = mpf(low), mpf(high), 4 * (m + n + 2)
    xs = [
        (low + high) / 2 - (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * count))
        for i in range(count)
    ]
    fs, q = [f(x) for x in xs], [mpf(1)] * count
    for _ in range(rounds):
        a = matrix(count, m + n + 1)
        for i, x in enumerate(xs):
            scale = 1 / (fs[i] * q[i])
            for k in range(m + 1):
                a[i, k] = x**k * scale
            for k in range(1, n + 1):
                a[i, m + k] = -fs[i] * x**k * scale
        c = qr_solve(a, matrix([1 / v for v in q]))[0]
        ps, qs = [c[k] for k in range(m + 1)], [mpf(1)] + [c[m + k] for k in range(1, n + 1)]
        q = [value(qs, range(n + 1), x) for x in xs]
    return [mpf(float(v)) for v in ps], [mpf(float(v)) for v in qs]


def show(name, coefficients):
    for k, c in enumerate(coefficients):
        print("%s%d = %s" % (name, k, float(c).hex()))


def to_f32(v):
    return struct.unpack("<f", struct.pack("<f", float(v)))[
        0
    ]  # binary64 first: two roundings do no harm here


def short(x):
    """Hexadecimal without the zeros at the end, as a binary32 literal."""
    return re.sub(r"\.?0*p", "p", float(x).hex()) + "f"
