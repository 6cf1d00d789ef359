"""New arrays, with torch's names and defaults.

The result is a tensor of torch, on `device`, or an array of NumPy: where `dtype` is NumPy's
(np.float32) and where torch is not imported."""

import math
import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from invar import primitives as p
from invar.errors import NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array, DType, Number
from invar.ops.random import _place, _size


def _like(name: str, dtype: Any, device: Any) -> Any:
    """An array of the library and on the device of the result."""
    torch = sys.modules.get("torch")
    if torch is None or dtype is not None and not isinstance(dtype, torch.dtype):
        if device is not None:
            raise NotCovered(f"{name}: argument 'device': arrays of NumPy have none")
        return np.empty(0, np.float32)
    return _place(device)


def _type(dtype: Any, values: Sequence[Any]) -> str:
    """The type that is asked for, or that of numbers: bool, i64 or the default float."""
    if dtype is not None:
        return t.named(dtype)
    kinds = {type(v) for v in values}
    if float in kinds or any(isinstance(v, np.floating) for v in values):
        return t.default_float()
    return "bool" if kinds == {bool} else "i64"


def _filled(name: str, size: Any, value: Any, e: str, like: Any) -> Any:
    return arr.full(_size(name, size), value, e, like)


@public
def full(
    size: Sequence[int], fill_value: Number, *, dtype: DType | None = None, device: Any = None
) -> Any:
    """An array of one value; its type follows from the value. Spec: formats.10."""
    like = _like("full", dtype, device)
    return _filled("full", (size,), fill_value, _type(dtype, [fill_value]), like)


@public
def zeros(*size: int | Sequence[int], dtype: DType | None = None, device: Any = None) -> Any:
    """Zeros of the default float, or of `dtype`. Spec: formats.10."""
    return _filled("zeros", size, 0, _type(dtype, [0.0]), _like("zeros", dtype, device))


@public
def ones(*size: int | Sequence[int], dtype: DType | None = None, device: Any = None) -> Any:
    """Ones of the default float, or of `dtype`. Spec: formats.10."""
    return _filled("ones", size, 1, _type(dtype, [1.0]), _like("ones", dtype, device))


def _filled_like(name: str, input: Any, value: Any, dtype: Any, device: Any) -> Any:
    e = t.type_of(input) if dtype is None else t.named(dtype)
    if device is not None and isinstance(input, np.ndarray):
        raise NotCovered(f"{name}: argument 'device': arrays of NumPy have none")
    return arr.full(tuple(input.shape), value, e, input if device is None else _place(device))


@public
def full_like(
    input: Array, fill_value: Number, *, dtype: DType | None = None, device: Any = None
) -> Array:
    """One value in the shape of input, of its type or of `dtype`. Spec: formats.10."""
    return cast(Array, _filled_like("full_like", input, fill_value, dtype, device))


@public
def zeros_like(input: Array, *, dtype: DType | None = None, device: Any = None) -> Array:
    """Zeros in the shape of input, of its type or of `dtype`. Spec: formats.10."""
    return cast(Array, _filled_like("zeros_like", input, 0, dtype, device))


@public
def ones_like(input: Array, *, dtype: DType | None = None, device: Any = None) -> Array:
    """Ones in the shape of input, of its type or of `dtype`. Spec: formats.10."""
    return cast(Array, _filled_like("ones_like", input, 1, dtype, device))


def _progression(start: Any, step: Any, n: int, e: str, like: Any) -> Any:
    """start + i · step for i of n: two operations of binary64, rounded to e."""
    place = p.cast(arr.iota(n, like), dtype="f64")
    at = lambda v: t.number(v, "f64", place)
    return t.cast(p.add(p.mul(place, at(step)), at(start)), e)


@public
def arange(
    start: Number = 0,
    end: Number | None = None,
    step: Number = 1,
    *,
    dtype: DType | None = None,
    device: Any = None,
) -> Any:
    """start, start + step, ... below end, of one dimension; arange(n) begins with 0. Integers are
    exact; real numbers are start + i · step in binary64, rounded once. Spec: move.12,
    elementwise.5."""
    if end is None:
        start, end = 0, start
    if step == 0 or not all(math.isfinite(v) for v in (start, end, step)):
        raise OperandError(
            f"arange: expected finite numbers and a step, got {start}, {end}, {step}"
        )
    e, like = _type(dtype, [start, end, step]), _like("arange", dtype, device)
    whole = all(isinstance(v, int | np.integer) for v in (start, end, step))
    n = -((start - end) // step) if whole else math.ceil((end - start) / step)
    if n < 0:
        raise OperandError(f"arange: the step {step} does not lead from {start} to {end}")
    if whole and e not in t.FLOATS:
        at = lambda v: t.number(int(v), "i64", like)
        return t.cast(p.iota(at(start), at(step), shape=(int(n),), dtype="i64"), e)
    return _progression(start, step, n, e, like)


@public
def linspace(
    start: Number, end: Number, steps: int, *, dtype: DType | None = None, device: Any = None
) -> Any:
    """`steps` numbers from start to end: start + i · (end - start) / (steps - 1) in binary64,
    rounded once; the last is end. Of the default float, or of `dtype`. Spec: move.12,
    elementwise.5."""
    if steps < 0:
        raise OperandError(f"linspace: argument 'steps': expected 0 or more, got {steps}")
    e, like = _type(dtype, [0.0]), _like("linspace", dtype, device)
    found = _progression(start, (end - start) / max(steps - 1, 1), steps, e, like)
    if steps > 1:
        found[-1] = end
    return found


@public
def eye(n: int, m: int | None = None, *, dtype: DType | None = None, device: Any = None) -> Any:
    """1 on the diagonal of [n, m] (m: n), else 0; of the default float, or of `dtype`. Spec:
    elementwise.7."""
    like = _like("eye", dtype, device)
    rows, columns = (arr.iota(size, like) for size in _size("eye", (n, n if m is None else m)))
    return t.cast(p.equal(rows.reshape(-1, 1), columns), _type(dtype, [0.0]))


@public
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """The coordinates of a grid: each array of one dimension along its own dimension of all; with
    "xy" the first two change places. Spec: move.2, move.5."""
    if indexing not in ("ij", "xy"):
        raise OperandError(
            f"meshgrid: argument 'indexing': expected 'ij' or 'xy', got {indexing!r}"
        )
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        tensors = tuple(tensors[0])
    t.same_kind("meshgrid", **{f"tensors[{i}]": x for i, x in enumerate(tensors)})
    if any(x.ndim > 1 for x in tensors):
        raise OperandError(
            f"meshgrid: expected arrays of one dimension, got {[tuple(x.shape) for x in tensors]}"
        )
    sizes = [arr.numel(x) for x in tensors]
    n = len(sizes)
    alone = lambda d: (1,) * d + (sizes[d],) + (1,) * (n - 1 - d)
    made = [arr.expand(x.reshape(alone(d)), sizes) for d, x in enumerate(tensors)]
    return tuple(arr.swap(x, 0, 1) if indexing == "xy" and n > 1 else x for x in made)
