"""Gradients of LayerNorm in torch."""

import torch


def normalized(x, dims, epsilon):
    """(x - mean) times the factor, and the factor."""
    d = x - x.mean(dims, keepdim=True)
    r = torch.rsqrt(d.square().mean(dims, keepdim=True) + epsilon)
    return d * r, r


def backward(grad, x, weight, epsilon):
    dims = tuple(range(-weight.dim(), 0))
    h, r = normalized(x, dims, epsilon)
    u = grad * weight
    mean = u.mean(dims, keepdim=True)
    return (u - mean - h * (u * h).mean(dims, keepdim=True)) * r


def backward_weight(grad, x, axis, epsilon):
    product = grad * normalized(x, tuple(range(axis, x.dim())), epsilon)[0]
    return product.sum(tuple(range(axis))) if axis else product
