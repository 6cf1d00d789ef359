"""Invar: models that compute the same bits on every machine.

compile() makes a program of an ONNX model and runs it natively on NumPy arrays or DLPack tensors;
convert() makes a torch.nn.Module of one; invar.ops has reproducible operations with
the names of torch, invar.primitives those of the specification.
generate() answers a prompt with a language model and makes a receipt of it, verify() recomputes a
receipt. Errors are invar.Error and its kinds, in one line."""

import importlib
import os
from typing import TYPE_CHECKING, Any

from invar import _native, ops, primitives, vjp  # noqa: F401  a package without its gradients ends here
from invar import documented as _documented
from invar._native import (
    BadInput,
    Error,
    Failed,
    Internal,
    NotCovered,
    __version__,
)
from invar.compiler import Program, Tensor, compile
from invar.generation import Finding, Generation, Verdict, validate
from invar.modules.convert import CompileOptions, convert
from invar.ops.random import Generator, default_generator, manual_seed
from invar.primitives import set_isa, set_threads, synchronize
from invar.requests import generate, verify


def _gradients() -> Any:
    from invar import autograd

    return autograd.apply


primitives.load_gradients = _gradients
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.after_fork)

if TYPE_CHECKING:
    from invar import bitexact, errors, nn, optim, sklearn, training
    from invar.convert_module import from_torch_module
    from invar.reproducibility import reproducible
    from invar.session import InferenceSession

# Loaded when first asked for: most of these need torch.
_LAZY = {
    "InferenceSession": "invar.session",
    "bitexact": "invar.bitexact",
    "errors": "invar.errors",
    "from_torch_module": "invar.convert_module",
    "nn": "invar.nn",
    "optim": "invar.optim",
    "reproducibility": "invar.reproducibility",
    "reproducible": "invar.reproducibility",
    "sklearn": "invar.sklearn",
    "training": "invar.training",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'invar' has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name])
    found = module if _LAZY[name] == f"invar.{name}" else getattr(module, name)
    globals()[name] = found
    return found


__all__ = [
    "BadInput",
    "CompileOptions",
    "Error",
    "Failed",
    "Finding",
    "Generation",
    "Generator",
    "InferenceSession",
    "Internal",
    "NotCovered",
    "Program",
    "Tensor",
    "Verdict",
    "__version__",
    "bitexact",
    "compile",
    "convert",
    "default_generator",
    "errors",
    "from_torch_module",
    "generate",
    "manual_seed",
    "nn",
    "ops",
    "optim",
    "primitives",
    "reproducibility",
    "reproducible",
    "set_isa",
    "set_threads",
    "sklearn",
    "synchronize",
    "training",
    "validate",
    "verify",
]

_documented.of_invar(globals())
