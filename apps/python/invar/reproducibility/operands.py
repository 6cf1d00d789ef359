"""What the arguments of a call are, found in one pass, since it counts in small calls."""

import torch

FLOATS, UNUSUAL = 1, 2
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_NOTHING = frozenset((int, bool, str, type(None), torch.device, slice))
_REAL = frozenset(
    x
    for x in vars(torch).values()
    if isinstance(x, torch.dtype) and (x.is_floating_point or x.is_complex)
)


def looked_at(values):
    """FLOATS: a floating or complex value, or an element type that is asked for, is among them.
    UNUSUAL: so is a subclass of tensors."""
    found = 0
    for x in values:
        cls = type(x)
        if cls in _PLAIN:
            if x.dtype in _REAL:
                found |= FLOATS
        elif cls in _NOTHING:
            continue
        elif isinstance(x, float):
            found |= FLOATS
        elif isinstance(x, list | tuple):
            found |= looked_at(x)
        elif isinstance(x, torch.Tensor):
            found |= UNUSUAL | (FLOATS if x.dtype in _REAL else 0)
        elif isinstance(x, torch.dtype) and x in _REAL:
            found |= FLOATS
    return found


def has_floats(args, kwargs):
    """Whether an operand or the result that is asked for is floating or complex."""
    return bool((looked_at(args) | looked_at(kwargs.values())) & FLOATS)
