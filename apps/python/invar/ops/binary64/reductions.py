"""Reductions, softmax and normalizations of binary64 (spec: functions.43): compositions whose steps
have gradients."""

import math
from collections.abc import Sequence
from typing import Any

from invar import primitives as p
from invar.ops import _arrays as arr
from invar.ops import _types as t


def beside(value: float, x: Any) -> Any:
    return t.constant(value, t.NAMES[x.dtype], x)


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(z) / its sum, z = x - max."""
    powers, total, _ = _powers(x, axis)
    return p.div(powers, total)


def log_softmax(x: Any, axis: int = -1) -> Any:
    """z - ln of the sum of exp(z), z = x - max."""
    _, total, z = _powers(x, axis)
    return p.sub(z, p.log_f64(total))


def _powers(x: Any, axis: int) -> tuple[Any, Any, Any]:
    axes = [axis % x.ndim]
    z = p.sub(x, p.reduce_max(arr.detached(x), axes=axes, keepdims=1))
    powers = p.exp_f64(z)
    return powers, p.reduce_sum(powers, axes=axes, keepdims=1), z


def reduce_log_sum_exp(x: Any, axes: Sequence[int], keepdims: int = 0) -> Any:
    """m + ln of the sum of exp(x - m), m = max, or 0 where that is infinite."""
    axes = list(axes)
    m = p.reduce_max(arr.detached(x), axes=axes, keepdims=1)
    m = p.where(p.less(p.abs(m), beside(math.inf, x)), m, beside(0.0, x))
    total = p.reduce_sum(p.exp_f64(p.sub(x, m)), axes=axes, keepdims=1)
    none = p.equal(total, beside(0.0, x))
    log = p.log_f64(p.where(none, beside(1.0, x), total))
    y = p.where(none, beside(-math.inf, x), p.add(log, m))
    return y if keepdims else dropped(y, axes)


def dropped(y: Any, axes: Sequence[int]) -> Any:
    gone = {a % y.ndim for a in axes}
    return y.reshape(tuple(n for d, n in enumerate(y.shape) if d not in gone))


def reduce_var(x: Any, axes: Sequence[int], keepdims: int = 0, correction: float = 0) -> Any:
    """The sum of squares about the mean, divided by max(n - correction, 0). Of f32, too, where the
    operation has no such correction."""
    axes = list(axes)
    n = math.prod(x.shape[a] for a in axes)
    x = arr.detached(x) if n < correction else x  # not finite
    gap = p.sub(x, p.reduce_mean(x, axes=axes, keepdims=1))
    total = p.reduce_sum(p.mul(gap, gap), axes=axes, keepdims=keepdims)
    return p.div(total, beside(max(float(n - correction), 0.0), x))


def root(y: Any) -> Any:
    """The square root, whose gradient at 0 is 0."""
    none = p.equal(y, beside(0.0, y))
    return p.where(none, y, p.sqrt(p.where(none, beside(1.0, y), y)))


def reduce_std(x: Any, axes: Sequence[int], keepdims: int = 0, correction: float = 0) -> Any:
    return root(reduce_var(x, axes, keepdims, correction))


def prelu(x: Any, weight: Any) -> Any:
    return p.where(p.greater(x, beside(0.0, x)), x, p.mul(weight, x))


def batchnorm(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, epsilon: float) -> Any:
    """(x - mean) / sqrt(variance + epsilon) · weight + bias, of channels."""
    of = lambda v: v.reshape((-1,) + (1,) * (x.ndim - 2))
    scale = p.sqrt(p.add(variance, beside(epsilon, x)))
    y = p.div(p.sub(x, of(mean)), of(scale))
    return p.add(p.mul(y, of(weight)), of(bias))


def groupnorm(x: Any, weight: Any, bias: Any, groups: int, epsilon: float) -> Any:
    """(x - mean) / sqrt(mean of squares + epsilon) of each group, · weight + bias of channels."""
    of = lambda v: v.reshape((-1,) + (1,) * (x.ndim - 2))
    rows = x.reshape((x.shape[0], groups, math.prod(x.shape[1:]) // groups))
    gap = p.sub(rows, p.reduce_mean(rows, axes=[2], keepdims=1))
    squares = p.reduce_mean(p.mul(gap, gap), axes=[2], keepdims=1)
    y = p.div(gap, p.sqrt(p.add(squares, beside(epsilon, x)))).reshape(x.shape)
    return p.add(p.mul(y, of(weight)), of(bias))


def place(largest: bool, x: Any, axis: int) -> Any:
    """The index of the first largest (smallest) element along an axis, which stays as 1; the first
    NaN where there is one. Types that argmax does not have are compared with their extreme."""
    e = t.type_of(x)
    op = "argmax" if largest else "argmin"
    if e in ("i32", "i64", "f64"):
        top = p.call("reduce_max" if largest else "reduce_min", x, axes=[axis], keepdims=1)
        found = p.equal(x, top)
        x, op = p.logical_or(found, p.isnan(x)) if e == "f64" else found, "argmax"
    y = p.call(op, arr.detached(t.cast(x, "f32")), axis=axis, select_last=0)
    return y if y.ndim == x.ndim else arr.insert(y, axis)
