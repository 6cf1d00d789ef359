"""Gradients of batch normalization with given mean and variance. In training these are the batch's,
and the gradients by them lead on to x."""

from invar import primitives as p
from invar.autograd.rules import rule


def by_channel(x, ndim):
    """A value of each channel, to be broadcast over [batch, channels, ...]."""
    return x.reshape(-1, *(1,) * (ndim - 2))


def over_channels(x):
    """The sum over everything but the channels."""
    return p.reduce_sum(x, axes=[i for i in range(x.ndim) if i != 1], keepdims=0)


@rule("batchnorm")
def batchnorm(v):
    """y = (x - m) r w + b, r = 1 / sqrt(variance + epsilon); dr/dvariance = -r^3 / 2."""
    x, w, _, m, variance = (v[i] for i in range(5))
    grad = v.grad
    r = p.reciprocal(p.sqrt(p.add(variance, v.constant(v.attribute("epsilon")))))
    scale = p.mul(r, w)
    grads = [None] * 5
    if v.needs(0):
        grads[0] = p.mul(grad, by_channel(scale, x.ndim))
    total = over_channels(grad) if v.needs(2) or v.needs(3) else None
    if v.needs(1) or v.needs(4):
        centred = p.sub(x, by_channel(m, x.ndim))
        moment = p.mul(over_channels(p.mul(grad, centred)), r)  # sum of grad (x - m) r
        grads[1] = moment if v.needs(1) else None
        if v.needs(4):
            grads[4] = p.mul(p.mul(p.mul(moment, w), p.mul(r, r)), v.constant(-0.5))
    if v.needs(2):
        grads[2] = total
    if v.needs(3):
        grads[3] = p.neg(p.mul(total, scale))
    return grads
