"""Convolutions and pools of binary64 (spec: functions.43): the elements of each window side by
side, then contractions and reductions."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from invar import _native
from invar import primitives as p
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops.binary64.reductions import place, root

Numbers = Sequence[int]


def windows(
    x: Any, kernel: Numbers, strides: Numbers, dilations: Numbers, pads: Numbers, out: Numbers,
    value: float = 0.0,
) -> Any:  # fmt: skip
    """[N, C, ...] as [N, C, O..., K...]; beyond the ends is `value`."""
    n = len(kernel)
    sizes = [
        max((o - 1) * s + (k - 1) * d + 1, 0) if o else 0
        for o, s, k, d in zip(out, strides, kernel, dilations)
    ]
    begins = [0, 0, *pads[:n]]
    more = () if value == 0 else (t.number(value, t.NAMES[x.dtype], x),)
    x = p.pad(x, *more, begins=begins, shape=(*x.shape[:2], *sizes))
    for d in range(n):
        place = np.arange(out[d])[:, None] * strides[d] + np.arange(kernel[d]) * dilations[d]
        x = p.gather(x, arr.from_numpy(place, x), axis=2 + 2 * d)
    return arr.permute(x, [0, 1, *range(2, 2 + 2 * n, 2), *range(3, 3 + 2 * n, 2)])


def _settings(x: Any, n: int, given: dict[str, Any]) -> tuple[Numbers, Numbers, Numbers]:
    return (
        given.get("strides") or [1] * n,
        given.get("dilations") or [1] * n,
        given.get("pads") or [0] * 2 * n,
    )


def conv(x: Any, weight: Any, bias: Any = None, *, groups: int = 1, **given: Any) -> Any:
    """A contraction over the channels of a group and the window, in this order (contraction.7)."""
    n = x.ndim - 2
    kernel = list(weight.shape[2:])
    strides, dilations, pads = _settings(x, n, given)
    out = [
        (x.shape[2 + i] + pads[i] + pads[n + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i]
        + 1
        for i in range(n)
    ]
    parts = windows(x, kernel, strides, dilations, pads, out)  # [N, C, O..., K...]
    order = [0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n)]
    columns = arr.permute(parts, order)  # [N, C, K..., O...]
    channels, places = x.shape[1] // groups, math.prod(out)
    k = channels * math.prod(kernel)
    columns = columns.reshape((x.shape[0], groups, k, places))
    rows = weight.reshape((groups, weight.shape[0] // groups, k))
    y = p.matmul(rows, columns, trans_a=0, trans_b=0)
    y = y.reshape((x.shape[0], weight.shape[0], *out))
    return y if bias is None else p.add(y, bias.reshape((-1,) + (1,) * n))


def conv_transpose(
    x: Any, weight: Any, bias: Any = None, *, groups: int = 1, output_padding: Any = None,
    **given: Any,
) -> Any:  # fmt: skip
    """The convolution of x, with zeros between its elements, with the reversed weight."""
    n = x.ndim - 2
    kernel, more = weight.shape[2:], output_padding or [0] * n
    strides, dilations, pads = _settings(x, n, given)
    apart = [m for size in x.shape[2:] for m in (size, 1)]
    between = [m for size, s in zip(x.shape[2:], strides) for m in (size, s)]
    head = tuple(x.shape[:2])
    wide = p.pad(x.reshape((*head, *apart)), begins=[0] * (2 + 2 * n), shape=(*head, *between))
    wide = wide.reshape((*head, *(size * s for size, s in zip(x.shape[2:], strides))))
    reach = [(k - 1) * d for k, d in zip(kernel, dilations)]
    begins = [r - b for r, b in zip(reach, pads[:n])]
    sizes = [
        (size - 1) * s + 1 + 2 * r - b - e + m
        for size, s, r, b, e, m in zip(x.shape[2:], strides, reach, pads[:n], pads[n:], more)
    ]
    wide = p.pad(wide, begins=[0, 0, *begins], shape=(*head, *sizes))
    w = weight.reshape((groups, weight.shape[0] // groups, *weight.shape[1:]))
    w = arr.swap(w, 1, 2)
    turned = list(range(3, 3 + n))
    if arr.numel(w):
        starts = [-1 if d in turned else 0 for d in range(w.ndim)]
        steps = [-1 if d in turned else 1 for d in range(w.ndim)]
        w = p.slice(w, starts=starts, steps=steps, shape=tuple(w.shape))
    w = w.reshape((groups * w.shape[1], *w.shape[2:]))
    return conv(wide, w, bias, groups=groups, dilations=list(dilations))


class Pool:
    """A pool of x: the shape of its result, and its windows."""

    def __init__(self, op: str, x: Any, attributes: dict[str, Any]) -> None:
        self.x, self.kernel = x, attributes["kernel"]
        n = self.n = len(self.kernel)
        self.strides, self.dilations, self.pads = _settings(x, n, attributes)
        given = {name: list(v) if isinstance(v, tuple) else v for name, v in attributes.items()}
        shape = _native.infer(op, given, [("f32", tuple(x.shape))], None)[1]
        self.out = list(shape[2:])

    def of(self, x: Any, value: float = 0.0) -> Any:
        """[N, C, O..., elements of the window]."""
        y = windows(x, self.kernel, self.strides, self.dilations, self.pads, self.out, value)
        return y.reshape((*y.shape[: 2 + self.n], math.prod(self.kernel)))

    def counts(self, padded: bool) -> Any:
        """How many places of each window count (pool.5), f64 [O...]."""
        areas = np.ones((), np.float64)
        for d, size in enumerate(self.x.shape[2:]):
            low = -self.pads[d] if padded else 0
            high = size + (self.pads[self.n + d] if padded else 0)
            first = np.arange(self.out[d])[:, None] * self.strides[d] - self.pads[d]
            place = first + np.arange(self.kernel[d]) * self.dilations[d]
            areas = areas[..., None] * ((place >= low) & (place < high)).sum(1)
        return arr.from_numpy(np.ascontiguousarray(areas), self.x)


def average_pool(x: Any, *, count_include_pad: int = 0, **attributes: Any) -> Any:
    pool = Pool("average_pool", x, {**attributes, "count_include_pad": count_include_pad})
    total = p.reduce_sum(pool.of(x), axes=[2 + pool.n], keepdims=0)
    return p.div(total, pool.counts(bool(count_include_pad)))


def _chosen(pool: Pool) -> tuple[Any, Any]:
    """Windows, and the place of each one's first largest element."""
    parts = pool.of(pool.x, -math.inf)
    return parts, place(True, parts, 2 + pool.n)


def max_pool(x: Any, **attributes: Any) -> Any:
    pool = Pool("max_pool", x, attributes)
    parts, chosen = _chosen(pool)
    return arr.drop(p.gather_elements(parts, chosen, axis=2 + pool.n), 2 + pool.n)


def max_pool_indices(x: Any, column_major: int = 0, **attributes: Any) -> Any:
    """Row-major places of the elements in x, -1 of none."""
    pool = Pool("max_pool", x, attributes)
    _, chosen = _chosen(pool)
    numbers = np.arange(1, math.prod(x.shape) + 1).reshape(x.shape)
    places = pool.of(arr.from_numpy(numbers, x))
    found = arr.drop(p.gather_elements(places, chosen, axis=2 + pool.n), 2 + pool.n)
    return p.sub(found, t.constant(1, "i64", found))


def lp_pool(x: Any, **attributes: Any) -> Any:
    pool = Pool("lp_pool", x, attributes)  # p = 2
    parts = pool.of(x)
    return root(p.reduce_sum(p.mul(parts, parts), axes=[2 + pool.n], keepdims=0))
