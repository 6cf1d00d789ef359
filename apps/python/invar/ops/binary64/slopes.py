"""Derivatives of the functions of binary64, of operand x and result y, in functions that have
gradients themselves."""

import math
from collections.abc import Callable
from typing import Any

import torch

from invar import primitives as p
from invar.autograd.rules import reduced_to
from invar.ops.binary64.activations import CUBIC, ROOT, inner
from invar.ops.binary64.functions import LN2, LN10, at, below, plus, times, where
from invar.ops.binary64.values import value

Slope = Callable[..., Any]


class Composed(torch.autograd.Function):
    """A function of one element, or pow, as a node of the graph of gradients: composed(op,
    attributes, *operands). Its derivatives are those of the function, not of its steps."""

    generate_vmap_rule = True

    @staticmethod
    def forward(op, attributes, *operands):
        return value(op, [x.detach() for x in operands], dict(attributes))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.op, ctx.attributes, *operands = inputs
        ctx.save_for_backward(*operands, output)
        ctx.save_for_forward(*operands, output)

    @staticmethod
    def slopes(ctx, needs):
        *operands, y = ctx.saved_tensors
        if ctx.op == "pow":
            return power(*operands, y, needs)
        return [SLOPES[ctx.op](*operands, y, **dict(ctx.attributes))]

    @staticmethod
    def backward(ctx, grad):
        operands, needs = ctx.saved_tensors[:-1], ctx.needs_input_grad[2:]
        found = [
            None if slope is None else reduced_to(p.mul(grad, slope), x.shape)
            for slope, x in zip(Composed.slopes(ctx, needs), operands)
        ]
        return (None, None, *found)

    @staticmethod
    def jvp(ctx, _, __, *tangents):
        needs = tuple(x is not None for x in tangents)
        total = None
        for slope, x in zip(Composed.slopes(ctx, needs), tangents):
            if x is not None:
                part = p.mul(x, slope)
                total = part if total is None else p.add(total, part)
        return total


def call(op: str, *operands: Any) -> Any:
    """A function without attributes, of tensors of f64."""
    return Composed.apply(op, (), *operands)


def _sech(y: Any) -> Any:
    """(1 - y) (1 + y)."""
    return p.mul(p.sub(at(1.0, y), y), plus(y, 1.0))


def _density(x: Any, factor: float, power: float) -> Any:
    return times(p.exp_f64(times(p.mul(x, x), power)), factor)


def _logistic(y: Any) -> Any:
    return p.mul(p.sub(at(1.0, y), y), y)


def _silu(x: Any, y: Any) -> Any:
    s = call("sigmoid", x)
    return p.mul(s, plus(p.mul(x, p.sub(at(1.0, s), s)), 1.0))


def _mish(x: Any, y: Any) -> Any:
    s = call("tanh", call("softplus", x))
    return p.add(s, p.mul(p.mul(x, call("sigmoid", x)), _sech(s)))


def _gelu(x: Any, y: Any) -> Any:
    c = times(call("erfc", times(x, -math.sqrt(0.5))), 0.5)
    near = p.min(p.max(x, at(-40.0, x)), at(40.0, x))  # beyond, the density is 0
    return p.add(c, p.mul(near, _density(x, 1 / math.sqrt(2 * math.pi), -0.5)))


def _gelu_tanh(x: Any, y: Any) -> Any:
    s = call("sigmoid", inner(x))
    slope = times(plus(times(p.mul(x, x), 3 * CUBIC), 1.0), 2 * ROOT)
    return p.add(s, p.mul(p.mul(x, slope), _logistic(s)))


def _flat(condition: Any, other: Any) -> Any:
    return where(condition, 0.0, other)


def _one_where(condition: Any) -> Any:
    return where(condition, 1.0, 0.0)


def _grown(x: Any, alpha: float, scale: float = 1.0) -> Any:
    """alpha e^(x / scale) up to 0, then 1."""
    low = p.min(x, at(0.0, x))
    low = low if scale == 1 else p.div(low, at(scale, x))
    return p.where(p.less_equal(x, at(0.0, x)), times(p.exp_f64(low), alpha), at(1.0, x))


def _clip(x: Any, y: Any, min: float, max: float) -> Any:
    return _one_where(p.logical_and(p.greater_equal(x, at(min, x)), p.less_equal(x, at(max, x))))


def _hardsigmoid(x: Any, y: Any, alpha: float, beta: float) -> Any:
    return where(p.logical_and(p.greater(y, at(0.0, y)), below(y, 1.0)), alpha, 0.0)


def _hardswish(x: Any, y: Any) -> Any:
    middle = plus(p.div(x, at(3.0, x)), 0.5)
    return _flat(p.less_equal(x, at(-3.0, x)), p.where(below(x, 3.0), middle, at(1.0, x)))


SLOPES: dict[str, Slope] = {
    "expm1": lambda x, y: plus(y, 1.0),
    "log1p": lambda x, y: p.reciprocal(plus(x, 1.0)),
    "exp2": lambda x, y: times(y, LN2),
    "log2": lambda x, y: p.reciprocal(times(x, LN2)),
    "log10": lambda x, y: p.reciprocal(times(x, LN10)),
    "rsqrt": lambda x, y: times(p.mul(p.mul(y, y), y), -0.5),
    "sigmoid": lambda x, y: _logistic(y),
    "tanh": lambda x, y: _sech(y),
    "sinh": lambda x, y: call("cosh", x),
    "cosh": lambda x, y: call("sinh", x),
    "asinh": lambda x, y: call("rsqrt", plus(p.mul(x, x), 1.0)),
    "acosh": lambda x, y: call("rsqrt", p.mul(plus(x, -1.0), plus(x, 1.0))),
    "atanh": lambda x, y: p.reciprocal(_sech(x)),
    "softplus": lambda x, y: call("sigmoid", x),
    "logsigmoid": lambda x, y: call("sigmoid", p.neg(x)),
    "erf": lambda x, y: _density(x, 2 / math.sqrt(math.pi), -1.0),
    "erfc": lambda x, y: _density(x, -2 / math.sqrt(math.pi), -1.0),
    "clip": _clip,
    "leakyrelu": lambda x, y, alpha: where(p.greater(x, at(0.0, x)), 1.0, alpha),
    "elu": lambda x, y, alpha: _grown(x, alpha),
    "celu": lambda x, y, alpha: _grown(x, 1.0, alpha),
    "selu": lambda x, y, alpha, gamma: times(_grown(x, alpha), gamma),
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "silu": _silu,
    "mish": _mish,
    "softsign": lambda x, y: p.reciprocal(p.mul(plus(p.abs(x), 1.0), plus(p.abs(x), 1.0))),
    "shrink": lambda x, y, lambd, bias: _one_where(p.greater(p.abs(x), at(lambd, x))),
    "thresholdedrelu": lambda x, y, alpha: _one_where(p.greater(x, at(alpha, x))),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}


def power(x: Any, n: Any, y: Any, needs: tuple[bool, bool]) -> list[Any]:
    """Of both operands; 0 where the exponent is 0, and of the exponent where a base is 0."""
    first = second = None
    if needs[0]:
        less = call("pow", x, plus(n, -1.0))
        first = _flat(p.equal(n, at(0.0, n)), p.mul(n, less))
    if needs[1]:
        zero = p.logical_and(p.equal(x, at(0.0, x)), p.greater_equal(n, at(0.0, n)))
        log = p.log_f64(where(zero, 1.0, x))
        second = _flat(zero, p.mul(y, log))
    return [first, second]
