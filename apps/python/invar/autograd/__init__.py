"""Primitives on torch tensors and their reproducible gradients. Only imported where torch is.

Each room states the vector-Jacobian products of its operations in src/ops/ROOM/vjp.py, as functions
of differentiable primitives: so gradients of gradients follow, and their bits are fixed by the same
specification as those of the forward pass.

A call takes one of four ways (`apply`): at once, where nothing watches; as an operator of
torch.library (library.py) under modes, fake tensors and the compiler, which see one opaque call;
and through transforms.py under those of torch.func. All have the same rules."""

import torch
from torch._C._functorch import get_unwrapped, is_functorch_wrapped_tensor
from torch.autograd import forward_ad

from invar import _native
from invar.autograd import exact, units
from invar.autograd.rules import Vjp, rule_of
from invar.modules.emitted import TYPES

_NAMES = {dtype: name for name, dtype in TYPES.items()}
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_transforms_active = torch._C._are_functorch_transforms_active
_modes = torch._C._len_torch_dispatch_stack


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


def compute(call, operands):
    """The result, below the graph of gradients: at once, or as an operator that a mode or a
    subclass of tensors sees."""
    if not _modes() and are_plain(operands):
        return call.run(operands, Torch)
    if _modes() == 0 and all(type(x) in _PLAIN for x in operands):
        if not operands or not all(x.is_meta for x in operands):
            return call.run([unwrapped(x) for x in operands], Torch)
    from invar.autograd import library

    for i, x in enumerate(operands):
        if not isinstance(x, torch.Tensor):
            raise _native.BadInput(
                f"{call.op}: operand {i}: {type(x).__name__}, expected torch.Tensor as the others"
            )
    with torch._C._AutoDispatchBelowAutograd():
        return library.dispatched(call, operands)


def are_plain(operands):
    """Whether all are tensors with memory, of torch's own type: the common case."""
    for x in operands:
        if type(x) not in _PLAIN or x.is_meta or is_functorch_wrapped_tensor(x):
            return False
    return bool(operands)


def unwrapped(x):
    """A tensor that a transform of torch.func has left wrapped, as after its end."""
    while is_functorch_wrapped_tensor(x):
        x = get_unwrapped(x)
    return x


def remember(ctx, call, rule, operands, result):
    """Keeps for the backward pass what the rule reads, and the types of other operands."""
    accumulators = exact.accumulators(operands) if exact.active() else None
    types, saved = None, operands
    if not rule.keeps_operands:
        types, saved = [], []
        for x, keep in zip(operands, rule.kept(ctx.needs_input_grad[2:])):
            saved.append(x if keep else None)
            types.append(None if keep else (x.shape, x.dtype, x.device))
    ctx.about = call, rule, types, accumulators
    ctx.save_for_backward(*saved, result if rule.keeps_result else None)


def gradients(ctx, grad):
    """The gradients of the operands: differentiable, because rules are made of primitives."""
    call, rule, types, accumulators = ctx.about
    *operands, result = ctx.saved_tensors
    needs = ctx.needs_input_grad[2:]
    if rule.reads and not grad.is_contiguous():
        grad = grad.contiguous()  # once for all operations of the rule
    if types is None:
        types = [(x.shape, x.dtype, x.device) for x in operands]
    else:
        types = [t or (x.shape, x.dtype, x.device) for t, x in zip(types, operands)]
    if accumulators is None:
        grads = rule.function(Vjp(call, operands, result, grad, types, needs))
    else:
        grads = exact_gradients(call, rule, operands, result, grad, types, needs, accumulators)
    return [
        g if g is None or not need else g if g.dtype is dtype else typed(g, dtype)
        for g, need, (_, dtype, _) in zip(grads, needs, types)
    ]


def exact_gradients(call, rule, operands, result, grad, types, needs, accumulators):
    """The gradients, without those of parameters whose accumulators get contributions."""
    if torch.is_grad_enabled():
        raise _native.NotCovered(
            f"{call.op}: a parameter with exact gradients has no gradients of gradients"
        )
    if call.op in units.OPERANDS:
        grads = units.gradients(call, rule, operands, result, grad, types, needs, accumulators)
    else:
        grads = rule.function(Vjp(call, operands, result, grad, types, needs, accumulators))
    exact.check(call, accumulators, grads)
    return grads


def typed(grad, dtype):
    """A gradient has the element type of its operand."""
    from invar import primitives

    return primitives.cast(grad, dtype=_NAMES[dtype])


class Apply(torch.autograd.Function):
    """One primitive as a node of the graph of gradients."""

    @staticmethod
    def forward(ctx, call, rule, *operands):
        result = compute(call, operands)
        remember(ctx, call, rule, operands, result)
        return result

    @staticmethod
    def backward(ctx, grad):
        return (None, None, *gradients(ctx, grad))


_apply = super(torch.autograd.Function, Apply).apply  # where no transform is active


def refuse_forward_mode(call, operands):
    for i, x in enumerate(operands):
        if isinstance(x, torch.Tensor) and forward_ad.unpack_dual(x).tangent is not None:
            raise _native.NotCovered(
                f"{call.op}: operand {i} has a tangent: forward-mode derivatives (jvp) are not "
                "covered; use reverse mode (grad, vjp)"
            )


def apply(call, operands):
    """The result of one primitive on tensors."""
    if torch.compiler.is_compiling():
        from invar.autograd import library

        return library.traced(call, operands)
    if _transforms_active():
        from invar.autograd import transforms

        return transforms.apply(call, operands)
    if forward_ad._current_level >= 0:
        refuse_forward_mode(call, operands)
    return node(call, operands)


def node(call, operands):
    """The result, a node of the graph where an operand requires a gradient."""
    if exact.active():
        call, operands = exact.untransposed(call, operands)
    for x in operands:
        if isinstance(x, torch.Tensor) and x.requires_grad:
            if not torch.is_grad_enabled() or (rule := rule_of(call.op)) is None:
                break
            return _apply(call, rule, *operands)
    return compute(call, operands)
