"""Steps of torch.optim under reproducible(): those of the classes that invar.optim has, too, are
invar.optim's, with the same bits (spec: optim). Others are made of torch's kernels, which
kernels_mode judges.

torch's own hooks of steps serve: before a step, its optimiser gives way to a copy without
parameters, which calls the closure and no more; after it, before all other hooks, ours steps."""

import inspect
import threading

import torch
from torch.utils._python_dispatch import _disable_current_modes

from invar import _native, optim
from invar.reproducibility import active

NAMES = "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam".split()


def counterpart(optimizer):
    """An optimiser of invar.optim with the groups and the state of torch's, the same objects; None
    where it does not cover them (element types, tensors as rates, gradient scaling)."""
    name = type(optimizer).__name__
    if name not in NAMES or type(optimizer) is not getattr(torch.optim, name, None):
        return None
    cls = getattr(optim, name)
    if getattr(optimizer, "grad_scale", None) is not None:
        return None
    ours = object.__new__(cls)
    ours.__dict__ = optimizer.__dict__
    try:
        for i, group in enumerate(optimizer.param_groups):
            ours._check(group, i)
            for x in group["params"]:
                grad = x.grad
                if grad is not None and (grad.dtype, grad.layout) != (torch.float32, torch.strided):
                    return None
    except _native.NotCovered:
        return None
    return ours


def before(optimizer, args, kwargs):
    forget(optimizer)
    if not active.depth() or (ours := counterpart(optimizer)) is None:
        return None
    empty = object.__new__(type(optimizer))
    empty.__dict__ = optimizer.__dict__ | {"param_groups": []}
    handle = optimizer.register_step_post_hook(lambda *_: stepped(ours))
    optimizer._optimizer_step_post_hooks.move_to_end(handle.id, last=False)
    _begun.__dict__.setdefault("steps", {})[id(optimizer)] = handle
    return (empty, *args[1:]), kwargs


def stepped(ours):
    with torch.no_grad(), torch._C.DisableTorchFunction(), _disable_current_modes():
        inspect.unwrap(type(ours).step)(ours)
    for group in ours.param_groups:
        if group.get("fused"):  # torch's fused kernels count on the device
            for x in group["params"]:
                if x.is_cuda and "step" in ours.state.get(x, {}):
                    ours.state[x]["step"] = ours.state[x]["step"].to(x.device)


_begun = threading.local()  # .steps: id of an optimiser -> the hook of its step


def forget(optimizer, *_):
    """Removes the hook of a step that is over, or was broken off."""
    if (handle := _begun.__dict__.get("steps", {}).pop(id(optimizer), None)) is not None:
        handle.remove()


def forget_all():
    """Of steps of this thread that were broken off."""
    for handle in _begun.__dict__.pop("steps", {}).values():
        handle.remove()
