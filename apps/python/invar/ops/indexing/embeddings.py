"""Rows of a table by index, and their sums by bag (gather.1 to gather.4, gather.8, gather.9)."""

import math
from typing import Any, cast

from invar.errors import NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.binary64 import operations as p
from invar.ops.elementwise import compared
from invar.ops.indexing.indices import from_first, index_of, rows_of


@public
def embedding(
    input: Array,
    weight: Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """The rows of weight [R, D] that input (i64 or i32) names: [...] -> [..., D], of weight's type.

    The row padding_idx gets no gradient. max_norm, scale_grad_by_freq and sparse are refused.
    Raises IndexError for an index out of range. Spec: gather.1 to gather.4."""
    name = "embedding"
    arr.refuse(name, max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    index: Any = index_of(name, input, "input")
    t.same_kind(name, input=input, weight=weight)
    if t.type_of(weight, "weight") and weight.ndim != 2:
        raise OperandError(
            f"{name}: argument 'weight': expected 2 dimensions, got {tuple(weight.shape)}"
        )
    y = from_first(name, "input", index, weight.shape[0], lambda i: rows_of(weight, i))
    return cast(Array, y if padding_idx is None else _unlearned(weight, index, y, padding_idx))


def _padding(weight: Any, padding_idx: int) -> int:
    n = weight.shape[0]
    if not -n <= padding_idx < n:
        raise OperandError(
            f"embedding: argument 'padding_idx': expected one of {-n} ... {n - 1}, got {padding_idx}"
        )
    return padding_idx % n


def _unlearned(weight: Any, index: Any, y: Any, padding_idx: int) -> Any:
    """The same rows, without a gradient where the index is that of padding."""
    padding = _padding(weight, padding_idx)
    if not getattr(y, "requires_grad", False):
        return y
    hidden = arr.insert(compared("embedding", "equal", index, padding), index.ndim)
    return t.cast(p.where(hidden, arr.detached(y), y), t.NAMES[y.dtype])


@public
def embedding_bag(
    input: Array,
    weight: Array,
    offsets: Array | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Array:
    """The sum, mean or max of the embeddings of each bag: input [B, L], or [N] with offsets [B]
    where bags begin -> [B, D], of weight's type. A bag without elements gives 0.

    Bags of [B, L] are reduced in row order (reduce.3, reduce.6); those of offsets join their
    elements one by one in ascending order (gather.9). per_sample_weights multiply the rows (mode
    "sum"). Indices equal to padding_idx are left out. max_norm, scale_grad_by_freq and sparse are
    refused. Raises RuntimeError for shapes and types that do not fit. Spec: gather.2, gather.8,
    gather.9."""
    name = "embedding_bag"
    arr.refuse(name, max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    index: Any = index_of(name, input, "input")
    e = t.real(name, weight, "weight")
    t.same_kind(
        name, input=input, weight=weight, offsets=offsets, per_sample_weights=per_sample_weights
    )
    if mode not in ("sum", "mean", "max"):
        raise OperandError(
            f"{name}: argument 'mode': expected 'sum', 'mean' or 'max', got {mode!r}"
        )
    if per_sample_weights is not None and mode != "sum":
        raise NotCovered(
            f"{name}: argument 'per_sample_weights': covered is mode 'sum', got {mode!r}"
        )
    if index.ndim not in (1, 2) or (index.ndim == 1) != (offsets is not None):
        raise OperandError(
            f"{name}: argument 'offsets': expected with an input of 1 dimension and only there, got "
            f"an input of {index.ndim}"
        )
    kept = None
    if padding_idx is not None:
        padding = _padding(weight, padding_idx)
        kept = p.logical_not(compared(name, "equal", index, padding))
    table = t.wide(name, weight, "weight")
    rows = from_first(name, "input", index, len(table), lambda i: p.gather(table, i, axis=0))
    if per_sample_weights is not None:
        factors = t.wide(name, per_sample_weights, "per_sample_weights")
        rows = p.mul(rows, arr.insert(factors, factors.ndim))
    if kept is not None:
        nothing = t.beside(-math.inf if mode == "max" else 0, rows)
        rows = p.where(arr.insert(kept, kept.ndim), rows, nothing)
    ones = arr.full(index.shape, 1, "i64", index) if kept is None else t.cast(kept, "i64")
    if offsets is None:
        total = _bags_of_rows(rows, mode)
        count = p.reduce_sum(ones, axes=[1], keepdims=1)
    else:
        total, count = _bags_by_offsets(name, rows, ones, offsets, mode, include_last_offset)
    if mode != "sum":
        divisor = p.max(count, t.number(1, "i64", count))
        if mode == "mean":
            total = p.div(total, t.cast(divisor, t.NAMES[total.dtype]))
        else:
            empty = compared(name, "equal", count, 0)
            total = p.where(empty, t.beside(0, total), total)
    return cast(Array, t.cast(total, e))


def _bags_of_rows(rows: Any, mode: str) -> Any:
    return p.call("reduce_max" if mode == "max" else "reduce_sum", rows, axes=[1], keepdims=0)


def _bags_by_offsets(
    name: str, rows: Any, ones: Any, offsets: Any, mode: str, last: bool
) -> tuple[Any, Any]:
    """Sums (maxima) and counts of the bags [offset, next offset)."""
    starts = index_of(name, offsets, "offsets")
    n, bags = rows.shape[0], starts.shape[0] - (1 if last else 0)
    starts = arr.cut(starts, 0, 0, bags)
    # The bag of an element: how many begin at or before it, less one. Bags may begin at n.
    begun = p.scatter_nd(
        arr.full((n + 1,), 0, "i64", rows),
        arr.insert(starts, 1),
        arr.full((bags,), 1, "i64", rows),
        reduction=1,
    )
    bag = p.cumsum(begun, axis=0, exclusive=0, reverse=0)
    bag = arr.insert(p.sub(arr.cut(bag, 0, 0, n), t.number(1, "i64", bag)), 1)
    first = -math.inf if mode == "max" else 0
    total = arr.full((bags, rows.shape[1]), first, t.NAMES[rows.dtype], rows)
    total = p.scatter_nd(total, bag, rows, reduction=4 if mode == "max" else 1)
    count = p.scatter_nd(arr.full((bags,), 0, "i64", rows), bag, ones, reduction=1)
    return total, arr.insert(count, 1)
