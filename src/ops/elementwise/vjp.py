"""Gradients of elementwise operations: the derivative in primitives, times the gradient of the
result. `gradient` in ops.toml has those that one expression says. Where a function has none,
subgradients are torch's: 0 for abs and relu at 0, half each for max and min of equal numbers, the
whole for clip at its bounds."""

import math

import torch
from invar import derivatives
from invar import primitives as p
from invar.autograd.rules import no_gradient, rule

for _op, (_saves, _slope) in derivatives.DERIVATIVES.items():
    rule(_op, saves=_saves)(
        lambda v, slope=_slope, of_result=_saves == "result": [
            p.mul(v.grad, slope(v, v.result if of_result else v[0]))
        ]
    )
rule(*derivatives.STEPS, saves="")(lambda v: [v.zeros(0)])  # as in torch
no_gradient(*derivatives.NONE)

# Arithmetic


@rule("add", "sub", saves="")
def add(v):
    second = p.neg(v.grad) if v.call.op == "sub" and v.needs(1) else v.grad
    return [v.reduced(0, v.grad), v.reduced(1, second)]


@rule("mul", saves="others")
def mul(v):
    return [v.reduced(i, p.mul(v.grad, v[1 - i])) if v.needs(i) else None for i in range(2)]


@rule("div")
def div(v):
    first = p.div(v.grad, v[1])
    second = p.neg(p.mul(first, p.div(v[0], v[1]))) if v.needs(1) else None
    return [v.reduced(0, first), v.reduced(1, second)]


@rule("neg", saves="")
def neg(v):
    return [p.neg(v.grad)]


@rule("sqrt", saves="result")
def sqrt(v):
    return [p.div(v.grad, p.add(v.result, v.result))]


@rule("reciprocal", saves="result")
def reciprocal(v):
    return [p.neg(p.mul(v.grad, p.mul(v.result, v.result)))]


@rule("rsqrt", saves="result")
def rsqrt(v):
    cube = p.mul(p.mul(v.result, v.result), v.result)
    return [p.mul(v.grad, p.mul(cube, v.constant(-0.5)))]


@rule("cbrt", saves="result")
def cbrt(v):
    return [p.div(v.grad, p.mul(p.mul(v.result, v.result), v.constant(3.0)))]


@rule("fmod", "mod")
def remainder(v):
    """x − y n, where n is a step function of x / y."""
    second = None
    if v.needs(1):
        steps = (p.trunc if v.call.op == "fmod" else p.floor)(p.div(v[0], v[1]))
        second = p.neg(p.mul(v.grad, steps))
    return [v.reduced(0, v.grad), v.reduced(1, second)]


@rule("max", "min")
def extreme(v):
    """Of equal operands each has half; one that is not chosen has none."""
    zero, half = v.constant(0.0), p.mul(v.grad, v.constant(0.5))
    shared = p.where(p.equal(v[0], v[1]), half, v.grad)
    loses = p.less if v.call.op == "max" else p.greater
    return [
        v.reduced(i, p.where(loses(v[i], v[1 - i]), zero, shared)) if v.needs(i) else None
        for i in range(2)
    ]


@rule("pow", saves="operands result")
def power(v):
    base, exponent, zero = v[0], v[1], v.constant(0.0)
    first = second = None
    if v.needs(0):
        less = p.pow(base, p.sub(exponent, v.constant(1.0)))
        first = p.mul(v.grad, p.mul(exponent, less))
        first = v.reduced(0, p.where(p.equal(exponent, zero), zero, first))
    if v.needs(1):
        at_zero = p.logical_and(p.equal(base, zero), p.greater_equal(exponent, zero))
        log = p.log(p.where(at_zero, v.constant(1.0), base))
        second = v.reduced(1, p.where(at_zero, zero, p.mul(v.grad, p.mul(v.result, log))))
    return [first, second]


@rule("atan2")
def atan2(v):
    y, x = v[0], v[1]
    scaled = p.div(v.grad, p.add(p.mul(y, y), p.mul(x, x)))
    return [
        v.reduced(0, p.mul(scaled, x)) if v.needs(0) else None,
        v.reduced(1, p.neg(p.mul(scaled, y))) if v.needs(1) else None,
    ]


@rule("where")
def where(v):
    zero = v.constant(0.0)
    return [
        None,
        v.reduced(1, p.where(v[0], v.grad, zero)) if v.needs(1) else None,
        v.reduced(2, p.where(v[0], zero, v.grad)) if v.needs(2) else None,
    ]


def _product(v, a, b):
    """(1 + a) (1 + b), for 1 − x² = (1 − x) (1 + x) without cancellation."""
    one = v.constant(1.0)
    return p.mul(p.add(one, a), p.add(one, b))


@rule("sinc")
def sinc(v):
    """(cospi(x) − sinc(x)) / x; near 0, where that cancels, the first terms of its series."""
    x, series = v[0], v.constant(0.0)
    square = p.mul(x, x)
    for k in range(5, 0, -1):
        term = (-math.pi * math.pi) ** k * 2 * k / math.factorial(2 * k + 1)
        series = p.add(p.mul(series, square), v.constant(term))
    near = p.less(p.abs(x), v.constant(0.25))
    slope = p.where(near, p.mul(series, x), p.div(p.sub(p.cospi(x), p.sinc(x)), x))
    return [p.mul(v.grad, slope)]


@rule("softsign")
def softsign(v):
    below = p.add(p.abs(v[0]), v.constant(1.0))
    return [p.div(v.grad, p.mul(below, below))]


# Piecewise linear: the gradient, or a multiple of it, where a condition holds.


@rule("leakyrelu")
def leakyrelu(v):
    scaled = p.mul(v.grad, v.constant(v.attribute("alpha")))
    return [p.where(p.greater(v[0], v.constant(0.0)), v.grad, scaled)]


@rule("prelu")
def prelu(v):
    zero = v.constant(0.0)
    above = p.greater(v[0], zero)
    return [
        v.reduced(0, p.where(above, v.grad, p.mul(v.grad, v[1]))) if v.needs(0) else None,
        v.reduced(1, p.where(above, zero, p.mul(v.grad, v[0]))) if v.needs(1) else None,
    ]


@rule("thresholdedrelu")
def thresholdedrelu(v):
    flat = p.less_equal(v[0], v.constant(v.attribute("alpha")))
    return [p.where(flat, v.constant(0.0), v.grad)]


@rule("shrink")
def shrink(v):
    flat = p.less_equal(p.abs(v[0]), v.constant(v.attribute("lambd")))
    return [p.where(flat, v.constant(0.0), v.grad)]


@rule("clip")
def clip(v):
    low = v.constant(v.attribute("min", -math.inf))
    high = v.constant(v.attribute("max", math.inf))
    inside = p.logical_and(p.greater_equal(v[0], low), p.less_equal(v[0], high))
    return [p.where(inside, v.grad, v.constant(0.0))]


@rule("hardsigmoid", saves="result")
def hardsigmoid(v):
    zero, slope = v.constant(0.0), v.constant(v.attribute("alpha"))
    inside = p.logical_and(p.greater(v.result, zero), p.less(v.result, v.constant(1.0)))
    return [p.where(inside, p.mul(v.grad, slope), zero)]


@rule("hardswish")
def hardswish(v):
    x, zero, three = v[0], v.constant(0.0), v.constant(3.0)
    inner = p.mul(v.grad, p.add(p.div(x, three), v.constant(0.5)))
    outer = p.where(p.less(x, three), inner, v.grad)
    return [p.where(p.less_equal(x, v.constant(-3.0)), zero, outer)]


# Activations


def _exponential(v, alpha, scale):
    """scale · alpha · exp(x / scale) below 0 and at it."""
    zero = v.constant(0.0)
    below = p.less_equal(v[0], zero)
    x = p.where(below, v[0], zero)
    grown = p.exp(x if scale is None else p.div(x, v.constant(scale)))
    return below, p.mul(v.grad, p.mul(grown, v.constant(alpha)))


@rule("elu")
def elu(v):
    below, grad = _exponential(v, v.attribute("alpha"), None)
    return [p.where(below, grad, v.grad)]


@rule("selu")
def selu(v):
    below, grad = _exponential(v, v.attribute("alpha"), None)
    return [p.mul(p.where(below, grad, v.grad), v.constant(v.attribute("gamma")))]


@rule("celu")
def celu(v):
    below, grad = _exponential(v, 1.0, v.attribute("alpha"))
    return [p.where(below, grad, v.grad)]


@rule("swish")
def swish(v):
    """That of silu at alpha x: s (1 + alpha x (1 − s)), s = sigmoid(alpha x)."""
    return [p.silu_backward(v.grad, p.mul(v[0], v.constant(v.attribute("alpha"))))]


@rule("mish")
def mish(v):
    """t + x s (1 − t²), t = tanh(softplus(x)), s = sigmoid(x)."""
    t = p.tanh(p.softplus(v[0]))
    inner = p.mul(p.mul(v[0], p.sigmoid(v[0])), _product(v, p.neg(t), t))
    return [p.mul(v.grad, p.add(t, inner))]


@rule("silu", "gelu", "gelu_tanh")
def activation(v):
    return [p.call(f"{v.call.op}_backward", v.grad, v[0])]


@rule("relu", "sigmoid", "tanh", saves="result")
def activation_by_result(v):
    if v.grad.dtype == torch.float64:  # relu alone has this type, and its gradient's operation not
        zero = v.constant(0.0)
        return [p.where(p.less_equal(v.result, zero), zero, v.grad)]
    return [p.call(f"{v.call.op}_backward", v.grad, v.result)]


# Gradients of these gradients g f'(x): the same operation of what comes back, q, and q g f''(x).


def _second(v, derivative):
    first = p.call(v.call.op, v.grad, v[1]) if v.needs(0) else None
    second = None
    if v.needs(1) and derivative is not None:
        second = v.reduced(1, p.mul(p.mul(v.grad, v[0]), derivative(v, v[1])))
    return [None if first is None else v.reduced(0, first), second]


@rule("relu_backward")
def relu_backward(v):
    first = _second(v, None)[0]
    return [first, v.zeros(1) if v.needs(1) else None]


@rule("sigmoid_backward")
def sigmoid_backward(v):
    return _second(v, lambda v, y: p.sub(v.constant(1.0), p.add(y, y)))


@rule("tanh_backward")
def tanh_backward(v):
    return _second(v, lambda v, y: p.mul(y, v.constant(-2.0)))


def _slopes(x):
    """sigmoid of x and of -x, and their product, the derivative."""
    s, t = p.sigmoid(x), p.sigmoid(p.neg(x))
    return s, t, p.mul(s, t)


@rule("silu_backward")
def silu_backward(v):
    """s t (2 + x (t − s))."""

    def derivative(v, x):
        s, t, slope = _slopes(x)
        return p.mul(slope, p.add(p.mul(x, p.sub(t, s)), v.constant(2.0)))

    return _second(v, derivative)


@rule("gelu_backward")
def gelu_backward(v):
    """The density of the normal distribution times 2 − x²."""

    def derivative(v, x):
        square = p.mul(x, x)
        density = p.exp(p.mul(square, v.constant(-0.5)))
        density = p.mul(density, v.constant(1 / math.sqrt(2 * math.pi)))
        return p.mul(density, p.sub(v.constant(2.0), square))

    return _second(v, derivative)


@rule("gelu_tanh_backward")
def gelu_tanh_backward(v):
    """2 s t u' + x s t ((t − s) u'² + u''), u = x p(x²) as in elementwise.10."""

    def derivative(v, x):
        square, c = p.mul(x, x), 2 * math.sqrt(2 / math.pi)
        linear, cubic = v.constant(c), v.constant(c * 0.044715)
        s, t, slope = _slopes(p.mul(x, p.add(p.mul(square, cubic), linear)))
        u = p.add(p.mul(square, v.constant(3 * c * 0.044715)), linear)
        curve = p.add(p.mul(p.sub(t, s), p.mul(u, u)), p.mul(x, v.constant(6 * c * 0.044715)))
        return p.mul(slope, p.add(p.add(u, u), p.mul(x, curve)))

    return _second(v, derivative)
