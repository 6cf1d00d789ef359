"""The functions of BitExact with their signatures: its programs run after `from invar import
bitexact`.

The results have BitExact's shapes: a reduction keeps its dimension as 1. They are batch-invariant
(a row has the same bits alone and in any batch), the same on CPU and GPU, and have gradients.
Beyond BitExact, inputs may have any strides, any number of dimensions and any of the types of
invar.ops."""

from invar import documented as _documented
from invar import ops
from invar.ops._types import Array

__all__ = ["layer_norm", "matmul", "max", "mean", "min", "rms_norm", "sigmoid", "sum", "var"]


def rms_norm(input: Array, weight: Array, eps: float = 1e-6) -> Array:
    """input [..., D] / sqrt(mean of squares + eps) · weight [D] (spec: rmsnorm.1 to rmsnorm.5)."""
    return ops.rms_norm(input, weight.shape, weight, eps)


def layer_norm(input: Array, weight: Array, bias: Array, eps: float = 1e-6) -> Array:
    """(input [..., D] - mean) / sqrt(variance + eps) · weight [D] + bias [D] (spec: layernorm.1 to
    layernorm.5)."""
    return ops.layer_norm(input, weight.shape, weight, bias, eps)


def matmul(A: Array, B: Array) -> Array:
    """A [M, K] times B [K, N] (spec: matmul.2); more dimensions as ops.matmul."""
    return ops.matmul(A, B)


def sum(input: Array, dim: int = -1) -> Array:
    """The sum along a dimension: [rows, columns] -> [rows, 1] (spec: reduce.3)."""
    return ops.sum(input, dim, True)


def mean(input: Array, dim: int = -1) -> Array:
    """The mean along a dimension: [rows, columns] -> [rows, 1] (spec: reduce.4)."""
    return ops.mean(input, dim, True)


def max(input: Array, dim: int = -1) -> Array:
    """The largest elements along a dimension, without indices: [rows, columns] -> [rows, 1] (spec:
    reduce.6)."""
    return ops.amax(input, dim, True)


def min(input: Array, dim: int = -1) -> Array:
    """The smallest elements along a dimension, without indices: [rows, columns] -> [rows, 1] (spec:
    reduce.6)."""
    return ops.amin(input, dim, True)


def var(input: Array, dim: int = -1) -> Array:
    """The variance of the population along a dimension: [rows, columns] -> [rows, 1] (spec:
    reduce.10)."""
    return ops.var(input, dim, keepdim=True, correction=0)


def sigmoid(input: Array) -> Array:
    """1 / (1 + exp(-input)) (spec: elementwise.10)."""
    return ops.sigmoid(input)


_documented.of_operations(globals(), "bitexact")
