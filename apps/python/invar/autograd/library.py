"""The primitives as operators of torch.library:

    torch.ops.invar.NAME(Tensor[] operands, str attributes, SymInt[]? shape, str? dtype) -> Tensor

`attributes` is their text ("axis=1 epsilon=1e-06"; a list as "axes=0,2"). torch.compile,
torch.export, fake tensors and modes see one opaque call each; its result is that of the primitive,
its gradient that of the room's rule. Autocast leaves operands as they are: an operation has the
element types of its specification. Sizes may be symbols (symbolic.py)."""

import functools

import torch

from invar import _native
from invar.autograd import nodes, symbolic, transforms
from invar.autograd.operators import attributes_of
from invar.modules.emitted import TYPES
from invar.primitives import Call

_LIBRARY = torch.library.Library("invar", "FRAGMENT")
_SCHEMA = "(Tensor[] operands, str attributes, SymInt[]? shape=None, str? dtype=None) -> Tensor"


def call_of(op, operands, attributes, shape, dtype):
    shape = None if shape is None else tuple(shape)
    attributes = dict(attributes_of(attributes))
    isa = attributes.pop("isa", "")
    if operands and attributes.get("axis", 0) < 0:
        attributes["axis"] += operands[0].ndim
    return Call(op, attributes, shape, dtype, isa)


def _computed(op, operands, attributes, shape=None, dtype=None):
    return call_of(op, operands, attributes, shape, dtype).run(operands, nodes.Torch)


def _typed(op, operands, attributes, shape=None, dtype=None):
    """The kernel of fake tensors: the type of the result alone."""
    for i, x in enumerate(operands):  # a real one beside a fake one: torch would call this kernel
        if x.device != operands[0].device:
            raise _native.BadInput(
                f"{op}: operand {i} lies on {x.device}, operand 0 on {operands[0].device}"
            )
    at_hand = None if shape is None else [symbolic.hint(n) for n in shape]
    call = call_of(op, operands, attributes, at_hand, dtype)
    name, sizes = symbolic.type_of(call, tuple(map(nodes.Torch.type_of, operands)), shape)
    if not operands:
        return torch.empty(sizes, dtype=TYPES[name])
    return operands[0].new_empty(sizes, dtype=TYPES[name])


def _differentiable(op, operands, attributes, shape=None, dtype=None):
    """Above the kernels: the rules of the room."""
    call = call_of(op, operands, attributes, shape, dtype)
    if torch._C._are_functorch_transforms_active():  # at the level of one transform
        return transforms.at_level(call, operands)
    return nodes.node(call, operands)


def _batched(op, info, in_dims, operands, attributes, shape=None, dtype=None):
    """Under torch.func.vmap in a graph."""
    call = call_of(op, operands, attributes, shape, dtype)
    return transforms.batched(call, operands, in_dims[0], info.batch_size), 0


def _register(op):
    _LIBRARY.define(op + _SCHEMA)
    for key in ("CPU", "CUDA"):
        _LIBRARY.impl(op, functools.partial(_computed, op), key)
    _LIBRARY.impl(op, functools.partial(_differentiable, op), "Autograd")
    name = f"invar::{op}"
    torch.library.register_fake(name, functools.partial(_typed, op), lib=_LIBRARY)
    torch.library.register_vmap(name, functools.partial(_batched, op), lib=_LIBRARY)


for _op in _native.operations():
    _register(_op)
