"""Sums and products of elements up to one in torch."""

import torch


def scanned(how, x, axis, exclusive, reverse):
    """torch.cumsum or torch.cumprod, from the other end, or of the elements before."""
    x = x.flip(axis) if reverse else x
    if exclusive and x.shape[axis]:
        first = torch.full_like(x.narrow(axis, 0, 1), how is torch.cumprod)
        x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    y = how(x, axis, dtype=x.dtype)
    return y.flip(axis) if reverse else y
