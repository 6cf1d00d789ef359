"""Primitives on torch tensors and their reproducible gradients. Only imported where torch is.

Each room states the vector-Jacobian products of its operations in src/ops/ROOM/vjp.py, as functions
of differentiable primitives: so gradients of gradients follow, and their bits are fixed by the same
specification as those of the forward pass."""

import torch

from invar import _native
from invar.autograd.rules import Vjp, rule_of
from invar.emitted import TYPES

_NAMES = {dtype: name for name, dtype in TYPES.items()}


class Torch:
    """The library of the operands, if it is torch."""

    @staticmethod
    def of(x, where):
        return x.detach().contiguous()

    @staticmethod
    def type_of(x):
        if x.dtype not in _NAMES:
            raise _native.NotCovered(f"elements of {x.dtype}")
        return _NAMES[x.dtype], tuple(x.shape)

    @staticmethod
    def empty(shape, dtype, like):
        return torch.empty(shape, dtype=TYPES[dtype], device=like.device)


class _Apply(torch.autograd.Function):
    """One primitive as a node of the graph of gradients."""

    @staticmethod
    def forward(ctx, call, rule, *operands):
        result = call.run(operands, Torch)
        ctx.call, ctx.rule = call, rule
        kept = operands if "operands" in rule.saves else (None,) * len(operands)
        ctx.shapes = [(x.shape, x.dtype, x.device) for x in operands]
        ctx.save_for_backward(*kept, result if "result" in rule.saves else None)
        return result

    @staticmethod
    def backward(ctx, grad):  # differentiable: it is made of primitives
        *operands, result = ctx.saved_tensors
        vjp = Vjp(ctx.call, operands, result, grad, ctx.shapes, ctx.needs_input_grad[2:])
        grads = ctx.rule.function(vjp)
        return (None, None, *grads)


def apply(call, operands):
    """The result of one primitive on tensors, a node of the graph where one requires a gradient."""
    wanted = torch.is_grad_enabled() and any(
        x.requires_grad for x in operands if isinstance(x, torch.Tensor)
    )
    rule = rule_of(call.op) if wanted else None
    if rule is None:
        return call.run(operands, Torch)
    return _Apply.apply(call, rule, *operands)
