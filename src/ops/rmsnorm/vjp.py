"""Gradients of RMS normalization, and of these gradients."""

import torch
from invar import primitives as p
from invar.autograd.norms import gradients, mean, over_rows, second_order
from invar.autograd.rules import rule


@rule("rmsnorm")
def rmsnorm(v):
    return gradients(v, "rmsnorm", v[0].ndim - v[1].ndim, v.attribute("epsilon"))


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


@rule("rmsnorm_backward_weight")
def rmsnorm_backward_weight(v):
    """dw = sum of g h over rows: by g and x as rmsnorm with the weight that dw's gradient is."""
    g, x, q, epsilon = v[0], v[1], v.grad, v.attribute("epsilon")
    return [
        p.rmsnorm(x, q, epsilon=epsilon) if v.needs(0) else None,
        p.rmsnorm_backward(g, x, q, epsilon=epsilon) if v.needs(1) else None,
    ]
