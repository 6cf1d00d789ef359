"""Pooling in torch, where functional has no such windows."""

import torch
import torch.nn.functional as functional


def taps_inside(x, out, kernel, strides, dilations, pads):
    """For each spatial dimension the places [O, R] in x that its windows have."""
    axis = lambda n: torch.arange(n, device=x.device)
    return [
        axis(o)[:, None] * s + axis(r) * d - p
        for o, r, s, d, p in zip(out, kernel, strides, dilations, pads)
    ]


def windows(x, out, fill, kernel, strides, dilations, pads):
    """Elements [N, C, O..., R...] of the windows of all outputs, `fill` outside, and where they are
    inside [O..., R...]."""
    axes = len(kernel)
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    at = []
    for d, place in enumerate(taps_inside(x, out, kernel, strides, dilations, pads)):
        shape = [1] * 2 * axes
        shape[d], shape[axes + d] = place.shape
        n = x.shape[2 + d]
        inside = inside & ((place >= 0) & (place < n)).view(shape)
        at.append(place.clamp(0, n - 1).view(shape))
    return torch.where(inside, x[(slice(None), slice(None), *at)], fill), inside, at


def max_pool(x, out, **how):
    values, _, _ = windows(x, out, float("-inf"), **how)
    return values.flatten(-len(out)).amax(-1)


def max_pool_indices(x, out, column_major=0, plain=False, **how):
    """Indices in the whole of x: torch counts in a channel; -1 where a window is outside. plain:
    torch has such windows."""
    axes = len(out)
    sizes = x.shape[2:]
    if plain:
        pool = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[axes - 1]
        _, best = pool(
            x,
            how["kernel"],
            how["strides"],
            how["pads"][:axes],
            how["dilations"],
            plain == "ceil",
            return_indices=True,
        )
    else:
        values, inside, at = windows(x, out, float("-inf"), **how)
        values, inside = values.flatten(-axes), inside.expand(*out, *how["kernel"]).flatten(-axes)
        most = values.amax(-1, keepdim=True)
        hit = inside & ((values == most) | (values.isnan() & most.isnan()))
        tap = hit.byte().argmax(-1, keepdim=True)
        place = 0
        for n, i in zip(sizes, at):
            place = place * n + i
        best = (
            place.expand(*out, *how["kernel"])
            .flatten(-axes)
            .expand(hit.shape)
            .gather(-1, tap)
            .squeeze(-1)
        )
        best = torch.where(hit.any(-1), best, -1)
    outside = best < 0
    if column_major:
        rest, place = best, 0
        for n in reversed(sizes):
            place, rest = place * n + rest % n, rest // n
        best = place
    channel = torch.arange(x.shape[0] * x.shape[1], device=x.device).view(*x.shape[:2], *[1] * axes)
    return torch.where(outside, -1, best + channel * sizes.numel())


def average_pool(x, out, count_include_pad=0, ends=(), **how):
    values, inside, _ = windows(x, out, 0.0, **how)
    if count_include_pad:
        inside = torch.ones((), dtype=torch.bool, device=x.device)
        for d, place in enumerate(taps_inside(x, out, **how)):
            shape = [1] * 2 * len(out)
            shape[d], shape[len(out) + d] = place.shape
            inside = inside & (
                (place >= -how["pads"][d]) & (place < x.shape[2 + d] + ends[d])
            ).view(shape)
    count = inside.expand(*out, *how["kernel"]).flatten(-len(out)).sum(-1)
    return values.flatten(-len(out)).sum(-1) / count


def lp_pool(x, out, p=2, **how):
    values, _, _ = windows(x, out, 0.0, **how)
    return torch.linalg.vector_norm(values.flatten(-len(out)), p, dim=-1)
