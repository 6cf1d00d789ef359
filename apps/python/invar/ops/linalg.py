"""Products of matrices: contractions (spec/contraction.md), whose order is that of the contracted
index alone. Elements are f32, bf16, f16 (computed in f32, rounded once) or f64; integers are exact,
modulo 2^n of their type."""

import math
from collections.abc import Sequence
from typing import Any, cast

from invar import primitives as p
from invar.errors import NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array, Number
from invar.ops.elementwise import binary


def _types(name: str, x: Any, y: Any, first: str = "input", second: str = "other") -> str:
    """The type of both operands of a product."""
    e, f = t.type_of(x, first), t.type_of(y, second)
    if e != f:
        raise OperandError(
            f"{name}: argument '{second}': expected elements of {t.spelled(e)} as '{first}' has, got "
            f"{t.spelled(f)}"
        )
    if x.device != y.device:
        t.same_kind(name, **{first: x, second: y})
    if e == "bool" or e in t.UNSIGNED:
        raise NotCovered(
            f"{name}: argument '{first}': elements of {t.spelled(e)}; covered are float32, bfloat16, "
            "float16, float64, int64, int32, int16, int8 and uint8"
        )
    return e


def product(x: Any, y: Any, e: str, trans: int = 0) -> Any:
    """x · y, or x · y with the last two dimensions of y exchanged (`trans`), of rank 2 or more (x
    of 1, too, where y has 2). A y that is stored transposed is read where it lies."""
    if type(y) is not arr.np.ndarray and not y.is_contiguous() and y.mT.is_contiguous():
        y, trans = y.mT, 1 - trans
    if e not in t.FLOATS:
        return t.cast(_whole(t.cast(x, "i64"), t.cast(y.mT if trans else y, "i64")), e)
    if e in ("f32", "f64"):
        return p.matmul(x, y, trans_b=trans)
    return p.cast(p.matmul(p.cast(x, dtype="f32"), y, trans_b=trans), dtype=e)


_AT_ONCE = 1 << 22  # products of integers that are kept before they are added


def _whole(x: Any, y: Any) -> Any:
    """The product of matrices of i64 (elementwise.13, reduce.11): of all pairs the products, some
    of the contracted indices at a time."""
    if x.ndim == 1:
        return _whole(x.reshape(1, -1), y)[..., 0, :]
    k = x.shape[-1]
    lead = arr.broadcast_shapes("matmul", x.shape[:-2], y.shape[:-2])
    some = max(1, _AT_ONCE // max(1, math.prod(lead) * x.shape[-2] * y.shape[-1]))
    found: Any = None
    for i in range(0, max(k, 1), some):
        a, b = x[..., i : i + some], y[..., i : i + some, :]
        pairs = p.mul(a.reshape((*a.shape, 1)), b.reshape((*b.shape[:-2], 1, *b.shape[-2:])))
        part = p.reduce_sum(pairs, axes=[pairs.ndim - 2], keepdims=0)
        found = part if found is None else p.add(found, part)
    return found


def _shapes(name: str, x: Any, y: Any, k: int, n: int, first: str, second: str) -> None:
    if k != n:
        raise OperandError(
            f"{name}: arguments '{first}' and '{second}': shapes cannot be multiplied: "
            f"{tuple(x.shape)} and {tuple(y.shape)} contract {k} with {n}"
        )


def _ranks(name: str, **given: tuple[Any, int]) -> None:
    for argument, (x, rank) in given.items():
        t.type_of(x, argument)
        if x.ndim != rank:
            raise OperandError(
                f"{name}: argument '{argument}': expected {rank} dimensions, got {x.ndim} "
                f"{tuple(x.shape)}"
            )


@public
def matmul(input: Array, other: Array) -> Array:
    """The product of two arrays, broadcast as torch.matmul does: [..., M, K] x [..., K, N] ->
    [..., M, N]; one of a single dimension is a row on the left and a column on the right.

    Both of one type: f32, bf16, f16, f64, or integers (modulo 2^n of their type). Raises
    RuntimeError for shapes, types or devices that do not fit. Spec: matmul.1 to matmul.5."""
    x: Any = input
    y: Any = other
    if t.are_f32(x, y) and x.ndim > 1 < y.ndim and x.shape[-1] == y.shape[-2]:
        return cast(Array, product(x, y, "f32"))
    e = _types("matmul", input, other)
    if x.ndim == 0 or y.ndim == 0:
        raise OperandError("matmul: both arguments need at least one dimension, got none")
    _shapes("matmul", x, y, x.shape[-1], y.shape[-2 if y.ndim > 1 else 0], "input", "other")
    if y.ndim == 1:
        y = y.reshape(-1, 1)
        if x.ndim == 1:
            return cast(Array, product(x.reshape(1, -1), y, e).reshape(()))
        return cast(Array, arr.drop(product(x, y, e), x.ndim - 1))
    if x.ndim == 1:
        z = product(x.reshape(1, -1), y, e)
        return cast(Array, arr.drop(z, z.ndim - 2))
    return cast(Array, product(x, y, e))


@public
def mm(input: Array, mat2: Array) -> Array:
    """The product of two matrices: [M, K] x [K, N] -> [M, N]. Types and errors of matmul. Spec:
    matmul.2."""
    _ranks("mm", input=(input, 2), mat2=(mat2, 2))
    e = _types("mm", input, mat2, "input", "mat2")
    _shapes("mm", input, mat2, input.shape[1], mat2.shape[0], "input", "mat2")
    return cast(Array, product(input, mat2, e))


@public
def bmm(input: Array, mat2: Array) -> Array:
    """The products of matrices one by one: [B, M, K] x [B, K, N] -> [B, M, N]. Types and errors of
    matmul. Spec: matmul.2."""
    _ranks("bmm", input=(input, 3), mat2=(mat2, 3))
    e = _types("bmm", input, mat2, "input", "mat2")
    if input.shape[0] != mat2.shape[0]:
        raise OperandError(
            f"bmm: argument 'mat2': expected {input.shape[0]} matrices, got {mat2.shape[0]}"
        )
    _shapes("bmm", input, mat2, input.shape[2], mat2.shape[1], "input", "mat2")
    return cast(Array, product(input, mat2, e))


@public
def mv(input: Array, vec: Array) -> Array:
    """A matrix times a column: [M, K] x [K] -> [M]. Types and errors of matmul. Spec: matmul.2."""
    _ranks("mv", input=(input, 2), vec=(vec, 1))
    return matmul(input, vec)


@public
def dot(input: Array, tensor: Array) -> Array:
    """The contraction of two rows: [K] x [K] -> []. Types and errors of matmul. Spec: matmul.2."""
    _ranks("dot", input=(input, 1), tensor=(tensor, 1))
    return matmul(input, tensor)


@public
def outer(input: Array, vec2: Array) -> Array:
    """All products of two rows: [M] x [N] -> [M, N], each one multiplication. Spec:
    elementwise.5."""
    _ranks("outer", input=(input, 1), vec2=(vec2, 1))
    x: Any = input
    return cast(Array, binary("outer", "mul", x.reshape(-1, 1), vec2))


def _added(name: str, input: Any, made: Any, beta: Number, alpha: Number) -> Any:
    """beta · input + alpha · made: factors of 1 are left out, and an input whose factor is 0."""
    if alpha != 1:
        made = binary(name, "mul", made, alpha)
    if beta == 0:
        return made
    return binary(name, "add", input if beta == 1 else binary(name, "mul", input, beta), made)


@public
def addmm(input: Array, mat1: Array, mat2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """beta · input + alpha · (mat1 x mat2): [M, K] x [K, N], input broadcast to [M, N]. The product
    is rounded, then each written operation; an input with beta = 0 is not read. Types and errors of
    matmul. Spec: matmul.2, elementwise.5."""
    return cast(Array, _added("addmm", input, mm(mat1, mat2), beta, alpha))


@public
def addmv(input: Array, mat: Array, vec: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """beta · input + alpha · (mat x vec), as addmm. Spec: matmul.2, elementwise.5."""
    return cast(Array, _added("addmv", input, mv(mat, vec), beta, alpha))


@public
def baddbmm(
    input: Array, batch1: Array, batch2: Array, *, beta: Number = 1, alpha: Number = 1
) -> Array:
    """beta · input + alpha · (batch1 x batch2), as addmm, of bmm. Spec: matmul.2, elementwise.5."""
    return cast(Array, _added("baddbmm", input, bmm(batch1, batch2), beta, alpha))


@public
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """input · weightᵀ + bias: [..., K], weight [N, K] (or [K]), bias [N] (or []) -> [..., N]. The
    product is stored, then the bias added. Types and errors of matmul. Spec: matmul.2,
    elementwise.5."""
    x: Any = input
    w: Any = weight
    if bias is not None and t.are_f32(x, w, bias) and x.ndim > 1 and w.ndim == 2:
        if x.shape[-1] == w.shape[1] and tuple(bias.shape) == (w.shape[0],):  # the common case
            return cast(Array, p.add(product(x, w, "f32", trans=1), bias))
    e = _types("linear", input, weight, "input", "weight")
    if w.ndim not in (1, 2) or x.ndim == 0:
        raise OperandError(
            f"linear: argument 'weight': expected 1 or 2 dimensions and an input of at least 1, got "
            f"{tuple(w.shape)} and {tuple(x.shape)}"
        )
    _shapes("linear", x, w, x.shape[-1], w.shape[-1], "input", "weight")
    y = product(
        x if x.ndim > 1 else x.reshape(1, -1), w if w.ndim == 2 else w.reshape(1, -1), e, trans=1
    )
    if x.ndim == 1 or w.ndim == 1:
        y = y.reshape((*x.shape[:-1], *w.shape[:-1]))
    if bias is None:
        return cast(Array, y)
    _types("linear", input, bias, "input", "bias")
    if tuple(bias.shape) != tuple(w.shape[:-1]):
        raise OperandError(
            f"linear: argument 'bias': expected shape {tuple(w.shape[:-1])}, got {tuple(bias.shape)}"
        )
    return cast(Array, binary("linear", "add", y, bias))


@public
def matmul_integer(
    a: Array, b: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None
) -> Array:
    """The exact product of integers of 8 bits minus their zero points: i8 or u8 [..., M, K] x
    [..., K, N] -> i32, modulo 2^32 (ONNX MatMulInteger). a_zero_point has a's type, of one element
    or [M]; b_zero_point b's, of one or [N]. Spec: matmul_integer.1, matmul_integer.2."""
    for argument, x in (("a", a), ("b", b)):
        if t.type_of(x, argument) not in ("i8", "u8"):
            raise OperandError(
                f"matmul_integer: argument '{argument}': expected int8 or uint8, got "
                f"{t.spelled(t.type_of(x, argument))}"
            )
    zeros = [a_zero_point] if a_zero_point is not None else []
    if b_zero_point is not None:
        if not zeros:
            like: Any = a
            zeros.append(cast(Array, t.number(0, t.type_of(like), like)))
        zeros.append(b_zero_point)
    return cast(Array, p.matmul_integer(a, b, *zeros))


@public
def matmul_nbits(
    input: Array,
    weight: Array,
    scales: Array,
    zero_points: Array | None = None,
    *,
    bits: int = 8,
    block: int = 0,
    trans_b: bool = False,
    zero: int = 0,
) -> Array:
    """input [..., M, K] times integers with scales: (weight - zero point) · scale, of 8 bits [K, N]
    ([N, K] with trans_b) or 4 bits [N, groups, block / 2] with trans_b. The layouts of scales and
    zero points stand in matmul_nbits.1. The result has input's type. Spec: matmul_nbits.1,
    matmul_nbits.2."""
    x = t.f32("matmul_nbits", input)
    more = [] if zero_points is None else [zero_points]
    how = {"bits": bits, "block": block, "trans_b": int(trans_b), "zero": zero}
    return cast(Array, t.cast(p.matmul_nbits(x, weight, scales, *more, **how), t.type_of(input)))


@public
def grouped_matmul(input: Array, indices: Array, weights: Array | Sequence[Array]) -> Array:
    """Each row of input [..., S, K] (or one for all, [..., 1, K]) times the matrix that its index
    (i64 [..., S]) chooses of weights [G, K, N], or of a list of [K, N] -> [..., S, N]. The result
    has input's type. Spec: grouped_matmul.1, grouped_matmul.2."""
    x = t.f32("grouped_matmul", input)
    matrices = list(weights) if isinstance(weights, Sequence) else [weights]
    y = p.grouped_matmul(x, indices, *matrices, trans_b=0)
    return cast(Array, t.cast(y, t.type_of(input)))
