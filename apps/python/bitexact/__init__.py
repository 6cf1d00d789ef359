"""BitExact's Python interface, for code that imports it: the functions of invar.bitexact, on the
host and on CUDA GPUs. The bits are those of Invar's specification, not those of BitExact's
kernels."""

from invar.bitexact import (
    layer_norm,
    matmul,
    max,
    mean,
    min,
    rms_norm,
    sigmoid,
    sum,
    var,
)

__all__ = ["layer_norm", "matmul", "max", "mean", "min", "rms_norm", "sigmoid", "sum", "var"]
