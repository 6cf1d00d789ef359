"""Invar: models that compute the same bits on every machine.

compile() makes a program of an ONNX model and runs it natively on NumPy arrays or DLPack tensors; convert() makes a
torch.nn.Module of one; invar.ops has the reproducible operations themselves. Errors are invar.Error and its kinds, in one line."""

from invar import ops
from invar._native import BadInput, Error, Failed, Internal, NotCovered, __version__, set_threads
from invar.compiler import Program, Tensor, compile
from invar.module import CompileOptions, convert

__all__ = ["BadInput", "CompileOptions", "Error", "Failed", "Internal", "NotCovered", "Program", "Tensor", "__version__",
           "compile", "convert", "ops", "set_threads"]
