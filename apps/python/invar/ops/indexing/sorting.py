"""Order: topk, sort and argsort (topk.1 to topk.5)."""

from typing import Any, cast

from invar.errors import NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._arrays import ValuesIndices
from invar.ops._types import Array
from invar.ops.binary64 import operations as p


def ordered(x: Any, axis: int, largest: bool) -> Any:
    """The indices that sort along an axis, stably. Integers that f32 does not have go by digits of
    24 bits, the lowest first; f64 by the integers that order as its bits do."""
    e = t.NAMES[x.dtype]
    by = lambda v: p.topk(v, axis=axis, largest=int(largest))
    if e not in ("i64", "i32", "f64", "u64", "u32"):
        return by(t.cast(x, "f32"))
    if e == "u64":
        raise NotCovered("sort: argument 'input': elements of uint64")
    key = _key_of_f64(x) if e == "f64" else t.cast(x, "i64")
    whole = lambda v: t.number(v, "i64", key)
    found = None
    for shift in (0, 24, 48) if e in ("i64", "f64") else (0, 24):
        digit = p.shift_right(key, whole(shift))
        if shift < 48:
            digit = p.bitwise_and(digit, whole(2**24 - 1)) if e != "i32" or shift == 0 else digit
        digit = p.cast(digit, dtype="f32")
        if found is None:
            found = by(digit)
            continue
        step = by(p.gather_elements(digit, found, axis=axis))
        found = p.gather_elements(found, step, axis=axis)
    return found


def _key_of_f64(x: Any) -> Any:
    bits = p.bitcast(p.add(arr.detached(x), t.number(0, "f64", x)), dtype="i64")  # -0 is 0
    turned = p.bitwise_xor(bits, t.number(2**63 - 1, "i64", bits))
    return p.where(p.less(bits, t.number(0, "i64", bits)), turned, bits)


def _sorted(name: str, x: Any, dim: int, largest: bool, k: int | None = None) -> ValuesIndices:
    t.type_of(x)
    axis = arr.dim_of(name, dim, x.ndim)
    row = x.reshape(1) if x.ndim == 0 else x
    n = row.shape[axis]
    if k is not None and not 0 <= k <= n:
        raise OperandError(f"{name}: argument 'k': expected one of 0 ... {n}, got {k}")
    if x.ndim == 0:  # torch finds the element for k = 0, too
        k = 1
    i = ordered(arr.detached(row), axis, largest)
    if k is not None and k < n:
        i = arr.cut(i, axis, 0, k)
    values = p.gather_elements(row, i, axis=axis)
    shape = values.shape if x.ndim else ()
    return ValuesIndices(values.reshape(shape), i.reshape(shape))


@public
def topk(
    input: Array, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True
) -> ValuesIndices:
    """(values, indices) of the k largest (smallest) elements along a dimension (None: the last), in
    order; of equals the lower index comes first; NaN is larger than infinity. Any type but u64.
    Spec: topk.1 to topk.5."""
    return _sorted("topk", input, -1 if dim is None else dim, largest, k)


@public
def sort(
    input: Array, dim: int = -1, descending: bool = False, stable: bool = False
) -> ValuesIndices:
    """(values, indices) of all elements along a dimension in order, always stable. Spec: topk.1 to
    topk.4."""
    return _sorted("sort", input, dim, descending)


@public
def argsort(input: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Array:
    """The indices of sort. Spec: topk.1 to topk.3."""
    return cast(Array, _sorted("argsort", input, dim, descending).indices)
