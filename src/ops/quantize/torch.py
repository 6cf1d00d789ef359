"""Quantization in torch."""

import torch


def blocks(v, axis, block, n):
    """Of scales or zero points for `block` indices of an axis of n, one for each."""
    return v.repeat_interleave(min(block, n), axis).narrow(axis, 0, n)


def quantized(x, scale, zero, dtype):
    """NaN becomes the zero point."""
    steps = torch.round(x / scale)
    steps = torch.where(steps.isnan(), 0.0, steps)
    limits = torch.iinfo(dtype)
    return torch.clamp(steps if zero is None else steps + zero, limits.min, limits.max).to(dtype)
