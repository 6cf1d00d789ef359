"""torch.nn.Module -> the same module with the same bits on every machine, or a refusal by name."""

import copy
import functools

import torch
from torch import nn as of_torch

from invar import _native
from invar.nn.counterparts import COUNTERPARTS, check
from invar.reproducibility import Outside, reproducible

# Modules of torch whose forward passes only call functions that reproducible() covers.
UNDER_THE_MODE = frozenset(
    """
    AlphaDropout ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d
    ConstantPad3d CosineSimilarity Dropout1d Dropout2d Dropout3d FeatureAlphaDropout Flatten Identity
    Module ModuleDict ModuleList PairwiseDistance ParameterDict ParameterList PixelShuffle
    PixelUnshuffle ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d
    ReplicationPad3d Sequential Softmax2d Transformer Unflatten ZeroPad1d ZeroPad2d ZeroPad3d
    CosineEmbeddingLoss GaussianNLLLoss HingeEmbeddingLoss MarginRankingLoss PoissonNLLLoss
    SoftMarginLoss TripletMarginLoss AdaptiveAvgPool3d
    """.split()
)


def from_torch_module(model: of_torch.Module, inplace: bool = False) -> of_torch.Module:
    """The module with the same parameters (the same tensors) and forward passes of Invar.

    Modules of torch.nn become those of invar.nn; other modules, whose forward passes are Python,
    keep them, and the forward pass of the whole runs under invar.reproducible(): what is not covered
    there raises invar.NotCovered with its line when it is reached. inplace: `model` itself is
    changed and returned, and nothing is where it raises.

    Raises invar.NotCovered with the paths and classes of all modules that have no reproducible
    counterpart (torch.nn.LSTM, torch.jit.ScriptModule, ...), TypeError for what is no module."""
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
    if type(model) not in COUNTERPARTS.values():
        model.__class__ = under_the_mode(type(model))
    return model


def refuse(model):
    """Raises where a module is not covered, with all that are not."""
    found = []
    for path, module in model.named_modules():
        why = refusal_of(module)
        if why:
            found.append(f"{path or 'the module itself'}: {why}")
    if found:
        raise Outside("from_torch_module: not covered: " + "; ".join(found))


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
    base = next(c for c in cls.__mro__ if c.__module__.startswith("torch."))
    own = cls is not base and "forward" in {
        n for c in cls.__mro__[: cls.__mro__.index(base)] for n in vars(c)
    }
    if own or base.__name__ in UNDER_THE_MODE or base in COUNTERPARTS:
        return ""
    return f"torch.nn.{base.__name__}" if base.__module__.startswith("torch.nn.") else f"{base}"


@functools.cache
def under_the_mode(cls):
    """The subclass of `cls` whose forward pass runs under reproducible()."""

    @functools.wraps(cls.forward)
    def forward(self, *args, **kwargs):
        with reproducible():
            return cls.forward(self, *args, **kwargs)

    def __reduce_ex__(self, protocol):
        return (
            _restored,
            (cls,),
            self.__getstate__() if hasattr(self, "__getstate__") else vars(self),
        )

    made = {"forward": forward, "__reduce_ex__": __reduce_ex__, "__module__": cls.__module__,
            "__doc__": cls.__doc__, "__qualname__": cls.__qualname__}  # fmt: skip
    return type(cls.__name__, (cls,), made)


def _restored(cls):
    made = under_the_mode(cls)
    return made.__new__(made)
