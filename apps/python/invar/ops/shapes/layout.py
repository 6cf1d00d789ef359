"""Other shapes of the same elements (move.1 to move.5), with torch's names: views where the library
has them. Any element type; gradients are those of torch's views, and of move.5 for broadcasts."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from invar.errors import ArgumentTypeError, DimensionError, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array

Dims: TypeAlias = int | Sequence[int]


def _sizes(name: str, argument: str, given: Any) -> tuple[int, ...]:
    given = (given,) if isinstance(given, int | np.integer) else given
    if not isinstance(given, Sequence) or not all(isinstance(n, int | np.integer) for n in given):
        raise ArgumentTypeError(f"{name}: argument '{argument}': expected integers, got {given!r}")
    return tuple(int(n) for n in given)


def _several(name: str, argument: str, dims: Dims, ndim: int) -> list[int]:
    """Dimensions in the order in which they are given, none twice."""
    given = [dims] if isinstance(dims, int | np.integer) else list(dims)
    found = [arr.dim_of(name, d, ndim, argument) for d in given]
    if len(set(found)) < len(found):
        raise OperandError(f"{name}: argument '{argument}': a dimension comes twice in {given}")
    return found


@public
def reshape(input: Array, shape: Sequence[int]) -> Array:
    """The elements in row-major order with other dimensions; one of them may be -1, which is what
    the others leave. Spec: move.1."""
    t.type_of(input)
    x: Any = input
    wanted = _sizes("reshape", "shape", shape)
    known = math.prod(n for n in wanted if n != -1)
    rest = arr.numel(x) % known if known else arr.numel(x)
    fits = not rest and wanted.count(-1) == 1 if -1 in wanted else known == arr.numel(x)
    if not fits or min(wanted, default=0) < -1 or (-1 in wanted and not known):
        raise OperandError(
            f"reshape: argument 'shape': {list(wanted)} does not fit {arr.numel(x)} elements of shape "
            f"{tuple(x.shape)}"
        )
    return cast(Array, x.reshape(wanted))


@public
def permute(input: Array, dims: Sequence[int]) -> Array:
    """The dimensions in another order: dimension d of the result is dimension dims[d]. Spec:
    move.2."""
    t.type_of(input)
    order = _several("permute", "dims", _sizes("permute", "dims", dims), input.ndim)
    if len(order) != input.ndim:
        raise OperandError(
            f"permute: argument 'dims': expected {input.ndim} dimensions, got {list(dims)}"
        )
    return cast(Array, arr.permute(input, order))


@public
def transpose(input: Array, dim0: int, dim1: int) -> Array:
    """Two dimensions change places. Spec: move.2."""
    t.type_of(input)
    a, b = (arr.dim_of("transpose", d, input.ndim, f"dim{i}") for i, d in enumerate((dim0, dim1)))
    return cast(Array, arr.swap(input, a, b) if input.ndim else input)


@public
def swapaxes(input: Array, axis0: int, axis1: int) -> Array:
    """transpose by the name of NumPy. Spec: move.2."""
    return transpose(input, axis0, axis1)


@public
def movedim(input: Array, source: Dims, destination: Dims) -> Array:
    """Dimensions go to other places; the rest keep their order. Spec: move.2."""
    t.type_of(input)
    begin = _several("movedim", "source", source, input.ndim)
    end = _several("movedim", "destination", destination, input.ndim)
    if len(begin) != len(end):
        raise OperandError(
            f"movedim: arguments 'source' and 'destination': expected as many, got {source} and "
            f"{destination}"
        )
    to = dict(zip(end, begin))
    rest = iter([d for d in range(input.ndim) if d not in begin])
    order = [to[d] if d in to else next(rest) for d in range(input.ndim)]
    return cast(Array, arr.permute(input, order))


moveaxis = movedim


@public
def squeeze(input: Array, dim: Dims | None = None) -> Array:
    """Without dimensions of 1: all of them, or those of `dim` that are 1. Spec: move.1."""
    t.type_of(input)
    x: Any = input
    dims = range(x.ndim) if dim is None else _several("squeeze", "dim", dim, x.ndim)
    gone = {d for d in dims if d < x.ndim and x.shape[d] == 1}
    return cast(Array, x.reshape(tuple(n for d, n in enumerate(x.shape) if d not in gone)))


@public
def unsqueeze(input: Array, dim: int) -> Array:
    """A dimension of 1 more, at place `dim`. Spec: move.1."""
    t.type_of(input)
    return cast(Array, arr.insert(input, arr.dim_of("unsqueeze", dim, input.ndim + 1)))


@public
def flatten(input: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """The dimensions from start_dim to end_dim as one. Spec: move.1."""
    t.type_of(input)
    x: Any = input
    a = arr.dim_of("flatten", start_dim, x.ndim, "start_dim")
    b = arr.dim_of("flatten", end_dim, x.ndim, "end_dim")
    if a > b:
        raise OperandError(f"flatten: expected start_dim up to end_dim, got {start_dim}, {end_dim}")
    one = math.prod(x.shape[a : b + 1])
    return cast(Array, x.reshape((*x.shape[:a], one, *x.shape[b + 1 :])))


@public
def unflatten(input: Array, dim: int, sizes: Sequence[int]) -> Array:
    """One dimension as several of `sizes`, of which one may be -1. Spec: move.1."""
    t.type_of(input)
    x: Any = input
    d = arr.dim_of("unflatten", dim, x.ndim)
    wanted = _sizes("unflatten", "sizes", sizes)
    known = math.prod(n for n in wanted if n != -1)
    if wanted.count(-1) == 1 and known and not x.shape[d] % known:
        wanted = tuple(x.shape[d] // known if n == -1 else n for n in wanted)
    if not wanted or math.prod(wanted) != x.shape[d] or min(wanted) < 0:
        raise OperandError(
            f"unflatten: argument 'sizes': {list(sizes)} do not make {x.shape[d]} elements"
        )
    return cast(Array, x.reshape((*x.shape[:d], *wanted, *x.shape[d + 1 :])))


@public
def broadcast_to(input: Array, size: Sequence[int]) -> Array:
    """input broadcast to a shape. Spec: move.5."""
    t.type_of(input)
    wanted = _sizes("broadcast_to", "size", size)
    arr.fits_broadcast("broadcast_to", "input", input, wanted)
    return cast(Array, arr.expand(input, wanted))


@public
def split(tensor: Array, split_size_or_sections: Dims, dim: int = 0) -> tuple[Array, ...]:
    """Parts along a dimension: of one size (the last may be smaller), or of the sizes that are
    given. Spec: move.3."""
    t.type_of(tensor, "tensor")
    axis = arr.dim_of("split", dim, tensor.ndim)
    n = tensor.shape[axis] if tensor.ndim else 0
    sizes = _sizes("split", "split_size_or_sections", split_size_or_sections)
    if isinstance(split_size_or_sections, int | np.integer):
        (size,) = sizes
        if size < 0 or (size == 0 and n):
            raise OperandError(
                f"split: argument 'split_size_or_sections': expected a size above 0, got {size}"
            )
        sizes = tuple(min(size, n - i) for i in range(0, n, size)) if n else (0,)
    if not tensor.ndim or sum(sizes) != n or min(sizes, default=0) < 0:
        raise OperandError(
            f"split: argument 'split_size_or_sections': {list(sizes)} do not make {n} elements"
        )
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    return tuple(arr.cut(tensor, axis, end - size, end) for size, end in zip(sizes, ends))


@public
def chunk(input: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    """At most `chunks` parts of one size along a dimension; the last may be smaller. Spec:
    move.3."""
    t.type_of(input)
    if not isinstance(chunks, int | np.integer) or chunks < 1:
        raise OperandError(f"chunk: argument 'chunks': expected a number above 0, got {chunks}")
    n = input.shape[arr.dim_of("chunk", dim, input.ndim)] if input.ndim else 0
    return split(input, -(-n // int(chunks)) if n else 0, dim)


@public
def unbind(input: Array, dim: int = 0) -> tuple[Array, ...]:
    """The slices along a dimension, without it. Spec: move.3."""
    t.type_of(input)
    axis = arr.dim_of("unbind", dim, input.ndim)
    if not input.ndim:
        raise DimensionError("unbind: argument 'input': expected at least one dimension, got none")
    return tuple(_at(input, axis, i) for i in range(input.shape[axis]))


def _at(x: Any, axis: int, i: int) -> Any:
    return x[(slice(None),) * axis + (i,)]


@public
def select(input: Array, dim: int, index: int) -> Array:
    """The slice at one index of a dimension, without it. Spec: move.3."""
    t.type_of(input)
    axis = arr.dim_of("select", dim, input.ndim)
    n = input.shape[axis] if input.ndim else 0
    if not -n <= index < n:
        raise DimensionError(
            f"select: argument 'index': expected one of {-n} to {n - 1}, got {index}"
        )
    return cast(Array, _at(input, axis, index % n))


@public
def narrow(input: Array, dim: int, start: int, length: int) -> Array:
    """`length` elements of a dimension from `start` on. Spec: move.3."""
    t.type_of(input)
    axis = arr.dim_of("narrow", dim, input.ndim)
    n = input.shape[axis] if input.ndim else 0
    begin = int(start) + (n if start < 0 else 0)
    if not 0 <= begin <= n or not 0 <= length <= n - begin or not input.ndim:
        raise OperandError(
            f"narrow: arguments 'start' and 'length': {start} and {length} are not within {n} elements"
        )
    return cast(Array, arr.cut(input, axis, begin, begin + int(length)))
