"""Sampling of images at places of a grid."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from invar import arrays
from invar import primitives as p
from invar.errors import NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array


def _at(value: float, like: Any) -> Any:
    return t.beside(value, like)


def _unnormalised(g: Any, size: int, align: bool) -> Any:
    """From -1 ... 1 to elements: ((g + 1) / 2) (size - 1), or ((g + 1) size - 1) / 2."""
    one = _at(1, g)
    if align:
        return p.mul(p.mul(p.add(g, one), _at(0.5, g)), _at(size - 1, g))
    return p.mul(p.sub(p.mul(p.add(g, one), _at(size, g)), one), _at(0.5, g))


def _reflected(x: Any, low: float, high: float) -> Any:
    """x mirrored at `low` and `high`, which are halves of whole numbers."""
    if high <= low:
        return p.mul(x, _at(0, x))
    span = _at(high - low, x)
    x = p.abs(p.sub(x, _at(low, x)))
    extra = p.fmod(x, span)
    turns = p.floor(p.div(x, span))
    odd = p.equal(p.fmod(turns, _at(2, x)), _at(1, x))
    back = p.sub(p.sub(span, extra), _at(-low, x))
    return p.where(odd, back, p.add(extra, _at(low, x)))


def _placed(g: Any, size: int, padding: str, align: bool) -> Any:
    x = _unnormalised(g, size, align)
    if padding == "reflection":
        bounds = (0.0, float(size - 1)) if align else (-0.5, size - 0.5)
        x = _reflected(x, *bounds)
    if padding != "zeros":
        x = p.min(p.max(x, _at(0, x)), _at(size - 1, x))
    return x


def _taken(flat: Any, corner: Sequence[Any], size: Sequence[int], weight: Any = None) -> Any:
    """flat [N, C, elements] at whole places, f32 [N, L] for each dimension, times a weight [N, L]
    -> [N, C, L]; 0 outside."""
    inside, index = None, None
    for x, n in zip(corner, size):
        here = p.logical_and(
            p.greater_equal(x, _at(0, x)), p.logical_not(p.greater(x, _at(n - 1, x)))
        )
        inside = here if inside is None else p.logical_and(inside, here)
    for x, n in zip(corner, size):
        i = t.cast(p.where(inside, arr.detached(x), _at(0, x)), "i64")
        index = i if index is None else p.add(p.mul(index, t.number(n, "i64", i)), i)
    assert index is not None and inside is not None
    wide = arr.expand(arr.insert(index, 1), (flat.shape[0], flat.shape[1], index.shape[1]))
    found = p.gather_elements(flat, wide, axis=2)
    found = found if weight is None else p.mul(found, arr.insert(weight, 1))
    return p.where(arr.insert(inside, 1), found, _at(0, flat))


@public
def grid_sample(
    input: Array,
    grid: Array,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Array:
    """input [N, C, H, W] at the places of grid [N, h, w, 2] (x, y of -1 ... 1) -> [N, C, h, w];
    with three spatial dimensions grid [N, d, h, w, 3]. mode: "bilinear" or "nearest"; "bicubic" is
    refused. padding_mode: "zeros", "border" or "reflection".

    The corners of a place are added in ascending order of their elements, each times the product of
    its weights, from the first dimension to the last. f32, bf16, f16; both of one type. Places that
    are NaN are outside. Raises RuntimeError for shapes and types that do not fit.
    Spec: elementwise.5, elementwise.6, gather.5."""
    name = "grid_sample"
    if mode not in ("bilinear", "nearest"):
        if mode == "bicubic":
            raise NotCovered(f"{name}: argument 'mode': 'bicubic'; covered: 'bilinear', 'nearest'")
        raise OperandError(
            f"{name}: argument 'mode': expected 'bilinear' or 'nearest', got {mode!r}"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise OperandError(
            f"{name}: argument 'padding_mode': expected 'zeros', 'border' or 'reflection', got "
            f"{padding_mode!r}"
        )
    e = t.real(name, input)
    if t.real(name, grid, "grid") != e:
        raise OperandError(
            f"{name}: argument 'grid': expected elements of {t.spelled(e)} as 'input' has, got "
            f"{t.spelled(t.type_of(grid, 'grid'))}"
        )
    t.same_kind(name, input=input, grid=grid)
    n = input.ndim - 2
    if n not in (2, 3) or grid.ndim != n + 2 or grid.shape[-1] != n:
        raise OperandError(
            f"{name}: argument 'grid': expected [N, h, w, 2] beside [N, C, H, W], or [N, d, h, w, 3], got "
            f"{tuple(grid.shape)} beside {tuple(input.shape)}"
        )
    if grid.shape[0] != input.shape[0] or 0 in input.shape[2:]:
        raise OperandError(
            f"{name}: argument 'grid': expected {input.shape[0]} images with elements, got "
            f"{tuple(grid.shape)} beside {tuple(input.shape)}"
        )
    x, g = t.wide(name, input), t.wide(name, grid).reshape(input.shape[0], -1, n)
    size, align = list(x.shape[2:]), bool(align_corners)
    flat = x.reshape(*x.shape[:2], -1)
    # The last number of a place is of the first spatial dimension.
    at = [_placed(g[..., n - 1 - d], size[d], padding_mode, align) for d in range(n)]
    if mode == "nearest":
        y = _taken(flat, [p.round(v) for v in at], size)
    else:
        y = _interpolated(flat, at, size)
    return cast(Array, t.cast(y.reshape(*x.shape[:2], *grid.shape[1:-1]), e))


def _interpolated(flat: Any, at: Sequence[Any], size: Sequence[int]) -> Any:
    low = [p.floor(v) for v in at]
    high = [p.add(v, _at(1, v)) for v in low]
    weights = [(p.sub(h, v), p.sub(v, w)) for v, w, h in zip(at, low, high)]
    found = None
    for corner in itertools.product((0, 1), repeat=len(at)):
        place = [(w, h)[c] for w, h, c in zip(low, high, corner)]
        weight = functools.reduce(p.mul, (w[c] for w, c in zip(weights, corner)))
        part = _taken(flat, place, size, weight)
        found = part if found is None else p.add(found, part)
    return found


@public
def affine_grid(theta: Array, size: Sequence[int], align_corners: bool | None = None) -> Array:
    """The grid for grid_sample of affine maps: theta [N, 2, 3] and size (N, C, H, W) -> [N, H, W,
    2], or theta [N, 3, 4] and size of five -> [N, D, H, W, 3]. The places before the map are
    rounded to f32 (f64) once. f32, bf16, f16, f64.

    Raises RuntimeError for shapes and types that do not fit. Spec: matmul.1, matmul.2."""
    name = "affine_grid"
    e = t.real(name, theta, "theta")
    n = len(size) - 2
    if n not in (2, 3) or tuple(theta.shape) != (size[0], n, n + 1):
        raise OperandError(
            f"{name}: argument 'theta': expected shape ({size[0] if size else 'N'}, {n}, {n + 1}) for "
            f"the size {tuple(size)}, got {tuple(theta.shape)}"
        )
    space = [int(v) for v in size[2:]]
    wide: Any = np.float64 if e == "f64" else np.float32
    lines = [_line(v, bool(align_corners)).astype(wide) for v in reversed(space)]
    ones = np.ones(space, wide)
    grids = [ones * v.reshape((-1,) + (1,) * d) for d, v in enumerate(lines)]
    base: Any = np.stack([*grids, ones], -1).reshape(-1, n + 1)
    if arrays.is_tensor(theta):
        import torch

        base = torch.from_numpy(base).to(theta.device)
    y = p.matmul(base, t.wide(name, theta), trans_a=0, trans_b=1)
    return cast(Array, t.cast(y.reshape(size[0], *space, n), e))


def _line(count: int, align: bool) -> Any:
    """Places from -1 to 1: of elements' centres, or of the first and the last with
    align_corners."""
    i = np.arange(count, dtype=np.float64)
    if align:
        return (2 * i - (count - 1)) / max(count - 1, 1)
    return (2 * i - (count - 1)) / max(count, 1)
