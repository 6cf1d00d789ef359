"""Gradients of softmax, log_softmax and cross_entropy, and of these gradients."""

import torch
from invar import primitives as p
from invar.autograd.rules import rule


def along(x, v):
    """The sum along the operation's axis, which stays."""
    return p.reduce_sum(x, axes=[v.attribute("axis")], keepdims=1)


@rule("softmax", saves="result")
def softmax(v):
    return [p.softmax_backward(v.grad, v.result, axis=v.attribute("axis"))]


@rule("log_softmax", saves="result")
def log_softmax(v):
    return [p.log_softmax_backward(v.grad, v.result, axis=v.attribute("axis"))]


@rule("softmax_backward")
def softmax_backward(v):
    """dx = y (g - s), s = sum(g y)."""
    g, y, q = v[0], v[1], v.grad
    dg = dy = None
    if v.needs(0):
        dg = p.softmax_backward(q, y, axis=v.attribute("axis"))
    if v.needs(1):
        s, t = along(p.mul(g, y), v), along(p.mul(q, y), v)
        dy = p.sub(p.mul(q, p.sub(g, s)), p.mul(g, t))
    return [dg, dy]


@rule("log_softmax_backward")
def log_softmax_backward(v):
    """dx = g - e s, s = sum(g), e = exp(y)."""
    g, y, q = v[0], v[1], v.grad
    weighted = p.mul(q, p.exp(y))
    return [
        p.sub(q, along(weighted, v)) if v.needs(0) else None,
        p.neg(p.mul(weighted, along(g, v))) if v.needs(1) else None,
    ]


@rule("cross_entropy")
def cross_entropy(v):
    """One operation; gradients of the gradient by the composition of the same bits."""
    v.refuse(1, "classes have no gradient")
    x, target, ignore = v[0], v[1], v.attribute("ignore")
    if not torch.is_grad_enabled():
        return [p.cross_entropy_backward(v.grad, x, target, ignore=ignore), None]
    ignored = p.equal(target, torch.full((), ignore, dtype=torch.int64, device=x.device))
    zero = torch.zeros((), dtype=torch.int64, device=x.device)
    grad = p.neg(p.where(ignored, v.constant(0.0), v.grad))
    rows = p.scatter_elements(
        torch.zeros(x.shape, dtype=x.dtype, device=x.device),
        p.where(ignored, zero, target).unsqueeze(1),
        grad.unsqueeze(1),
        axis=1,
        reduction=1,
    )
    return [p.log_softmax_backward(rows, p.log_softmax(x, axis=1), axis=1), None]
