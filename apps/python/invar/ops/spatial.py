"""Convolutions (conv.1 to conv.5, conv_transpose.1 to conv_transpose.3) and pools (pool.1 to
pool.8), with the arguments of torch.nn.functional. Elements are f32, bf16, f16 or f64; f16
and bf16 are computed in f32 and rounded once. An input without batch is one of a batch of 1."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from invar.errors import NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._arrays import ValuesIndices
from invar.ops._types import Array
from invar.ops.binary64 import operations as p

Sizes: TypeAlias = int | Sequence[int]


def _batched(name: str, x: Any, n: int) -> tuple[Any, str]:
    """[N, C, ...] in the type that it is computed in, and the element type."""
    e = t.real(name, x)
    if x.ndim not in (n + 1, n + 2):
        raise OperandError(
            f"{name}: argument 'input': expected {n + 2} dimensions (or {n + 1} without batch), got "
            f"{tuple(x.shape)}"
        )
    y = t.wide(name, x)
    return (y if x.ndim == n + 2 else arr.insert(y, 0)), e


def _result(y: Any, x: Any, n: int, e: str) -> Any:
    y = t.cast(y, e)
    return y if x.ndim == n + 2 else arr.drop(y, 0)


def _conv_operands(name: str, x: Any, weight: Any, bias: Any, n: int, c: int, groups: int) -> list:
    """Checks; the operands behind x. c: the dimension of weight that has the input's channels."""
    e = t.type_of(x)
    for argument, w in (("weight", weight), ("bias", bias)):
        if w is not None and t.type_of(w, argument) != e:
            raise OperandError(
                f"{name}: argument '{argument}': expected elements of {t.spelled(e)} as 'input' has, "
                f"got {t.spelled(t.type_of(w, argument))}"
            )
    t.same_kind(name, input=x, weight=weight, bias=bias)
    channels = x.shape[x.ndim - n - 1]
    if weight.ndim != n + 2 or groups < 1 or weight.shape[c] * (groups if c else 1) != channels:
        raise OperandError(
            f"{name}: argument 'weight': expected {n + 2} dimensions that fit {channels} channels in "
            f"{groups} groups, got {tuple(weight.shape)}"
        )
    out = weight.shape[0] if c else weight.shape[1] * groups
    if (weight.shape[0] if c else channels) % groups:
        raise OperandError(
            f"{name}: argument 'groups': expected a divisor of the channels, got {groups}"
        )
    if bias is not None and tuple(bias.shape) != (out,):
        raise OperandError(
            f"{name}: argument 'bias': expected shape ({out},), got {tuple(bias.shape)}"
        )
    return [weight] if bias is None else [weight, bias]


def _pads(name: str, padding: Any, kernel: Sequence[int], stride: Any, dilation: Any) -> list[int]:
    n = len(kernel)
    if padding == "valid":
        return [0] * (2 * n)
    if padding == "same":
        if any(s != 1 for s in stride):
            raise OperandError(f"{name}: argument 'padding': 'same' expects stride 1, got {stride}")
        total = [d * (k - 1) for d, k in zip(dilation, kernel)]
        return [v // 2 for v in total] + [v - v // 2 for v in total]
    if isinstance(padding, str):
        raise OperandError(
            f"{name}: argument 'padding': expected numbers, 'valid' or 'same', got {padding!r}"
        )
    found = arr.tuple_of(name, "padding", padding, n)
    if any(v < 0 for v in found):
        raise OperandError(f"{name}: argument 'padding': expected no negative one, got {found}")
    return list(found) * 2


def _positive(name: str, **given: Sequence[int]) -> None:
    for argument, values in given.items():
        if any(v < 1 for v in values):
            raise OperandError(
                f"{name}: argument '{argument}': expected numbers above 0, got {tuple(values)}"
            )


def _conv(n: int) -> Callable[..., Any]:
    name = f"conv{n}d"

    def function(
        input: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: str | Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Array:
        x, e = _batched(name, input, n)
        more = _conv_operands(name, input, weight, bias, n, 1, groups)
        strides = arr.tuple_of(name, "stride", stride, n)
        dilations = arr.tuple_of(name, "dilation", dilation, n)
        _positive(name, stride=strides, dilation=dilations)
        pads = _pads(name, padding, weight.shape[2:], strides, dilations)
        for i, (size, k) in enumerate(zip(x.shape[2:], weight.shape[2:])):
            whole = size + pads[i] + pads[n + i]
            if whole < dilations[i] * (k - 1) + 1:
                raise OperandError(
                    f"{name}: argument 'weight': a kernel of {dilations[i] * (k - 1) + 1} is longer "
                    f"than the padded input of {whole}"
                )
        y = p.conv(
            x, *more, strides=list(strides), dilations=list(dilations), pads=pads, groups=groups
        )
        return cast(Array, _result(y, input, n, e))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The convolution over {n} spatial dimensions: input [N, C, ...] (or without N), weight [M, C / "
        "groups, ...], bias [M] -> [N, M, ...].\n\npadding: numbers, 'valid' or 'same'. All of one "
        "type: f32, bf16, f16, f64. Raises RuntimeError for shapes and types that do not fit. Spec: conv.1 "
        "to conv.5."
    )
    return public(function)


def _conv_transpose(n: int) -> Callable[..., Any]:
    name = f"conv_transpose{n}d"

    def function(
        input: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        dilation: Sizes = 1,
    ) -> Array:
        x, e = _batched(name, input, n)
        more = _conv_operands(name, input, weight, bias, n, 0, groups)
        strides = arr.tuple_of(name, "stride", stride, n)
        dilations = arr.tuple_of(name, "dilation", dilation, n)
        _positive(name, stride=strides, dilation=dilations)
        pads = arr.tuple_of(name, "padding", padding, n)
        extra = arr.tuple_of(name, "output_padding", output_padding, n)
        if any(v >= max(s, d) or v < 0 for v, s, d in zip(extra, strides, dilations)):
            raise OperandError(
                f"{name}: argument 'output_padding': expected less than stride or dilation, got {extra}"
            )
        for i, (size, k) in enumerate(zip(x.shape[2:], weight.shape[2:])):
            reach = (size - 1) * strides[i] + dilations[i] * (k - 1) + extra[i] + 1
            if reach - 2 * pads[i] < 1 and arr.numel(x):
                raise OperandError(
                    f"{name}: argument 'padding': it leaves a size of {reach - 2 * pads[i]} of "
                    f"{tuple(x.shape[2:])}"
                )
        y = p.conv_transpose(
            x,
            *more,
            strides=list(strides),
            dilations=list(dilations),
            pads=list(pads) * 2,
            output_padding=list(extra),
            groups=groups,
        )
        return cast(Array, _result(y, input, n, e))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The transposed convolution over {n} spatial dimensions: input [N, C, ...] (or without N), "
        "weight [C, M / groups, ...], bias [M] -> [N, M, ...].\n\nAll of one type: f32, bf16, f16, f64. "
        "Raises RuntimeError for shapes and types that do not fit. Spec: conv_transpose.1 to "
        "conv_transpose.3."
    )
    return public(function)


conv1d, conv2d, conv3d = (_conv(n) for n in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_conv_transpose(n) for n in (1, 2, 3))


def _window(
    name: str, n: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> dict[str, Any]:
    """The attributes of a pool."""
    kernels = arr.tuple_of(name, "kernel_size", kernel, n)
    none = stride is None or isinstance(stride, Sequence) and len(stride) == 0
    strides = kernels if none else arr.tuple_of(name, "stride", stride, n)
    pads = arr.tuple_of(name, "padding", padding, n)
    dilations = arr.tuple_of(name, "dilation", dilation, n)
    _positive(name, kernel_size=kernels, stride=strides, dilation=dilations)
    for k, d, v in zip(kernels, dilations, pads):
        if not 0 <= v <= (d * (k - 1) + 1) // 2:
            raise OperandError(
                f"{name}: argument 'padding': expected at most half of the kernel {kernels}, got {pads}"
            )
    return {
        "kernel": list(kernels),
        "strides": list(strides),
        "dilations": list(dilations),
        "pads": list(pads) * 2,
        "ceil_mode": int(ceil),
    }


def _has_windows(name: str, x: Any, how: dict[str, Any]) -> None:
    n = len(how["kernel"])
    for i, size in enumerate(x.shape[2:]):
        wide = how["dilations"][i] * (how["kernel"][i] - 1) + 1
        if size == 0 or not how["ceil_mode"] and size + 2 * how["pads"][i] < wide:
            raise OperandError(
                f"{name}: argument 'input': expected a spatial size that holds a window of {wide}, got "
                f"{tuple(x.shape[-n:])}"
            )


def _max_pool(n: int) -> Callable[..., Any]:
    name = f"max_pool{n}d"

    def function(
        input: Array,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        x, e = _batched(name, input, n)
        how = _window(name, n, kernel_size, stride, padding, dilation, ceil_mode)
        _has_windows(name, x, how)
        if x.shape[1] == 0:
            raise OperandError(
                f"{name}: argument 'input': expected channels, got {tuple(input.shape)}"
            )
        y = _result(p.max_pool(x, **how), input, n, e)
        return ValuesIndices(y, _indices(x, input, how, n)) if return_indices else y

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The largest element of each window over {n} spatial dimensions of input [N, C, ...]; with "
        "return_indices (values, indices), which count in the channel (i64).\n\nf32, bf16, f16, f64. Raises "
        "RuntimeError for shapes and arguments that do not fit. Spec: pool.1 to pool.4, pool.8."
    )
    return public(function)


def _indices(x: Any, input: Any, how: dict[str, Any], n: int) -> Any:
    i = p.max_pool_indices(arr.detached(x), **how, column_major=0)
    i = p.mod(i, t.number(math.prod(x.shape[2:]), "i64", i))
    return i if input.ndim == n + 2 else arr.drop(i, 0)


def _avg_pool(n: int) -> Callable[..., Any]:
    name = f"avg_pool{n}d"

    def function(
        input: Array,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:
        arr.refuse(name, divisor_override=divisor_override)
        x, e = _batched(name, input, n)
        how = _window(name, n, kernel_size, stride, padding, 1, ceil_mode)
        _has_windows(name, x, how)
        y = p.average_pool(x, **how, count_include_pad=int(count_include_pad))
        return cast(Array, _result(y, input, n, e))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The mean of each window over {n} spatial dimensions of input [N, C, ...]; pads count unless "
        "count_include_pad is False. divisor_override is refused.\n\nf32, bf16, f16, f64. Raises "
        "RuntimeError for shapes and arguments that do not fit. Spec: pool.1, pool.2, pool.5, pool.8."
    )
    return public(function)


def _lp_pool(n: int) -> Callable[..., Any]:
    name = f"lp_pool{n}d"

    def function(
        input: Array,
        norm_type: int | float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> Array:
        if norm_type != 2 or ceil_mode:
            raise NotCovered(
                f"{name}: covered are norm_type 2 without ceil_mode, got {norm_type} and {ceil_mode}"
            )
        x, e = _batched(name, input, n)
        how = _window(name, n, kernel_size, stride, 0, 1, False)
        _has_windows(name, x, how)
        return cast(Array, _result(p.lp_pool(x, **how, p=2), input, n, e))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The root of the sum of squares of each window over {n} spatial dimensions of input [N, C, "
        "...]; other norms and ceil_mode are refused.\n\nf32, bf16, f16, f64. Raises RuntimeError for shapes "
        "and arguments that do not fit. Spec: pool.1, pool.2, pool.6, pool.8."
    )
    return public(function)


max_pool1d, max_pool2d, max_pool3d = (_max_pool(n) for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(n) for n in (1, 2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = (_lp_pool(n) for n in (1, 2, 3))


def _adapted(name: str, x: Any, size: Sequence[int], pool: Callable[..., Any]) -> Any:
    """Pools so that each dimension has its size: of dimensions that it divides one pool, else
    window by window: from floor(i · n / m) to ceil((i + 1) · n / m)."""
    n = len(size)
    how = lambda kernel: {
        "kernel": list(kernel),
        "strides": list(kernel),
        "dilations": [1] * n,
        "pads": [0] * (2 * n),
        "ceil_mode": 0,
    }
    if all(a and b % a == 0 for a, b in zip(size, x.shape[2:])):
        return pool(x, **how([b // a for a, b in zip(size, x.shape[2:])]))
    spans = [
        [(i * b // a, -(-(i + 1) * b // a)) for i in range(a)] for a, b in zip(size, x.shape[2:])
    ]
    made = []
    for window in itertools.product(*spans):
        part = x
        for d, (start, end) in enumerate(window):
            part = arr.cut(part, d + 2, start, end)
        made.append(pool(part, **how(part.shape[2:])).reshape((*x.shape[:2], 1)))
    return p.concat(*made, axis=2).reshape((*x.shape[:2], *size))


def _adapted_indices(x: Any, size: Sequence[int]) -> Any:
    """Where the largest elements of the windows of an adaptive pool stand: x [N, C, ...] -> i64 [N,
    C, *size], counted in the channel."""
    space, n = x.shape[2:], len(size)
    spans = [[(i * b // a, -(-(i + 1) * b // a)) for i in range(a)] for a, b in zip(size, space)]
    whole, made = np.arange(math.prod(space)).reshape(space), []
    for window in itertools.product(*spans):
        part = x
        for d, (start, end) in enumerate(window):
            part = arr.cut(part, d + 2, start, end)
        kernel = list(part.shape[2:])
        how = dict(kernel=kernel, strides=kernel, dilations=[1] * n, pads=[0] * (2 * n))
        inside = p.max_pool_indices(arr.detached(part), **how, ceil_mode=0, column_major=0)
        inside = p.mod(inside, t.number(math.prod(kernel), "i64", inside))
        table = whole[tuple(slice(*span) for span in window)].reshape(-1)
        made.append(p.gather(arr.numbers(table, x), inside.reshape(*x.shape[:2], 1), axis=0))
    return p.concat(*made, axis=2).reshape(*x.shape[:2], *size)


def _adaptive(n: int, kind: str) -> Callable[..., Any]:
    name = f"adaptive_{kind}_pool{n}d"

    def pool(x: Any, **how: Any) -> Any:
        return (
            p.average_pool(x, **how, count_include_pad=0) if kind == "avg" else p.max_pool(x, **how)
        )

    def computed(input: Any, output_size: Any, indices: bool = False) -> Any:
        x, e = _batched(name, input, n)
        size = (output_size,) * n if not isinstance(output_size, Sequence) else tuple(output_size)
        if len(size) != n:
            raise OperandError(
                f"{name}: argument 'output_size': expected one number or {n}, got {output_size!r}"
            )
        whole = [b if a is None else a for a, b in zip(size, x.shape[2:])]
        _positive(name, output_size=whole, input=x.shape[2:])
        y = _result(_adapted(name, x, whole, pool), input, n, e)
        if not indices:
            return y
        i = _adapted_indices(x, whole)
        return ValuesIndices(y, i if input.ndim == n + 2 else arr.drop(i, 0))

    def average(input: Array, output_size: Any) -> Array:
        return cast(Array, computed(input, output_size))

    def largest(input: Array, output_size: Any, return_indices: bool = False) -> Any:
        return computed(input, output_size, return_indices)

    function: Any = average if kind == "avg" else largest
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {'mean' if kind == 'avg' else 'largest'} of windows that give the {n} spatial dimensions "
        "output_size (None: as they are)"
        + (
            ""
            if kind == "avg"
            else "; with return_indices (values, indices), which count in the channel (i64)"
        )
        + ".\n\nOutput i of m is made of the elements from floor(i · n / "
        "m) to ceil((i + 1) · n / m). f32, bf16, f16, f64. Raises RuntimeError for shapes that do not fit. "
        "Spec: pool.2, " + ("pool.5." if kind == "avg" else "pool.3.")
    )
    return cast(Callable[..., Any], public(function))


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _adaptive(n, "avg") for n in (1, 2, 3)
)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive(n, "max") for n in (1, 2, 3)
)
