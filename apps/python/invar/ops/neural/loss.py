"""Losses of margins, rankings and distributions, as those of invar.ops.loss, in their
element types."""

import math
from collections.abc import Callable
from typing import Any, cast

from invar.errors import OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.binary64 import operations as op
from invar.ops.indexing.indices import index_of
from invar.ops.loss import _checked, _reduced, _same_shape
from invar.ops.reduction import vector_norm


def _wide(name: str, **given: Any) -> tuple[list[Any], str]:
    """Operands in the type that they are computed in, and the type of the result."""
    for argument, x in given.items():
        t.real(name, x, argument)
    t.same_kind(name, **given)
    arr.broadcast_shapes(name, *(x.shape for x in given.values()))
    e = t.result_type(*given.values())
    return [t.cast(x, t.COMPUTED.get(e, e)) for x in given.values()], e


def _signs(name: str, target: Any, like: Any) -> Any:
    """A target of 1 and -1, of any type, as of the type of `like`."""
    t.same_kind(name, input=like, target=target)
    return t.cast(target, t.NAMES[like.dtype])


def _at(value: float, like: Any) -> Any:
    return t.beside(value, like)


def _positive_part(x: Any) -> Any:
    return op.max(x, _at(0, x))


def _total(x: Any, axis: int) -> Any:
    return op.reduce_sum(x, axes=[axis % x.ndim], keepdims=0)


def _chosen(y: Any, wanted: float, x: Any) -> Any:
    """x where y is the wanted number, else 0."""
    return op.where(op.equal(y, _at(wanted, y)), x, _at(0, x))


@public
def cosine_embedding_loss(
    input1: Array,
    input2: Array,
    target: Array,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """1 - c where target is 1, max(0, c - margin) where it is -1, else 0; c = sum(a · b) /
    sqrt((sum(a²) + 1e-12) · (sum(b²) + 1e-12)): inputs [N, D] (or [D]), target [N] (or []).

    Raises RuntimeError for shapes and types that do not fit. Spec: reduce.3, elementwise.5."""
    name = "cosine_embedding_loss"
    _checked(name, reduction, size_average, reduce)
    if input1.ndim not in (1, 2) or target.ndim != input1.ndim - 1:
        raise OperandError(
            f"{name}: argument 'target': expected [N] beside inputs [N, D], or [] beside [D], got "
            f"{tuple(target.shape)} beside {tuple(input1.shape)}"
        )
    (a, b), e = _wide(name, input1=input1, input2=input2)
    eps = _at(1e-12, a)
    lengths = [op.add(_total(op.mul(x, x), -1), eps) for x in (a, b)]
    c = op.div(_total(op.mul(a, b), -1), op.sqrt(op.mul(*lengths)))
    y = _signs(name, target, a)
    apart = _positive_part(op.sub(c, _at(margin, c)))
    loss = op.add(_chosen(y, 1, op.sub(_at(1, c), c)), _chosen(y, -1, apart))
    return cast(Array, _reduced(loss, reduction, e))


@public
def hinge_embedding_loss(
    input: Array,
    target: Array,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """input where target is 1, max(0, margin - input) where it is -1. Spec: elementwise.5,
    reduce.3."""
    name = "hinge_embedding_loss"
    _checked(name, reduction, size_average, reduce)
    (x,), e = _wide(name, input=input)
    y = _signs(name, target, x)
    below = _positive_part(op.sub(_at(margin, x), x))
    not_at = lambda v, x: op.where(op.equal(y, _at(v, y)), _at(0, x), x)
    loss = op.add(not_at(1, below), not_at(-1, x))
    return cast(Array, _reduced(loss, reduction, e))


@public
def margin_ranking_loss(
    input1: Array,
    input2: Array,
    target: Array,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """max(0, -target · (input1 - input2) + margin). Spec: elementwise.5, reduce.3."""
    name = "margin_ranking_loss"
    _checked(name, reduction, size_average, reduce)
    (a, b), e = _wide(name, input1=input1, input2=input2)
    y = op.neg(_signs(name, target, a))
    loss = _positive_part(op.add(op.mul(y, op.sub(a, b)), _at(margin, a)))
    return cast(Array, _reduced(loss, reduction, e))


@public
def soft_margin_loss(
    input: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """log(1 + exp(-target · input)), as softplus. Spec: elementwise.5, elementwise.12, reduce.3."""
    name = "soft_margin_loss"
    _checked(name, reduction, size_average, reduce)
    (x,), e = _wide(name, input=input)
    _same_shape(name, input, target)
    loss = op.softplus(op.mul(op.neg(_signs(name, target, x)), x))
    return cast(Array, _reduced(loss, reduction, e))


@public
def gaussian_nll_loss(
    input: Array,
    target: Array,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Array:
    """(log(v) + (input - target)² / v) / 2 with v = max(var, eps), which passes the gradient on to
    var; full adds log(2 pi) / 2. var: a number, or an array of input's shape, or of it with the
    last dimension left out or 1.

    Values of var below 0 are refused on the host alone. Raises RuntimeError for shapes and types
    that do not fit. Spec: elementwise.5, elementwise.11, reduce.3."""
    name = "gaussian_nll_loss"
    _checked(name, reduction)
    (x, y), e = _wide(name, input=input, target=target)
    if t.is_number(var):
        var = arr.full(input.shape, float(var), t.NAMES[x.dtype], input)
    v = t.cast(t.wide(name, var, "var"), t.NAMES[x.dtype])
    if tuple(v.shape) != tuple(x.shape):
        if tuple(x.shape[:-1]) == tuple(v.shape):
            v = arr.insert(v, v.ndim)
        elif sum(n for m, n in zip(x.shape, v.shape) if m != n) != 1 or v.ndim != x.ndim:
            raise OperandError(
                f"{name}: argument 'var': expected the shape of input {tuple(x.shape)}, its last "
                f"dimension left out or 1, got {tuple(var.shape)}"
            )
    # Where eps is more, it is the value to the last bit or nearly; the gradient goes to var.
    more = arr.detached(op.sub(_at(eps, v), v))
    v = op.where(op.less(v, _at(eps, v)), op.add(v, more), v)
    gap = op.sub(x, y)
    loss = op.mul(op.add(op.log(v), op.div(op.mul(gap, gap), v)), _at(0.5, x))
    if full:
        loss = op.add(loss, _at(0.5 * math.log(2 * math.pi), x))
    return cast(Array, _reduced(loss, reduction, e))


@public
def poisson_nll_loss(
    input: Array,
    target: Array,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """exp(input) - target · input, or without log_input input - target · log(input + eps); full
    adds Stirling's target · log(target) - target + log(2 pi · target) / 2 where target > 1. Spec:
    elementwise.5, elementwise.11, reduce.3."""
    name = "poisson_nll_loss"
    _checked(name, reduction, size_average, reduce)
    (x, y), e = _wide(name, input=input, target=target)
    if log_input:
        loss = op.sub(op.exp(x), op.mul(y, x))
    else:
        loss = op.sub(x, op.mul(y, op.log(op.add(x, _at(eps, x)))))
    if full:
        many = op.greater(y, _at(1, y))
        z = op.where(many, y, _at(1, y))  # of what has a logarithm
        root = op.mul(op.log(op.mul(z, _at(2 * math.pi, z))), _at(0.5, z))
        more = op.add(op.sub(op.mul(z, op.log(z)), z), root)
        loss = op.add(loss, op.where(many, more, _at(0, z)))
    return cast(Array, _reduced(loss, reduction, e))


@public
def pairwise_distance(
    x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Array:
    """The norm of order p of x1 - x2 + eps along the last dimension. Spec: reduce.7,
    elementwise.5."""
    (a, b), e = _wide("pairwise_distance", x1=x1, x2=x2)
    gap = op.add(op.sub(a, b), _at(eps, a))
    return cast(Array, t.cast(vector_norm(gap, p, -1, keepdim), e))


@public
def triplet_margin_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)) of pairwise_distance d; swap takes
    d(positive, negative) where that is less. Spec: reduce.7, elementwise.5, reduce.3."""
    name = "triplet_margin_loss"
    _checked(name, reduction, size_average, reduce)
    if margin <= 0:
        raise OperandError(f"{name}: argument 'margin': expected more than 0, got {margin}")
    (a, b, c), e = _wide(name, anchor=anchor, positive=positive, negative=negative)
    distance = lambda x, y: pairwise_distance(x, y, p, eps)
    return cast(Array, _reduced(_triplets(distance, a, b, c, margin, swap), reduction, e))


def _triplets(distance: Any, a: Any, b: Any, c: Any, margin: float, swap: bool) -> Any:
    near, far = distance(a, b), distance(a, c)
    if swap:
        far = op.min(far, distance(b, c))
    return _positive_part(op.sub(op.add(near, _at(margin, near)), far))


@public
def triplet_margin_with_distance_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Array:
    """triplet_margin_loss with a distance of yours, by default pairwise_distance; its bits are
    those of what it calls. Spec: reduce.7, elementwise.5, reduce.3."""
    name = "triplet_margin_with_distance_loss"
    _checked(name, reduction)
    if margin <= 0:
        raise OperandError(f"{name}: argument 'margin': expected more than 0, got {margin}")
    (a, b, c), e = _wide(name, anchor=anchor, positive=positive, negative=negative)
    found = _triplets(distance_function or pairwise_distance, a, b, c, margin, swap)
    return cast(Array, _reduced(found, reduction, e))


def _rows(name: str, input: Any, target: Any) -> tuple[Any, Any, str]:
    """[N, C] in the type that it is computed in, the target as i64 with N, too, and the type of the
    result."""
    e = t.real(name, input)
    t.same_kind(name, input=input, target=target)
    index = index_of(name, target, "target")
    if input.ndim not in (1, 2) or input.shape[-1] == 0:
        raise OperandError(
            f"{name}: argument 'input': expected [N, C] or [C] of at least one class, got "
            f"{tuple(input.shape)}"
        )
    x = t.wide(name, input)
    return (x, index, e) if x.ndim == 2 else (arr.insert(x, 0), arr.insert(index, 0), e)


@public
def multi_margin_loss(
    input: Array,
    target: Array,
    p: int = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """The sum over classes j other than y of max(0, margin - input[y] + input[j])^p · weight[y],
    divided by their number: input [N, C] (or [C]), target [N] (or []) of classes, p 1 or 2.

    Raises RuntimeError for shapes and types that do not fit. Spec: gather.5, elementwise.5,
    reduce.3."""
    name = "multi_margin_loss"
    _checked(name, reduction, size_average, reduce)
    if p not in (1, 2):
        raise OperandError(f"{name}: argument 'p': expected 1 or 2, got {p}")
    x, index, e = _rows(name, input, target)
    if tuple(index.shape) != (x.shape[0],):
        raise OperandError(
            f"{name}: argument 'target': expected the classes of {x.shape[0]} rows, got shape "
            f"{tuple(target.shape)}"
        )
    of_class = op.gather_elements(x, arr.insert(index, 1), axis=1)
    loss = _positive_part(op.add(op.sub(_at(margin, x), of_class), x))
    loss = op.mul(loss, loss) if p == 2 else loss
    if weight is not None:
        loss = op.mul(loss, arr.insert(op.gather(t.wide(name, weight, "weight"), index, axis=0), 1))
    own = op.equal(arr.iota(x.shape[1], index), arr.insert(index, 1))
    loss = op.div(_total(op.where(own, _at(0, x), loss), 1), _at(x.shape[1], x))
    loss = loss if input.ndim == 2 else loss.reshape(())
    return cast(Array, _reduced(loss, reduction, e))


@public
def multilabel_margin_loss(
    input: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """The sum over labels y and classes j that are no label of max(0, 1 - input[y] + input[j]),
    divided by the number of classes: input [N, C] (or [C]), target of its shape: labels up to the
    first -1.

    Raises RuntimeError for shapes and types that do not fit. Spec: gather.5, elementwise.5,
    reduce.3."""
    name = "multilabel_margin_loss"
    _checked(name, reduction, size_average, reduce)
    _same_shape(name, input, target)
    x, index, e = _rows(name, input, target)
    zero, classes = t.number(0, "i64", index), x.shape[1]
    ended = op.cumsum(t.cast(op.less(index, zero), "i64"), axis=1, exclusive=0, reverse=0)
    is_label = op.equal(ended, zero)  # [N, places]
    label = op.where(is_label, index, zero)
    named = op.equal(arr.insert(label, 2), arr.iota(classes, index))  # [N, places, classes]
    named = op.logical_and(named, arr.insert(is_label, 2))
    other = op.equal(_total(t.cast(named, "i64"), 1), zero)  # [N, classes]
    of_label = arr.insert(op.gather_elements(x, label, axis=1), 2)
    loss = _positive_part(op.add(op.sub(_at(1, x), of_label), arr.insert(x, 1)))
    counted = op.logical_and(arr.insert(is_label, 2), arr.insert(other, 1))
    loss = op.reduce_sum(op.where(counted, loss, _at(0, x)), axes=[1, 2], keepdims=0)
    loss = op.div(loss, _at(classes, x))
    loss = loss if input.ndim == 2 else loss.reshape(())
    return cast(Array, _reduced(loss, reduction, e))


@public
def multilabel_soft_margin_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """The mean over classes, the last dimension, of -(target · logsigmoid(input) + (1 - target) ·
    logsigmoid(-input)), times weight. Spec: elementwise.5, elementwise.12, reduce.3."""
    name = "multilabel_soft_margin_loss"
    _checked(name, reduction, size_average, reduce)
    _same_shape(name, input, target)
    (x, y), e = _wide(name, input=input, target=target)
    no = op.mul(op.sub(_at(1, y), y), op.logsigmoid(op.neg(x)))
    loss = op.neg(op.add(op.mul(y, op.logsigmoid(x)), no))
    if weight is not None:
        arr.fits_broadcast(name, "weight", weight, tuple(loss.shape))
        loss = op.mul(loss, t.wide(name, weight, "weight"))
    loss = op.div(_total(loss, -1), _at(x.shape[-1], x))
    return cast(Array, _reduced(loss, reduction, e))
