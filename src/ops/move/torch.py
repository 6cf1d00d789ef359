"""Moving of elements in torch."""

import torch


def strided(x, starts, steps, shape):
    """Elements start + i * step of every dimension, steps of either sign."""
    for d, (start, step, n) in enumerate(zip(starts, steps, shape)):
        if (start, step, n) != (0, 1, x.shape[d]):
            start += x.shape[d] if start < 0 else 0
            x = x.index_select(d, start + step * torch.arange(n, device=x.device))
    return x


def pad(x, value, begins, shape):
    """x among elements that are all `value`."""
    y = value.reshape([1] * x.dim()).expand(shape).clone()
    for d, (begin, n) in enumerate(zip(begins, x.shape)):
        first, end = max(0, -begin), min(n, shape[d] - begin)
        if end <= first:
            return y
        x = x.narrow(d, first, end - first)
    y[tuple(slice(max(0, b), max(0, b) + n) for b, n in zip(begins, x.shape))] = x
    return y


def continued(x, mode, begins, shape):
    """x continued beyond its ends: by them ("edge"), mirrored there ("reflect"), or from the other
    end ("wrap")."""
    for d, (begin, m) in enumerate(zip(begins, shape)):
        n = x.shape[d]
        if (begin, m) == (0, n):
            continue
        i = torch.arange(m, device=x.device) - begin
        if mode == "edge":
            i = i.clamp(0, n - 1)
        elif mode == "wrap":
            i = i % n
        else:
            i = i % max(1, 2 * n - 2)
            i = torch.minimum(i, 2 * n - 2 - i)
        x = x.index_select(d, i)
    return x


def depth_to_space(x, b):
    """Channels in blocks of [b, b, C]; functional.pixel_shuffle has [C, b, b]."""
    n, c, h, w = x.shape
    return (
        x.reshape(n, b, b, c // (b * b), h, w)
        .permute(0, 3, 4, 1, 5, 2)
        .reshape(n, c // (b * b), h * b, w * b)
    )


def space_to_depth(x, b):
    n, c, h, w = x.shape
    return (
        x.reshape(n, c, h // b, b, w // b, b)
        .permute(0, 3, 5, 1, 2, 4)
        .reshape(n, b * b * c, h // b, w // b)
    )


def reverse_sequence(x, lengths, time_axis):
    n = x.shape[time_axis]
    t = torch.arange(n, device=x.device).unsqueeze(1 - time_axis)
    length = lengths.clamp(0, n).unsqueeze(time_axis)
    i = torch.where(t < length, length - 1 - t, t)
    sequence = torch.arange(x.shape[1 - time_axis], device=x.device).unsqueeze(time_axis)
    return x[(sequence, i) if time_axis else (i, sequence)]


def one_hot(indices, values, axis, depth):
    i = torch.where(indices < 0, indices + depth, indices).unsqueeze(axis)
    shape = [1] * i.dim()
    shape[axis] = depth
    return torch.where(i == torch.arange(depth, device=i.device).view(shape), values[1], values[0])
