"""Activations of binary64 (spec: functions.42), with the attributes of the operations of f32."""

import math
from typing import Any

from invar import primitives as p
from invar.ops.binary64 import functions as f
from invar.ops.binary64.functions import at, below, plus, times, where

ROOT = math.sqrt(2 / math.pi)
CUBIC = 0.044715


def clip(x: Any, min: float, max: float) -> Any:
    return p.min(p.max(x, at(min, x)), at(max, x))


def leakyrelu(x: Any, alpha: float) -> Any:
    return p.where(below(x, 0.0), times(x, alpha), x)


def elu(x: Any, alpha: float) -> Any:
    return p.where(below(x, 0.0), times(f.expm1(x), alpha), x)


def celu(x: Any, alpha: float) -> Any:
    return p.where(below(x, 0.0), times(f.expm1(p.div(x, at(alpha, x))), alpha), x)


def selu(x: Any, alpha: float, gamma: float) -> Any:
    return times(elu(x, alpha), gamma)


def hardsigmoid(x: Any, alpha: float, beta: float) -> Any:
    return clip(plus(times(x, alpha), beta), 0.0, 1.0)


def hardswish(x: Any) -> Any:
    return p.div(p.mul(x, clip(plus(x, 3.0), 0.0, 6.0)), at(6.0, x))


def silu(x: Any) -> Any:
    return p.mul(x, f.sigmoid(x))


def mish(x: Any) -> Any:
    return p.mul(x, f.tanh(f.softplus(x)))


def softsign(x: Any) -> Any:
    return p.div(x, plus(p.abs(x), 1.0))


def shrink(x: Any, lambd: float, bias: float) -> Any:
    nearer = p.where(below(x, 0.0), plus(x, bias), plus(x, -bias)) if bias else x
    return where(p.less_equal(p.abs(x), at(lambd, x)), 0.0, nearer)


def thresholdedrelu(x: Any, alpha: float) -> Any:
    return where(p.less_equal(x, at(alpha, x)), 0.0, x)


def gelu(x: Any) -> Any:
    return p.mul(x, times(f.erfc(times(x, -math.sqrt(0.5))), 0.5))


def inner(x: Any) -> Any:
    """2 sqrt(2 / pi) (x + 0.044715 x³)."""
    return p.mul(times(x, 2 * ROOT), plus(times(p.mul(x, x), CUBIC), 1.0))


def gelu_tanh(x: Any) -> Any:
    return p.mul(x, f.sigmoid(inner(x)))
