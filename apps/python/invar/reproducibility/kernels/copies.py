"""Sequences of numbers, and copies of other types and layouts."""

import math

import torch

from invar.reproducibility.kernels.handlers import cast, handler, number, p


def progression(start, step, steps, dtype, device):
    """start + i * step, two operations of binary64, rounded to dtype."""
    index = p("cast", torch.arange(steps), dtype="f64")
    found = p("add", p("mul", index, number(step, index)), number(start, index))
    return cast(found, torch.get_default_dtype() if dtype is None else dtype).to(device or "cpu")


@handler("arange")
def arange(*bounds, dtype=None, layout=None, device=None, pin_memory=None):
    """As many steps as torch makes; those of whole numbers are by whole numbers."""
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if dtype == torch.int64:
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise RuntimeError("arange: step: expected a number other than 0")
    steps = max(0, math.ceil((end - start) / step))
    if dtype is not None and not dtype.is_floating_point:
        start, step = int(start), int(step)
    return progression(start, step, steps, dtype, device)


@handler("linspace")
def linspace(start, end, steps, dtype=None, layout=None, device=None, pin_memory=None):
    """By the step (end - start) / (steps - 1); the last is `end`. Of whole numbers from whole ends,
    the second half counted from the last, rounded towards zero."""
    if dtype is not None and not dtype.is_floating_point and steps > 1:
        start, end = int(start), int(end)
        step = (end - start) / max(steps - 1, 1)
        half = steps // 2
        first = progression(start, step, half, torch.float64, device)
        last = progression(end, -step, steps - half, torch.float64, device).flip(0)
        return cast(torch.cat([first, last]), dtype)
    found = progression(start, (end - start) / max(steps - 1, 1), steps, dtype, device)
    if steps > 1:
        found[-1] = end
    return found


def laid_as(x, strides):
    """x in the layout of these strides, where they are those of channels last."""
    for n, layout in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if x.ndim == n == len(strides) and x.stride() != strides and strides[1] == 1:
            return x.contiguous(memory_format=layout)
    return x


@handler("_to_copy")
def to_copy(x, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False,
            memory_format=None):  # fmt: skip
    strides = x.stride() if x.layout == torch.strided else ()
    x = x if dtype is None else cast(x, dtype)
    x = x.to(device=device, non_blocking=non_blocking, copy=True) if device else x.clone()
    if memory_format in (torch.channels_last, torch.channels_last_3d, torch.contiguous_format):
        return x.contiguous(memory_format=memory_format)
    return laid_as(x, strides)


@handler("copy")
def copy(target, source, non_blocking=False):
    return cast(source, target.dtype)
