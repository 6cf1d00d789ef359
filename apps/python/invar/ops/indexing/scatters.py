"""Elements that indices or a mask name, written: scatter and its kin (gather.7 to gather.9),
masked_fill (elementwise.15)."""

import math
from typing import Any, cast

from invar.errors import NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array, Number
from invar.ops.binary64 import operations as p
from invar.ops.elementwise import binary, compared, floor_divide
from invar.ops.indexing.indices import index_of, like_index

REDUCTIONS = {"sum": 1, "add": 1, "prod": 2, "multiply": 2, "amin": 3, "amax": 4}
JOINED = frozenset({"f32", "f64", "i64", "i32"})
JOINED_IN = {**t.COMPUTED, "i8": "i32", "u8": "i32"}  # what updates of other types join in


def _scattered(name: str, x: Any, dim: int, index: Any, src: Any, reduction: int) -> Any:
    e = t.type_of(x)
    t.same_kind(name, input=x, index=index, src=src)
    axis = arr.dim_of(name, dim, x.ndim)
    i = index_of(name, index, "index")
    if t.is_number(src):
        src = arr.full(i.shape, src, e, x)
    elif t.type_of(src, "src") != e:
        raise OperandError(
            f"{name}: argument 'src': expected elements of {t.spelled(e)} as 'input' has, got "
            f"{t.spelled(t.type_of(src, 'src'))}"
        )
    if x.ndim == 0:
        made = _scattered(name, x.reshape(1), 0, i.reshape(-1), src.reshape(-1), reduction)
        return made.reshape(())
    like_index(name, x, i, axis)
    like_index(name, src, i, None, "src")
    for d, n in enumerate(i.shape):
        src = src if src.shape[d] == n else arr.cut(src, d, 0, n)
    wide = JOINED_IN.get(e, e) if reduction else e
    if reduction and wide not in JOINED:
        raise NotCovered(
            f"{name}: argument 'input': elements of {t.spelled(e)}; covered are float32, float64, "
            "bfloat16, float16, int64, int32"
        )
    return t.cast(_joined(t.cast(x, wide), i, t.cast(src, wide), axis, reduction), e)


def _joined(x: Any, i: Any, src: Any, axis: int, reduction: int) -> Any:
    if reduction > 1 and any(getattr(v, "requires_grad", False) for v in (x, src)):
        from invar.autograd.joined import Joined

        return Joined.apply(x, i, src, axis, reduction)
    return p.scatter_elements(x, i, src, axis=axis, reduction=reduction)


@public
def scatter(
    input: Array, dim: int, index: Array, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Array:
    """input, in which the elements that index names along a dimension are src (or one number): the
    last of several. reduce = "add" or "multiply" joins them in row-major order of index instead.
    Spec: gather.7, gather.9."""
    source = value if src is None else src
    if source is None or (reduce is not None and reduce not in ("add", "multiply")):
        raise OperandError(
            "scatter: expected 'src' or 'value', and 'reduce' of None, 'add' or 'multiply', got "
            f"{source!r} and {reduce!r}"
        )
    return cast(Array, _scattered("scatter", input, dim, index, source, REDUCTIONS.get(reduce, 0)))


@public
def scatter_add(input: Array, dim: int, index: Array, src: Array) -> Array:
    """input, to whose elements that index names along a dimension those of src are added, one by
    one in row-major order of index, each sum rounded. f32, f64, i64, i32; bf16 and f16 in f32,
    rounded at the end. Spec: gather.7, gather.9."""
    return cast(Array, _scattered("scatter_add", input, dim, index, src, 1))


@public
def scatter_reduce(
    input: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """scatter_add with reduce = "sum", "prod", "amin", "amax" or "mean": the sum divided by the
    number of its terms (of integers rounded down). Without include_self elements that index names
    do not count themselves. Equal extremes share the gradient. Spec: gather.7, gather.9,
    elementwise.5, elementwise.14."""
    name = "scatter_reduce"
    if reduce not in ("sum", "prod", "amin", "amax", "mean"):
        raise OperandError(
            f"{name}: argument 'reduce': expected 'sum', 'prod', 'mean', 'amax' or 'amin', got "
            f"{reduce!r}"
        )
    e = t.type_of(input)
    x: Any = input
    how = REDUCTIONS["sum" if reduce == "mean" else reduce]
    if include_self and reduce != "mean":
        return cast(Array, _scattered(name, x, dim, index, src, how))
    shape = tuple(x.shape)
    one = arr.full(tuple(index.shape), 1, "i64", x)
    count = _scattered(name, arr.full(shape, 0, "i64", x), dim, index, one, 1)
    named = compared(name, "greater", count, 0)
    if not include_self:
        x = t.cast(p.where(named, t.number(_neutral(reduce, e), e, x), x), e)
    made = _scattered(name, x, dim, index, src, how)
    if reduce != "mean":
        return cast(Array, made)
    terms = (
        binary(name, "add", count, 1) if include_self else p.max(count, t.number(1, "i64", count))
    )
    if e in t.FLOATS:
        return cast(Array, binary(name, "div", made, t.cast(terms, e)))
    return cast(Array, t.cast(floor_divide(made, terms), e))


def _neutral(reduce: str, e: str) -> Any:
    """What joins without a change."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if e in t.FLOATS:
        return -math.inf if reduce == "amax" else math.inf
    low = 0 if e[0] == "u" else -(2 ** (t.WIDTH[e] - 1))
    return low if reduce == "amax" else 2 ** (t.WIDTH[e] - (e[0] != "u")) - 1


@public
def index_add(input: Array, dim: int, index: Array, source: Array, *, alpha: Number = 1) -> Array:
    """input, to whose slices along a dimension that index [N] names those of source (times alpha)
    are added, in ascending order of index's elements, each sum rounded. f32, f64, i64, i32; bf16
    and f16 in f32, rounded at the end. Spec: gather.8, gather.9."""
    e = t.type_of(input)
    t.same_kind("index_add", input=input, index=index, source=source)
    axis = arr.dim_of("index_add", dim, input.ndim)
    i: Any = index_of("index_add", index, "index")
    x: Any = input
    wide = JOINED_IN.get(e, e)
    if wide not in JOINED:
        raise NotCovered(
            f"index_add: argument 'input': elements of {t.spelled(e)}; covered are float32, float64, "
            "bfloat16, float16, int64, int32"
        )
    n = arr.numel(i)
    wanted = (*x.shape[:axis], n, *x.shape[axis + 1 :]) if x.ndim else ()
    if t.type_of(source, "source") != e or x.ndim and tuple(source.shape) != wanted or i.ndim > 1:
        raise OperandError(
            f"index_add: argument 'source': expected {t.spelled(e)} {wanted}, got "
            f"{t.spelled(t.type_of(source, 'source'))} {tuple(source.shape)}"
        )
    s: Any = source if alpha == 1 else binary("index_add", "mul", source, alpha)
    if x.ndim == 0:
        x, s = x.reshape(1), s.reshape(1)
    moved = (arr.move(t.cast(z, wide), axis, 0) for z in (x, s))
    first, added = moved
    y = p.scatter_nd(first, i.reshape(-1, 1), added, reduction=1)
    return cast(Array, t.cast(arr.move(y, 0, axis), e).reshape(input.shape))


@public
def masked_fill(input: Array, mask: Array, value: Any) -> Array:
    """value (a number, or an array without dimensions) where mask (bool, broadcast) holds, else
    input; of input's type. Spec: elementwise.15."""
    e = t.type_of(input)
    if t.type_of(mask, "mask") != "bool":
        raise OperandError(
            f"masked_fill: argument 'mask': expected bool, got {t.spelled(t.type_of(mask, 'mask'))}"
        )
    t.same_kind("masked_fill", input=input, mask=mask, value=value)
    if not t.is_number(value) and value.ndim:
        raise OperandError(
            "masked_fill: argument 'value': expected a number or an array without dimensions, got "
            f"{tuple(value.shape)}"
        )
    v = t.number(value, e, input) if t.is_number(value) else t.cast(value, e)
    return cast(Array, t.cast(p.where(mask, v, input), e))
