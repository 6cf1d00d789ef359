"""Whether a thread is under reproducible(): the innermost question, which asks torch's modes."""

import torch

_count = torch._C._len_torch_function_stack
_at = torch._C._get_function_stack_at
_own = None


def own(cls):
    """Registers the class of the mode that sends functions to Invar."""
    global _own
    _own = cls
    return cls


def depth():
    """How many such contexts this thread is in."""
    n = _count()
    return n and sum([type(_at(i)) is _own for i in range(n)])
