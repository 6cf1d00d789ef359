import math
import struct

import torch

HALF_PIXEL, SYMMETRIC, PYTORCH, ALIGN_CORNERS, ASYMMETRIC, CROP, BY_SCALE = range(7)


def coordinates_of(how, n, m, scale, begin, end, device):
    """Where the m elements of the result lie between the n of the operand."""
    x = torch.arange(m, dtype=torch.float64, device=device)
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
    rank = x.dim()
    outside = torch.zeros((), dtype=torch.bool, device=x.device)
    for d, (n, m) in enumerate(zip(x.shape, shape)):
        scale, begin, end = (
            scales[d] if scales else 0,
            *((roi[d], roi[rank + d]) if roi else (0, 0)),
        )
        scale = scale or (m / n if n else 1)
        if n == m and scale == 1 and (coordinates != CROP or (begin, end) == (0, 1)):
            continue
        c = coordinates_of(coordinates, n, m, scale, begin, end, x.device)
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


def of_bits(listed):
    return [struct.unpack("<f", struct.pack("<I", b % 2**32))[0] for b in listed]


MODES = {
    (0, 1): "nearest",
    (1, 1): "linear",
    (1, 2): "bilinear",
    (1, 3): "trilinear",
    (3, 2): "bicubic",
}


def interpolated(c):
    """The same as a call of functional.interpolate; None where it has no such resize."""
    x, y, axes = c.operand_types[0][1], c.type[1], c.rank() - 2
    order, how = c.get("order", 0), c.get("coordinates", 0)
    mode = MODES.get((order, axes))
    sizes = [(n, m) for n, m in zip(x[2:], y[2:])]
    scales = of_bits(c.scales or [0] * c.rank())
    if (
        not mode
        or order == 0
        or c.type[0] != "f32"
        or x[:2] != y[:2]
        or not all(isinstance(v, int) and v for s in sizes for v in s)
    ):
        return None
    if (
        c.antialias
        or c.exclude_outside
        or any(s and s * n != m for s, n, m in zip(scales[2:], x[2:], y[2:]))
        or set(scales[:2]) - {0, 1}
    ):
        return None
    if (order == 3 and c.get("cubic", -0.75) != -0.75) or how not in (
        HALF_PIXEL,
        PYTORCH,
        ALIGN_CORNERS,
    ):
        return None
    if how == PYTORCH and any(m == 1 for _, m in sizes):
        return None
    return (
        f'functional.interpolate({c[0]}, size={tuple(y[2:])}, mode="{mode}", '
        f"align_corners={how == ALIGN_CORNERS})"
    )


def spelled(c):
    plain = interpolated(c)
    if plain:
        return plain
    bits = {
        name: of_bits(c.attributes[name]) for name in ("scales", "roi") if c.attributes.get(name)
    }
    lists = "".join(f", {name}={values!r}" for name, values in bits.items() if any(values))
    return (
        f"rooms.resize.resize({c[0]}, "
        f"{c.shape}{c.keywords(*sorted(c.attributes.keys() - bits.keys()))}{lists})"
    )


SPELLED = {"resize": spelled}
