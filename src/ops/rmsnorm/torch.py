"""Gradients of RMSNorm in torch."""

import torch


def factor(x, dims, epsilon):
    return torch.rsqrt(x.square().mean(dims, keepdim=True) + epsilon)


def backward(grad, x, weight, epsilon):
    dims = tuple(range(-weight.dim(), 0))
    r = factor(x, dims, epsilon)
    u, h = grad * weight, x * r
    return (u - h * (u * h).mean(dims, keepdim=True)) * r


def backward_weight(grad, x, axis, epsilon):
    product = grad * (x * factor(x, tuple(range(axis, x.dim())), epsilon))
    return product.sum(tuple(range(axis))) if axis else product
