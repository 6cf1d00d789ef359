"""Losses, with the arguments and defaults of torch.nn.functional. Elements are f32, bf16, f16 or
f64: a loss of f16 and bf16 is computed in f32 and rounded once at the end. reduction = "sum" is one
sum over all elements in row-major order (reduce.3), "mean" that sum divided by how many count.
size_average and reduce, which torch deprecates, are refused."""

from typing import Any, cast

from invar.errors import OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.binary64 import operations as p
from invar.ops.elementwise import compared
from invar.ops.indexing.indices import from_first, in_range, index_of


def _checked(name: str, reduction: str, size_average: Any = None, reduce: Any = None) -> None:
    arr.refuse(name, size_average=size_average, reduce=reduce)
    if reduction not in ("none", "mean", "sum"):
        raise OperandError(
            f"{name}: argument 'reduction': expected 'none', 'mean' or 'sum', got {reduction!r}"
        )


def _sum(x: Any) -> Any:
    if x.ndim == 0:
        return x
    return p.reduce_sum(x, axes=list(range(x.ndim)), keepdims=0)


def _reduced(x: Any, reduction: str, e: str) -> Any:
    if reduction == "mean" and x.ndim:
        x = p.reduce_mean(x, axes=list(range(x.ndim)), keepdims=0)
    elif reduction == "sum":
        x = _sum(x)
    return t.cast(x, e)


def _two(name: str, input: Any, target: Any, weight: Any = None) -> tuple[Any, Any, str]:
    """input and target in the type that they are computed in, and the type of the result."""
    t.real(name, input)
    t.real(name, target, "target")
    t.same_kind(name, input=input, target=target, weight=weight)
    arr.broadcast_shapes(name, input.shape, target.shape)
    e = t.result_type(input, target)
    wide = t.COMPUTED.get(e, e)
    return t.cast(input, wide), t.cast(target, wide), e


def _same_shape(name: str, input: Any, target: Any) -> None:
    if tuple(input.shape) != tuple(target.shape):
        raise OperandError(
            f"{name}: argument 'target': expected the shape of input {tuple(input.shape)}, got "
            f"{tuple(target.shape)}"
        )


def _weighted(name: str, loss: Any, weight: Any) -> Any:
    if weight is not None:
        arr.fits_broadcast(name, "weight", weight, tuple(loss.shape))
    return loss if weight is None else p.mul(loss, t.wide(name, weight, "weight"))


@public
def mse_loss(
    input: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Array | None = None,
) -> Array:
    """(input - target)², times weight where it is given; "mean" then divides by the sum of weights.
    Spec: elementwise.5, reduce.3, reduce.4."""
    name = "mse_loss"
    _checked(name, reduction, size_average, reduce)
    x, y, e = _two(name, input, target, weight)
    gap = p.sub(x, y)
    return cast(Array, _mean_of_weights(name, p.mul(gap, gap), weight, reduction, e))


@public
def l1_loss(
    input: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Array | None = None,
) -> Array:
    """|input - target|; otherwise as mse_loss. Spec: elementwise.5, reduce.3, reduce.4."""
    name = "l1_loss"
    _checked(name, reduction, size_average, reduce)
    x, y, e = _two(name, input, target, weight)
    return cast(Array, _mean_of_weights(name, p.abs(p.sub(x, y)), weight, reduction, e))


def _mean_of_weights(name: str, loss: Any, weight: Any, reduction: str, e: str) -> Any:
    if weight is None or reduction != "mean":
        return _reduced(_weighted(name, loss, weight), reduction, e)
    arr.fits_broadcast(name, "weight", weight, tuple(loss.shape))
    w = arr.expand(t.wide(name, weight, "weight"), loss.shape)
    return t.cast(p.div(_sum(p.mul(loss, w)), _sum(w)), e)


def _huber(name: str, x: Any, y: Any, limit: float, scale_small: float, factor: float) -> Any:
    """scale_small · gap² where |gap| < limit, else factor · (|gap| - limit / 2)."""
    gap = p.abs(p.sub(x, y))
    at = lambda v: t.beside(v, gap)
    small = p.mul(p.mul(gap, gap), at(scale_small))
    large = p.sub(gap, at(0.5 * limit))
    large = large if factor == 1 else p.mul(large, at(factor))
    return p.where(p.less(gap, at(limit)), small, large)


@public
def smooth_l1_loss(
    input: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Array:
    """gap² · (0.5 / beta) where gap = |input - target| < beta, else gap - beta / 2; with beta = 0
    the l1_loss. Spec: elementwise.5, elementwise.15, reduce.3, reduce.4."""
    name = "smooth_l1_loss"
    _checked(name, reduction, size_average, reduce)
    if beta < 0:
        raise OperandError(f"{name}: argument 'beta': expected at least 0, got {beta}")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    x, y, e = _two(name, input, target)
    return cast(Array, _reduced(_huber(name, x, y, beta, 0.5 / beta, 1.0), reduction, e))


@public
def huber_loss(
    input: Array,
    target: Array,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Array | None = None,
) -> Array:
    """gap² / 2 where gap = |input - target| < delta, else delta · (gap - delta / 2);
    times weight where it is given. Spec: elementwise.5, elementwise.15, reduce.3, reduce.4."""
    name = "huber_loss"
    _checked(name, reduction)
    if delta <= 0:
        raise OperandError(f"{name}: argument 'delta': expected more than 0, got {delta}")
    x, y, e = _two(name, input, target, weight)
    loss = _weighted(name, _huber(name, x, y, delta, 0.5, delta), weight)
    return cast(Array, _reduced(loss, reduction, e))


@public
def binary_cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """-(target · log(input) + (1 - target) · log(1 - input)), both logarithms at least -100, times
    weight. Spec: elementwise.5, elementwise.8, elementwise.11, reduce.3, reduce.4."""
    name = "binary_cross_entropy"
    _checked(name, reduction, size_average, reduce)
    _same_shape(name, input, target)
    x, y, e = _two(name, input, target, weight)
    one = t.beside(1, x)
    limited = lambda v: p.clip(v, min=-100.0, max=float("inf"))
    yes = p.mul(y, limited(p.log(x)))
    no = p.mul(p.sub(one, y), limited(p.log1p(p.neg(x))))
    return cast(Array, _reduced(_weighted(name, p.neg(p.add(yes, no)), weight), reduction, e))


@public
def binary_cross_entropy_with_logits(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Array | None = None,
) -> Array:
    """(1 - target) · input - f · logsigmoid(input), times weight, where f = 1, or with pos_weight
    (pos_weight - 1) · target + 1. Spec: elementwise.5, elementwise.12, reduce.3, reduce.4."""
    name = "binary_cross_entropy_with_logits"
    _checked(name, reduction, size_average, reduce)
    _same_shape(name, input, target)
    x, y, e = _two(name, input, target, weight)
    one = t.beside(1, x)
    log = p.logsigmoid(x)
    if pos_weight is not None:
        t.same_kind(name, input=input, pos_weight=pos_weight)
        factor = p.sub(t.wide(name, pos_weight, "pos_weight"), one)
        log = p.mul(p.add(p.mul(factor, y), one), log)
    loss = p.sub(p.mul(p.sub(one, y), x), log)
    return cast(Array, _reduced(_weighted(name, loss, weight), reduction, e))


@public
def kl_div(
    input: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Array:
    """target · (log(target) - input), 0 where target is 0; with log_target exp(target) · (target -
    input). reduction = "batchmean" divides the sum by the first dimension. Spec: elementwise.5,
    elementwise.11, elementwise.15, reduce.3, reduce.4."""
    name = "kl_div"
    _checked(name, "sum" if reduction == "batchmean" else reduction, size_average, reduce)
    x, y, e = _two(name, input, target)
    if log_target:
        loss = p.mul(p.exp(y), p.sub(y, x))
    else:
        zero, one = t.beside(0, y), t.beside(1, y)
        positive = p.greater(y, zero)
        log = p.log(p.where(positive, y, one))  # of what has a logarithm: the gradient stays finite
        none = p.equal(y, zero)
        log = p.where(p.logical_or(positive, none), log, t.beside(float("nan"), y))
        loss = p.sub(p.mul(y, log), p.mul(y, x))
    if reduction == "batchmean":
        count = t.beside(input.shape[0] if input.ndim else 1, loss)
        return cast(Array, t.cast(p.div(_sum(loss), count), e))
    return cast(Array, _reduced(loss, reduction, e))


def _classes(name: str, x: Any, target: Any, weight: Any) -> int:
    """The dimension of classes; checks shapes."""
    axis = 0 if x.ndim == 1 else 1
    if x.ndim == 0 or tuple(target.shape) != (*x.shape[:axis], *x.shape[axis + 1 :]):
        raise OperandError(
            f"{name}: argument 'target': expected input's shape {tuple(x.shape)} without its classes, "
            f"got {tuple(target.shape)}"
        )
    if weight is not None and tuple(weight.shape) != (x.shape[axis],):
        raise OperandError(
            f"{name}: argument 'weight': expected shape ({x.shape[axis]},), got {tuple(weight.shape)}"
        )
    return axis


def _negative_log(
    name: str, x: Any, target: Any, weight: Any, ignore: int, reduction: str, smoothing: float
) -> Any:
    """The loss of log-probabilities x and class indices."""
    axis = _classes(name, x, target, weight)
    index = index_of(name, target, "target")
    t.same_kind(name, input=x, target=target, weight=weight)
    zero = t.beside(0, x)
    ignored = compared(name, "equal", index, ignore)
    index = p.where(ignored, t.number(0, "i64", index), index)
    pick = lambda i: p.gather_elements(x, arr.insert(i, axis), axis=axis)
    picked = from_first(name, "target", index, x.shape[axis], pick)
    w = None if weight is None else t.wide(name, weight, "weight")
    factor = None if w is None else p.gather(w, index, axis=0)
    loss = p.neg(arr.drop(picked, axis))
    loss = loss if factor is None else p.mul(loss, factor)
    if smoothing:
        every = x if w is None else p.mul(x, w.reshape((-1,) + (1,) * (x.ndim - 1 - axis)))
        smooth = p.neg(p.reduce_sum(every, axes=[axis], keepdims=0))
        part = t.beside(smoothing / x.shape[axis], x)
        kept = t.beside(1 - smoothing, x)
        loss = p.add(p.mul(loss, kept), p.mul(smooth, part))
    loss = p.where(ignored, zero, loss)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return _sum(loss)
    one = t.beside(1, x)
    counted = p.where(ignored, zero, one if factor is None else factor)
    return p.div(_sum(loss), _sum(counted))


def _of_rows(name: str, x: Any, target: Any, ignore: int, reduction: str) -> Any:
    """cross_entropy of rows [N, C], without weights: one operation, with the bits of
    _negative_log."""
    _classes(name, x, target, None)
    index = index_of(name, target, "target")
    t.same_kind(name, input=x, target=target)
    made = lambda: p.cross_entropy(x, index, ignore=ignore)
    loss = in_range(name, "target", index, x.shape[1], made)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return _sum(loss)
    ignored = p.equal(index, t.constant(ignore, "i64", index))
    counted = p.where(ignored, t.constant(0, "f32", x), t.constant(1, "f32", x))
    return p.div(_sum(loss), _sum(counted))


@public
def nll_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """-input at the class that target (i64) names, times that class's weight: input [N, C, ...] of
    log-probabilities (or [C]), target [N, ...], weight [C]. Targets equal to ignore_index give 0
    and do not count; "mean" divides the sum by the sum of the weights that count.

    Raises RuntimeError for shapes and types that do not fit, IndexError for a class out of range.
    Spec: gather.5, elementwise.5, elementwise.15, reduce.3."""
    _checked("nll_loss", reduction, size_average, reduce)
    x = t.wide("nll_loss", input)
    loss = _negative_log("nll_loss", x, target, weight, ignore_index, reduction, 0.0)
    return cast(Array, t.cast(loss, t.type_of(input)))


@public
def cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """nll_loss of log_softmax over the classes: input [N, C, ...] (or [C]), target [N, ...] of
    class indices, or of input's shape of probabilities. label_smoothing s: (1 - s) · loss + (s / C)
    · the sum over all classes. With probabilities "mean" divides by the number of rows, and
    ignore_index is not used.

    Raises RuntimeError for shapes and types that do not fit, IndexError for a class out of range.
    Spec: softmax.6, softmax.12, gather.5, elementwise.5, elementwise.15, reduce.3."""
    name = "cross_entropy"
    _checked(name, reduction, size_average, reduce)
    if not 0 <= label_smoothing <= 1:
        raise OperandError(
            f"{name}: argument 'label_smoothing': expected one of 0 ... 1, got {label_smoothing}"
        )
    x = t.wide(name, input)
    e = t.type_of(input)
    if x.ndim == 0:
        raise OperandError(f"{name}: argument 'input': expected at least 1 dimension, got none")
    axis = 0 if x.ndim == 1 else 1
    classes = t.type_of(target, "target") not in t.FLOATS
    of_rows = x.ndim == 2 and weight is None and not label_smoothing and e != "f64"
    if classes and of_rows and arr.numel(x):
        return cast(Array, t.cast(_of_rows(name, x, target, ignore_index, reduction), e))
    log = p.log_softmax(x, axis=axis) if arr.numel(x) else x
    if classes:
        loss = _negative_log(name, log, target, weight, ignore_index, reduction, label_smoothing)
        return cast(Array, t.cast(loss, e))
    _same_shape(name, input, target)
    t.same_kind(name, input=input, target=target, weight=weight)
    y = t.wide(name, target, "target")
    if label_smoothing:
        y = p.mul(y, t.beside(1 - label_smoothing, y))
        y = p.add(y, t.beside(label_smoothing / x.shape[axis], y))
    made = p.mul(log, y)
    if weight is not None:
        w = t.wide(name, weight, "weight")
        made = p.mul(made, w.reshape((-1,) + (1,) * (x.ndim - 1 - axis)))
    loss = p.neg(p.reduce_sum(made, axes=[axis], keepdims=0))
    return cast(Array, _reduced(loss, reduction, e))
