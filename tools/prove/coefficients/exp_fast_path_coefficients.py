#!/usr/bin/env python3
"""Prints the constants of src/num/exp/fast_path.h: 2^(i/32) as a binary32 number and what it leaves
relatively, and the coefficients of P, e^r = 1 + r + r^2 P(r), for |r| <= ln2/64 (tables of 32) and
ln2/16 (tables of 8).

usage: exp_fast_path_coefficients.py      (needs mpmath)
"""

from mpmath import exp, factorial, log, mpf
from remez import fit, short, to_f32, value

ln2 = log(mpf(2))


def p(r):
    if abs(r) < mpf("1e-6"):
        return sum(r**k / factorial(k + 2) for k in range(6))
    return (exp(r) - 1 - r) / r**2


def main():
    exact = [mpf(2) ** (mpf(i) / 32) for i in range(32)]
    power = [to_f32(v) for v in exact]
    print("power", ", ".join(short(v) for v in power))
    print("rest", ", ".join(short(to_f32(v / mpf(w) - 1)) for v, w in zip(exact, power)))
    for entries, terms in ((32, 3), (8, 4)):
        top = ln2 / (2 * entries) * mpf("1.0005")
        c = [
            to_f32(v)
            for v in fit(p, list(range(terms)), -top, top, lambda r: 1 / (r * r + top * top / 100))
        ]
        worst = max(
            abs(value(c, range(terms), r) - p(r)) * r * r
            for r in (top * (mpf(i) / 500 - 1) for i in range(1001))
        )
        print(
            "P for %d: 2^%.1f of the power," % (entries, log(worst, 2)),
            ", ".join(short(v) for v in c),
        )
    for name, v in (("ln2", ln2), ("log10(2)", ln2 / log(mpf(10))), ("log(10)", log(mpf(10)))):
        high = to_f32(v)
        print(name, "=", short(high), "+", short(to_f32(v - mpf(high))))


main()
