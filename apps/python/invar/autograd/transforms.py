"""Primitives under the transforms of torch.func: grad and vjp by the rules of the rooms, vmap over
whole batches where the operation has batches, else row by row (the bits are those of single calls
either way). A rule is linear in the gradient that it takes: jvp is the gradient of that."""

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from invar import _native
from invar.autograd import nodes, operators
from invar.autograd.rules import Rule, Vjp, rule_of

_transforms_active = torch._C._are_functorch_transforms_active


class Transformed(torch.autograd.Function):
    """One primitive as torch.func takes it."""

    @staticmethod
    def forward(call, rule, *operands):
        return nodes.compute(call, operands)

    @staticmethod
    def setup_context(ctx, inputs, output):
        call, rule, *operands = inputs
        if rule is None:
            ctx.mark_non_differentiable(output)
            ctx.about = nodes.About(call, rule, (), ())
        else:
            nodes.remember(ctx, call, rule, operands, output)
        ctx.save_for_forward(*operands, output)

    @staticmethod
    def backward(ctx, grad):
        return (None, None, *nodes.gradients(ctx, grad))

    @staticmethod
    def jvp(ctx, _, __, *tangents):
        return pushed(ctx.about, ctx.saved_tensors, tangents)

    @staticmethod
    def vmap(info, in_dims, call, rule, *operands):
        return batched(call, operands, in_dims[2:], info.batch_size), 0


def primal(x):
    """Without the tangent that it has outside of torch.func."""
    return forward_ad.unpack_dual(x).primal if forward_ad._current_level >= 0 else x


def pushed(about, saved, tangents):
    """The tangent of the result for those of the operands (None: of zeros)."""
    *operands, result = map(primal, saved)
    if about.rule is None:
        return None
    needs = tuple(x is not None for x in tangents)
    known = nodes.About(about.call, about.rule, operands, needs)

    def pulled(grad):
        """What the tangents are multiplied with, each of the type of its operand."""
        grads = about.rule.function(Vjp(known, operands, result, grad))
        found = [g if g is not None else torch.zeros_like(x) for g, x in zip(grads, operands)]
        return tuple(
            g if g.dtype is x.dtype else nodes.typed(g, x.dtype)
            for g, x, need in zip(found, operands, needs)
            if need
        )

    _, back = torch.func.vjp(pulled, torch.zeros_like(result))
    (tangent,) = back(tuple(x for x in tangents if x is not None))
    return tangent


def _refused(v):
    rule_of(v.call.op)


def transformed(call, operands):
    """A call under a transform, which alone knows whether it asks for gradients."""
    try:
        rule = rule_of(call.op)
    except _native.NotCovered:
        rule = Rule(_refused, "")
    return Transformed.apply(call, rule, *operands)


class AtLevel(torch.autograd.function._SingleLevelFunction):
    """One primitive as the dispatcher asks for it at the level of one transform, which an operator
    in a graph meets."""

    @staticmethod
    def forward(ctx, call, rule, *operands):
        with torch.enable_grad():  # the transforms below this one may ask for gradients, too
            result = _below(call, operands)
        nodes.remember(ctx, call, rule, operands, result)
        return result

    backward = Transformed.backward

    @staticmethod
    def jvp(ctx, *tangents):
        raise _native.NotCovered(
            f"{ctx.about.call.op}: forward-mode derivatives (jvp) of a graph are not covered; use "
            "reverse mode (grad, vjp)"
        )


def _below(call, operands):
    with torch._C._AutoDispatchBelowAutograd():
        return operators.dispatched(call, operands)


def at_level(call, operands):
    wanted = torch.is_grad_enabled() and any(x.requires_grad for x in operands)
    rule = rule_of(call.op) if wanted else None
    if rule is None:
        return _below(call, operands)
    with enable_single_level_autograd_function():
        return AtLevel.apply(call, rule, *operands)


def batched(call, operands, dims, size):
    """The results for each index of the dimensions `dims` (None: the operand has none), as a first
    dimension."""
    first = [x if d is None else x.movedim(d, 0) for x, d in zip(operands, dims)]
    if call.op == "matmul" or call.op in _native.operations("elementwise"):  # they broadcast
        rank = 1 + max(x.ndim - (d is not None) for x, d in zip(first, dims))
        ones = lambda x: (1,) * (rank - x.ndim)
        return apply(
            call,
            [
                x if d is None else x.reshape(size, *ones(x), *x.shape[1:])
                for x, d in zip(first, dims)
            ],
        )
    return torch.stack(
        [apply(call, [x if d is None else x[i] for x, d in zip(first, dims)]) for i in range(size)]
    )


def have_tangents(operands):
    """Whether one is a dual number of torch.autograd.forward_ad."""
    return any(
        isinstance(x, torch.Tensor) and forward_ad.unpack_dual(x).tangent is not None
        for x in operands
    )


def apply(call, operands):
    """The result of one primitive on tensors."""
    if torch.compiler.is_compiling():
        return operators.traced(call, operands)
    if torch._C._get_tracing_state() is not None:  # torch.jit.trace keeps operators alone
        return operators.dispatched(call, operands)
    if _transforms_active() or (forward_ad._current_level >= 0 and have_tangents(operands)):
        return transformed(call, operands)
    return nodes.node(call, operands)
