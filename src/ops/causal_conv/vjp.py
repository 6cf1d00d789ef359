"""Gradients of causal convolutions: those of a convolution of x behind zeros."""

from invar import primitives as p
from invar.autograd.rules import rule
from invar.autograd.units import rows_of_unit


def units_of(v, i):
    """The parts of the batch whose gradients of operand i are kept apart; one where it is
    summed."""
    if (accumulator := v.accumulator(i)) is None:
        return 1
    rows = v.grad.shape[0]
    return rows // rows_of_unit(accumulator, rows, v.call.op)


def given(v, i, units, grad):
    """The gradient of operand i, or None where its accumulator takes that of each unit."""
    if (accumulator := v.accumulator(i)) is None:
        return grad.reshape(v.shape(i))
    accumulator.add(grad.reshape(units, *v.shape(i)))
    return None


def of_weight(v, named):
    """Each unit is a group of channels."""
    units, (channels, width) = units_of(v, 1), v.shape(1)

    def beside(x):
        x = x.reshape(units, -1, *x.shape[1:]).permute(1, 0, 3, 2)
        return x.reshape(x.shape[0], units * channels, x.shape[3])

    shape = (units * channels, 1, width)
    named = {**named, "groups": units * channels}
    found = p.conv_backward_weight(beside(v.grad), beside(v[0]), shape=shape, dtype="f32", **named)
    return given(v, 1, units, found)


def of_bias(v):
    units = units_of(v, 2)
    grad = v.grad.reshape(units, -1, *v.grad.shape[1:])
    return given(v, 2, units, p.reduce_sum(grad, axes=[1, 2], keepdims=0))


@rule("causal_conv", saves="others")
def causal_conv(v):
    channels, width = v.shape(1)
    named = {"strides": [1], "dilations": [1], "pads": [width - 1, 0], "groups": channels}
    grads = [None] * len(v)
    if v.needs(0):
        grad, weight = v.grad.transpose(1, 2), v[1].unsqueeze(1)
        back = p.conv_transpose(grad, weight, output_padding=[0], **named)
        grads[0] = back.transpose(1, 2)
    if v.needs(1):
        grads[1] = of_weight(v, named)
    if v.needs(2):
        grads[2] = of_bias(v)
    return grads
