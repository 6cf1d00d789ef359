"""Functions of binary64 as compositions of operations that exist in it (spec: functions.42): each
step is rounded once. x is an array of f64; nothing here has a gradient (slopes.py)."""

import math
from typing import Any

from invar import primitives as p
from invar.ops import _types as t

INFINITY, NAN = math.inf, math.nan
LN2, LN10 = 0.6931471805599453, 2.302585092994046
# erfc(x) exp(x^2) (1 + 2 x) for x >= 1, in u = (4 (x - 3) / (x + 3) - 1) / 3, the highest power
# last
SCALED_ERFC = (
    1.217751015063755, -0.10601129557561727, 0.008036606418316012, 0.01943509794132386,
    -0.017203840518313855, 0.008834602509000339, -0.0030422185745162095, 0.0006022571917391477,
    1.4613621250627787e-05, -4.8730846823289696e-05, 9.950105028504883e-06, 2.3581741718833306e-06,
    -1.308448857241801e-06, -6.772703361333696e-08, 1.4498860045493958e-07, -3.0763949424906206e-09,
    -1.6706256694685684e-08, 8.010206464965495e-10, 2.0541483137091355e-09, -8.117152674116291e-11,
    -2.4011592370126294e-10, 3.830545729855475e-12, 1.8427915638601828e-11,
)  # fmt: skip
# erf(x) / x for |x| < 1, in x^2: Taylor's series
ERF = tuple(
    2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(20)
)


def at(value: float, x: Any) -> Any:
    """A number beside x."""
    return t.constant(value, "f64", x)


def plus(x: Any, value: float) -> Any:
    return p.add(x, at(value, x))


def times(x: Any, value: float) -> Any:
    return p.mul(x, at(value, x))


def where(condition: Any, a: Any, b: Any) -> Any:
    """Either may be a number."""
    a = at(a, condition) if t.is_number(a) else a
    return p.where(condition, a, at(b, condition) if t.is_number(b) else b)


def below(x: Any, value: float) -> Any:
    return p.less(x, at(value, x))


def equals(x: Any, value: float) -> Any:
    return p.equal(x, at(value, x))


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """By Horner, the highest power first."""
    y = at(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        y = plus(p.mul(y, x), c)
    return y


def signed(y: Any, x: Any) -> Any:
    """y, or -y where x is negative."""
    return p.where(below(x, 0.0), p.neg(y), y)


def square_parts(x: Any) -> tuple[Any, Any]:
    """x² as a sum of its rounding and the rest of it (Dekker)."""
    return product_parts(x, x)


def product_parts(x: Any, y: Any) -> tuple[Any, Any]:
    def halves(v: Any) -> tuple[Any, Any]:
        c = times(v, 134217729.0)
        high = p.sub(c, p.sub(c, v))
        return high, p.sub(v, high)

    whole = p.mul(x, y)
    (a, b), (c, d) = halves(x), halves(y)
    rest = p.add(p.sub(p.mul(a, c), whole), p.add(p.mul(a, d), p.mul(b, c)))
    return whole, p.add(rest, p.mul(b, d))


def expm1(x: Any) -> Any:
    """By Kahan: (e^x - 1) x / ln(e^x), in which the rounding of e^x cancels."""
    u = p.exp_f64(x)
    less = plus(u, -1.0)
    near = p.div(p.mul(less, x), p.log_f64(u))
    y = p.where(below(p.abs(x), 1.0), near, less)
    return p.where(equals(u, 1.0), x, y)


def log1p(x: Any) -> Any:
    """ln(u) x / (u - 1), u = 1 + x."""
    u = plus(x, 1.0)
    y = p.div(p.mul(p.log_f64(u), x), plus(u, -1.0))
    y = p.where(equals(u, INFINITY), u, y)
    return p.where(equals(u, 1.0), x, y)


def power_of_two(n: Any) -> Any:
    """2^n of whole numbers -1022 ... 1023."""
    whole = p.cast(plus(n, 1023.0), dtype="i64")
    return p.bitcast(p.shift_left(whole, t.constant(52, "i64", whole)), dtype="f64")


def exp2(x: Any) -> Any:
    """e^(f ln 2) 2^n: n is the nearest whole number, f the rest; 2^n in two steps."""
    x = p.max(p.min(x, at(1100.0, x)), at(-1100.0, x))
    n = p.round(x)
    first = p.trunc(times(n, 0.5))
    number = p.isnan(x)
    small = where(number, 0.0, first), where(number, 0.0, p.sub(n, first))
    y = p.exp_f64(times(p.sub(x, n), LN2))
    return p.mul(p.mul(y, power_of_two(small[0])), power_of_two(small[1]))


def log2(x: Any) -> Any:
    """ln(x) / ln 2; of powers of two the whole number."""
    y = times(p.log_f64(x), 1 / LN2)
    near = p.round(y)
    finite = below(p.abs(near), 1022.5)
    exact = p.equal(power_of_two(where(finite, near, 0.0)), x)
    return p.where(p.logical_and(exact, finite), near, y)


def log10(x: Any) -> Any:
    return times(p.log_f64(x), 1 / LN10)


def rsqrt(x: Any) -> Any:
    return p.reciprocal(p.sqrt(x))


def sigmoid(x: Any) -> Any:
    e = p.exp_f64(p.neg(p.abs(x)))
    return p.div(p.where(below(x, 0.0), e, at(1.0, x)), plus(e, 1.0))


def tanh(x: Any) -> Any:
    """-s / (s + 2), s = expm1(-2 |x|)."""
    s = expm1(times(p.abs(x), -2.0))
    return signed(p.neg(p.div(s, plus(s, 2.0))), x)


def sinh(x: Any) -> Any:
    a = p.abs(x)
    s = expm1(a)
    near = times(p.add(s, p.div(s, plus(s, 1.0))), 0.5)
    half = p.exp_f64(times(a, 0.5))
    return signed(p.where(below(a, 30.0), near, p.mul(times(half, 0.5), half)), x)


def cosh(x: Any) -> Any:
    half = p.exp_f64(times(p.abs(x), 0.5))
    e = p.mul(half, half)
    near = times(p.add(e, p.reciprocal(e)), 0.5)
    return p.where(below(p.abs(x), 30.0), near, p.mul(times(half, 0.5), half))


def asinh(x: Any) -> Any:
    a = p.abs(x)
    s = p.mul(a, a)
    near = log1p(p.add(a, p.div(s, plus(p.sqrt(plus(s, 1.0)), 1.0))))
    return signed(p.where(below(a, 1e9), near, plus(p.log_f64(a), LN2)), x)


def acosh(x: Any) -> Any:
    s = plus(x, -1.0)
    near = log1p(p.add(s, p.sqrt(p.mul(s, plus(x, 1.0)))))
    y = p.where(below(x, 1e9), near, plus(p.log_f64(x), LN2))
    return p.where(below(x, 1.0), at(NAN, x), y)


def atanh(x: Any) -> Any:
    a = p.abs(x)
    y = log1p(p.div(p.add(a, a), p.sub(at(1.0, x), a)))
    return signed(times(y, 0.5), x)


def softplus(x: Any) -> Any:
    return p.add(p.max(x, at(0.0, x)), log1p(p.exp_f64(p.neg(p.abs(x)))))


def logsigmoid(x: Any) -> Any:
    return p.neg(softplus(p.neg(x)))


def _erf_near(x: Any) -> Any:
    return p.mul(x, polynomial(p.mul(x, x), ERF))


def _erfc_far(a: Any) -> Any:
    """Of a >= 1: e^(-a²) from the parts of a²."""
    a = p.min(a, at(30.0, a))
    u = times(plus(times(p.div(plus(a, -3.0), plus(a, 3.0)), 4.0), -1.0), 1 / 3)
    high, low = square_parts(a)
    power = p.exp_f64(p.neg(high))
    power = p.sub(power, p.mul(power, low))
    return p.div(p.mul(power, polynomial(u, SCALED_ERFC)), plus(p.add(a, a), 1.0))


def erf(x: Any) -> Any:
    a = p.abs(x)
    far = signed(p.sub(at(1.0, x), _erfc_far(p.max(a, at(1.0, x)))), x)
    return p.where(below(a, 1.0), _erf_near(p.min(p.max(x, at(-1.0, x)), at(1.0, x))), far)


def erfc(x: Any) -> Any:
    a = p.abs(x)
    far = _erfc_far(p.max(a, at(1.0, x)))
    far = p.where(below(x, 0.0), p.sub(at(2.0, x), far), far)
    near = p.sub(at(1.0, x), _erf_near(p.min(p.max(x, at(-1.0, x)), at(1.0, x))))
    return p.where(below(a, 1.0), near, far)


def power(x: Any, y: Any) -> Any:
    """|x|^y = e^(y ln |x|), ln |x| and the product each as a sum of two numbers; then signs and
    special values as of pow (functions.26)."""
    a = p.abs(x)
    high = p.log_f64(a)
    back = p.exp_f64(high)
    low = p.div(p.sub(a, back), back)
    usual = p.logical_and(below(p.abs(high), 710.0), below(p.abs(low), 1e-10))
    whole, rest = product_parts(high, y)
    rest = p.add(rest, p.mul(y, where(usual, low, 0.0)))
    found = p.exp_f64(whole)
    exact = p.logical_and(below(p.abs(whole), 745.0), below(found, INFINITY))
    found = p.where(exact, p.add(found, p.mul(found, rest)), found)
    found = p.where(p.logical_and(equals(a, 1.0), p.equal(y, y)), at(1.0, x), found)
    half = times(y, 0.5)
    integer = p.logical_and(p.equal(p.trunc(y), y), below(p.abs(y), INFINITY))
    odd = p.logical_and(integer, p.logical_not(p.equal(p.trunc(half), half)))
    minus = p.less(p.bitcast(x, dtype="i64"), t.constant(0, "i64", x))
    found = p.where(p.logical_and(minus, odd), p.neg(found), found)
    finite = p.logical_and(below(p.abs(y), INFINITY), below(a, INFINITY))
    none = p.logical_and(p.logical_and(below(x, 0.0), finite), p.logical_not(integer))
    found = p.where(none, at(NAN, x), found)
    one = p.logical_or(equals(y, 0.0), equals(x, 1.0))
    return p.where(one, at(1.0, x), found)
