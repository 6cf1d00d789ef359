"""Elementwise functions that torch lacks."""

import math

import torch


def cbrt(x):
    return torch.copysign(torch.abs(x).pow(1 / 3), x)


def sinpi(x):
    return torch.sin(torch.remainder(x, 2) * math.pi)


def cospi(x):
    return torch.cos(torch.remainder(x, 2) * math.pi)


def shifted_down(x, places):
    """Of u64, of which torch has no shift: that of i64, without the copies of the top bit."""
    x, places = x.view(torch.int64), places.view(torch.int64)
    inside = (places >= 0) & (places < 64)
    places = torch.where(inside, places, 0)
    copied = torch.where(places > 0, -1 << (64 - places).clamp(max=63), 0)
    return torch.where(inside, x >> places & ~copied, 0).view(torch.uint64)
