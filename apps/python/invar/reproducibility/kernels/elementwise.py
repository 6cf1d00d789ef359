"""Elementwise kernels, and the gradients of activations."""

import math

import torch

from invar.reproducibility.kernels.handlers import (
    HANDLERS,
    cast,
    computed,
    handler,
    number,
    p,
    scaled,
)

for _name in """abs neg sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin
acos atan sinh cosh tanh asinh acosh atanh erf erfc floor ceil trunc round sign sigmoid relu silu
mish hardswish""".split():
    HANDLERS[_name] = lambda x, op=_name: computed(lambda x: p(op, x), x)
for _name, _op in {"maximum": "max", "minimum": "min", "fmod": "fmod", "remainder": "mod",
                   "atan2": "atan2", "fmax": None, "fmin": None}.items():  # fmt: skip
    if _op:
        HANDLERS[_name] = lambda a, b, op=_op: computed(lambda a, b: p(op, a, b), a, b)


@handler("add")
def add(a, b, alpha=1):
    return computed(lambda a, b: p("add", a, scaled(b, alpha)), a, b)


@handler("sub")
def sub(a, b, alpha=1):
    return computed(lambda a, b: p("sub", a, scaled(b, alpha)), a, b)


@handler("rsub")
def rsub(a, b, alpha=1):
    return sub(b, a, alpha)


@handler("mul")
def mul(a, b):
    return computed(lambda a, b: p("mul", a, b), a, b)


@handler("div", "true_divide")
def div(a, b, rounding_mode=None):
    quotient = computed(lambda a, b: p("div", a, b), a, b)
    if rounding_mode is None:
        return quotient
    return HANDLERS[rounding_mode if rounding_mode == "floor" else "trunc"](quotient)


@handler("pow")
def power(a, b):
    if not isinstance(b, torch.Tensor) and b == 2:
        return mul(a, a)
    return computed(lambda a, b: p("pow", a, b), a, b)


HANDLERS["sgn"] = HANDLERS["sign"]


@handler("square")
def square(x):
    return mul(x, x)


@handler("clamp", "clip")
def clamp(x, min=None, max=None):
    def bounded(x, min, max):
        x = x if min is None else p("max", x, min)
        return x if max is None else p("min", x, max)

    return computed(bounded, x, min, max)


@handler("clamp_min")
def clamp_min(x, min):
    return clamp(x, min)


@handler("clamp_max")
def clamp_max(x, max):
    return clamp(x, None, max)


@handler("lerp")
def lerp(start, end, weight):
    def between(start, end, weight):
        return p("add", start, p("mul", weight, p("sub", end, start)))

    def from_end(start, end, weight):
        rest = p("sub", number(1, end), weight)
        return p("sub", end, p("mul", p("sub", end, start), rest))

    if isinstance(weight, torch.Tensor):
        if weight.numel() != 1:
            near = weight.abs() < 0.5
            return torch.where(
                near, computed(between, start, end, weight), computed(from_end, start, end, weight)
            )
        weight = weight.item()
    return computed(between if abs(weight) < 0.5 else from_end, start, end, weight)


@handler("addcmul")
def addcmul(x, a, b, value=1):
    return computed(lambda x, a, b: p("add", x, p("mul", scaled(a, value), b)), x, a, b)


@handler("addcdiv")
def addcdiv(x, a, b, value=1):
    return computed(lambda x, a, b: p("add", x, p("div", scaled(a, value), b)), x, a, b)


@handler("gelu")
def gelu(x, approximate="none"):
    return computed(lambda x: p("gelu" if approximate == "none" else "gelu_tanh", x), x)


@handler("threshold_backward")
def threshold_backward(grad, x, threshold):
    return torch.where(x <= threshold, torch.zeros((), dtype=grad.dtype, device=grad.device), grad)


@handler("sigmoid_backward")
def sigmoid_backward(grad, y):
    return computed(lambda g, y: p("mul", p("mul", g, p("sub", number(1, y), y)), y), grad, y)


@handler("tanh_backward")
def tanh_backward(grad, y):
    return computed(lambda g, y: p("mul", g, p("sub", number(1, y), p("mul", y, y))), grad, y)


@handler("silu_backward")
def silu_backward(grad, x):
    def formula(g, x):
        s = p("sigmoid", x)
        inner = p("add", number(1, x), p("mul", x, p("sub", number(1, x), s)))
        return p("mul", g, p("mul", s, inner))

    return computed(formula, grad, x)


@handler("gelu_backward")
def gelu_backward(grad, x, approximate="none"):
    """grad (c + x c'), where gelu is x c: c = erfc(-x / sqrt(2)) / 2, or (1 + tanh(u)) / 2 with
    u = sqrt(2 / pi) (x + 0.044715 x^3)."""

    def exact(g, x):
        c = p("mul", p("erfc", p("mul", x, number(-math.sqrt(0.5), x))), number(0.5, x))
        density = p("exp", p("mul", p("mul", x, x), number(-0.5, x)))
        slope = p("mul", density, number(1 / math.sqrt(2 * math.pi), x))
        return p("mul", g, p("add", c, p("mul", x, slope)))

    def by_tanh(g, x):
        root, cubic, one = math.sqrt(2 / math.pi), 0.044715, number(1, x)
        xx = p("mul", x, x)
        inner = p("add", one, p("mul", xx, number(cubic, x)))
        t = p("tanh", p("mul", p("mul", x, number(root, x)), inner))
        c = p("mul", p("add", one, t), number(0.5, x))
        slope = p("mul", p("sub", one, p("mul", t, t)), number(root / 2, x))
        slope = p("mul", slope, p("add", one, p("mul", xx, number(3 * cubic, x))))
        return p("mul", g, p("add", c, p("mul", x, slope)))

    return computed(exact if approximate == "none" else by_tanh, grad, x)


@handler("allclose")
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """|a - b| <= atol + rtol |b|, or equal."""
    gap = HANDLERS["abs"](HANDLERS["sub"](a, b))
    close = (gap <= add(mul(HANDLERS["abs"](b), rtol), atol)) & gap.isfinite() | (a == b)
    close = close | (a.isnan() & b.isnan()) if equal_nan else close
    return bool(close.all())


@handler("nan_to_num")
def nan_to_num(x, nan=None, posinf=None, neginf=None):
    if not x.is_floating_point():
        return x.clone()
    limits = torch.finfo(x.dtype)
    value = lambda v, otherwise: torch.full(
        (), otherwise if v is None else v, dtype=x.dtype, device=x.device
    )
    x = torch.where(x.isnan(), value(nan, 0.0), x)
    x = torch.where(x == math.inf, value(posinf, limits.max), x)
    return torch.where(x == -math.inf, value(neginf, limits.min), x)


@handler("hypot")
def hypot(a, b):
    """In binary64, rounded once more."""

    def root(a, b):
        wide = [cast(x, torch.float64) for x in (a, b)]
        squares = [p("mul", x, x) for x in wide]
        return cast(p("sqrt", p("add", *squares)), a.dtype)

    return computed(root, a, b)


@handler("xlogy", "special_xlogy")
def xlogy(a, b):
    def formula(a, b):
        found = p("mul", a, p("log", b))
        zero = torch.zeros((), dtype=found.dtype, device=found.device)
        return torch.where((a == 0) & ~b.isnan(), zero, found)

    return computed(formula, a, b)


@handler("erfinv", "special_erfinv")
def erfinv(x):
    """Winitzki's estimate, then three steps of Halley: of erf where |x| < 1/2, else of erfc, whose
    value is accurate there."""

    def formula(x):
        at = lambda v: number(v, x)
        size = p("abs", x)
        rest = p("sub", at(1), size)  # exact from 1/2 on
        log = p("add", p("log", rest), p("log1p", size))  # of 1 - x^2
        half = p("add", p("mul", log, at(0.5)), at(2 / (math.pi * 0.147)))
        inner = p("sub", p("mul", half, half), p("mul", log, at(1 / 0.147)))
        y = p("sqrt", p("max", p("sub", p("sqrt", inner), half), at(0)))
        for _ in range(3):
            gap = torch.where(size < 0.5, p("sub", p("erf", y), size), p("sub", rest, p("erfc", y)))
            slope = p("mul", p("exp", p("neg", p("mul", y, y))), at(2 / math.sqrt(math.pi)))
            step = p("div", gap, slope)
            y = p("sub", y, p("div", step, p("add", at(1), p("mul", y, step))))
        line = p("mul", size, at(math.sqrt(math.pi) / 2))  # to the last bit for small x
        y = torch.where(size == 1, at(math.inf), torch.where(size < 2.0**-13, line, y))
        y = torch.where(size <= 1, y, at(math.nan))
        return torch.copysign(y, x)

    return computed(formula, x)
