"""Elements that indices name, read: gather and its kin (gather.2, gather.5), one_hot (move.11)."""

from typing import Any, cast

from invar.errors import OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.binary64 import operations as p
from invar.ops.indexing.indices import from_first, index_of, like_index, rows_of


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
    like_index("gather", x, i, axis)
    return cast(Array, p.gather_elements(x, i, axis=axis))


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
