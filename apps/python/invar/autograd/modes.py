"""The modes of torch that see operators, and Invar's own among them (invar.reproducibility), which
judges torch's kernels and has nothing to judge in Invar's."""

import torch

from invar import _native

count = torch._C._len_torch_dispatch_stack
_at = torch._C._get_dispatch_stack_at
_own = None
doing = [None]  # the function of torch that reproducible() hands on: nodes keep its name


def own(cls):
    """Registers the class of Invar's mode."""
    global _own
    _own = cls
    _native.set_own_mode(cls)
    return cls


def foreign():
    """How many modes but Invar's see the operators of this thread."""
    n = count()
    return n and sum([type(_at(i)) is not _own for i in range(n)])
