"""Windows of images as columns, and back; the inverse of max_pool. Data moves by index (gather.5,
gather.7 to gather.9)."""

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from invar.errors import OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.binary64 import operations as p
from invar.ops.indexing.indices import index_of
from invar.ops.indexing.scatters import index_add, scatter
from invar.ops.shape import pad
from invar.ops.spatial import Sizes, _positive


class _Windows:
    """Where the windows of an image [H, W] lie."""

    def __init__(
        self, name: str, size: Sequence[int], kernel: Any, dilation: Any, padding: Any, stride: Any
    ) -> None:
        pairs = lambda argument, value: arr.tuple_of(name, argument, value, 2)
        self.kernel, self.stride = pairs("kernel_size", kernel), pairs("stride", stride)
        self.dilation, self.padding = pairs("dilation", dilation), pairs("padding", padding)
        _positive(name, kernel_size=self.kernel, dilation=self.dilation, stride=self.stride)
        if any(v < 0 for v in self.padding):
            raise OperandError(
                f"{name}: argument 'padding': expected no negative one, got {self.padding}"
            )
        self.padded = [n + 2 * v for n, v in zip(size, self.padding)]
        self.counts = [
            (n - d * (k - 1) - 1) // s + 1
            for n, d, k, s in zip(self.padded, self.dilation, self.kernel, self.stride)
        ]
        if any(n < 1 for n in self.counts):
            raise OperandError(
                f"{name}: the image {tuple(size)} with padding {self.padding} holds no window of "
                f"{self.kernel} with dilation {self.dilation}"
            )

    def places(self) -> Any:
        """The element of the padded image, counted row by row, of each place of a kernel and each
        window: [kernel height * width, windows]."""
        steps = [
            np.arange(k)[:, None] * d + np.arange(n)[None, :] * s
            for k, d, n, s in zip(self.kernel, self.dilation, self.counts, self.stride)
        ]
        rows, columns = steps
        found = rows[:, None, :, None] * self.padded[1] + columns[None, :, None, :]
        return found.reshape(math.prod(self.kernel), math.prod(self.counts))


@public
def unfold(
    input: Array, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Array:
    """Each window of an image as a column: input [N, C, H, W] (or [C, H, W]) -> [N, C * kernel
    height * kernel width, windows]. Elements are copied; a gradient is their sum in ascending order
    of place and window. f32, bf16, f16, f64.

    Raises RuntimeError for shapes that do not fit. Spec: gather.2, gather.8, gather.9."""
    name = "unfold"
    e = t.real(name, input)
    if input.ndim not in (3, 4):
        raise OperandError(
            f"{name}: argument 'input': expected 4 dimensions (or 3 without batch), got "
            f"{tuple(input.shape)}"
        )
    x: Any = input if input.ndim == 4 else arr.insert(input, 0)
    how = _Windows(name, x.shape[2:], kernel_size, dilation, padding, stride)
    height, width = how.padding
    x = pad(x, [width, width, height, height])
    n, c = x.shape[:2]
    places = how.places()
    rows = p.gather(
        x.reshape(n, c, math.prod(x.shape[2:])), arr.numbers(places.reshape(-1), x), axis=2
    )
    y = t.cast(rows, e).reshape(n, c * places.shape[0], places.shape[1])
    return cast(Array, y if input.ndim == 4 else arr.drop(y, 0))


@public
def fold(
    input: Array,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Array:
    """The image whose elements are the sums of those of the windows that meet there: input [N, C *
    kernel height * kernel width, windows] (or without N) -> [N, C, *output_size]. From +0 on they
    are added one by one in ascending order of place in the kernel, each sum rounded; bf16 and f16
    in f32, rounded at the end.

    Raises RuntimeError for shapes that do not fit. Spec: gather.8, gather.9."""
    name = "fold"
    e = t.real(name, input)
    size = arr.tuple_of(name, "output_size", output_size, 2)
    how = _Windows(name, size, kernel_size, dilation, padding, stride)
    places = how.places()
    x: Any = t.wide(name, input)
    x = x if x.ndim == 3 else arr.insert(x, 0)
    if x.ndim != 3 or x.shape[1] % len(places) or x.shape[2] != places.shape[1]:
        raise OperandError(
            f"{name}: argument 'input': expected [N, C * {len(places)}, {places.shape[1]}] (or without "
            f"N), got {tuple(input.shape)}"
        )
    n, c = x.shape[0], x.shape[1] // len(places)
    image = arr.full((n, c, math.prod(how.padded)), 0, t.NAMES[x.dtype], x)
    index = arr.numbers(places.reshape(-1), x)
    image = index_add(image, 2, index, x.reshape(n, c, places.size)).reshape(n, c, *how.padded)
    for d in range(2):
        image = arr.cut(image, d + 2, how.padding[d], how.padding[d] + size[d])
    y = t.cast(image, e)
    return cast(Array, y if input.ndim == 3 else arr.drop(y, 0))


def _max_unpool(n: int) -> Callable[..., Any]:
    name = f"max_unpool{n}d"

    def function(
        input: Array,
        indices: Array,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Array:
        t.real(name, input)
        index = index_of(name, indices, "indices")
        if input.ndim not in (n + 1, n + 2) or tuple(index.shape) != tuple(input.shape):
            raise OperandError(
                f"{name}: argument 'indices': expected the shape of input {tuple(input.shape)} of {n + 2} "
                f"dimensions (or {n + 1} without batch), got {tuple(index.shape)}"
            )
        kernel = arr.tuple_of(name, "kernel_size", kernel_size, n)
        step = kernel if stride is None else arr.tuple_of(name, "stride", stride, n)
        pads = arr.tuple_of(name, "padding", padding, n)
        size = [
            (m - 1) * s - 2 * v + k
            for m, s, v, k in zip(input.shape[input.ndim - n :], step, pads, kernel)
        ]
        if output_size is not None:
            wanted = [int(v) for v in output_size][-n:]
            if len(wanted) != n or any(abs(w - m) >= s for w, m, s in zip(wanted, size, step)):
                raise OperandError(
                    f"{name}: argument 'output_size': expected less than {tuple(step)} from "
                    f"{tuple(size)}, got {tuple(output_size)}"
                )
            size = wanted
        outer = tuple(input.shape[: input.ndim - n])
        flat = lambda x: x.reshape(*outer, -1)
        empty = arr.full((*outer, math.prod(size)), 0, t.type_of(input), input)
        found: Any = scatter(empty, -1, flat(index), flat(input))
        return cast(Array, found.reshape(*outer, *size))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Zeros, in which the elements of input stand where max_pool{n}d took them from: input and indices "
        f"(i64) [N, C, ...] (or without N); the last of several that name one place stays.\n\noutput_size: "
        "one of the sizes that the pool makes this shape of. f32, bf16, f16, f64. Raises RuntimeError for "
        "shapes that do not fit. Spec: gather.7, gather.9."
    )
    return public(function)


max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpool(n) for n in (1, 2, 3))
