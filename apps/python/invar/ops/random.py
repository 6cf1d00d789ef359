"""Dropout and random numbers from a counter: the same on every machine and device
(spec: spec/ops/random.md)."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from invar import arrays
from invar import primitives as p
from invar.errors import ArgumentTypeError, NotCovered, OperandError, public
from invar.generator import Generator, default_generator, integer

__all__ = ["Generator", "default_generator", "dropout", "manual_seed", "rand", "randn"]

_SIGNED = 2**63


def manual_seed(seed: int) -> Generator:
    """Seeds all random numbers: those of tensors, which follow torch's generator (torch.manual_seed
    of the same seed, where torch is imported), and those of NumPy's arrays, which follow the
    default generator. Returns that."""
    torch = arrays.torch()
    if torch is not None:
        torch.manual_seed(integer(seed, "seed"))
    return default_generator.manual_seed(seed)


@public
def dropout(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    seed: Any = None,
    offset: Any = None,
    generator: Generator | None = None,
) -> Any:
    """Zeros elements with probability p and scales the others by 1 / (1 - p) (spec: random.5).

    input: f32, bf16, f16 or f64 of any shape (bf16 and f16 are computed as f32 and rounded once
    more; f64 is multiplied by the mask of f32); the result has its shape and type. Not training:
    input itself.

    Which elements are zeroed follows from `seed` and `offset` alone: element i has number
    offset + i. Without a seed they come from `generator`. Without one of these, for a tensor, the
    seed is one whole number of torch's generator of the host, as in invar.nn.Dropout; for an array
    of NumPy invar.default_generator counts on. So the mask does not depend on how a batch is split
    if the caller gives the offset: rows from row r on have the mask of the whole batch with offset
    + r * (elements of a row). Seed and offset may be i64 tensors of one element on input's device:
    a captured CUDA graph reads them whenever it runs.

    Errors: OperandError where p is outside [0, 1] or offset is given without seed; NotCovered for
    inplace=True and for other element types."""
    ratio = _probability("dropout", p)
    if inplace:
        raise NotCovered("dropout: argument 'inplace': expected False: results are new arrays")
    if not training:
        return input
    if str(input.dtype).endswith("float64"):  # times the mask of as many ones
        from invar.ops import _arrays as arr

        ones = arr.full(input.shape, 1.0, "f32", input)
        mask = dropout(ones, p, True, seed=seed, offset=offset, generator=generator)
        return _op("mul", input, mask_of_f64(mask, ratio))
    x, given = _as_f32("dropout", input)
    seed, offset = _drawn("dropout", x, math.prod(x.shape), seed, offset, generator)
    return _cast(_op("random_dropout", x, seed, offset, ratio=ratio), given)


@public
def rand(
    *size: int | Sequence[int],
    seed: Any = None,
    offset: Any = None,
    generator: Generator | None = None,
    device: Any = None,
) -> Any:
    """Numbers in [0, 1), multiples of 2^-24 (spec: random.4).

    size: integers or one sequence -> f32 of that shape, on `device` (torch; None: the host).
    `seed`, `offset`, `generator`: as dropout has them. NumPy arrays where torch is not imported."""
    size = _size("rand", size)
    like = _place(device)
    seed, offset = _drawn("rand", like, math.prod(size), seed, offset, generator)
    return _op("random_uniform", seed, offset, shape=size, dtype="f32")


@public
def randn(
    *size: int | Sequence[int],
    seed: Any = None,
    offset: Any = None,
    generator: Generator | None = None,
    device: Any = None,
) -> Any:
    """Normal numbers by Box and Muller: element i is sqrt(-2 ln(1 - u)) * cospi(2 v) with u and v
    the uniform numbers offset + i and offset + n + i of n elements, every step a primitive, stored.

    Arguments as rand has them; 2 n numbers are drawn."""
    size = _size("randn", size)
    n = math.prod(size)
    like = _place(device)
    seed, offset = _drawn("randn", like, 2 * n, seed, offset, generator)
    drawn = _op("random_uniform", seed, offset, shape=(2, *size), dtype="f32")
    one, two, less = (_constant(c, drawn) for c in (1.0, 2.0, -2.0))
    radius = p.sqrt(p.mul(p.log(p.sub(one, drawn[0])), less))
    return p.mul(radius, p.cospi(p.mul(drawn[1], two)))


def _op(name: str, *operands: Any, **settings: Any) -> Any:
    return p.call(name, *operands, **settings)


def _probability(function: str, value: Any) -> float:
    try:
        ratio = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{function}: argument 'p': expected a number, got {type(value).__name__}"
        ) from None
    if not 0 <= ratio <= 1:
        raise OperandError(f"{function}: argument 'p': expected a probability, got {value}")
    return ratio


def mask_of_f64(mask: Any, ratio: float) -> Any:
    """1 / (1 - ratio) where a mask of f32 is not 0."""
    from invar.ops import _types as t

    gone = _op("equal", mask, t.number(0, "f32", mask))
    kept = t.number(1 / (1 - ratio) if ratio < 1 else 0.0, "f64", mask)
    return _op("where", gone, t.number(0, "f64", mask), kept)


def _as_f32(function: str, x: Any) -> tuple[Any, str | None]:
    """As the operation takes it, and the element type to go back to."""
    if not arrays.is_tensor(x):
        x = np.asarray(arrays.unmasked(x, f"{function}: argument 'input'"))
        name = arrays.name_of(x.dtype, f"{function}: argument 'input'")
    else:
        name = str(x.dtype).removeprefix("torch.")
        name = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}.get(name, name)
    if name == "f32":
        return x, None
    if name not in ("bf16", "f16"):
        raise NotCovered(
            f"{function}: argument 'input': expected f32, bf16, f16 or f64, got {name}"
        )
    return p.cast(x, shape=tuple(x.shape), dtype="f32"), name


def _cast(x: Any, name: str | None) -> Any:
    return x if name is None else p.cast(x, shape=tuple(x.shape), dtype=name)


def _drawn(
    function: str, like: Any, count: int, seed: Any, offset: Any, generator: Any
) -> tuple[Any, Any]:
    """Seed and offset as operands beside `like`."""
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentTypeError(
            f"{function}: argument 'generator': expected invar.Generator, got "
            f"{type(generator).__name__}"
        )
    if seed is None:
        if offset is not None:
            raise OperandError(f"{function}: argument 'offset': expected a seed with it, got none")
        if generator is None and arrays.is_tensor(like):
            seed, offset = torch_seed(like, count).values()
        else:
            seed, offset = (generator or default_generator).draw(count)
    elif generator is not None:
        raise OperandError(f"{function}: argument 'generator': expected none beside a seed")
    return _number(function, "seed", seed, like), _number(
        function, "offset", 0 if offset is None else offset, like
    )


def compiling() -> bool:
    """Whether torch's compiler follows this call: a graph draws when it runs."""
    torch = arrays.torch()
    return torch is not None and bool(torch.compiler.is_compiling())


def _traced(source: str, count: int, like: Any) -> tuple[Any, Any]:
    from invar.autograd import seeds

    seed, offset = seeds.traced(source, count, like.device)
    return seed, offset


def torch_seed(like: Any, count: int | None = None) -> dict[str, Any]:
    """Seed and offset for `count` numbers beside `like`, a tensor (as many as it has elements): one
    whole number of torch's generator of the host, and 0. So torch.manual_seed, saved generator
    states and checkpoints of activations do what they do elsewhere, on every device.

    Within a part of a batch with exact gradients (training.20) the offset is that of its units."""
    if compiling():
        seed, offset = _traced("torch", 1, like)
        return {"seed": seed, "offset": offset}
    if arrays.torch().jit.is_tracing():
        raise NotCovered(
            "torch.jit.trace would keep one drawing for all calls: trace a model.eval(), or take "
            "torch.compile, whose graphs draw"
        )
    from invar.autograd import exact, seeds

    part = exact.part()
    offset = 0 if part is None else part.offset(math.prod(like.shape) if count is None else count)
    return {"seed": int(seeds.of_torch()), "offset": offset}


def _number(function: str, argument: str, value: Any, like: Any) -> Any:
    if arrays.is_tensor(value) or isinstance(value, np.ndarray):
        count, kind = math.prod(value.shape), str(value.dtype).removeprefix("torch.")
        if kind != "int64" or count != 1:
            raise OperandError(
                f"{function}: argument '{argument}': expected one int64, got {kind} of shape "
                f"{tuple(value.shape)}"
            )
        return value
    try:
        signed = (operator.index(value) + _SIGNED) % (2 * _SIGNED) - _SIGNED
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{function}: argument '{argument}': expected an integer, got {type(value).__name__}"
        ) from None
    if arrays.is_tensor(like):
        torch = arrays.torch()
        return torch.full((), signed, dtype=torch.int64, device=like.device)
    return np.array(signed, np.int64)


def _size(function: str, size: Any) -> tuple[int, ...]:
    if len(size) == 1 and not isinstance(size[0], int | np.integer):
        size = size[0]
    try:
        size = tuple(int(n) for n in size)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{function}: argument 'size': expected integers, got {size!r}"
        ) from None
    if any(n < 0 for n in size):
        raise OperandError(f"{function}: argument 'size': expected sizes of 0 or more, got {size}")
    return size


def _place(device: Any) -> Any:
    """An array of the library and device of the results."""
    torch = arrays.torch()
    if torch is None:
        if device is not None:
            raise NotCovered("argument 'device': torch is not imported")
        return np.empty(0, np.float32)
    return torch.empty(0, device=device or "cpu")


def _constant(value: float, like: Any) -> Any:
    if arrays.is_tensor(like):
        return arrays.torch().full((), value, device=like.device)
    return np.array(value, np.float32)
