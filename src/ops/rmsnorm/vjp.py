"""Gradients of RMS normalization, and of these gradients."""

import torch
from invar import primitives as p
from invar.autograd.rules import rule


def mean(x, axes):
    return p.reduce_mean(x, axes=axes, keepdims=1)


def over_rows(x, rows):
    """The sum over the first `rows` dimensions."""
    return p.reduce_sum(x, axes=list(range(rows)), keepdims=0) if rows else x


@rule("rmsnorm")
def rmsnorm(v):
    x, w, epsilon = v[0], v[1], v.attribute("epsilon")
    dx = dw = None
    if v.needs(0):
        dx = p.rmsnorm_backward(v.grad, x, w, epsilon=epsilon)
    if v.needs(1):
        dw = p.rmsnorm_backward_weight(v.grad, x, axis=x.ndim - w.ndim, epsilon=epsilon)
    return [dx, dw]


@rule("rmsnorm_backward")
def rmsnorm_backward(v):
    """dx = r (u - h mean(u h)) with u = g w, h = x r: linear in u and symmetric, so its gradient by
    u is the operation itself; by x it follows from dr/dx = -r^2 h / N."""
    g, x, w, epsilon = v[0], v[1], v[2], v.attribute("epsilon")
    axes, q = list(range(x.ndim - w.ndim, x.ndim)), v.grad
    dg = dx = dw = None
    if v.needs(0) or v.needs(2):
        du = p.rmsnorm_backward(q, x, torch.ones_like(w), epsilon=epsilon)
        dg = p.mul(du, w) if v.needs(0) else None
        if v.needs(2):
            dw = over_rows(p.mul(g, du), x.ndim - w.ndim)
    if v.needs(1):
        h = p.rmsnorm(x, torch.ones_like(w), epsilon=epsilon)
        square = p.add(mean(p.mul(x, x), axes), v.constant(epsilon))
        dx = p.mul(p.reciprocal(square), second_order(v, p.mul(g, w), h, q, axes))
    return [dg, dx, dw]


def second_order(v, u, h, q, axes):
    """3 h B C - h A - u C - q B with A = mean(q u), B = mean(u h), C = mean(q h): the derivative of
    sum(q r (u - h B)) by what h = r (...) was made of, over r^2."""
    a, b, c = mean(p.mul(q, u), axes), mean(p.mul(u, h), axes), mean(p.mul(q, h), axes)
    inner = p.sub(p.mul(p.mul(b, c), v.constant(3.0)), a)
    return p.sub(p.sub(p.mul(h, inner), p.mul(u, c)), p.mul(q, b))


@rule("rmsnorm_backward_weight")
def rmsnorm_backward_weight(v):
    """dw = sum of g h over rows: by g and x as rmsnorm with the weight that dw's gradient is."""
    g, x, q, epsilon = v[0], v[1], v.grad, v.attribute("epsilon")
    return [
        p.rmsnorm(x, q, epsilon=epsilon) if v.needs(0) else None,
        p.rmsnorm_backward(g, x, q, epsilon=epsilon) if v.needs(1) else None,
    ]
