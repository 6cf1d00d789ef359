"""Gradients of convolutions: convolutions, and conv_backward_weight for the weights."""

from invar import primitives as p
from invar.autograd.rules import no_gradient, rule
from invar.autograd.units import rows_of_unit


def settings(v, axes):
    """strides, dilations, pads, groups of a call."""
    return (
        list(v.attribute("strides") or [1] * axes),
        list(v.attribute("dilations") or [1] * axes),
        list(v.attribute("pads") or [0] * 2 * axes),
        v.attribute("groups"),
    )


def transposed(grad, weight, shape, strides, dilations, pads, groups):
    """The gradient of the operand, of this shape, of a convolution with these settings: what no
    window reaches at its end is +0."""
    axes = len(shape) - 2
    begins, ends, more = pads[:axes], list(pads[axes:]), [0] * axes
    for i in range(axes):
        reach = (weight.shape[2 + i] - 1) * dilations[i] + 1
        length = (grad.shape[2 + i] - 1) * strides[i] + reach - begins[i] - ends[i]
        if length <= shape[2 + i]:
            more[i] = shape[2 + i] - length
        else:  # windows that end behind the operand
            ends[i] += length - shape[2 + i]
    return p.conv_transpose(
        grad,
        weight,
        strides=strides,
        dilations=dilations,
        pads=begins + ends,
        output_padding=more,
        groups=groups,
    )


def beside(x, units):
    """Rows of units, [units * rows, C, ...], with units as groups of channels: [rows, units * C,
    ...]."""
    x = x.reshape(units, -1, *x.shape[1:]).movedim(0, 1)
    return x.reshape(x.shape[0], -1, *x.shape[3:])


def weight_gradient(v, grad, x, named):
    """Of operand 1, a weight. Where its gradient is of single units, each is a group of
    channels."""
    shape, accumulator = v.shape(1), v.accumulator(1)
    if accumulator is None:
        return p.conv_backward_weight(grad, x, shape=shape, dtype="f32", **named)
    units = grad.shape[0] // rows_of_unit(accumulator, grad.shape[0], v.call.op)
    found = p.conv_backward_weight(
        beside(grad, units),
        beside(x, units),
        shape=(units * shape[0], *shape[1:]),
        dtype="f32",
        **{**named, "groups": units * named["groups"]},
    )
    accumulator.add(found.reshape(units, *shape))
    return None


def bias_gradient(v):
    """Of operand 2, a number for each channel."""
    grad, accumulator = v.grad, v.accumulator(2)
    if accumulator is None:
        return p.reduce_sum(grad, axes=[0, *range(2, grad.ndim)], keepdims=0)
    units = grad.shape[0] // rows_of_unit(accumulator, grad.shape[0], v.call.op)
    grad = grad.reshape(units, -1, *grad.shape[1:])
    accumulator.add(p.reduce_sum(grad, axes=[1, *range(3, grad.ndim)], keepdims=0))
    return None


@rule("conv", saves="others")
def conv(v):
    x, weight, grad = v[0], v[1], v.grad
    strides, dilations, pads, groups = settings(v, grad.ndim - 2)
    grads = [None] * len(v)
    if v.needs(0):
        grads[0] = transposed(grad, weight, v.shape(0), strides, dilations, pads, groups)
    if v.needs(1):
        named = {"strides": strides, "dilations": dilations, "pads": pads, "groups": groups}
        grads[1] = weight_gradient(v, grad, x, named)
    if len(v) > 2 and v.needs(2):
        grads[2] = bias_gradient(v)
    return grads


@rule("conv_transpose", saves="others")
def conv_transpose(v):
    x, weight, grad = v[0], v[1], v.grad
    axes = grad.ndim - 2
    strides, dilations, pads, groups = settings(v, axes)
    # The convolution of which it is the gradient: without what was appended.
    more = v.attribute("output_padding") or [0] * axes
    pads = pads[:axes] + [e - m for e, m in zip(pads[axes:], more)]
    named = {"strides": strides, "dilations": dilations, "pads": pads, "groups": groups}
    grads = [None] * len(v)
    if v.needs(0):
        grads[0] = p.conv(grad, weight, **named)
    if v.needs(1):
        grads[1] = weight_gradient(v, x, grad, named)
    if len(v) > 2 and v.needs(2):
        grads[2] = bias_gradient(v)
    return grads


@rule("conv_backward_weight", saves="others")
def conv_backward_weight(v):
    """Linear in both operands: `v.grad` has the weights' place in a convolution."""
    grad, x = v[0], v[1]
    strides, dilations, pads, groups = settings(v, v.grad.ndim - 2)
    named = {"strides": strides, "dilations": dilations, "pads": pads, "groups": groups}
    return [
        p.conv(x, v.grad, **named) if v.needs(0) else None,
        transposed(grad, v.grad, v.shape(1), strides, dilations, pads, groups)
        if v.needs(1)
        else None,
    ]


no_gradient("conv_exact16")
