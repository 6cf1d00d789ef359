"""The outputs of the elementwise operations from spec/ops/elementwise.md, without the C++ code
(tests/conformance/oracle.py)."""

import math
from decimal import Decimal, getcontext
from fractions import Fraction

from oracle import (
    INF,
    NAN,
    add,
    canon,
    div,
    exp,
    finite,
    fma,
    maximum,
    mul,
    pi,
    rounded,
    sine,
    sqrt,
    sub,
)

F32 = {
    name: float.fromhex(value)
    for name, value in {
        "sixth": "0x1.555556p-3",
        "gelu_1": "0x1.988454p+0",
        "gelu_3": "0x1.2444f2p-4",
        "half_root": "0x1.6a09e6p-1",
        "half_root_low": "0x1.9fcef4p-27",
        "gelu_m": "0x1.45f306p+0",
        "density": "0x1.988454p-2",
        "gelu_9": "0x1.b6676cp-3",
    }.items()
}


def spread(shapes, out):
    """elementwise.2: for each element of the result, the elements of the operands."""
    for i in range(math.prod(out)):
        index, rest = [], i
        for size in reversed(out):
            index.append(rest % size)
            rest //= size
        at = []
        for shape in shapes:
            place, step = 0, 1
            for size, p in zip(reversed(shape), index):
                place += step * (0 if size == 1 else p)
                step *= size
            at.append(place)
        yield at


def operation(real, whole=None, names=(), store=canon):
    """real: on f32 values, stored; whole: on integers of the given width in bits. Attributes follow
    the operands."""

    def on_bits(tensors, outputs, attrs):
        from oracle import FORMATS, WIDTH, read_bits, write_bits

        dtype, shape = outputs[0]
        scalars = [attrs[n] for n in names]
        values = [[read_bits(t, b) for b in bits] for t, _, bits in tensors]
        kind = tensors[-1][0]
        result = []
        for at in spread([s for _, s, _ in tensors], shape):
            x = [v[i] for v, i in zip(values, at)]
            if kind in FORMATS:
                y = real(*x, *scalars)
                result.append(write_bits(dtype, y if dtype == "bool" else store(y)))
            else:
                result.append(write_bits(dtype, whole(8 * WIDTH[kind], *x)))
        return [result]

    return on_bits


def minimum(a, b):
    return -maximum(-a, -b) if a == a and b == b else NAN


def rounding(f):
    return lambda x: math.copysign(float(f(Fraction(x))), x) if finite(x) else x


def sign(x):
    return x if x != x else 1.0 if x > 0 else -1.0 if x < 0 else 0.0


def shrink(x, lambd, bias):
    return x if x != x else add(x, bias) if x < -lambd else sub(x, bias) if x > lambd else 0.0


def hardsigmoid(x, alpha, beta):
    return maximum(minimum(fma(alpha, x, beta), 1.0), 0.0)


getcontext().prec = 150


def by_log(f, pole):
    """f of a Decimal above its pole, where it is -inf."""

    def g(x):
        if x != x or x < pole:
            return NAN
        if x == pole or x == math.inf:
            return math.copysign(math.inf, x - pole if x != pole else -1.0)
        return rounded(Fraction(f(Decimal(x))), sign=x if pole else 1.0)

    return g


LOG = by_log(lambda x: x.ln(), 0)
LOG1P = by_log(lambda x: (1 + x).ln(), -1)


def function(f, low=-INF, high=INF, limit=INF, even=False, edges=None):
    """f of a Decimal in [low, high], elsewhere NaN; `edges`: its value there. From +-limit on the
    result is the same."""

    def g(x):
        if x != x or not low <= x <= high:
            return NAN
        if edges and x in edges:
            return edges[x]
        y = f(Decimal(max(-limit, min(x, limit))))
        return rounded(Fraction(y), sign=1.0 if even else x)

    return g


def on_circle(f):
    return function(lambda x: f(x % (2 * pi())), edges={INF: NAN, -INF: NAN})


def dec_sine(x):
    total, term, k = Decimal(0), x, 1
    while abs(term) > Decimal(10) ** -200:
        total += term
        term *= -x * x / ((k + 1) * (k + 2))
        k += 2
    return total


def dec_sinpi(x):
    r = x % 2
    r = r - 2 if r > 1 else r + 2 if r < -1 else r
    return dec_sine(pi() * (1 - r if 2 * r > 1 else -1 - r if 2 * r < -1 else r))


def dec_atan(x):
    for _ in range(9):
        x = x / (1 + (1 + x * x).sqrt())
    total, term, k = Decimal(0), x, 1
    while abs(term) > Decimal(10) ** -200:
        total += term / k
        term *= -x * x
        k += 2
    return 512 * total


def dec_asin(x):
    return dec_atan(x / (1 - x * x).sqrt()) if abs(x) < 1 else x * pi() / 2


def dec_erf(x):
    total, term, k = Decimal(0), x, 1
    while abs(term) > Decimal(10) ** -200:
        total += term
        term *= 2 * x * x / (k + 2)
        k += 2
    return 2 / pi().sqrt() * (-x * x).exp() * total


def dec_asinh(x):
    return (abs(x) + (x * x + 1).sqrt()).ln().copy_sign(x)


EXPM1 = function(lambda x: x.exp() - 1, limit=200)
ERFC = function(lambda x: 1 - dec_erf(x), limit=12, even=True)
FUNCTIONS = {
    "exp2": function(lambda x: (x * Decimal(2).ln()).exp(), limit=200),
    "exp10": function(lambda x: Decimal(10) ** x, limit=200),
    "expm1": EXPM1,
    "tan": on_circle(lambda x: dec_sine(x) / dec_sine(x + pi() / 2)),
    "sinpi": function(dec_sinpi, edges={INF: NAN, -INF: NAN}),
    "cospi": function(
        lambda x: dec_sinpi(Decimal("0.5") - abs(x) % 2), even=True, edges={INF: NAN, -INF: NAN}
    ),
    "asin": function(dec_asin, low=-1, high=1),
    "acos": function(lambda x: pi() / 2 - dec_asin(x) if x != 1 else Decimal(0), low=-1, high=1),
    "atan": function(dec_atan, limit=1e40),
    "sinh": function(lambda x: (x.exp() - (-x).exp()) / 2, limit=200),
    "cosh": function(lambda x: (x.exp() + (-x).exp()) / 2, limit=200),
    "tanh": function(lambda x: 1 - 2 / ((2 * x).exp() + 1), limit=150),
    "asinh": function(dec_asinh, edges={INF: INF, -INF: -INF}),
    "acosh": function(lambda x: (x + (x * x - 1).sqrt()).ln(), low=1, edges={INF: INF}),
    "atanh": function(
        lambda x: ((1 + x) / (1 - x)).ln() / 2, low=-1, high=1, edges={1: INF, -1: -INF}
    ),
    "erf": function(dec_erf, limit=12),
    "erfc": ERFC,
}


def power(x, y):
    """functions.26. The result can be a tie only for integers 0 < y < 25: an odd factor of 25 bits
    at the most."""
    if y == 0 or x == 1:
        return 1.0
    if x != x or y != y:
        return NAN
    whole = math.isinf(y) or y == math.trunc(y)
    if x < 0 and finite(x) and not whole:
        return NAN
    a, odd = abs(x), finite(y) and whole and int(y) % 2
    if a == 0 or math.isinf(a):
        result = INF if (a > 0) == (y > 0) else 0.0
    elif a == 1:
        result = 1.0
    elif math.isinf(y):
        result = INF if (a > 1) == (y > 0) else 0.0
    elif whole and abs(y) < 64:
        result = rounded(Fraction(a) ** int(y))
    else:
        e = Decimal(y) * Decimal(a).ln()
        result = rounded(Fraction(max(Decimal(-200), min(e, Decimal(200))).exp()))
    return math.copysign(result, x) if odd else result


def atan2(y, x):
    if x != x or y != y:
        return NAN
    left = math.copysign(1, x) < 0
    if math.isinf(x):
        part = (3 if left else 1) if math.isinf(y) else (4 if left else 0)
    elif y == 0:
        part = 4 if left else 0
    else:
        part = 2 if x == 0 or math.isinf(y) else None
    if part is not None:
        angle = part * pi() / 4
    else:
        angle = dec_atan(Decimal(abs(y)) / Decimal(abs(x)))
        angle = pi() - angle if left else angle
    return math.copysign(rounded(Fraction(angle)), y)


def root(x, k, inverse=False):
    """The k-th root, or 1 over it, by integers with 200 guard bits; the last of them says whether
    anything was lost."""
    if x != x or (x < 0 and k == 2):
        return NAN
    if x == 0 or math.isinf(x):
        return (math.copysign(math.inf, x) if k == 2 and x == 0 else 0.0) if inverse else x
    r = abs(Fraction(x)) ** (-1 if inverse else 1) * Fraction(2) ** (600 * k)
    n = r.numerator // r.denominator
    guess = math.isqrt(n) if k == 2 else cube_root(n)
    exact = guess**k == r
    return rounded((2 * guess + (0 if exact else 1)) * (1 if x > 0 else -1) / Fraction(2) ** 601)


def cube_root(n):
    low, high = 0, 1 << (n.bit_length() // 3 + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= n else (low, middle)
    return low


def sigmoid(x):
    return div(1.0, add(1.0, exp(-x)))


def mish(x):
    e = exp(minimum(x, 20.0))
    n = mul(e, add(e, 2.0))
    return mul(x, div(n, add(n, 2.0)))


def gelu_tanh(x):
    return div(x, add(1.0, exp(-mul(x, fma(mul(x, x), F32["gelu_3"], F32["gelu_1"])))))


def elu(x, alpha):
    return mul(alpha, EXPM1(x)) if x < 0 else x


def gelu(x):
    y = -maximum(x, -20.0)
    t = mul(y, F32["half_root"])
    r = fma(y, F32["half_root_low"], fma(y, F32["half_root"], -t))
    m = add(t, sqrt(fma(t, t, F32["gelu_m"])))
    e = ERFC(t)
    return mul(mul(0.5, x), fma(-mul(r, m) if x < 0 else -0.0, e, e))


def sigmoids(x):
    """sigmoid of x and of -x."""
    e = exp(-abs(x))
    large = div(1.0, add(1.0, e))
    small = mul(e, large)
    return (small, large) if x < 0 else (large, small)


def silu_backward(g, x):
    s, t = sigmoids(x)
    return mul(g, mul(s, fma(x, t, 1.0)))


def near_zero(x):
    return maximum(minimum(x, 20.0), -20.0)


def gelu_backward(g, x):
    z = near_zero(x)
    q = mul(z, z)
    e = exp(mul(-0.5, q))
    p = fma(mul(-0.5, fma(z, z, -q)), e, e)
    return mul(g, fma(mul(z, F32["density"]), p, mul(0.5, ERFC(mul(z, -F32["half_root"])))))


def gelu_tanh_backward(g, x):
    z = near_zero(x)
    q = mul(z, z)
    s, t = sigmoids(mul(z, fma(q, F32["gelu_3"], F32["gelu_1"])))
    d = fma(q, F32["gelu_9"], F32["gelu_1"])
    return mul(g, fma(mul(z, d), mul(s, t), s))


def fmod(x, y):
    if not math.isfinite(x) or y != y or y == 0:
        return NAN
    if math.isinf(y):
        return x
    q = math.trunc(Fraction(x) / Fraction(y))
    return rounded(Fraction(x) - q * Fraction(y), sign=x)


def mod(x, y):
    r = fmod(x, y)
    return math.copysign(r, y) if r == 0 else add(r, y) if r * math.copysign(1, y) < 0 else r


def quotient(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b):
    return 0 if b == 0 else a - b * quotient(a, b)


def plain(f):
    return lambda bits, *x: f(*x)


def shift_left(bits, a, b):
    n = b % (1 << bits)
    return a << n if n < bits else 0


def whole_power(bits, a, b):
    if b >= 0:
        return pow(a, b, 1 << bits)
    return a ** (b % 2) if abs(a) == 1 else 0


def compare(f):
    return operation(f, plain(lambda a, b: int(f(a, b))))


def high_first(coefficients, x):
    y = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        y = fma(y, x, c)
    return y


LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fefa38p-1"), float.fromhex("0x1.ef35793c7673p-45")


def exp_f64(x):
    """functions.40."""
    if x != x:
        return NAN
    x = min(max(x, -746.0), 710.0)
    n = round(mul(x, float.fromhex("0x1.71547652b82fep+0")))
    high, low = fma(n, -LN2_HIGH, x), mul(n, LN2_LOW)
    r = sub(high, low)
    c = sub(sub(high, r), low)
    p = high_first([rounded(Fraction(1, math.factorial(k))) for k in range(2, 15)], r)
    y = add(1.0, add(r, add(mul(mul(r, r), p), c)))
    return mul(mul(y, 2.0 ** (n >> 1)), 2.0 ** (n - (n >> 1)))


def log_f64(x):
    """functions.41."""
    if x != x or x < 0:
        return NAN
    if x == 0 or x == INF:
        return -INF if x == 0 else x
    m, k = math.frexp(x)
    if m < float.fromhex("0x1.6a09ep-1"):
        m, k = 2 * m, k - 1
    f = sub(m, 1.0)
    s = div(f, add(2.0, f))
    z = mul(s, s)
    t = mul(high_first([rounded(Fraction(2, j)) for j in range(3, 25, 2)], z), z)
    v = fma(-k, LN2_LOW, mul(s, sub(f, t)))
    return add(mul(k, LN2_HIGH), sub(f, v))


ON_BITS = {
    "exp_f64": operation(exp_f64),
    "log_f64": operation(log_f64),
    "abs": operation(lambda x: math.copysign(x, 1.0), plain(abs)),
    "neg": operation(lambda x: -x, plain(lambda x: -x)),
    "sign": operation(sign, plain(lambda x: (x > 0) - (x < 0))),
    "ceil": operation(rounding(math.ceil)),
    "floor": operation(rounding(math.floor)),
    "round": operation(rounding(round)),
    "trunc": operation(rounding(math.trunc)),
    "sqrt": operation(sqrt),
    "reciprocal": operation(lambda x: div(1.0, x)),
    "exp": operation(exp),
    "sin": operation(lambda x: sine(x, 0)),
    "cos": operation(lambda x: sine(x, 1)),
    "log": operation(LOG),
    "log2": operation(by_log(lambda x: x.ln() / Decimal(2).ln(), 0)),
    "log10": operation(by_log(lambda x: x.log10(), 0)),
    "log1p": operation(LOG1P),
    "rsqrt": operation(lambda x: root(x, 2, inverse=True)),
    "cbrt": operation(lambda x: root(x, 3)),
    "softplus": operation(lambda x: add(maximum(x, 0.0), LOG1P(exp(-abs(x))))),
    "logsigmoid": operation(lambda x: -add(maximum(-x, 0.0), LOG1P(exp(-abs(x))))),
    "sinc": operation(
        lambda x: 1.0 if abs(x) < 2**-13 else div(FUNCTIONS["sinpi"](x), mul(x, 3.1415927410125732))
    ),
    "entr": operation(lambda x: -INF if x < 0 else 0.0 if x == 0 else mul(-x, LOG(x))),
    "relu": operation(lambda x: maximum(x, 0.0)),
    "leakyrelu": operation(lambda x, alpha: mul(alpha, x) if x < 0 else x, names=("alpha",)),
    "prelu": operation(lambda x, slope: mul(slope, x) if x < 0 else x),
    "thresholdedrelu": operation(lambda x, alpha: 0.0 if x <= alpha else x, names=("alpha",)),
    "shrink": operation(shrink, names=("lambd", "bias")),
    "hardsigmoid": operation(hardsigmoid, names=("alpha", "beta")),
    "hardswish": operation(lambda x: mul(x, hardsigmoid(x, F32["sixth"], 0.5))),
    "softsign": operation(lambda x: div(x, add(1.0, abs(x)))),
    "clip": operation(lambda x, low, high: minimum(maximum(x, low), high), names=("min", "max")),
    "sigmoid": operation(sigmoid),
    "silu": operation(lambda x: mul(x, canon(sigmoid(x)))),
    "swish": operation(lambda x, alpha: mul(x, canon(sigmoid(mul(alpha, x)))), names=("alpha",)),
    "mish": operation(mish),
    "gelu_tanh": operation(gelu_tanh),
    "gelu": operation(gelu),
    "elu": operation(elu, names=("alpha",)),
    "selu": operation(lambda x, alpha, gamma: mul(gamma, elu(x, alpha)), names=("alpha", "gamma")),
    "celu": operation(
        lambda x, alpha: mul(alpha, EXPM1(div(x, alpha))) if x < 0 else x, names=("alpha",)
    ),
    "relu_backward": operation(lambda g, y: 0.0 if y <= 0 else g),
    "sigmoid_backward": operation(lambda g, y: mul(mul(g, sub(1.0, y)), y)),
    "tanh_backward": operation(lambda g, y: mul(g, fma(-y, y, 1.0))),
    "silu_backward": operation(silu_backward),
    "gelu_backward": operation(gelu_backward),
    "gelu_tanh_backward": operation(gelu_tanh_backward),
    "isnan": operation(lambda x: int(x != x)),
    "isinf": operation(
        lambda x, negative, positive: int(
            x == math.inf and positive != 0 or x == -math.inf and negative != 0
        ),
        names=("negative", "positive"),
    ),
    "add": operation(add, plain(lambda a, b: a + b)),
    "sub": operation(sub, plain(lambda a, b: a - b)),
    "mul": operation(mul, plain(lambda a, b: a * b)),
    "div": operation(div, plain(quotient)),
    "max": operation(maximum, plain(max)),
    "min": operation(minimum, plain(min)),
    "fmod": operation(fmod, plain(remainder)),
    "mod": operation(mod, plain(lambda a, b: a % b if b else 0)),
    "pow": operation(power, whole_power),
    "atan2": operation(atan2),
    "bitwise_and": operation(None, plain(lambda a, b: a & b)),
    "bitwise_or": operation(None, plain(lambda a, b: a | b)),
    "bitwise_xor": operation(None, plain(lambda a, b: a ^ b)),
    "bitwise_not": operation(None, plain(lambda a: ~a)),
    "shift_left": operation(None, shift_left),
    "shift_right": operation(None, lambda bits, a, b: a >> min(b % (1 << bits), bits)),
    "equal": compare(lambda a, b: a == b),
    "less": compare(lambda a, b: a < b),
    "less_equal": compare(lambda a, b: a <= b),
    "greater": compare(lambda a, b: a > b),
    "greater_equal": compare(lambda a, b: a >= b),
    "logical_and": operation(None, plain(lambda a, b: a & b)),
    "logical_or": operation(None, plain(lambda a, b: a | b)),
    "logical_xor": operation(None, plain(lambda a, b: a ^ b)),
    "logical_not": operation(None, plain(lambda a: 1 - a)),
    "where": operation(
        lambda c, a, b: a if c else b, plain(lambda c, a, b: a if c else b), store=lambda x: x
    ),
}
ON_BITS |= {name: operation(f) for name, f in FUNCTIONS.items()}
