"""Normalizations (spec: rmsnorm.1 to rmsnorm.5, layernorm.1 to layernorm.5, groupnorm.1 to
groupnorm.5, batchnorm.1 to batchnorm.4), with the arguments of torch.nn.functional. Elements are
f32, bf16 or f16; these are computed in f32 and rounded once. Weights may be narrower than f32."""

import math
from collections.abc import Sequence
from typing import Any, cast

from invar.errors import NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.binary64 import operations as p
from invar.ops.elementwise import binary


def _fits(name: str, argument: str, x: Any, shape: Sequence[int]) -> None:
    if x is not None:
        t.real(name, x, argument)
        if tuple(x.shape) != tuple(shape):
            raise OperandError(
                f"{name}: argument '{argument}': expected shape {tuple(shape)}, got {tuple(x.shape)}"
            )


def _rows(name: str, x: Any, normalized_shape: Any, weight: Any, bias: Any = None) -> list[int]:
    """Checks the trailing dimensions."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if not shape or list(x.shape[x.ndim - len(shape) :]) != shape or x.ndim < len(shape):
        raise OperandError(
            f"{name}: argument 'normalized_shape': expected the last dimensions of input "
            f"{tuple(x.shape)}, got {shape}"
        )
    if math.prod(shape) == 0:
        raise NotCovered(f"{name}: argument 'normalized_shape': rows without elements, got {shape}")
    _fits(name, "weight", weight, shape)
    _fits(name, "bias", bias, shape)
    return shape


def _common(x: Any, normalized_shape: Any, *weights: Any) -> bool:
    """Whether all are f32, and the weights are as long as x's last dimension, the normalized
    one."""
    if not t.are_f32(x, *weights):
        return False
    row = x.shape[-1:]
    return tuple(normalized_shape) == row not in ((), (0,)) and all(w.shape == row for w in weights)


def _in_f64(
    name: str, x: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float, centred: bool
) -> Any:
    """A norm of f64 elements, whose weights are f64: each operation is one of binary64."""
    for argument, v in (("weight", weight), ("bias", bias)):
        if v is not None and t.type_of(v, argument) != "f64":
            raise OperandError(
                f"{name}: argument '{argument}': expected elements of float64 as 'input' has, got "
                f"{t.spelled(t.type_of(v, argument))}"
            )
    shape = _rows(name, x, normalized_shape, None)
    for argument, v in (("weight", weight), ("bias", bias)):
        if v is not None and list(v.shape) != shape:
            raise OperandError(
                f"{name}: argument '{argument}': expected shape {tuple(shape)}, got {tuple(v.shape)}"
            )
    t.same_kind(name, input=x, weight=weight, bias=bias)
    if not arr.numel(x):
        return x
    y = _normalized(x, list(range(x.ndim - len(shape), x.ndim)), eps, centred)
    y = y if weight is None else p.mul(y, weight)
    return y if bias is None else p.add(y, bias)


def _normalized(x: Any, axes: list[int], eps: float, centred: bool) -> Any:
    """(x - mean) / sqrt(mean of squares + eps), f64."""
    x = p.sub(x, p.reduce_mean(x, axes=axes, keepdims=1)) if centred else x
    squares = p.reduce_mean(p.mul(x, x), axes=axes, keepdims=1)
    return p.div(x, p.sqrt(p.add(squares, t.number(eps, "f64", x))))


@public
def rms_norm(
    input: Array,
    normalized_shape: int | Sequence[int],
    weight: Array | None = None,
    eps: float | None = None,
) -> Array:
    """input / sqrt(mean of squares + eps) · weight over the last dimensions `normalized_shape`,
    which weight has. eps: by default that of f32, 2^-23, of f64 2^-52. The result has input's type
    and shape. f64: one operation of binary64 after the other.

    Raises RuntimeError for shapes and types that do not fit. Spec: rmsnorm.1 to rmsnorm.5,
    reduce.4, elementwise.19."""
    if (
        eps is not None
        and isinstance(normalized_shape, tuple)
        and _common(input, normalized_shape, weight)
    ):
        return cast(Array, p.rmsnorm(input, weight, epsilon=float(eps)))
    if t.real("rms_norm", input) == "f64":
        least = t.EPSILON["f64"] if eps is None else float(eps)
        return cast(Array, _in_f64("rms_norm", input, normalized_shape, weight, None, least, False))
    e = t.narrow_real("rms_norm", input)
    epsilon = t.EPSILON["f32"] if eps is None else float(eps)
    shape = _rows("rms_norm", input, normalized_shape, weight)
    t.same_kind("rms_norm", input=input, weight=weight)
    w = arr.full(shape, 1, "f32", input) if weight is None else weight
    y = p.rmsnorm(t.cast(input, "f32"), w, epsilon=epsilon)
    return cast(Array, y if e == "f32" else t.cast(y, e))


@public
def layer_norm(
    input: Array,
    normalized_shape: int | Sequence[int],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """(input - mean) / sqrt(variance + eps) · weight + bias over the last dimensions
    `normalized_shape`, which weight and bias have. The result has input's type and shape. f64: one
    operation of binary64 after the other.

    Raises RuntimeError for shapes and types that do not fit. Spec: layernorm.1 to layernorm.5,
    reduce.4, elementwise.19."""
    if isinstance(normalized_shape, tuple) and _common(input, normalized_shape, weight, bias):
        return cast(Array, p.layernorm(input, weight, bias, epsilon=float(eps)))
    if t.real("layer_norm", input) == "f64":
        how = ("layer_norm", input, normalized_shape, weight, bias, float(eps), True)
        return cast(Array, _in_f64(*how))
    e = t.narrow_real("layer_norm", input)
    more = () if bias is None else (bias,)
    shape = _rows("layer_norm", input, normalized_shape, weight, bias)
    t.same_kind("layer_norm", input=input, weight=weight, bias=bias)
    w = arr.full(shape, 1, "f32", input) if weight is None else weight
    y = p.layernorm(t.cast(input, "f32"), w, *more, epsilon=float(eps))
    return cast(Array, y if e == "f32" else t.cast(y, e))


def _channels(name: str, x: Any, **given: Any) -> int:
    if x.ndim < 2:
        raise OperandError(
            f"{name}: argument 'input': expected at least 2 dimensions, got {x.ndim} {tuple(x.shape)}"
        )
    for argument, v in given.items():
        _fits(name, argument, v, (x.shape[1],))
    t.same_kind(name, input=x, **given)
    return int(x.shape[1])


def _or_full(x: Any, n: int, value: float, like: Any) -> Any:
    """A weight; of f64 one that goes with it."""
    e = "f64" if t.type_of(like) == "f64" else "f32"
    return arr.full((n,), value, e, like) if x is None else x


@public
def group_norm(
    input: Array,
    num_groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """layer_norm over each of num_groups groups of channels: input [N, C, ...], weight and bias
    [C].

    Raises RuntimeError for shapes and types that do not fit. Spec: groupnorm.1 to groupnorm.5."""
    e = t.real("group_norm", input)
    c = _channels("group_norm", input, weight=weight, bias=bias)
    if num_groups <= 0 or c % num_groups:
        raise OperandError(
            f"group_norm: argument 'num_groups': expected a divisor of the {c} channels, got "
            f"{num_groups}"
        )
    if math.prod(input.shape) == num_groups and input.shape[0] == 1:
        raise OperandError(
            f"group_norm: Expected more than 1 value per channel when training, got input size "
            f"{tuple(input.shape)} in {num_groups} groups"
        )
    if not math.prod(input.shape[1:]):
        raise NotCovered(f"group_norm: groups without elements, got {tuple(input.shape)}")
    w, b = _or_full(weight, c, 1, input), _or_full(bias, c, 0, input)
    x = t.wide("group_norm", input)
    y = p.groupnorm(x, w, b, groups=num_groups, epsilon=float(eps))
    return cast(Array, t.cast(y, e))


def _updated(running: Any, found: Any, momentum: float) -> None:
    """running = (1 - momentum) · running + momentum · found, in place; each operation is
    rounded."""
    if running is None:
        return
    old = binary("batch_norm", "mul", arr.detached(running), 1 - momentum)
    new = binary("batch_norm", "mul", arr.detached(found), momentum)
    arr.copy_into(running, t.cast(binary("batch_norm", "add", old, new), t.NAMES[running.dtype]))


def _moments(x: Any, axes: list[int]) -> tuple[Any, Any]:
    """Mean and variance of the population over axes (reduce.4, reduce.10)."""
    mean = p.reduce_mean(x, axes=axes, keepdims=0)
    return mean, p.reduce_var(x, axes=axes, keepdims=0, correction=0)


def _both(name: str, running_mean: Any, running_var: Any) -> None:
    if running_mean is None or running_var is None:
        raise OperandError(
            f"{name}: arguments 'running_mean' and 'running_var': expected where input's own "
            "statistics are not used, got None"
        )


@public
def batch_norm(
    input: Array,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """(input - mean) / sqrt(variance + eps) · weight + bias of each channel of input [N, C, ...].

    Mean and variance are the running ones, or in training those of the batch, over all dimensions
    but C (reduce.4, reduce.10). Then running_mean and running_var are updated in place: (1 -
    momentum) · running + momentum · batch, with the variance · n / (n - 1); each operation is
    rounded to f32, as is the quotient n / (n - 1). Raises RuntimeError for shapes and types that do
    not fit, and in training for one value a channel. Spec: batchnorm.1 to batchnorm.4."""
    e = t.real("batch_norm", input)
    c = _channels(
        "batch_norm",
        input,
        running_mean=running_mean,
        running_var=running_var,
        weight=weight,
        bias=bias,
    )
    x = t.wide("batch_norm", input)
    mean: Any = running_mean
    variance: Any = running_var
    if training:
        n = arr.numel(x) // c if c else 0
        if n == 0:
            raise NotCovered(f"batch_norm: training without elements, got {tuple(x.shape)}")
        if n == 1:
            raise OperandError(
                "batch_norm: Expected more than 1 value per channel when training, got input size "
                f"{tuple(x.shape)}"
            )
        mean, variance = _moments(x, [d for d in range(x.ndim) if d != 1])
        _updated(running_mean, mean, momentum)
        _updated(
            running_var, binary("batch_norm", "mul", arr.detached(variance), n / (n - 1)), momentum
        )
    else:
        _both("batch_norm", running_mean, running_var)
        if any(getattr(v, "requires_grad", False) for v in (input, weight, bias)):
            # The gradient is that of these statistics, whatever a training step makes of them.
            mean, variance = (arr.detached(v).clone() for v in (mean, variance))
    w, b = _or_full(weight, c, 1, input), _or_full(bias, c, 0, input)
    return cast(Array, t.cast(p.batchnorm(x, w, b, mean, variance, epsilon=float(eps)), e))


@public
def instance_norm(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """layer_norm of each channel of each sample of input [N, C, ...], weight and bias [C]:
    group_norm with C groups. Without use_input_stats it is batch_norm with the running statistics.
    With both, these are updated in place by the mean over the batch of the samples' (as batch_norm
    does). Spec: groupnorm.1 to groupnorm.5."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    t.real("instance_norm", input)
    c = _channels("instance_norm", input, running_mean=running_mean, running_var=running_var)
    n = math.prod(input.shape[2:])
    if n == 0:
        raise NotCovered(f"instance_norm: rows without elements, got {tuple(input.shape)}")
    if n == 1:
        raise OperandError(
            "instance_norm: Expected more than 1 spatial element when training, got input size "
            f"{tuple(input.shape)}"
        )
    if running_mean is not None or running_var is not None:
        mean, variance = _moments(
            arr.detached(t.wide("instance_norm", input)), list(range(2, input.ndim))
        )
        over = lambda v: p.reduce_mean(v, axes=[0], keepdims=0)
        _updated(running_mean, over(mean), momentum)
        unbiased = binary("instance_norm", "mul", variance, n / (n - 1))
        _updated(running_var, over(unbiased), momentum)
    return group_norm(input, c, weight, bias, eps)


@public
def normalize(input: Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Array:
    """input divided by its norm along a dimension, or by eps where that is larger. Spec: reduce.7,
    elementwise.5."""
    from invar.ops.reduction import vector_norm

    length: Any = vector_norm(input, p, dim, True)
    return cast(Array, binary("normalize", "div", input, binary("normalize", "max", length, eps)))


@public
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    """The sum of products along a dimension of the broadcast operands, each divided by its norm,
    which is at least eps, of the type that torch promotes to.

    Raises RuntimeError for shapes that do not broadcast. Spec: reduce.3, reduce.7,
    elementwise.5."""
    from invar.ops.reduction import sum, vector_norm

    name = "cosine_similarity"
    t.same_kind(name, x1=x1, x2=x2)
    e = t.promote(t.type_of(x1, "x1"), t.type_of(x2, "x2"))
    shape = arr.broadcast_shapes(name, x1.shape, x2.shape)
    axis = arr.dim_of(name, dim, len(shape))
    both = [_of_length(t.cast(x, e), shape, axis) for x in (x1, x2)]
    of = lambda op, a, b: binary(name, op, a, b)
    parts = [of("div", x, of("max", vector_norm(x, 2, axis, True), eps)) for x in both]
    made: Any = of("mul", *parts)
    return cast(Array, sum(made, axis))


def _of_length(x: Any, shape: tuple[int, ...], axis: int) -> Any:
    """x with as many dimensions as `shape`, and its size along an axis."""
    x = x.reshape((1,) * (len(shape) - x.ndim) + tuple(x.shape))
    wanted = (*x.shape[:axis], *shape[axis : axis + 1], *x.shape[axis + 1 :])
    return arr.expand(x, wanted)


@public
def local_response_norm(
    input: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Array:
    """input / (k + alpha · the mean of the squares of `size` channels around its own)^beta: input
    [N, C, ...]. Channels beyond the ends count as 0. f32, bf16, f16.

    Raises RuntimeError for shapes and types that do not fit. Spec: pool.5, elementwise.5,
    elementwise.11."""
    name = "local_response_norm"
    e = t.real(name, input)
    if input.ndim < 3 or size < 1:
        raise OperandError(
            f"{name}: expected input [N, C, ...] and size of at least 1, got {tuple(input.shape)} and {size}"
        )
    x: Any = t.wide(name, input)
    if not math.prod(x.shape):
        return input
    n, c, rest = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    squares = p.mul(x, x).reshape(n, 1, c, rest)
    squares = p.pad(squares, begins=[0, 0, size // 2, 0], shape=(n, 1, c + size - 1, rest))
    one = [1, 1]
    mean = p.average_pool(
        squares, kernel=[size, 1], strides=one, dilations=one, pads=[0] * 4, ceil_mode=0,
        count_include_pad=1,
    )  # fmt: skip
    at = lambda v: t.beside(v, x)
    scale = p.pow(p.add(p.mul(mean.reshape(x.shape), at(alpha)), at(k)), at(beta))
    return cast(Array, t.cast(p.div(x, scale), e))
