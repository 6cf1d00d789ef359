#!/usr/bin/env python3
"""Prints src/num/sincos/inverse_pi.h: 2^e / pi mod 2 for the exponents e of binary32 integers from
2^28 on, in three parts.

usage: inverse_pi_table.py > src/num/sincos/inverse_pi.h      (needs mpmath)
"""

from mpmath import floor, mp, mpf, nint, pi

mp.dps = 150
FIRST, LAST = 155, 254  # exponent fields

parts = [[], [], []]
for field in range(FIRST, LAST + 1):
    w = mpf(2) ** (field - 150) / pi
    w -= 2 * floor((w + 1) / 2)  # [-1, 1)
    w0 = nint(w * 2**29) / mpf(2) ** 29
    w1 = float(w - w0)
    parts[0].append(float(w0))
    parts[1].append(w1)
    parts[2].append(float(w - w0 - mpf(w1)))

print(
    """// 2^e / pi mod 2 for e = 5 ... 104, where x = m 2^e with an integer m of 24 bits: a multiple of
// 2^-29 (so that its product with m is exact), the rest, and the rest of that. Written by
// tools/prove/coefficients/inverse_pi_table.py.
#pragma once

namespace invar::num {

// clang-format off
INVAR_TABLE double kInversePi[3][%d] = {"""
    % len(parts[0])
)
for part in parts:
    rows = [
        ", ".join(v.hex().replace("0000000000000p", "p") for v in part[i : i + 4])
        for i in range(0, len(part), 4)
    ]
    print("    {" + ",\n     ".join(rows) + "},")
print("""};
// clang-format on

}  // namespace invar::num""")
