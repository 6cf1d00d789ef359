"""The gradient of resize: along each resized dimension, an element gets the gradients of those that
it had a weight in, each times that weight. Short dimensions are products with the matrix of weights
(contraction.2); from long ones the weights that are not 0 are gathered and summed (reduction.2)."""

import functools
import math

import numpy as np
import torch
from invar import NotCovered
from invar import primitives as p
from invar.autograd.rules import rule, table, widened

_ONE = 0x3F800000  # 1, as scales and regions have it
_MOST = 512  # elements of a short dimension
_CROP = 5  # coordinates: crop_and_resize


@functools.lru_cache(64)
def matrix(n, m, scale, region, settings):
    """The weights of n elements in m results, f32 [n, m]: what resize makes of unit vectors."""
    roi = {"roi": [0, region[0], _ONE, region[1]]} if region else {}
    return p.resize(
        np.eye(n, dtype=np.float32),
        shape=(n, m),
        scales=[0, scale],
        extrapolation=0.0,
        **roi,
        **dict(settings),
    )


def chosen(unit):
    """For each element the results that it has a weight in, i64 [n, most]; then any."""
    most = max(1, int((unit != 0).sum(1).max(initial=0)))
    return np.argsort(unit == 0, axis=1, kind="stable")[:, :most]


def spread(grad, axis, key):
    """The transpose of one axis of resize."""
    n, shape, unit = key[0], grad.shape, functools.partial(matrix, *key)
    kept = lambda kind, make: table(("resize", kind, key), grad.device, make)
    if n > _MOST:
        index = kept("index", lambda: chosen(unit()))
        weight = kept("some", lambda: np.take_along_axis(unit(), chosen(unit()), 1))
        weight = weight.reshape(*weight.shape, *[1] * (grad.ndim - axis - 1))
        terms = p.mul(p.gather(grad, index, axis=axis), weight)
        return p.reduce_sum(terms, axes=[axis + 1], keepdims=0)
    weight = kept("all", unit)
    if axis == grad.ndim - 1:
        rows = grad.reshape(math.prod(shape[:-1]), shape[-1])
        found = p.matmul(rows, weight, trans_a=0, trans_b=1)
    else:
        inner = math.prod(shape[axis + 1 :])
        found = p.matmul(weight, grad.reshape(-1, shape[axis], inner), trans_a=0, trans_b=0)
    return found.reshape(*shape[:axis], n, *shape[axis + 1 :])


@rule("resize", saves="")
def resize(v):
    shape, grad = v.shape(0), widened(v.grad)
    if grad.dtype != torch.float32:
        raise NotCovered(f"resize: the gradient of {grad.dtype}; f32 is")
    names = ("order", "coordinates", "rounding", "antialias", "exclude_outside")
    settings = {name: v.attribute(name, 0) for name in names}
    settings["cubic"] = v.attribute("cubic")
    scales = v.attribute("scales") or [0] * len(shape)
    roi = v.attribute("roi") if settings["coordinates"] % 8 == _CROP else None
    for d, (n, m, scale) in enumerate(zip(shape, v.grad.shape, scales)):
        region = (roi[d], roi[len(shape) + d]) if roi else None
        if n == m and scale in (0, _ONE) and region in (None, (0, _ONE)):
            continue  # kept
        grad = spread(grad, d, (n, m, scale, region, tuple(settings.items())))
    return [grad]
