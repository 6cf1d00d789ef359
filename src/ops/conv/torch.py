"""Gradients of convolutions' weights in torch."""

import torch


def weight_gradient(grad, x, shape, stride, padding, dilation, groups):
    """torch.nn.grad of the weights; without images or channels they are zeros."""
    if 0 in grad.shape or 0 in x.shape or 0 in shape:
        return x.new_zeros(shape)
    of = getattr(torch.nn.grad, f"conv{x.dim() - 2}d_weight")
    return of(x, tuple(shape), grad, stride, padding, dilation, groups)
