#!/usr/bin/env python3
"""Prints the tables of src/num/rows/rows.h (src/num/*/*_rows.h): a function and its derivative at evenly spaced places, each as the sum of two
binary32 numbers.

usage: row_tables.py tanh|erf|erfc|sin      (needs mpmath)
"""
import sys

from mpmath import cos, erf, erfc, exp, mp, mpf, pi, sin, sqrt, tanh

from remez import short, to_f32

mp.dps = 50


def bell(c):
    return 2 / sqrt(pi) * exp(-c * c)


def signed(i, n):
    return i if i < n // 2 else i - n


TABLES = {  # name of the table, rows, what it says, place of row i, function, derivative
    "tanh": ("kTanhRows", 512, "tanh at c = i 9/512", lambda i: mpf(9 * i) / 512, tanh, lambda c: 1 - tanh(c) ** 2),
    "erf": ("kErfRows", 512, "erf at c = i/128", lambda i: mpf(i) / 128, erf, bell),
    "erfc": ("kErfcRows", 1024, "erfc(-c) at c = i/128, i = 0 ... 511, -512 ... -1", lambda i: mpf(signed(i, 1024)) / 128, lambda c: erfc(-c), bell),
    "sin": ("kSinRows", 256, "sin at c = i pi/128", lambda i: i * pi / 128, sin, cos),
}


def two(v):
    v = mpf(0) if abs(v) < mpf("1e-40") else v
    high = to_f32(v)
    return [high, to_f32(v - mpf(high))]


def main():
    name, n, says, place, f, slope = TABLES[sys.argv[1]]
    print("// %s and its derivative, each in two parts. Written by tools/prove/row_tables.py %s." % (says, sys.argv[1]))
    if n > 900:
        print("// Long because it is a table.")
    print("#pragma once\n\n#include \"num/inline.h\"\n\nnamespace invar::num {\n\n// clang-format off")
    print("alignas(16) INVAR_TABLE float %s[%d][4] = {" % (name, n))
    rows = ["{%s}" % ",".join(short(v) for v in two(f(place(i))) + two(slope(place(i)))) for i in range(n)]
    for i in range(0, n, 2):
        print("    %s," % ",".join(rows[i:i + 2]))
    print("};\n// clang-format on\n\n}  // namespace invar::num")


main()
