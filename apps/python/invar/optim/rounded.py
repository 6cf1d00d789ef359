"""Functions of numbers that are rounded once to binary64, from whole-number and decimal arithmetic:
the same on every machine, which C's cos and pow are not (spec: optim.10)."""

import functools
from decimal import Decimal, localcontext
from fractions import Fraction


@functools.cache
def _pi() -> Decimal:
    """To 100 digits: 16 atan(1/5) - 4 atan(1/239)."""

    def atan(n: int) -> Decimal:
        total, term, k = Decimal(0), Decimal(1) / n, 0
        while abs(term) > Decimal(10) ** -110:
            total += term / (2 * k + 1) * (-1 if k % 2 else 1)
            term /= n * n
            k += 1
        return total

    return 16 * atan(5) - 4 * atan(239)


@functools.lru_cache(1 << 16)
def cos_pi(numerator: int, denominator: int) -> float:
    """cos(pi * numerator / denominator) of whole numbers, rounded once to binary64."""
    turn = Fraction(numerator, denominator) % 2
    turn = 2 - turn if turn > 1 else turn  # the cosine is even
    if turn * 2 == 1:
        return 0.0
    with localcontext() as context:
        context.prec = 110
        square = (_pi() * turn.numerator / turn.denominator) ** 2
        total, term, k = Decimal(0), Decimal(1), 0
        while abs(term) > Decimal(10) ** -90:
            total += term
            term *= -square / ((k + 1) * (k + 2))
            k += 2
        return float(Fraction(round(total * Decimal(10) ** 80), 10**80))


@functools.lru_cache(1 << 16)
def pow_of(base: float, exponent: float) -> float:
    """base ** exponent of a base >= 0, rounded once to binary64. 0 ** 0 is 1."""
    base, exponent = float(base), float(exponent)
    if exponent == 0 or base == 1:
        return 1.0
    if base == 0 or exponent == 1:
        return base if exponent > 0 else float("inf")
    if exponent.is_integer() and abs(exponent) <= 64:
        return float(Fraction(base) ** int(exponent))
    with localcontext() as context:
        context.prec = 100
        found = (Decimal(base).ln() * Decimal(exponent)).exp()
    if found.adjusted() < -330:
        return 0.0
    return float(Fraction(found)) if found.adjusted() < 309 else float("inf")
