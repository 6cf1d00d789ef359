"""Gradients of softmax and log_softmax, and of these gradients."""

from invar import primitives as p
from invar.autograd.rules import rule


def along(x, v):
    """The sum along the operation's axis, which stays."""
    return p.reduce_sum(x, axes=[v.attribute("axis", x.ndim - 1)], keepdims=1)


@rule("softmax", saves="result")
def softmax(v):
    return [p.softmax_backward(v.grad, v.result, axis=v.attribute("axis", -1))]


@rule("log_softmax", saves="result")
def log_softmax(v):
    return [p.log_softmax_backward(v.grad, v.result, axis=v.attribute("axis", -1))]


@rule("softmax_backward")
def softmax_backward(v):
    """dx = y (g - s), s = sum(g y)."""
    g, y, q = v[0], v[1], v.grad
    dg = dy = None
    if v.needs(0):
        dg = p.softmax_backward(q, y, axis=v.attribute("axis", -1))
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
