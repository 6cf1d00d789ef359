"""Which module of torch each of ours stands for, and what ours refuses."""

import functools

from invar import _native

COUNTERPARTS = {}  # class of torch.nn -> class of invar.nn


def counterpart(cls):
    """Registers a subclass of one of torch's modules. Construction makes the modules below ours,
    too, and asks refusals(), where the class has it, for what of the module is not covered."""
    of = next(base for base in cls.__mro__[1:] if base.__module__.startswith("torch."))
    COUNTERPARTS[of] = cls
    cls.__doc__ = cls.__doc__ or f"torch.nn.{of.__name__} with the same bits on every machine."

    @functools.wraps(of.__init__)
    def __init__(self, *args, **kwargs):
        of.__init__(self, *args, **kwargs)
        adopt(self)
        check(self, cls)

    cls.__init__ = __init__
    return cls


def adopt(module):
    """Makes the modules below `module` ours where they are exactly torch's."""
    for child in module.modules():
        ours = COUNTERPARTS.get(type(child))
        if ours is not None:
            check(child, ours)
            child.__class__ = ours


def check(module, cls, where=""):
    """Raises where `module` has what `cls` does not cover."""
    for argument in getattr(cls, "refusals", lambda _: ())(module):
        raise _native.NotCovered(
            f"{where or 'invar.nn.' + cls.__name__}: {argument} is not covered"
        )
