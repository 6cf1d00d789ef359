#!/usr/bin/env python3
"""Prints the constants of src/num/sincos/sincos.h: the bits of 2/pi, pi/2, and the Taylor coefficients as binary64
pairs.  usage: sincos_constants.py      (needs mpmath)
"""
from mpmath import mp, mpf, factorial, floor, pi

mp.dps = 200


def pair(v):
    hi = float(v)
    return "{%s, %s}" % (hi.hex(), float(v - mpf(hi)).hex())


words = 10
bits = int(floor(2 / pi * mpf(2) ** (32 * words)))
print("2/pi:", ", ".join("0x%08x" % (bits >> 32 * (words - 1 - i) & 0xFFFFFFFF) for i in range(words)))
print("pi/2:", pair(pi / 2))
for name, first in (("sin", 3), ("cos", 2)):
    for k in range(first, first + 24, 2):
        c = (-1) ** (k // 2) / factorial(k)
        print(name, k, pair(c))
