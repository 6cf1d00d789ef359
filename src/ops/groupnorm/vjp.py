"""Gradients of group normalization: those of layer normalization, of which each row is a group."""

import torch
from invar import primitives as p
from invar.autograd.rules import rule


def by_channel(x, ndim):
    """A value of each channel, to be broadcast over [batch, channels, ...]."""
    return x.reshape(-1, *(1,) * (ndim - 2))


def over_channels(x):
    """The sum over everything but the channels."""
    return p.reduce_sum(x, axes=[i for i in range(x.ndim) if i != 1], keepdims=0)


@rule("groupnorm")
def groupnorm(v):
    x, w, grad, epsilon = v[0], v[1], v.grad, v.attribute("epsilon")
    grads = [None] * 3
    rows = x.reshape(x.shape[0] * v.attribute("groups"), -1)
    ones = torch.ones(rows.shape[1], device=x.device)
    if v.needs(0):
        weighted = p.mul(grad, by_channel(w, x.ndim)).reshape(rows.shape)
        grads[0] = p.layernorm_backward(weighted, rows, ones, epsilon=epsilon).reshape(x.shape)
    if v.needs(1):
        h = p.layernorm(rows, ones, epsilon=epsilon).reshape(x.shape)
        grads[1] = over_channels(p.mul(grad, h))
    if v.needs(2):
        grads[2] = over_channels(grad)
    return grads
