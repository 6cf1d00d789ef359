"""Primitives on torch tensors and their reproducible gradients. Only imported where torch is.

Each room states the vector-Jacobian products of its operations in src/ops/ROOM/vjp.py, as functions
of differentiable primitives: so gradients of gradients follow, and their bits are fixed by the same
specification as those of the forward pass.

A call takes one of four ways (`apply`): at once, where nothing watches; as an operator of
torch.library (library.py) under modes, fake tensors and the compiler, which see one opaque call;
and through transforms.py under those of torch.func. All have the same rules."""

from invar.autograd import operators
from invar.autograd.nodes import Torch
from invar.autograd.transforms import apply

__all__ = ["Torch", "apply"]


def _register():
    """The operators, when the first is asked for: it takes a while to make them."""
    from invar.autograd import library  # noqa: F401


operators.register = _register
