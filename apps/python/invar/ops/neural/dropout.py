"""Dropout of whole channels, and dropout that keeps mean and variance (spec: random.5). What is
kept follows from seed and offset, as in invar.ops.dropout; one number is drawn for each channel, or
each element."""

import math
from collections.abc import Callable
from typing import Any

from invar import primitives as p
from invar.errors import NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.random import _drawn, _probability, mask_of_f64

_ALPHA = 1.0507009873554805 * 1.6732632423543772  # scale times alpha of selu


def _begun(name: str, input: Any, p: float, inplace: bool) -> tuple[float, str]:
    ratio = _probability(name, p)
    if inplace:
        raise NotCovered(f"{name}: argument 'inplace': expected False: results are new arrays")
    return ratio, t.real(name, input)


def _mask(name: str, shape: Any, like: Any, ratio: float, given: dict[str, Any]) -> Any:
    """0 where an element is dropped, 1 / (1 - p) where it is kept, f32."""
    ones = arr.full(shape, 1.0, "f32", like)
    seed, offset = _drawn(name, like, math.prod(shape), *given.values())
    return p.call("random_dropout", ones, seed, offset, ratio=ratio)


def _channels(x: Any, first: int) -> tuple[int, ...]:
    """The shape of a mask with one element for each index of the first dimensions."""
    return (*x.shape[:first], *(1,) * (x.ndim - first))


def _of_channels(n: int) -> Callable[..., Any]:
    name = f"dropout{n}d"

    def function(
        input: Array,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
        *,
        seed: Any = None,
        offset: Any = None,
        generator: Any = None,
    ) -> Array:
        ratio, e = _begun(name, input, p, inplace)
        least, most = (2, 3) if n == 1 else (2, math.inf)  # more than it is for, as in torch
        if not least <= input.ndim <= most:
            raise OperandError(
                f"{name}: argument 'input': expected {'2 or 3' if n == 1 else 'at least 2'} "
                f"dimensions, got {tuple(input.shape)}"
            )
        if not training:
            return input
        first = 2 if n == 2 or input.ndim == n + 2 else 1  # as torch has it for n = 2, too
        given = dict(seed=seed, offset=offset, generator=generator)
        mask = _mask(name, _channels(input, first), input, ratio, given)
        mask = mask_of_f64(mask, ratio) if e == "f64" else mask
        return t.cast(_times(t.wide(name, input), mask), e)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Zeros whole channels with probability p and scales the others by 1 / (1 - p): input [N, C, ...] "
        f"of {n} spatial dimensions"
        + (
            ".\n\nWith three dimensions it is [N, C, L]"
            if n == 2
            else " (or without N).\n\nWithout N it is [C, ...]"
        )
        + ". One number of the generator for each channel; seed, offset and generator as in dropout. f32, "
        "bf16, f16, f64. Not training: input itself. Raises RuntimeError for shapes and probabilities "
        "that do not fit. Spec: random.5, elementwise.5."
    )
    return public(function)


def _times(x: Any, mask: Any) -> Any:
    return p.mul(x, mask)


dropout1d, dropout2d, dropout3d = (_of_channels(n) for n in (1, 2, 3))


def _alpha(name: str, x: Any, ratio: float, first: int, e: str, given: dict[str, Any]) -> Any:
    if ratio == 1:
        wide = t.wide(name, x)
        return t.cast(_times(wide, t.beside(0, wide)), e)
    a = 1.0 / math.sqrt((_ALPHA * _ALPHA * ratio + 1.0) * (1.0 - ratio))
    wide = t.wide(name, x)
    at = lambda v: t.beside(v, wide)
    mask = _mask(name, _channels(x, first), x, ratio, given)
    kept = p.add(p.mul(wide, at(a)), at(_ALPHA * a * ratio))
    return t.cast(
        p.where(p.greater(mask, t.number(0, "f32", x)), kept, at(_ALPHA * a * ratio - _ALPHA * a)),
        e,
    )


@public
def alpha_dropout(
    input: Array,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    seed: Any = None,
    offset: Any = None,
    generator: Any = None,
) -> Array:
    """a · input + b, and a · -s + b where an element is dropped (s: the limit of selu below), a and
    b such that mean and variance stay those of normal inputs.

    seed, offset and generator as in dropout. f32, bf16, f16, f64. Not training: input itself.
    Raises RuntimeError for probabilities out of range. Spec: random.5, elementwise.5,
    elementwise.15."""
    ratio, e = _begun("alpha_dropout", input, p, inplace)
    if not training or ratio == 0:
        return input
    given = dict(seed=seed, offset=offset, generator=generator)
    return _alpha("alpha_dropout", input, ratio, input.ndim, e, given)  # type: ignore[no-any-return]


@public
def feature_alpha_dropout(
    input: Array,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    seed: Any = None,
    offset: Any = None,
    generator: Any = None,
) -> Array:
    """alpha_dropout of whole channels: input [N, C, ...], one number for each channel.

    seed, offset and generator as in dropout. f32, bf16, f16, f64. Not training: input itself.
    Raises RuntimeError for shapes and probabilities that do not fit. Spec: random.5, elementwise.5,
    elementwise.15."""
    name = "feature_alpha_dropout"
    ratio, e = _begun(name, input, p, inplace)
    if not training or ratio == 0:
        return input
    if input.ndim < 2:
        raise OperandError(
            f"{name}: argument 'input': expected at least 2 dimensions, got {tuple(input.shape)}"
        )
    given = dict(seed=seed, offset=offset, generator=generator)
    return _alpha(name, input, ratio, 2, e, given)  # type: ignore[no-any-return]
