"""Other shapes: padding, joining and resizing (move.1 to move.9, resize.1 to resize.7). Functions
that only move elements take any type and copy bits."""

import math
import struct
from collections.abc import Sequence
from typing import Any, cast

from invar import primitives as p
from invar.errors import ArgumentTypeError, NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.spatial import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

PADS = {"reflect": "pad_reflect", "replicate": "pad_edge", "circular": "pad_wrap"}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@public
def pad(
    input: Array, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Array:
    """input with elements before and after: `pad` has two numbers for each dimension, the last
    dimension first; a negative one cuts off. mode: "constant" (value, by default 0), "reflect",
    "replicate" or "circular". Any type.

    Raises RuntimeError for sizes that do not fit. Spec: move.4."""
    name = "pad"
    t.type_of(input)
    amounts = [int(v) for v in pad]
    if len(amounts) % 2 or len(amounts) > 2 * input.ndim:
        raise OperandError(
            f"{name}: argument 'pad': expected pairs for at most {input.ndim} dimensions, got "
            f"{amounts}"
        )
    amounts += [0] * (2 * input.ndim - len(amounts))
    begins = [amounts[2 * (input.ndim - 1 - d)] for d in range(input.ndim)]
    ends = [amounts[2 * (input.ndim - 1 - d) + 1] for d in range(input.ndim)]
    shape = tuple(n + b + e for n, b, e in zip(input.shape, begins, ends))
    if any(n < 0 for n in shape):
        raise OperandError(f"{name}: argument 'pad': it leaves a negative size {shape}")
    if mode == "constant":
        x: Any = input
        more = () if not value else (t.number(value, t.type_of(x), x),)
        return cast(Array, p.pad(x, *more, begins=begins, shape=shape))
    if mode not in PADS:
        raise OperandError(
            f"{name}: argument 'mode': expected 'constant', 'reflect', 'replicate' or 'circular', got "
            f"{mode!r}"
        )
    if value:
        raise OperandError(
            f"{name}: argument 'value': expected None with mode {mode!r}, got {value}"
        )
    if mode == "circular" and min(amounts, default=0) < 0:  # what is cut off does not come back
        cut = [slice(max(-b, 0), n - max(-e, 0)) for n, b, e in zip(input.shape, begins, ends)]
        kept: Any = input[tuple(cut)]
        more = tuple(max(v, 0) for v in amounts)
        return cast(Array, globals()["pad"](kept, more, "circular"))
    if mode != "circular" and 0 in input.shape[max(input.ndim - len(pad) // 2 - 1, 0) :]:
        raise OperandError(
            f"{name}: argument 'input': expected sizes above 0 beside a batch with mode {mode!r}, got "
            f"{tuple(input.shape)}"
        )
    for n, b, e in zip(input.shape, begins, ends):
        most = {"reflect": n - 1, "circular": n}.get(mode, math.inf if n else 0)
        if max(b, e) > max(most, 0):
            raise OperandError(
                f"{name}: argument 'pad': expected at most {most} in a dimension of {n} with mode "
                f"{mode!r}, got {b} and {e}"
            )
    return cast(Array, p.call(PADS[mode], input, begins=begins, shape=shape))


@public
def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """The arrays one after another along a dimension, of the promoted type. Spec: move.6."""
    if not isinstance(tensors, Sequence) or not tensors:
        raise ArgumentTypeError("cat: argument 'tensors': expected arrays, got none")
    first = tensors[0]
    if t.are_f32(*tensors) and all(x.ndim == first.ndim > 1 for x in tensors):  # the common case
        if all(x.device == first.device for x in tensors):
            return p.concat(*tensors, axis=arr.dim_of("cat", dim, first.ndim))
    t.same_kind("cat", **{f"tensors[{i}]": x for i, x in enumerate(tensors)})
    # As torch: an empty one of one dimension is left out.
    kept = [x for x in tensors if tuple(x.shape) != (0,)] or list(tensors[:1])
    e = t.result_type(*tensors)
    axis = arr.dim_of("cat", dim, kept[0].ndim)
    if any(x.ndim != kept[0].ndim or x.ndim == 0 for x in kept):
        raise OperandError(
            "cat: argument 'tensors': expected arrays of one rank of at least 1, got "
            f"{[tuple(x.shape) for x in kept]}"
        )
    return p.concat(*(t.cast(x, e) for x in kept), axis=axis)


concat = concatenate = cat


@public
def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """The arrays of one shape along a new dimension. Spec: move.6."""
    if not isinstance(tensors, Sequence) or not tensors:
        raise ArgumentTypeError("stack: argument 'tensors': expected arrays, got none")
    if len({tuple(x.shape) for x in tensors}) > 1:
        raise OperandError(
            f"stack: argument 'tensors': expected one shape, got {[tuple(x.shape) for x in tensors]}"
        )
    axis = arr.dim_of("stack", dim, tensors[0].ndim + 1)
    return cat([arr.insert(x, axis) for x in tensors], axis)


@public
def tril(input: Array, diagonal: int = 0) -> Array:
    """The lower triangle of the last two dimensions; the rest is 0. Spec: move.9."""
    _matrices("tril", input)
    return cast(Array, p.trilu(input, upper=0, k=diagonal))


@public
def triu(input: Array, diagonal: int = 0) -> Array:
    """The upper triangle of the last two dimensions; the rest is 0. Spec: move.9."""
    _matrices("triu", input)
    return cast(Array, p.trilu(input, upper=1, k=diagonal))


def _matrices(name: str, x: Any) -> None:
    if t.type_of(x) and x.ndim < 2:
        raise OperandError(
            f"{name}: argument 'input': expected at least 2 dimensions, got {tuple(x.shape)}"
        )


@public
def flip(input: Array, dims: Sequence[int]) -> Array:
    """The elements of dimensions in reverse. Spec: move.3."""
    t.type_of(input)
    turned = arr.dims_of("flip", tuple(dims), input.ndim) if len(dims) else []
    if not turned or arr.numel(input) == 0:
        return input
    starts = [-1 if d in turned else 0 for d in range(input.ndim)]
    steps = [-1 if d in turned else 1 for d in range(input.ndim)]
    return cast(Array, p.slice(input, starts=starts, steps=steps, shape=tuple(input.shape)))


@public
def roll(
    input: Array, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None
) -> Array:
    """The elements moved on along dimensions, from the end to the front. Without dims in row-major
    order of all. Spec: move.4."""
    t.type_of(input)
    x: Any = input
    if arr.numel(x) == 0:
        return input
    if dims is None:
        return roll(x.reshape(-1), shifts, 0).reshape(x.shape)
    moved = list(shifts) if isinstance(shifts, Sequence) else [shifts]
    along = list(dims) if isinstance(dims, Sequence) else [dims]
    if len(moved) != len(along):
        raise OperandError(
            f"roll: arguments 'shifts' and 'dims': expected as many, got {shifts} and {dims}"
        )
    begins = [0] * x.ndim
    for s, d in zip(moved, along):
        axis = arr.dim_of("roll", d, x.ndim)
        begins[axis] = (begins[axis] + s) % x.shape[axis]
    return cast(Array, p.pad_wrap(x, begins=begins, shape=tuple(x.shape)))


@public
def tile(input: Array, dims: int | Sequence[int]) -> Array:
    """input repeated along its dimensions. Spec: move.4."""
    t.type_of(input)
    times = [dims] if isinstance(dims, int) else list(dims)
    x: Any = input
    x = x.reshape((1,) * (len(times) - x.ndim) + tuple(x.shape))
    times = [1] * (x.ndim - len(times)) + times
    shape = tuple(n * m for n, m in zip(x.shape, times))
    if math.prod(shape) == 0:
        return cast(Array, arr.full(shape, 0, t.NAMES[x.dtype], x))
    return cast(Array, p.pad_wrap(x, begins=[0] * x.ndim, shape=shape))


@public
def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """Channels as blocks of pixels: [..., C · r², H, W] -> [..., C, H · r, W · r]. Spec: move.7."""
    r = upscale_factor
    t.type_of(input)
    if input.ndim < 3 or r < 1 or input.shape[-3] % (r * r):
        raise OperandError(
            f"pixel_shuffle: argument 'input': expected [..., C, H, W] with C a multiple of {r * r}, "
            f"got {tuple(input.shape)}"
        )
    *lead, c, h, w = input.shape
    x = input.reshape((*lead, c // (r * r), r, r, h, w))
    n = len(lead)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return cast(Array, arr.permute(x, order).reshape((*lead, c // (r * r), h * r, w * r)))


@public
def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """The reverse of pixel_shuffle: [..., C, H · r, W · r] -> [..., C · r², H, W]. Spec: move.1."""
    r = downscale_factor
    t.type_of(input)
    if input.ndim < 3 or r < 1 or input.shape[-1] % r or input.shape[-2] % r:
        raise OperandError(
            f"pixel_unshuffle: argument 'input': expected [..., C, H, W] with multiples of {r}, got "
            f"{tuple(input.shape)}"
        )
    *lead, c, h, w = input.shape
    x = input.reshape((*lead, c, h // r, r, w // r, r))
    n = len(lead)
    order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
    return cast(Array, arr.permute(x, order).reshape((*lead, c * r * r, h // r, w // r)))


def _target(x: Any, size: Any, factor: Any) -> tuple[list[int], list[float] | None]:
    """The spatial size of the result, and the factors that gave it."""
    n = x.ndim - 2
    if (size is None) == (factor is None):
        raise OperandError("interpolate: arguments 'size' and 'scale_factor': expected one of them")
    if size is not None:
        return list(arr.tuple_of("interpolate", "size", size, n)), None
    factors = list(factor) if isinstance(factor, Sequence) else [factor] * n
    if len(factors) != n:
        raise OperandError(
            f"interpolate: argument 'scale_factor': expected one number or {n}, got {factor}"
        )
    factors = [float(f) for f in factors]
    return [math.floor(m * f) for m, f in zip(x.shape[2:], factors)], factors


def _bits(x: float) -> int:
    return int(struct.unpack("<i", struct.pack("<f", x))[0])


@public
def interpolate(
    input: Array,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:
    """input [N, C, ...] with 1 to 3 spatial dimensions resized to `size`, or by `scale_factor`.
    mode: "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic" or "area".

    f32, bf16, f16; the nearest elements of any type, those of the exact quotient. Coordinates and
    weights are computed in binary64 (torch: in f32), a scale_factor is rounded to f32. Raises
    RuntimeError for arguments that do not fit. Spec: resize.1 to resize.6, gather.2; "area":
    pool.5."""
    name = "interpolate"
    e = t.type_of(input)
    n = input.ndim - 2
    if n not in (1, 2, 3):
        raise OperandError(
            f"{name}: argument 'input': expected 3 to 5 dimensions, got {tuple(input.shape)}"
        )
    whole, factors = _target(input, size, scale_factor)
    if any(m < 1 for m in (*whole, *input.shape[2:])):
        raise NotCovered(
            f"{name}: expected sizes above 0, got {tuple(input.shape[2:])} to {tuple(whole)}"
        )
    if factors is None and recompute_scale_factor is not None:
        raise OperandError(f"{name}: argument 'recompute_scale_factor': expected with scale_factor")
    if mode == "area":
        pool = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[n - 1]
        return cast(Array, pool(input, whole))
    how = _resizing(name, mode, n, align_corners, antialias)
    if how["order"] == 0 and (
        factors is None or all(m * f == w for m, f, w in zip(input.shape[2:], factors, whole))
    ):
        return cast(Array, _nearest(input, whole, mode == "nearest-exact"))
    if antialias and align_corners:
        how["scales"] = _between_corners(name, input, whole)
        how["coordinates"] = 0
    elif factors is not None and not recompute_scale_factor and how["coordinates"] != 3:
        how["scales"] = [_bits(1.0)] * 2 + [_bits(f) for f in factors]
    x: Any = input if how["order"] == 0 else t.f32(name, input)
    return cast(Array, t.cast(p.resize(x, **how, shape=(*input.shape[:2], *whole)), e))


def _between_corners(name: str, x: Any, whole: Sequence[int]) -> list[int]:
    """What torch makes of align_corners with antialias: coordinates of half pixels (not of
    corners), by the factor (m - 1) / (n - 1)."""
    scales = [0, 0]
    for d, m in enumerate(whole):
        n = x.shape[d + 2]
        if m == 1 and n > 1:
            raise NotCovered(
                f"{name}: argument 'align_corners': with antialias expected more than one element, "
                f"got size {tuple(whole)}"
            )
        scales.append(_bits((m - 1) / (n - 1)) if n > 1 else 0)
    return scales


def _nearest(x: Any, whole: Sequence[int], middle: bool) -> Any:
    """Element floor(i · n / m) of n for element i of m, or floor((i + 1/2) · n / m): by exact
    integers (elementwise.14), of which a quotient in binary64 would miss some."""
    e = t.NAMES[x.dtype]
    for d, m in enumerate(whole):
        n = x.shape[d + 2]
        if n == m:
            continue
        at = lambda v: t.number(v, "i64", x)
        first, step, divisor = (n, 2 * n, 2 * m) if middle else (0, n, m)
        place = p.div(p.iota(at(first), at(step), shape=(m,), dtype="i64"), at(divisor))
        x = t.cast(p.gather(x, place, axis=d + 2), e)
    return x


def _resizing(
    name: str, mode: str, n: int, align_corners: bool | None, antialias: bool
) -> dict[str, Any]:
    """The attributes of a resize (resize.3 to resize.6)."""
    order, coordinates, rounding = 0, 0, 0
    if mode in ("nearest", "nearest-exact"):
        if align_corners is not None:
            raise OperandError(
                f"{name}: argument 'align_corners': expected None with mode {mode!r}, got {align_corners}"
            )
        coordinates, rounding = (4, 2) if mode == "nearest" else (0, 1)
    elif mode in ("bicubic", LINEAR[n]) and (mode != "bicubic" or n == 2):
        order, coordinates = (3 if mode == "bicubic" else 1), (3 if align_corners else 0)
    else:
        raise NotCovered(f"{name}: argument 'mode': {mode!r} of {n} spatial dimensions")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise OperandError(
            f"{name}: argument 'antialias': expected False with mode {mode!r}, got {antialias}"
        )
    return {
        "order": order,
        "coordinates": coordinates,
        "rounding": rounding,
        "antialias": int(antialias),
        "exclude_outside": int(antialias),
        "cubic": -0.5 if antialias else -0.75,
        "extrapolation": 0.0,
        "scales": [0] * (n + 2),
    }
