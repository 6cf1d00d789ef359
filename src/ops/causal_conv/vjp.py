"""Gradients of causal convolutions: those of a convolution of x behind zeros."""

from invar import primitives as p
from invar.autograd.rules import rule


@rule("causal_conv", saves="others")
def causal_conv(v):
    grad, (channels, width) = v.grad.transpose(1, 2), v.shape(1)
    named = {"strides": [1], "dilations": [1], "pads": [width - 1, 0], "groups": channels}
    grads = [None] * len(v)
    for i in range(1, len(v)):
        if v.accumulator(i) is not None:
            v.refuse(i, "its contributions are not kept apart by units")
    if v.needs(0):
        weight = v[1].unsqueeze(1)
        back = p.conv_transpose(grad, weight, output_padding=[0], **named)
        grads[0] = back.transpose(1, 2)
    if v.needs(1):
        x = v[0].transpose(1, 2)
        shape = (channels, 1, width)
        found = p.conv_backward_weight(grad, x, shape=shape, dtype="f32", **named)
        grads[1] = found.reshape(channels, width)
    if v.needs(2):
        grads[2] = p.reduce_sum(v.grad, axes=[0, 1], keepdims=0)
    return grads
