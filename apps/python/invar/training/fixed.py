"""Sums of contributions in int64 fixed point (spec/training.md training.3): integer addition is
associative, so the sum has the same bits however it is split."""

import torch

from invar import _native, primitives

TOO_LARGE = 1 << 30  # a magnitude from here on says that the sum may have overflowed (fixed.6)


def fixed_sum(per_unit):
    """[U, ...] f32 -> [...] i64: the sum of the contributions, each rounded to a multiple of
    2^-49."""
    if "fixed_sum" in _native.operations():
        return primitives.fixed_sum(per_unit)
    x = per_unit.to(torch.float64)
    x = torch.where(x.abs() < 2.0**14, x, 0.0)
    return torch.round(x * 2.0**49).to(torch.int64).sum(0)


def fixed_magnitude(per_unit):
    """[U, ...] f32 -> [] i64: a bound of the sum, in units of 2^-16; TOO_LARGE and more where a
    contribution is not finite or not below 2^14."""
    if "fixed_magnitude" in _native.operations():
        return primitives.fixed_magnitude(per_unit)
    x = per_unit.reshape(len(per_unit), -1).to(torch.float64).abs()
    if x.numel() == 0:
        return torch.zeros((), dtype=torch.int64, device=per_unit.device)
    fits = (x < 2.0**14).all(1)
    largest = torch.where(fits, torch.ceil(x.nan_to_num(0, 0, 0).amax(1) * 2.0**16), 0.0)
    return torch.where(fits, largest.to(torch.int64), TOO_LARGE).sum(0)


def fixed_value(total, magnitude):
    """The f32 next to a sum; NaN where its magnitude says that it may have overflowed."""
    if "fixed_value" in _native.operations():
        return primitives.fixed_value(total, magnitude)
    found = total.to(torch.float32) * 2.0**-49  # rounds once: the product is exact
    return torch.where(magnitude < TOO_LARGE, found, float("nan"))
