"""Elements by index: embedding, gather, scatter (gather.1 to gather.9) and order (topk.1 to
topk.5). Indices are i64 (or i32); a negative one counts from the end, except in embeddings. On the
host an index out of range is refused; on a GPU the next call reports it."""

import math
from collections.abc import Callable
from typing import Any, cast

from invar.errors import BadInput, DimensionError, NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._arrays import ValuesIndices
from invar.ops._types import Array, Number
from invar.ops.binary64 import operations as p
from invar.ops.elementwise import binary, compared, floor_divide

REDUCTIONS = {"sum": 1, "add": 1, "prod": 2, "multiply": 2, "amin": 3, "amax": 4}
JOINED = frozenset({"f32", "f64", "i64", "i32"})
JOINED_IN = {**t.COMPUTED, "i8": "i32", "u8": "i32"}  # what updates of other types join in


def index_of(name: str, x: Any, argument: str) -> Any:
    """Indices as i64."""
    e = t.type_of(x, argument)
    if e not in ("i64", "i32"):
        raise OperandError(
            f"{name}: argument '{argument}': expected elements of int64 or int32, got {t.spelled(e)}"
        )
    return t.cast(x, "i64")


def from_first(
    name: str, argument: str, index: Any, n: int, found: Callable[[Any], Any], **refusal: Any
) -> Any:
    """found(index) of a function of torch that counts its n rows from the first alone: indices
    (i64) below 0 become one that every operation refuses, where gather.2 would count from the
    end."""
    lowest, zero = t.constant(-(2**63), "i64", index), t.constant(0, "i64", index)
    counted = p.where(p.less(index, zero), lowest, index)
    return in_range(name, argument, index, n, lambda: found(counted), **refusal)


def in_range(
    name: str,
    argument: str,
    index: Any,
    n: int,
    found: Callable[[], Any],
    noun: str = "indices",
    kind: type[BadInput] = DimensionError,
) -> Any:
    """found(), whose refusal of an index outside 0 ... n - 1 becomes torch's: a `kind` of
    error."""
    try:
        return found()
    except BadInput as e:
        if not e.out_of_bounds:
            raise
        raise kind(
            f"{name}: argument '{argument}': expected {noun} of 0 ... {n - 1}, got some of "
            f"{int(index.min())} ... {int(index.max())}"
        ) from None


def rows_of(table: Any, index: Any, axis: int = 0) -> Any:
    """gather, with the table's type."""
    return t.cast(p.gather(table, index, axis=axis), t.NAMES[table.dtype])


@public
def embedding(
    input: Array,
    weight: Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """The rows of weight [R, D] that input (i64 or i32) names: [...] -> [..., D], of weight's type.

    The row padding_idx gets no gradient. max_norm, scale_grad_by_freq and sparse are refused.
    Raises IndexError for an index out of range. Spec: gather.1 to gather.4."""
    name = "embedding"
    arr.refuse(name, max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    index: Any = index_of(name, input, "input")
    t.same_kind(name, input=input, weight=weight)
    if t.type_of(weight, "weight") and weight.ndim != 2:
        raise OperandError(
            f"{name}: argument 'weight': expected 2 dimensions, got {tuple(weight.shape)}"
        )
    y = from_first(name, "input", index, weight.shape[0], lambda i: rows_of(weight, i))
    return cast(Array, y if padding_idx is None else _unlearned(weight, index, y, padding_idx))


def _padding(weight: Any, padding_idx: int) -> int:
    n = weight.shape[0]
    if not -n <= padding_idx < n:
        raise OperandError(
            f"embedding: argument 'padding_idx': expected one of {-n} ... {n - 1}, got {padding_idx}"
        )
    return padding_idx % n


def _unlearned(weight: Any, index: Any, y: Any, padding_idx: int) -> Any:
    """The same rows, without a gradient where the index is that of padding."""
    padding = _padding(weight, padding_idx)
    if not getattr(y, "requires_grad", False):
        return y
    hidden = arr.insert(compared("embedding", "equal", index, padding), index.ndim)
    return t.cast(p.where(hidden, arr.detached(y), y), t.NAMES[y.dtype])


@public
def embedding_bag(
    input: Array,
    weight: Array,
    offsets: Array | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Array:
    """The sum, mean or max of the embeddings of each bag: input [B, L], or [N] with offsets [B]
    where bags begin -> [B, D], of weight's type. A bag without elements gives 0.

    Bags of [B, L] are reduced in row order (reduce.3, reduce.6); those of offsets join their
    elements one by one in ascending order (gather.9). per_sample_weights multiply the rows (mode
    "sum"). Indices equal to padding_idx are left out. max_norm, scale_grad_by_freq and sparse are
    refused. Raises RuntimeError for shapes and types that do not fit. Spec: gather.2, gather.8,
    gather.9."""
    name = "embedding_bag"
    arr.refuse(name, max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    index: Any = index_of(name, input, "input")
    e = t.real(name, weight, "weight")
    t.same_kind(
        name, input=input, weight=weight, offsets=offsets, per_sample_weights=per_sample_weights
    )
    if mode not in ("sum", "mean", "max"):
        raise OperandError(
            f"{name}: argument 'mode': expected 'sum', 'mean' or 'max', got {mode!r}"
        )
    if per_sample_weights is not None and mode != "sum":
        raise NotCovered(
            f"{name}: argument 'per_sample_weights': covered is mode 'sum', got {mode!r}"
        )
    if index.ndim not in (1, 2) or (index.ndim == 1) != (offsets is not None):
        raise OperandError(
            f"{name}: argument 'offsets': expected with an input of 1 dimension and only there, got "
            f"an input of {index.ndim}"
        )
    kept = None
    if padding_idx is not None:
        padding = _padding(weight, padding_idx)
        kept = p.logical_not(compared(name, "equal", index, padding))
    table = t.wide(name, weight, "weight")
    rows = from_first(name, "input", index, len(table), lambda i: p.gather(table, i, axis=0))
    if per_sample_weights is not None:
        factors = t.wide(name, per_sample_weights, "per_sample_weights")
        rows = p.mul(rows, arr.insert(factors, factors.ndim))
    if kept is not None:
        nothing = t.beside(-math.inf if mode == "max" else 0, rows)
        rows = p.where(arr.insert(kept, kept.ndim), rows, nothing)
    ones = arr.full(index.shape, 1, "i64", index) if kept is None else t.cast(kept, "i64")
    if offsets is None:
        total = _bags_of_rows(rows, mode)
        count = p.reduce_sum(ones, axes=[1], keepdims=1)
    else:
        total, count = _bags_by_offsets(name, rows, ones, offsets, mode, include_last_offset)
    if mode != "sum":
        divisor = p.max(count, t.number(1, "i64", count))
        if mode == "mean":
            total = p.div(total, t.cast(divisor, t.NAMES[total.dtype]))
        else:
            empty = compared(name, "equal", count, 0)
            total = p.where(empty, t.beside(0, total), total)
    return cast(Array, t.cast(total, e))


def _bags_of_rows(rows: Any, mode: str) -> Any:
    return p.call("reduce_max" if mode == "max" else "reduce_sum", rows, axes=[1], keepdims=0)


def _bags_by_offsets(
    name: str, rows: Any, ones: Any, offsets: Any, mode: str, last: bool
) -> tuple[Any, Any]:
    """Sums (maxima) and counts of the bags [offset, next offset)."""
    starts = index_of(name, offsets, "offsets")
    n, bags = rows.shape[0], starts.shape[0] - (1 if last else 0)
    starts = arr.cut(starts, 0, 0, bags)
    # The bag of an element: how many begin at or before it, less one. Bags may begin at n.
    begun = p.scatter_nd(
        arr.full((n + 1,), 0, "i64", rows),
        arr.insert(starts, 1),
        arr.full((bags,), 1, "i64", rows),
        reduction=1,
    )
    bag = p.cumsum(begun, axis=0, exclusive=0, reverse=0)
    bag = arr.insert(p.sub(arr.cut(bag, 0, 0, n), t.number(1, "i64", bag)), 1)
    first = -math.inf if mode == "max" else 0
    total = arr.full((bags, rows.shape[1]), first, t.NAMES[rows.dtype], rows)
    total = p.scatter_nd(total, bag, rows, reduction=4 if mode == "max" else 1)
    count = p.scatter_nd(arr.full((bags,), 0, "i64", rows), bag, ones, reduction=1)
    return total, arr.insert(count, 1)


@public
def gather(input: Array, dim: int, index: Array, *, sparse_grad: bool = False) -> Array:
    """The elements of input whose index along a dimension `index` gives; index has input's rank and
    is no longer beside dim. The result has index's shape and input's type. Spec: gather.5."""
    arr.refuse("gather", sparse_grad=sparse_grad)
    t.type_of(input)
    t.same_kind("gather", input=input, index=index)
    axis = arr.dim_of("gather", dim, input.ndim)
    i: Any = index_of("gather", index, "index")
    x: Any = input
    if x.ndim == 0:
        return cast(Array, p.gather_elements(x.reshape(1), i.reshape(-1), axis=0).reshape(i.shape))
    _like_index("gather", x, i, axis)
    return cast(Array, p.gather_elements(x, i, axis=axis))


def _like_index(name: str, x: Any, index: Any, axis: int | None, argument: str = "input") -> None:
    if index.ndim != x.ndim or any(
        n > m for d, (n, m) in enumerate(zip(index.shape, x.shape)) if d != axis
    ):
        raise OperandError(
            f"{name}: argument 'index': expected the rank of '{argument}' {tuple(x.shape)} and no "
            f"dimension longer than its, got {tuple(index.shape)}"
        )


def take_along_dim(input: Array, indices: Array, dim: int | None = None) -> Array:
    """gather along a dimension, where the others broadcast; without dim of input in a row. Spec:
    gather.5, move.5."""
    t.type_of(input)
    x: Any = input
    i: Any = index_of("take_along_dim", indices, "indices")
    if dim is None:
        return gather(x.reshape(-1), 0, i.reshape(-1))
    axis = arr.dim_of("take_along_dim", dim, x.ndim)
    one = lambda s: (*s[:axis], 1, *s[axis + 1 :])
    shape = arr.broadcast_shapes("take_along_dim", one(tuple(x.shape)), one(tuple(i.shape)))
    at = lambda z: arr.expand(z, (*shape[:axis], z.shape[axis], *shape[axis + 1 :]))
    return gather(at(x), axis, at(i))


@public
def index_select(input: Array, dim: int, index: Array) -> Array:
    """The slices of input along a dimension that index [N] names, of input's type. Spec:
    gather.2."""
    t.type_of(input)
    t.same_kind("index_select", input=input, index=index)
    axis = arr.dim_of("index_select", dim, input.ndim)
    i: Any = index_of("index_select", index, "index")
    if i.ndim > 1:
        raise OperandError(
            f"index_select: argument 'index': expected at most 1 dimension, got {tuple(i.shape)}"
        )
    x: Any = input
    if x.ndim == 0:
        return cast(Array, rows_of(x.reshape(1), i.reshape(-1)).reshape(()))
    return cast(Array, rows_of(x, i.reshape(-1), axis))


def _scattered(name: str, x: Any, dim: int, index: Any, src: Any, reduction: int) -> Any:
    e = t.type_of(x)
    t.same_kind(name, input=x, index=index, src=src)
    axis = arr.dim_of(name, dim, x.ndim)
    i = index_of(name, index, "index")
    if t.is_number(src):
        src = arr.full(i.shape, src, e, x)
    elif t.type_of(src, "src") != e:
        raise OperandError(
            f"{name}: argument 'src': expected elements of {t.spelled(e)} as 'input' has, got "
            f"{t.spelled(t.type_of(src, 'src'))}"
        )
    if x.ndim == 0:
        made = _scattered(name, x.reshape(1), 0, i.reshape(-1), src.reshape(-1), reduction)
        return made.reshape(())
    _like_index(name, x, i, axis)
    _like_index(name, src, i, None, "src")
    for d, n in enumerate(i.shape):
        src = src if src.shape[d] == n else arr.cut(src, d, 0, n)
    wide = JOINED_IN.get(e, e) if reduction else e
    if reduction and wide not in JOINED:
        raise NotCovered(
            f"{name}: argument 'input': elements of {t.spelled(e)}; covered are float32, float64, "
            "bfloat16, float16, int64, int32"
        )
    return t.cast(_joined(t.cast(x, wide), i, t.cast(src, wide), axis, reduction), e)


def _joined(x: Any, i: Any, src: Any, axis: int, reduction: int) -> Any:
    if reduction > 1 and any(getattr(v, "requires_grad", False) for v in (x, src)):
        from invar.autograd.joined import Joined

        return Joined.apply(x, i, src, axis, reduction)
    return p.scatter_elements(x, i, src, axis=axis, reduction=reduction)


@public
def scatter(
    input: Array, dim: int, index: Array, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Array:
    """input, in which the elements that index names along a dimension are src (or one number): the
    last of several. reduce = "add" or "multiply" joins them in row-major order of index instead.
    Spec: gather.7, gather.9."""
    source = value if src is None else src
    if source is None or (reduce is not None and reduce not in ("add", "multiply")):
        raise OperandError(
            "scatter: expected 'src' or 'value', and 'reduce' of None, 'add' or 'multiply', got "
            f"{source!r} and {reduce!r}"
        )
    return cast(Array, _scattered("scatter", input, dim, index, source, REDUCTIONS.get(reduce, 0)))


@public
def scatter_add(input: Array, dim: int, index: Array, src: Array) -> Array:
    """input, to whose elements that index names along a dimension those of src are added, one by
    one in row-major order of index, each sum rounded. f32, f64, i64, i32; bf16 and f16 in f32,
    rounded at the end. Spec: gather.7, gather.9."""
    return cast(Array, _scattered("scatter_add", input, dim, index, src, 1))


@public
def scatter_reduce(
    input: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """scatter_add with reduce = "sum", "prod", "amin", "amax" or "mean": the sum divided by the
    number of its terms (of integers rounded down). Without include_self elements that index names
    do not count themselves. Equal extremes share the gradient. Spec: gather.7, gather.9,
    elementwise.5, elementwise.14."""
    name = "scatter_reduce"
    if reduce not in ("sum", "prod", "amin", "amax", "mean"):
        raise OperandError(
            f"{name}: argument 'reduce': expected 'sum', 'prod', 'mean', 'amax' or 'amin', got "
            f"{reduce!r}"
        )
    e = t.type_of(input)
    x: Any = input
    how = REDUCTIONS["sum" if reduce == "mean" else reduce]
    if include_self and reduce != "mean":
        return cast(Array, _scattered(name, x, dim, index, src, how))
    shape = tuple(x.shape)
    one = arr.full(tuple(index.shape), 1, "i64", x)
    count = _scattered(name, arr.full(shape, 0, "i64", x), dim, index, one, 1)
    named = compared(name, "greater", count, 0)
    if not include_self:
        x = t.cast(p.where(named, t.number(_neutral(reduce, e), e, x), x), e)
    made = _scattered(name, x, dim, index, src, how)
    if reduce != "mean":
        return cast(Array, made)
    terms = (
        binary(name, "add", count, 1) if include_self else p.max(count, t.number(1, "i64", count))
    )
    if e in t.FLOATS:
        return cast(Array, binary(name, "div", made, t.cast(terms, e)))
    return cast(Array, t.cast(floor_divide(made, terms), e))


def _neutral(reduce: str, e: str) -> Any:
    """What joins without a change."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if e in t.FLOATS:
        return -math.inf if reduce == "amax" else math.inf
    low = 0 if e[0] == "u" else -(2 ** (t.WIDTH[e] - 1))
    return low if reduce == "amax" else 2 ** (t.WIDTH[e] - (e[0] != "u")) - 1


@public
def index_add(input: Array, dim: int, index: Array, source: Array, *, alpha: Number = 1) -> Array:
    """input, to whose slices along a dimension that index [N] names those of source (times alpha)
    are added, in ascending order of index's elements, each sum rounded. f32, f64, i64, i32; bf16
    and f16 in f32, rounded at the end. Spec: gather.8, gather.9."""
    e = t.type_of(input)
    t.same_kind("index_add", input=input, index=index, source=source)
    axis = arr.dim_of("index_add", dim, input.ndim)
    i: Any = index_of("index_add", index, "index")
    x: Any = input
    wide = JOINED_IN.get(e, e)
    if wide not in JOINED:
        raise NotCovered(
            f"index_add: argument 'input': elements of {t.spelled(e)}; covered are float32, float64, "
            "bfloat16, float16, int64, int32"
        )
    n = arr.numel(i)
    wanted = (*x.shape[:axis], n, *x.shape[axis + 1 :]) if x.ndim else ()
    if t.type_of(source, "source") != e or x.ndim and tuple(source.shape) != wanted or i.ndim > 1:
        raise OperandError(
            f"index_add: argument 'source': expected {t.spelled(e)} {wanted}, got "
            f"{t.spelled(t.type_of(source, 'source'))} {tuple(source.shape)}"
        )
    s: Any = source if alpha == 1 else binary("index_add", "mul", source, alpha)
    if x.ndim == 0:
        x, s = x.reshape(1), s.reshape(1)
    moved = (arr.move(t.cast(z, wide), axis, 0) for z in (x, s))
    first, added = moved
    y = p.scatter_nd(first, i.reshape(-1, 1), added, reduction=1)
    return cast(Array, t.cast(arr.move(y, 0, axis), e).reshape(input.shape))


@public
def masked_fill(input: Array, mask: Array, value: Any) -> Array:
    """value (a number, or an array without dimensions) where mask (bool, broadcast) holds, else
    input; of input's type. Spec: elementwise.15."""
    e = t.type_of(input)
    if t.type_of(mask, "mask") != "bool":
        raise OperandError(
            f"masked_fill: argument 'mask': expected bool, got {t.spelled(t.type_of(mask, 'mask'))}"
        )
    t.same_kind("masked_fill", input=input, mask=mask, value=value)
    if not t.is_number(value) and value.ndim:
        raise OperandError(
            "masked_fill: argument 'value': expected a number or an array without dimensions, got "
            f"{tuple(value.shape)}"
        )
    v = t.number(value, e, input) if t.is_number(value) else t.cast(value, e)
    return cast(Array, t.cast(p.where(mask, v, input), e))


@public
def one_hot(tensor: Array, num_classes: int = -1) -> Array:
    """1 at the class that each element (i64) names, else 0: [...] -> [..., num_classes], i64. With
    -1 there are as many as the largest class needs, which is read on the host: that waits for a
    GPU.

    Raises RuntimeError for a class below 0 or not below num_classes. Spec: move.11."""
    x: Any = index_of("one_hot", tensor, "tensor")
    if num_classes == -1:
        if arr.numel(x) == 0:
            raise OperandError("one_hot: argument 'num_classes': expected with an empty tensor")
        top = p.reduce_max(x.reshape(-1), axes=[0], keepdims=0)
        num_classes = max(int(top) + 1, 1)
    if num_classes < 1:
        raise OperandError(
            f"one_hot: argument 'num_classes': expected a number above 0, got {num_classes}"
        )
    classes = arr.iota(num_classes, x)
    x = from_first(
        "one_hot",
        "tensor",
        x,
        num_classes,
        lambda i: p.gather(classes, i, axis=0),
        noun="classes",
        kind=OperandError,
    )
    steps = arr.iota(2, x)
    shape = (*x.shape, num_classes)
    return cast(Array, p.one_hot(x, steps, axis=x.ndim, shape=shape, dtype="i64"))


def ordered(x: Any, axis: int, largest: bool) -> Any:
    """The indices that sort along an axis, stably. Integers that f32 does not have go by digits of
    24 bits, the lowest first; f64 by the integers that order as its bits do."""
    e = t.NAMES[x.dtype]
    by = lambda v: p.topk(v, axis=axis, largest=int(largest))
    if e not in ("i64", "i32", "f64", "u64", "u32"):
        return by(t.cast(x, "f32"))
    if e == "u64":
        raise NotCovered("sort: argument 'input': elements of uint64")
    key = _key_of_f64(x) if e == "f64" else t.cast(x, "i64")
    whole = lambda v: t.number(v, "i64", key)
    found = None
    for shift in (0, 24, 48) if e in ("i64", "f64") else (0, 24):
        digit = p.shift_right(key, whole(shift))
        if shift < 48:
            digit = p.bitwise_and(digit, whole(2**24 - 1)) if e != "i32" or shift == 0 else digit
        digit = p.cast(digit, dtype="f32")
        if found is None:
            found = by(digit)
            continue
        step = by(p.gather_elements(digit, found, axis=axis))
        found = p.gather_elements(found, step, axis=axis)
    return found


def _key_of_f64(x: Any) -> Any:
    bits = p.bitcast(p.add(arr.detached(x), t.number(0, "f64", x)), dtype="i64")  # -0 is 0
    turned = p.bitwise_xor(bits, t.number(2**63 - 1, "i64", bits))
    return p.where(p.less(bits, t.number(0, "i64", bits)), turned, bits)


def _sorted(name: str, x: Any, dim: int, largest: bool, k: int | None = None) -> ValuesIndices:
    t.type_of(x)
    axis = arr.dim_of(name, dim, x.ndim)
    row = x.reshape(1) if x.ndim == 0 else x
    n = row.shape[axis]
    if k is not None and not 0 <= k <= n:
        raise OperandError(f"{name}: argument 'k': expected one of 0 ... {n}, got {k}")
    if x.ndim == 0:  # torch finds the element for k = 0, too
        k = 1
    i = ordered(arr.detached(row), axis, largest)
    if k is not None and k < n:
        i = arr.cut(i, axis, 0, k)
    values = p.gather_elements(row, i, axis=axis)
    shape = values.shape if x.ndim else ()
    return ValuesIndices(values.reshape(shape), i.reshape(shape))


@public
def topk(
    input: Array, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True
) -> ValuesIndices:
    """(values, indices) of the k largest (smallest) elements along a dimension (None: the last), in
    order; of equals the lower index comes first; NaN is larger than infinity. Any type but u64.
    Spec: topk.1 to topk.5."""
    return _sorted("topk", input, -1 if dim is None else dim, largest, k)


@public
def sort(
    input: Array, dim: int = -1, descending: bool = False, stable: bool = False
) -> ValuesIndices:
    """(values, indices) of all elements along a dimension in order, always stable. Spec: topk.1 to
    topk.4."""
    return _sorted("sort", input, dim, descending)


@public
def argsort(input: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Array:
    """The indices of sort. Spec: topk.1 to topk.3."""
    return cast(Array, _sorted("argsort", input, dim, descending).indices)
