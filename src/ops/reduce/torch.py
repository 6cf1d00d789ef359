"""Reductions that torch lacks."""

import torch


def prod(x, axes, keepdim):
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keepdim=keepdim, dtype=x.dtype)
    return x


def mean_of_integers(x, axes, keepdim):
    """Towards zero; 0 of no elements."""
    total = torch.sum(x, axes, keepdim=keepdim, dtype=x.dtype)
    n = 1
    for axis in axes:
        n *= x.shape[axis]
    return torch.div(total, n, rounding_mode="trunc") if n else total


def last_of(how, x, axis, keepdim):
    """The last of equals, by torch.argmax or torch.argmin of what is turned."""
    return x.shape[axis] - 1 - how(x.flip(axis), axis, keepdim=keepdim)
