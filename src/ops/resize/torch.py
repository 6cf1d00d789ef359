"""ONNX Resize in torch, where functional.interpolate has no such."""

import math

import torch

HALF_PIXEL, SYMMETRIC, PYTORCH, ALIGN_CORNERS, ASYMMETRIC, CROP, BY_SCALE = range(7)
IN_BINARY32 = 8  # added to one of these


def coordinates_of(how, n, m, scale, begin, end, device, binary32=False):
    """Where the m elements of the result lie between the n of the operand."""
    x = torch.arange(m, dtype=torch.float32 if binary32 else torch.float64, device=device)
    if how == ASYMMETRIC:
        return x / scale
    if how == ALIGN_CORNERS:
        return x * (n - 1) / (m - 1) if m > 1 else x
    if how == BY_SCALE:
        return x * (n - 1) / (scale * n - 1) if scale * n != 1 else x * 0
    if how == CROP:
        return (
            begin * (n - 1) + x * (end - begin) * (n - 1) / (m - 1)
            if m > 1
            else x + 0.5 * (begin + end) * (n - 1)
        )
    if how == PYTORCH and m == 1:
        return x
    moved = n / 2 * (1 - m / (scale * n)) if how == SYMMETRIC else 0
    return moved + (x + 0.5) / scale - 0.5


def nearest(c, rounding):
    f = c.floor()
    rest = c - f
    return (f + ((rest > 0.5), (rest >= 0.5), torch.zeros_like(rest), (rest > 0))[rounding]).long()


def kernel(d, order, a):
    d = d.abs()
    if order == 1:
        return torch.where(d < 1, 1 - d, 0.0)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return torch.where(d < 1, near, torch.where(d < 2, far, 0.0))


def taps(c, n, scale, order, cubic, antialias, exclude_outside):
    """For each element of the result the indices and weights of what it is made of."""
    support, shrink = (1 if order == 1 else 2), (scale if antialias and scale < 1 else 1)
    reach = math.ceil(support / shrink)
    j = c.floor().long()[:, None] + torch.arange(1 - reach, reach + 1, device=c.device)
    weight = kernel((j - c[:, None]) * shrink, order, cubic)
    if exclude_outside:
        weight = torch.where((j >= 0) & (j < n), weight, 0.0)
    if exclude_outside or antialias:
        weight = weight / weight.sum(1, keepdim=True)
    return j.clamp(0, n - 1), weight


def resize(
    x,
    shape,
    order=0,
    coordinates=0,
    rounding=0,
    antialias=0,
    exclude_outside=0,
    cubic=-0.75,
    extrapolation=0.0,
    scales=(),
    roi=(),
):
    """ONNX Resize; functional.interpolate has some of its coordinates."""
    rank, binary32 = x.dim(), coordinates >= IN_BINARY32
    coordinates %= IN_BINARY32
    outside = torch.zeros((), dtype=torch.bool, device=x.device)
    for d, (n, m) in enumerate(zip(x.shape, shape)):
        scale, begin, end = (
            scales[d] if scales else 0,
            *((roi[d], roi[rank + d]) if roi else (0, 0)),
        )
        scale = scale or (m / n if n else 1)
        if n == m and scale == 1 and (coordinates != CROP or (begin, end) == (0, 1)):
            continue
        c = coordinates_of(coordinates, n, m, scale, begin, end, x.device, binary32).double()
        along = [1] * rank
        along[d] = m
        if coordinates == CROP:
            outside = outside | ((c < 0) | (c > n - 1)).view(along)
        if order == 0:
            x = x.index_select(d, nearest(c, rounding).clamp(0, n - 1))
            continue
        index, weight = taps(c, n, scale, order, cubic, antialias, exclude_outside)
        weight = weight.to(x.dtype)
        x = sum(
            x.index_select(d, index[:, k]) * weight[:, k].view(along) for k in range(index.shape[1])
        )
    if coordinates != CROP:
        return x
    return torch.where(
        outside,
        torch.tensor(extrapolation if x.is_floating_point() else 0, dtype=x.dtype, device=x.device),
        x,
    )
