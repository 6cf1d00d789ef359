"""Reductions over dimensions and along one (spec/reduction.md; reduce.1 to reduce.13, argmax.1 to
argmax.5, scan.1 to scan.5), with torch's arguments. f16 and bf16 are reduced in f32 and rounded
once."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from invar.errors import DimensionError, NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._arrays import ValuesIndices
from invar.ops._types import Array, DType, Number
from invar.ops.binary64 import operations as p
from invar.ops.binary64 import reductions
from invar.ops.elementwise import binary, compared, maximum, minimum

Dims: TypeAlias = int | Sequence[int] | None
SUMMED = frozenset({"f32", "f64", "i64", "i32"})
EXTREMES = SUMMED | {"i8", "u8", "bool"}


def reduced(op: str, x: Any, e: str, axes: list[int], keepdim: bool, **attributes: Any) -> Any:
    """One reduction in the type that it is computed in, rounded to e; over no axes, of the elements
    as they are."""
    wide = t.COMPUTED.get(e, e)
    x = t.cast(x, wide)
    if not axes:  # an array without dimensions: a row of one element
        return t.cast(p.call(op, x.reshape(1), axes=[0], keepdims=0, **attributes), e).reshape(())
    return t.cast(p.call(op, x, axes=axes, keepdims=int(keepdim), **attributes), e)


def _total(name: str, op: str, x: Any, dim: Dims, keepdim: bool, dtype: DType | None) -> Any:
    """sum, prod: integers and truth values are added up as i64."""
    e = t.type_of(x)
    wanted = t.named(dtype) if dtype is not None else e if e in t.FLOATS else "i64"
    if e == wanted == "f32" and type(dim) is int and -x.ndim <= dim < x.ndim:  # the common case
        return p.call(op, x, axes=[dim % x.ndim], keepdims=int(keepdim))
    if dtype is not None:
        x = t.cast(x, wanted)
    if wanted == "bool":
        raise NotCovered(f"{name}: argument 'dtype': bool")
    if wanted not in t.FLOATS:
        return t.cast(_wide(op, x, dim, keepdim, name), wanted)
    return reduced(op, x, wanted, arr.dims_of(name, dim, x.ndim), keepdim)


def _wide(op: str, x: Any, dim: Dims, keepdim: bool, name: str) -> Any:
    return reduced(op, t.cast(x, "i64"), "i64", arr.dims_of(name, dim, x.ndim), keepdim)


@public
def sum(
    input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Array:
    """The sum over dimensions (None: all): f32, bf16, f16, f64; integers and bool become i64,
    modulo 2^64. dtype: elements are converted first.

    The result drops the dimensions, or has 1 there with keepdim. Raises IndexError for a dimension
    out of range. Spec: reduce.2, reduce.3, reduce.11, reduce.13."""
    return cast(Array, _total("sum", "reduce_sum", input, dim, keepdim, dtype))


@public
def prod(
    input: Array, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Array:
    """The product over one dimension, or over all; types as sum. Spec: reduce.5, reduce.11,
    reduction.10."""
    return cast(Array, _total("prod", "reduce_prod", input, dim, keepdim, dtype))


@public
def mean(
    input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Array:
    """The sum divided by the number of elements, over dimensions (None: all): f32, bf16, f16, f64;
    integers with a floating dtype. NaN of no elements. Spec: reduce.4, reduce.13."""
    x: Any = input if dtype is None else t.cast(input, t.named(dtype))
    if t.type_of(x) == "f32" and type(dim) is int and -x.ndim <= dim < x.ndim:
        return cast(Array, p.reduce_mean(x, axes=[dim % x.ndim], keepdims=int(keepdim)))
    e = t.real("mean", x)
    return cast(Array, reduced("reduce_mean", x, e, arr.dims_of("mean", dim, x.ndim), keepdim))


def _none_empty(name: str, x: Any, axes: list[int]) -> None:
    for d in axes:
        if x.shape[d] == 0:
            raise DimensionError(
                f"{name}: argument 'input': Expected reduction dim {d} to have non-zero size, got "
                f"shape {tuple(x.shape)}"
            )


def extreme(name: str, op: str, x: Any, dim: Dims, keepdim: bool) -> Any:
    e = t.type_of(x)
    if e == "f32" and type(dim) is int and -x.ndim <= dim < x.ndim and x.shape[dim]:
        return p.call(op, x, axes=[dim % x.ndim], keepdims=int(keepdim))
    if e in t.UNSIGNED:
        raise NotCovered(f"{name}: argument 'input': elements of {t.spelled(e)}")
    axes = arr.dims_of(name, dim, x.ndim)
    _none_empty(name, x, axes)
    return reduced(op, x, e, axes, keepdim)


@public
def amax(input: Array, dim: Dims = (), keepdim: bool = False) -> Array:
    """The largest element over dimensions (none: all), of its type; NaN if one is. f32, bf16, f16,
    f64, signed integers, u8, bool. Raises IndexError where there are no elements. Spec: reduce.6,
    reduce.11, reduce.12."""
    return cast(Array, extreme("amax", "reduce_max", input, dim, keepdim))


@public
def amin(input: Array, dim: Dims = (), keepdim: bool = False) -> Array:
    """The smallest element; otherwise as amax. Spec: reduce.6, reduce.11, reduce.12."""
    return cast(Array, extreme("amin", "reduce_min", input, dim, keepdim))


def _placed(name: str, largest: bool, x: Any, dim: int) -> tuple[Any, Any, int]:
    """x (one without dimensions as a row), the indices along dim, which stays as 1, and the
    axis."""
    t.type_of(x)
    axis = arr.dim_of(name, dim, x.ndim)
    row = x.reshape(1) if x.ndim == 0 else x
    _none_empty(name, row, [axis])
    return row, reductions.place(largest, row, axis), axis


def _found(name: str, largest: bool, x: Any, dim: int, keepdim: bool) -> ValuesIndices:
    row, i, axis = _placed(name, largest, x, dim)
    values = p.gather_elements(row, i, axis=axis)
    if x.ndim == 0:
        return ValuesIndices(values.reshape(()), i.reshape(()))
    return (
        ValuesIndices(values, i)
        if keepdim
        else ValuesIndices(arr.drop(values, axis), arr.drop(i, axis))
    )


def _extremes(name: str, input: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    largest = name == "max"
    if other is not None or dim is not None and not isinstance(dim, int | np.integer):
        if other is not None and dim is not None:
            raise OperandError(f"{name}: arguments 'dim' and 'other': expected one, got both")
        return (maximum if largest else minimum)(input, dim if other is None else other)
    if dim is not None:
        return _found(name, largest, input, int(dim), keepdim)
    if arr.numel(input) == 0:
        raise OperandError(
            f"{name}: Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )
    return extreme(name, f"reduce_{name}", input, None, False)


@public
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """max(input): the largest element. max(input, dim, keepdim=False): (values, indices) of the
    first largest along a dimension; the first NaN where there is one. max(input, other): maximum.

    Any type of amax. Raises IndexError or RuntimeError where there are no elements. Spec: reduce.6,
    argmax.2, argmax.3."""
    t.type_of(input)
    return _extremes("max", input, dim, keepdim, other)


@public
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The smallest; otherwise as max. Spec: reduce.6, argmax.5."""
    t.type_of(input)
    return _extremes("min", input, dim, keepdim, other)


def _arg(name: str, largest: bool, x: Any, dim: int | None, keepdim: bool) -> Any:
    t.type_of(x)
    if dim is not None:
        _, i, axis = _placed(name, largest, x, dim)
        return i.reshape(()) if x.ndim == 0 else i if keepdim else arr.drop(i, axis)
    if arr.numel(x) == 0:
        raise DimensionError(
            f"{name}: Expected reduction dim to be specified for input.numel() == 0."
        )
    i = reductions.place(largest, x.reshape(-1), 0)
    return i.reshape((1,) * x.ndim if keepdim else ())


@public
def argmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The index (i64) of the first largest element along a dimension, or in row-major order of all;
    the first NaN where there is one. Types and errors of amax. Spec: argmax.2 to argmax.4."""
    return cast(Array, _arg("argmax", True, input, dim, keepdim))


@public
def argmin(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The index of the first smallest element; otherwise as argmax. Spec: argmax.5."""
    return cast(Array, _arg("argmin", False, input, dim, keepdim))


def _truths(name: str, op: str, x: Any, dim: Dims, keepdim: bool) -> Any:
    e = "u8" if t.type_of(x) == "u8" else "bool"  # as torch has it
    truth = t.cast(x, "bool")
    if isinstance(dim, Sequence) and not dim:
        return t.cast(truth, e)
    axes = arr.dims_of(name, dim, x.ndim)
    return t.cast(reduced(op, truth, "bool", axes, keepdim), e)


@public
def all(input: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Whether all elements are not zero over dimensions (None: all; an empty list: none, each
    element for itself), as bool, of uint8 as uint8; over no elements True. Spec: reduce.12."""
    return cast(Array, _truths("all", "reduce_min", input, dim, keepdim))


@public
def any(input: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Whether an element is not zero; otherwise as all; over no elements False. Spec: reduce.12."""
    return cast(Array, _truths("any", "reduce_max", input, dim, keepdim))


def _spread(
    name: str, x: Any, dim: Any, keepdim: bool, correction: Number | None, unbiased: bool | None
) -> Any:
    if isinstance(dim, bool):  # var(input, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = int(unbiased)
    correction = 1 if correction is None else correction
    e = t.real(name, x)
    axes = arr.dims_of(name, dim, x.ndim)
    if correction in (0, 1):
        return reduced(f"reduce_{name}", x, e, axes, keepdim, correction=int(correction))
    how: Any = getattr(reductions, f"reduce_{name}")
    wide = t.wide(name, x)
    if not axes:
        return t.cast(how(wide.reshape(1), [0], 0, correction), e).reshape(())
    return t.cast(how(wide, axes, int(keepdim), correction), e)


@public
def var(
    input: Array,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> Array:
    """The sum of squares about the mean divided by n - correction (by default 1), over dimensions
    (None: all). f32, bf16, f16, f64. NaN or infinity where n <= correction. Spec: reduce.10,
    reduction.9; other corrections than 0 and 1, and f64: functions.43."""
    return cast(Array, _spread("var", input, dim, keepdim, correction, unbiased))


@public
def std(
    input: Array,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> Array:
    """The square root of var, rounded once more; arguments as var. Spec: reduce.10."""
    return cast(Array, _spread("std", input, dim, keepdim, correction, unbiased))


@public
def var_mean(
    input: Array,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Array, Array]:
    """(var, mean) with the arguments of var. Spec: reduce.4, reduce.10."""
    over: Any = None if isinstance(dim, bool) else dim
    spread = _spread("var", input, dim, keepdim, correction, unbiased)
    return cast(Array, spread), mean(input, over, keepdim)


@public
def norm(
    input: Array,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Array:
    """The norm of vectors over dimensions (None: all): p = "fro", 2 or None the root of the sum of
    squares, 1 the sum of magnitudes, 0 how many are not zero, ±inf the extreme magnitude, or any
    other positive number. "nuc" is refused. f32, bf16, f16, f64 (p = 1, 2, ±inf). Spec:
    reduce.7."""
    if p == "nuc":
        raise NotCovered("norm: argument 'p': 'nuc'")
    if p == "fro" and isinstance(dim, Sequence) and len(dim) > 2:
        raise OperandError(f"norm: argument 'dim': expected at most two with 'fro', got {dim}")
    return cast(Array, _norm("norm", input, 2.0 if p in ("fro", None) else p, dim, keepdim, dtype))


@public
def vector_norm(
    x: Array,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """torch.linalg.vector_norm: norm with `ord` in the place of p. Spec: reduce.7."""
    return cast(Array, _norm("vector_norm", x, ord, dim, keepdim, dtype))


def _norm(name: str, x: Any, n: Any, dim: Dims, keepdim: bool, dtype: DType | None) -> Any:
    if dtype is not None:
        x = t.cast(x, t.named(dtype))
    e = t.real(name, x)
    axes = arr.dims_of(name, dim, x.ndim)
    if n in (1, 2):
        return reduced(f"reduce_l{int(n)}", x, e, axes, keepdim)
    wide = t.COMPUTED.get(e, e)
    if n == 0:
        zero = t.number(0, wide, x)
        counted = t.cast(p.logical_not(p.equal(t.cast(x, wide), zero)), wide)
        return t.cast(reduced("reduce_sum", counted, wide, axes, keepdim), e)
    size = p.abs(t.cast(x, wide))
    if math.isinf(n):
        _none_empty(name, x, axes)
        return t.cast(
            reduced("reduce_max" if n > 0 else "reduce_min", size, wide, axes, keepdim), e
        )
    total = reduced("reduce_sum", p.pow(size, t.number(n, wide, x)), wide, axes, keepdim)
    return t.cast(p.pow(total, t.number(1 / n, wide, x)), e)


@public
def logsumexp(input: Array, dim: Dims, keepdim: bool = False) -> Array:
    """log of the sum of exp over dimensions, about the maximum. f32, bf16, f16; integers become the
    default float. Spec: reduce.9."""
    x: Any = input if t.type_of(input) in t.FLOATS else t.cast(input, t.default_float())
    e = t.real("logsumexp", x)
    if isinstance(dim, Sequence) and not dim and x.ndim and arr.numel(x):
        raise OperandError("logsumexp: argument 'dim': expected dimensions, got none")
    axes = arr.dims_of("logsumexp", dim, x.ndim)
    return cast(Array, reduced("reduce_log_sum_exp", x, e, axes, keepdim))


def _scan(op: str, x: Any, dim: int, dtype: DType | None) -> Any:
    e = t.type_of(x)
    wanted = t.named(dtype) if dtype is not None else e if e in t.FLOATS else "i64"
    x = t.cast(x, wanted)
    axis = arr.dim_of(op, dim, x.ndim)
    row = x.reshape(1) if x.ndim == 0 else x
    wide = wanted if wanted in SUMMED else "f32" if wanted in t.FLOATS else "i64"
    y = p.call(op, t.cast(row, wide), axis=axis, exclusive=0, reverse=0)
    return t.cast(y, wanted).reshape(x.shape)


@public
def cumsum(input: Array, dim: int, *, dtype: DType | None = None) -> Array:
    """The sums of the elements up to each along a dimension, of input's shape; integers and bool
    become i64. Spec: scan.1 to scan.5, reduction.12."""
    return cast(Array, _scan("cumsum", input, dim, dtype))


@public
def cumprod(input: Array, dim: int, *, dtype: DType | None = None) -> Array:
    """The products of the elements up to each; otherwise as cumsum. Spec: scan.1 to scan.5."""
    return cast(Array, _scan("cumprod", input, dim, dtype))


@public
def count_nonzero(input: Array, dim: Dims = None) -> Array:
    """How many elements are not zero over dimensions (None: all), as i64. Spec: reduce.11."""
    t.type_of(input)
    axes = arr.dims_of("count_nonzero", dim, input.ndim)
    truth = t.cast(t.cast(input, "bool"), "i64")
    return cast(Array, reduced("reduce_sum", truth, "i64", axes, False))


@public
def dist(input: Array, other: Array, p: float = 2) -> Array:
    """The norm of input - other over all elements. Spec: elementwise.5, reduce.7."""
    return cast(Array, _norm("dist", binary("dist", "sub", input, other), p, None, False, None))


@public
def equal(input: Array, other: Array) -> bool:
    """Whether shapes and all elements are equal (NaN is not): read on the host. Spec:
    elementwise.7, reduce.12."""
    t.same_kind("equal", input=input, other=other)
    if tuple(input.shape) != tuple(other.shape):
        return False
    return bool(all(cast(Array, compared("equal", "equal", input, other))))
