"""Gradients of layer normalization, and of these gradients."""

import torch
from invar import primitives as p
from invar.autograd.norms import gradients, mean, over_rows, second_order
from invar.autograd.rules import rule


@rule("layernorm")
def layernorm(v):
    return gradients(v, "layernorm", v[0].ndim - v[1].ndim, v.attribute("epsilon"))


@rule("layernorm_backward")
def layernorm_backward(v):
    """dx = r (u' - h mean(u h)) with u = g w, u' = u - mean(u), h = (x - m) r: linear in u and
    symmetric, so its gradient by u is the operation itself. By x - m it is that of rmsnorm for
    centred u and q, whose mean is 0, so that by x it is the same."""
    g, x, w, epsilon = v[0], v[1], v[2], v.attribute("epsilon")
    rows, q = x.ndim - w.ndim, v.grad
    axes = list(range(rows, x.ndim))
    ones = torch.ones_like(w)
    dg = dx = dw = None
    if v.needs(0) or v.needs(2):
        du = p.layernorm_backward(q, x, ones, epsilon=epsilon)
        dg = p.mul(du, w) if v.needs(0) else None
        dw = over_rows(p.mul(g, du), rows) if v.needs(2) else None
    if v.needs(1):
        h = p.layernorm(x, ones, epsilon=epsilon)
        d = p.sub(x, mean(x, axes))
        square = p.add(mean(p.mul(d, d), axes), v.constant(epsilon))
        u = p.mul(g, w)
        u, q = p.sub(u, mean(u, axes)), p.sub(q, mean(q, axes))
        dx = p.mul(p.reciprocal(square), second_order(v, u, h, q, axes))
    return [dg, dx, dw]


@rule("layernorm_backward_weight")
def layernorm_backward_weight(v):
    """dw = sum of g h over rows: by g and x as layernorm with the weight that dw's gradient is."""
    g, x, q, epsilon = v[0], v[1], v.grad, v.attribute("epsilon")
    return [
        p.layernorm(x, q, epsilon=epsilon) if v.needs(0) else None,
        p.layernorm_backward(g, x, q, epsilon=epsilon) if v.needs(1) else None,
    ]
