"""Indices of arguments: their type, and what their refusals say."""

from collections.abc import Callable
from typing import Any

from invar.errors import BadInput, DimensionError, OperandError
from invar.ops import _types as t
from invar.ops.binary64 import operations as p


def index_of(name: str, x: Any, argument: str) -> Any:
    """Indices as i64."""
    e = t.type_of(x, argument)
    if e not in ("i64", "i32"):
        raise OperandError(
            f"{name}: argument '{argument}': expected elements of int64 or int32, got {t.spelled(e)}"
        )
    return t.cast(x, "i64")


def from_first(
    name: str, argument: str, index: Any, n: int, found: Callable[[Any], Any], **refusal: Any
) -> Any:
    """found(index) of a function of torch that counts its n rows from the first alone: indices
    (i64) below 0 become one that every operation refuses, where gather.2 would count from the
    end."""
    lowest, zero = t.constant(-(2**63), "i64", index), t.constant(0, "i64", index)
    counted = p.where(p.less(index, zero), lowest, index)
    return in_range(name, argument, index, n, lambda: found(counted), **refusal)


def in_range(
    name: str,
    argument: str,
    index: Any,
    n: int,
    found: Callable[[], Any],
    noun: str = "indices",
    kind: type[BadInput] = DimensionError,
) -> Any:
    """found(), whose refusal of an index outside 0 ... n - 1 becomes torch's: a `kind` of
    error."""
    try:
        return found()
    except BadInput as e:
        if not e.out_of_bounds:
            raise
        raise kind(
            f"{name}: argument '{argument}': expected {noun} of 0 ... {n - 1}, got some of "
            f"{int(index.min())} ... {int(index.max())}"
        ) from None


def rows_of(table: Any, index: Any, axis: int = 0) -> Any:
    """gather, with the table's type."""
    return t.cast(p.gather(table, index, axis=axis), t.NAMES[table.dtype])


def like_index(name: str, x: Any, index: Any, axis: int | None, argument: str = "input") -> None:
    """Refuses an index of another rank than x, or longer than it beside the axis."""
    if index.ndim != x.ndim or any(
        n > m for d, (n, m) in enumerate(zip(index.shape, x.shape)) if d != axis
    ):
        raise OperandError(
            f"{name}: argument 'index': expected the rank of '{argument}' {tuple(x.shape)} and no "
            f"dimension longer than its, got {tuple(index.shape)}"
        )
