"""Calls of primitives as nodes of the graph of gradients."""

import torch
from torch._C._functorch import get_unwrapped, is_functorch_wrapped_tensor

from invar import _native, primitives
from invar.autograd import exact, modes, operators, units
from invar.autograd.refusal import refused
from invar.autograd.rules import Vjp, rule_of
from invar.modules.emitted import TYPES

_NAMES = {dtype: name for name, dtype in TYPES.items()}
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_modes = modes.foreign


class Torch:
    """The library of the operands, if it is torch."""

    @staticmethod
    def of(x, where):
        return x.detach().resolve_neg().contiguous()

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
    for i, x in enumerate(operands):
        if not isinstance(x, torch.Tensor):
            raise _native.BadInput(
                f"{call.op}: operand {i}: {type(x).__name__}, expected torch.Tensor as the others"
            )
    with torch._C._AutoDispatchBelowAutograd():
        return operators.dispatched(call, operands)


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


class About:
    """What the backward pass knows of a node: the call and its rule; for each operand (shape,
    dtype, device), whether it requires a gradient, and, if parameters with exact gradients are
    registered, its accumulator. Nodes of equal calls share `memo`, in which a rule may leave what
    it derives."""

    __slots__ = ("accumulators", "call", "dtypes", "memo", "needs", "rule", "types")

    def __init__(self, call, rule, operands, needs, accumulators=None):
        self.call, self.rule, self.needs, self.accumulators = call, rule, needs, accumulators
        self.types = [(x.shape, x.dtype, x.device) for x in operands]
        self.dtypes = [x.dtype if need else None for x, need in zip(operands, needs)]
        self.memo = {}


def about(call, rule, operands, needs):
    """About these operands, and which of them and of the result (the last) the rule reads."""
    return About(call, rule, operands, needs), kept(rule, needs)


def kept(rule, needs):
    of_operands = (True,) * len(needs) if rule.keeps_operands else rule.kept(needs)
    return (*of_operands, rule.keeps_result)


def remember(ctx, call, rule, operands, result):
    """Keeps for the backward pass what the rule reads, and what it knows of other operands."""
    needs = ctx.needs_input_grad[2:]
    accumulators = exact.accumulators(operands) if exact.active() else None
    ctx.about = About(call, rule, operands, needs, accumulators)
    if modes.doing[0] is not None:
        ctx.doing = modes.doing[0]
    keeps = kept(rule, needs)
    ctx.save_for_backward(*[x if k else None for x, k in zip((*operands, result), keeps)])


def gradients(ctx, grad):
    """The gradients of the operands: differentiable, because rules are made of primitives."""
    saved = ctx.saved_tensors
    try:
        if modes.count() and not _modes():
            with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
                return _gradients(ctx.about, saved, grad)
        return _gradients(ctx.about, saved, grad)
    except _native.NotCovered as e:
        if hasattr(e, "named"):
            raise
        doing = getattr(ctx, "doing", None)
        raise refused(f"the gradient of torch.{doing}" if doing else "", str(e)) from e


def _gradients(about, saved, grad):
    rule = about.rule
    if not grad.numel():  # sums over nothing, of which rules know nothing
        return [
            torch.zeros(shape, dtype=dtype, device=device) if need else None
            for (shape, dtype, device), need in zip(about.types, about.needs)
        ]
    *operands, result = saved
    if rule.reads and not grad.is_contiguous():
        grad = grad.contiguous()  # once for all operations of the rule
    if about.accumulators is None:
        grads = rule.function(Vjp(about, operands, result, grad))
    else:
        grads = exact_gradients(about, operands, result, grad)
    return [
        None if dtype is None or g is None else g if g.dtype is dtype else typed(g, dtype)
        for g, dtype in zip(grads, about.dtypes)
    ]


def exact_gradients(about, operands, result, grad):
    """The gradients, without those of parameters whose accumulators get contributions."""
    call = about.call
    if torch.is_grad_enabled():
        raise _native.NotCovered(
            f"{call.op}: a parameter with exact gradients has no gradients of gradients"
        )
    if call.op in units.OPERANDS:
        grads = units.gradients(about, operands, result, grad)
    else:
        grads = about.rule.function(Vjp(about, operands, result, grad))
    exact.check(call, about.accumulators, grads)
    return grads


def typed(grad, dtype):
    """A gradient has the element type of its operand."""
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


class ApplyAtOnce(torch.autograd.Function):
    """The same for plain tensors, from the second call of an operation on: its forward pass is
    native (apps/python/calls.cc), which the module calls without a way through Python."""

    forward = staticmethod(_native.forward)

    @staticmethod
    def backward(ctx, grad):
        return (None, *gradients(ctx, grad))


ApplyAtOnce._backward_cls.apply = ApplyAtOnce.backward  # what torch's engine calls, itself


def _native_apply(function):  # where no transform is active
    return super(torch.autograd.Function, function).apply


_apply = _native_apply(Apply)
_native.set_autograd(_native_apply(ApplyAtOnce), compute, about, exact.REGISTERED, modes.doing)


def node(call, operands):
    """The result, a node of the graph where an operand requires a gradient."""
    if exact.active():
        call, operands = exact.untransposed(call, operands)
    for x in operands:
        if isinstance(x, torch.Tensor) and x.requires_grad:
            if not torch.is_grad_enabled():
                break
            rule = rule_of(call.op)
            if call.native is not None:
                call.native.set_rule(call, rule)  # from the next call on it is native
            if rule is None:
                break
            return _apply(call, rule, *operands)
    return compute(call, operands)
