"""torch.nn.Module -> the same module with the same bits on every machine, or a refusal by name."""

import copy
import functools

import torch
from torch import nn as of_torch

from invar import _native
from invar.nn.counterparts import COUNTERPARTS, check
from invar.reproducibility import reproducible

# Modules of torch that compute nothing.
CONTAINERS = frozenset(
    """
    ChannelShuffle ConstantPad1d ConstantPad2d ConstantPad3d Flatten Identity ModuleDict ModuleList
    ParameterDict ParameterList PixelShuffle PixelUnshuffle Sequential Unflatten ZeroPad1d ZeroPad2d
    ZeroPad3d
    """.split()
)
# Those whose forward passes only call functions that reproducible() covers.
UNDER_THE_MODE = frozenset({"AdaptiveLogSoftmaxWithLoss", "Module"})


def from_torch_module(model: of_torch.Module, inplace: bool = False) -> of_torch.Module:
    """The module with the same parameters (the same tensors) and forward passes of Invar.

    Modules of torch.nn become those of invar.nn; other modules, whose forward passes are Python,
    keep them, and the forward pass of the whole runs under invar.reproducible(): what is not
    covered there raises invar.NotCovered with its line when it is reached. inplace: `model` itself
    is changed and returned, and nothing is where it raises.

    Raises invar.NotCovered with the paths and classes of all modules that have no reproducible
    counterpart (torch.nn.SyncBatchNorm, torch.jit.ScriptModule, ...), TypeError for what is no
    module.

    Example:
        >>> invar.from_torch_module(torch.nn.Linear(3, 2))
        Linear(in_features=3, out_features=2, bias=True)
    """
    if not isinstance(model, of_torch.Module):
        raise TypeError(f"model: {type(model).__name__} is no torch.nn.Module")
    refuse(model)
    if not inplace:
        shared = {id(x): x for x in [*model.parameters(), *model.buffers()]}
        model = copy.deepcopy(model, shared)
    for module in model.modules():
        ours = COUNTERPARTS.get(type(module))
        if ours is not None:
            module.__class__ = ours
    if not is_under_the_mode(type(model)) and not all(map(computes_by_itself, model.modules())):
        model.__class__ = under_the_mode(type(model))
    return model


def of_torch_itself(cls):
    return cls.__module__.startswith("torch.nn.modules.")


def computes_by_itself(module):
    """Whether a module needs no mode: it is ours or computes nothing, and has no hooks."""
    cls = type(module)
    plain = cls.__name__ in CONTAINERS and of_torch_itself(cls)
    hooks = module._forward_hooks or module._forward_pre_hooks
    return (plain or cls in COUNTERPARTS.values()) and not hooks


def refuse(model):
    """Raises where a module is not covered, with all that are not."""
    found = []
    for path, module in model.named_modules():
        why = refusal_of(module)
        if why:
            found.append(f"{path or 'the module itself'}: {why}")
    if found:
        raise _native.NotCovered("from_torch_module: not covered: " + "; ".join(found))


def refusal_of(module):
    """Why a module is not covered; "" where it is."""
    cls = type(module)
    ours = COUNTERPARTS.get(cls)
    if ours is not None:
        try:
            check(module, ours, f"torch.nn.{cls.__name__}")
        except _native.NotCovered as e:
            return str(e)
        return ""
    if isinstance(module, torch.jit.ScriptModule):
        return f"{cls.__name__}: compiled code of TorchScript"
    if is_under_the_mode(cls) or cls in COUNTERPARTS.values():
        return ""
    mine = [c for c in cls.__mro__ if not c.__module__.startswith("torch.") or is_utility(c)]
    base = next(c for c in cls.__mro__ if c not in mine)
    own = any("forward" in vars(c) for c in mine)
    known = base.__name__ in UNDER_THE_MODE | CONTAINERS or base in COUNTERPARTS
    if own or (known and (mine or of_torch_itself(base))):
        return ""
    return (
        f"torch.nn.{base.__name__}"
        if of_torch_itself(base)
        else f"{base.__module__}.{cls.__name__}"
    )


def is_utility(cls):
    """Classes of torch.nn.utils, whose forward passes are Python: parametrisations."""
    return cls.__module__.startswith("torch.nn.utils.")


def is_under_the_mode(cls):
    return "_invar_of" in vars(cls)


@functools.cache
def under_the_mode(cls):
    """The subclass of `cls` whose forward pass, with its hooks, runs under reproducible()."""

    def __call__(self, *args, **kwargs):
        with reproducible():
            return cls.__call__(self, *args, **kwargs)

    @functools.wraps(cls.forward)
    def forward(self, *args, **kwargs):
        if reproducible.is_active():
            return cls.forward(self, *args, **kwargs)
        with reproducible():
            return cls.forward(self, *args, **kwargs)

    def __reduce_ex__(self, protocol):
        return (
            _restored,
            (cls,),
            self.__getstate__() if hasattr(self, "__getstate__") else vars(self),
        )

    made = {
        "__call__": __call__,
        "forward": forward,
        "__reduce_ex__": __reduce_ex__,
        "_invar_of": cls,
    }
    about = {name: getattr(cls, name) for name in ("__module__", "__doc__", "__qualname__")}
    return type(cls.__name__, (cls,), made | about)


def _restored(cls):
    made = under_the_mode(cls)
    return made.__new__(made)
