"""Gradients of reductions: spread along the reduced axes again. Elements that tie for an extreme
share its gradient evenly; roots of 0 have the gradient 0, as in torch."""

import math

from invar import primitives as p
from invar.autograd.rules import broadcast_to, no_gradient, rule


def axes_of(v):
    """The reduced axes, counted from the front."""
    return _about(v)[0]


def kept(v):
    """The shape of the result with the reduced axes as 1."""
    return _about(v)[1]


def count(v):
    """How many elements make one of the result."""
    return _about(v)[2]


def _about(v):
    if (known := v.memo.get("reduce")) is None:
        shape = list(v.shape(0))
        axes = v.attribute("axes")
        axes = list(range(len(shape))) if axes is None else [a % len(shape) for a in axes]
        number = math.prod([shape[axis] for axis in axes])
        for axis in axes:
            shape[axis] = 1
        known = v.memo["reduce"] = axes, shape, number
    return known


def spread(v, x):
    """x, of the result's shape, along the reduced axes again."""
    return broadcast_to(x if v.attribute("keepdims") else x.reshape(kept(v)), v.shape(0))


@rule("reduce_sum", saves="")
def reduce_sum(v):
    return [spread(v, v.grad)]


@rule("reduce_mean", saves="")
def reduce_mean(v):
    return [spread(v, p.div(v.grad, v.constant(float(count(v)))))]


@rule("reduce_prod")
def reduce_prod(v):
    """The product of all others is that of the elements before times that of those after: right
    where some are 0, too."""
    axes, shape = axes_of(v), v.shape(0)
    if not v[0].numel():
        return [v.zeros(0)]
    order = [i for i in range(len(shape)) if i not in axes] + axes
    moved = v[0].permute(order)
    rows = moved.reshape(-1, count(v))
    before, after = (p.cumprod(rows, axis=1, exclusive=1, reverse=r) for r in (0, 1))
    grad = p.mul(p.mul(before, after), v.grad.reshape(-1, 1))
    back = sorted(range(len(order)), key=order.__getitem__)
    return [grad.reshape(moved.shape).permute(back)]


@rule("reduce_max", "reduce_min", saves="operands result")
def extreme(v):
    one, zero = v.constant(1.0), v.constant(0.0)
    chosen = p.where(p.equal(v[0], v.result.reshape(kept(v))), one, zero)
    ties = p.reduce_sum(chosen, axes=axes_of(v), keepdims=1)
    return [p.div(p.mul(chosen, v.grad.reshape(kept(v))), ties)]


@rule("reduce_l1")
def reduce_l1(v):
    return [p.mul(p.sign(v[0]), v.grad.reshape(kept(v)))]


def _ratio(v, a, b):
    """a / b, and 0 where b is 0."""
    none, zero = p.equal(b, v.constant(0.0)), v.constant(0.0)
    return p.where(none, zero, p.div(a, p.where(none, v.constant(1.0), b)))


@rule("reduce_l2", saves="operands result")
def reduce_l2(v):
    return [p.mul(v[0], _ratio(v, v.grad, v.result).reshape(kept(v)))]


@rule("reduce_sum_square")
def reduce_sum_square(v):
    return [p.mul(v[0], p.add(v.grad, v.grad).reshape(kept(v)))]


@rule("reduce_log_sum")
def reduce_log_sum(v):
    total = p.reduce_sum(v[0], axes=axes_of(v), keepdims=1)
    return [spread(v, p.div(v.grad.reshape(kept(v)), total))]


@rule("reduce_log_sum_exp", saves="operands result")
def reduce_log_sum_exp(v):
    none = p.isinf(v.result, negative=1, positive=0)  # of −∞ alone: 0
    level = p.where(none, v.constant(0.0), v.result)
    weights = p.exp(p.sub(v[0], level.reshape(kept(v))))
    return [p.mul(weights, v.grad.reshape(kept(v)))]


def _centered(v, grad):
    """grad · 2 (x − mean) / f with f as in reduce.10."""
    mean = p.reduce_mean(v[0], axes=axes_of(v), keepdims=1)
    freedom = v.constant(float(max(count(v) - v.attribute("correction"), 0)))
    return p.mul(p.sub(v[0], mean), p.div(p.add(grad, grad), freedom).reshape(kept(v)))


@rule("reduce_var")
def reduce_var(v):
    return [_centered(v, v.grad)]


@rule("reduce_std", saves="operands result")
def reduce_std(v):
    return [_centered(v, _ratio(v, v.grad, p.add(v.result, v.result)))]


no_gradient("argmax", "argmin", "hardmax")
