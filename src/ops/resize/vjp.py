"""The gradient of resize: along each resized dimension, an element gets the gradients of those that
it had a weight in, each times that weight, summed ascending (reduce_sum)."""

import functools

import numpy as np
import torch
from invar import NotCovered
from invar import primitives as p
from invar.autograd.rules import rule

_ONE = 0x3F800000  # 1, as scales and regions have it
_CROP = 5  # coordinates: crop_and_resize


@functools.lru_cache(64)
def weights(n, m, scale, region, device, **settings):
    """For each of n elements the results, of m, that it has a weight in: indices i64 [n, most] and
    weights f32 [n, most], those that are missing 0. They are what resize makes of unit vectors."""
    roi = {"roi": [0, region[0], _ONE, region[1]]} if region else {}
    unit = p.resize(
        np.eye(n, dtype=np.float32),
        shape=(n, m),
        scales=[0, scale],
        extrapolation=0.0,
        **roi,
        **settings,
    )
    most = max(1, int((unit != 0).sum(1).max(initial=0)))
    order = np.argsort(unit == 0, axis=1, kind="stable")[:, :most]
    found = np.take_along_axis(unit, order, 1)
    index = np.where(found != 0, order, 0)
    return torch.from_numpy(index).to(device), torch.from_numpy(found).to(device)


def spread(grad, axis, index, weight):
    """The transpose of one axis of resize."""
    beside = [1] * (grad.ndim - axis - 1)
    terms = p.mul(p.gather(grad, index, axis=axis), weight.reshape(*weight.shape, *beside))
    return p.reduce_sum(terms, axes=[axis + 1], keepdims=0)


@rule("resize", saves="")
def resize(v):
    shape, grad = v.shape(0), v.grad
    if grad.dtype != torch.float32:
        raise NotCovered(f"resize: the gradient of {grad.dtype}; f32 is")
    names = ("order", "coordinates", "rounding", "antialias", "exclude_outside")
    settings = {name: v.attribute(name, 0) for name in names}
    settings["cubic"] = v.attribute("cubic", -0.75)
    scales = v.attribute("scales") or [0] * len(shape)
    roi = v.attribute("roi") if settings["coordinates"] == _CROP else None
    for d, (n, m, scale) in enumerate(zip(shape, v.grad.shape, scales)):
        region = (roi[d], roi[len(shape) + d]) if roi else None
        if n == m and scale in (0, _ONE) and region in (None, (0, _ONE)):
            continue  # kept
        grad = spread(grad, d, *weights(n, m, scale, region, grad.device, **settings))
    return [grad]
