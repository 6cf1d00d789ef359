"""Reproducible functions with the names, arguments and defaults of torch and torch.nn.functional,
on torch tensors (on the host or on a CUDA GPU) and NumPy arrays.

The result has the same bits on every machine; gradients, too. Arguments outside of the guarantee
are refused by name: nothing is computed by torch instead, and nothing is copied to another
device."""

from invar.ops.linalg import matmul
from invar.ops.random import dropout, rand, randn

__all__ = ["dropout", "matmul", "rand", "randn"]
