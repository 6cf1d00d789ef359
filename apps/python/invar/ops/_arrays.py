"""Movement of data, alike on torch's tensors and NumPy's arrays: views where the library has them.
Nothing here computes with elements."""

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from invar import primitives as p
from invar.errors import ArgumentTypeError, DimensionError, NotCovered, OperandError
from invar.ops._types import dtype_like, number


class ValuesIndices(NamedTuple):
    """What functions return that find elements: them, and where they stand (i64)."""

    values: Any
    indices: Any


def dim_of(name: str, dim: Any, ndim: int, argument: str = "dim") -> int:
    """A dimension counted from the first; an array without dimensions counts as one of one."""
    if not isinstance(dim, int | np.integer) or isinstance(dim, bool):
        raise ArgumentTypeError(
            f"{name}: argument '{argument}': expected int, got {type(dim).__name__}"
        )
    n = ndim or 1
    if not -n <= dim < n:
        raise DimensionError(
            f"{name}: argument '{argument}': Dimension out of range (expected to be in range of "
            f"[{-n}, {n - 1}], but got {dim})"
        )
    return int(dim) % n


def dims_of(name: str, dim: Any, ndim: int) -> list[int]:
    """Ascending dimensions; None or none: all."""
    if type(dim) is int and -ndim <= dim < ndim:  # the common case
        return [dim % ndim]
    if dim is None:
        return list(range(ndim))
    if not isinstance(dim, Sequence):
        return [dim_of(name, dim, ndim)] if ndim else dims_checked(name, dim)
    found = [dim_of(name, d, ndim) for d in dim] or list(range(ndim))
    if len(set(found)) < len(found):
        raise OperandError(
            f"{name}: argument 'dim': a dimension appears multiple times in {list(dim)}"
        )
    return sorted(found) if ndim else []


def dims_checked(name: str, dim: Any) -> list[int]:
    """Of an array without dimensions."""
    dim_of(name, dim, 0)
    return []


def permute(x: Any, order: Sequence[int]) -> Any:
    return x.transpose(order) if isinstance(x, np.ndarray) else x.permute(tuple(order))


def swap(x: Any, a: int, b: int) -> Any:
    return x.swapaxes(a, b)


def move(x: Any, source: int, to: int) -> Any:
    order = [i for i in range(x.ndim) if i != source]
    order.insert(to, source)
    return x if source == to else permute(x, order)


def insert(x: Any, dim: int) -> Any:
    """A dimension of 1 more."""
    return x.reshape((*x.shape[:dim], 1, *x.shape[dim:]))


def drop(x: Any, dim: int) -> Any:
    """Without a dimension of 1."""
    return x.reshape((*x.shape[:dim], *x.shape[dim + 1 :]))


def expand(x: Any, shape: Sequence[int]) -> Any:
    """Broadcast (move.5): an operation, so that its gradient is one, too."""
    return x if tuple(x.shape) == tuple(shape) else p.expand(x, shape=tuple(shape))


def cut(x: Any, dim: int, start: int, end: int) -> Any:
    """The elements start ... end - 1 of a dimension."""
    return x[(slice(None),) * dim + (slice(start, end),)]


def numel(x: Any) -> int:
    return math.prod(x.shape)


def full(shape: Sequence[int], value: Any, name: str, like: Any) -> Any:
    """A new array of one value."""
    if isinstance(like, np.ndarray):
        return np.full(tuple(shape), value, dtype_like(name, like))
    torch = sys.modules["torch"]
    return torch.full(tuple(shape), value, dtype=dtype_like(name, like), device=like.device)


def iota(n: int, like: Any) -> Any:
    """0 ... n - 1 (move.12)."""
    return p.iota(number(0, "i64", like), number(1, "i64", like), shape=(n,), dtype="i64")


def copy_into(target: Any, value: Any) -> None:
    """Writes a value over an array, of which no gradient is kept."""
    if isinstance(target, np.ndarray):
        np.copyto(target, value)
        return
    with sys.modules["torch"].no_grad():
        target.copy_(value)


def detached(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else x.detach()


def broadcast_shapes(name: str, *shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape of a broadcast, refused where there is none."""
    found: list[int] = []
    for shape in shapes:
        short, long = sorted((found, list(shape)), key=len)
        found = list(long)
        for i in range(1, len(short) + 1):
            if short[-i] != 1 and long[-i] not in (1, short[-i]):
                text = " and ".join(str(tuple(s)) for s in shapes)
                raise OperandError(f"{name}: shapes {text} do not broadcast")
            if short[-i] != 1:
                found[-i] = short[-i]
    return tuple(found)


def fits_broadcast(name: str, argument: str, x: Any, wanted: tuple[int, ...]) -> None:
    """An argument must broadcast to a shape."""
    short = (1,) * (len(wanted) - x.ndim) + tuple(x.shape)
    if len(short) > len(wanted) or any(n not in (1, m) for n, m in zip(short, wanted)):
        raise OperandError(
            f"{name}: argument '{argument}': expected a shape that broadcasts to {wanted}, got "
            f"{tuple(x.shape)}"
        )


def tuple_of(name: str, argument: str, value: Any, n: int) -> tuple[int, ...]:
    """One number for each of n dimensions; a single one stands for all."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return (int(value),) * n
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) == 1:
            return (int(value[0]),) * n
        if len(value) == n:
            return tuple(int(v) for v in value)
    raise ArgumentTypeError(
        f"{name}: argument '{argument}': expected an int or {n} of them, got {value!r}"
    )


def refuse(name: str, **given: Any) -> None:
    """Arguments that are not covered: each must be None or False."""
    for argument, value in given.items():
        if value is not None and value is not False:
            raise NotCovered(f"{name}: argument '{argument}': not covered, got {value!r}")


def from_numpy(x: np.ndarray[Any, Any], like: Any) -> Any:
    """x as an array of the library of `like`, beside it."""
    if isinstance(like, np.ndarray):
        return x
    torch = sys.modules["torch"]
    return torch.from_numpy(x).to(like.device)


def numbers(values: Any, like: Any) -> Any:
    """Whole numbers as i64, beside `like`."""
    return from_numpy(np.asarray(values, np.int64), like)
