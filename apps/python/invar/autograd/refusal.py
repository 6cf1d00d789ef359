"""What lies outside of the guarantee is refused by name, with the user's line."""

import linecache
import os
import sys

import torch

from invar import _native

_LIBRARIES = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (torch.__file__, _native.__file__)
)


_backward_at = None  # the frame that asked for gradients: threads of torch's engine have none


def user_line():
    """The innermost line that is neither torch's nor Invar's, as "file:line: text"; "" where there
    is none."""
    place = user_place() or _backward_at
    if place is None:
        return ""
    file, line = place
    return f"{file}:{line}: {linecache.getline(file, line).strip()}"


def user_place():
    """The file and number of that line; None where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_LIBRARIES) and not file.startswith("<frozen"):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


def gradients_from_here():
    """Remembers the user's line for refusals of a backward pass that other threads compute."""
    global _backward_at
    _backward_at = user_place()


def refused(name, why):
    """The exception for one operation; name "": `why` has it."""
    line = user_line()
    made = _native.NotCovered((f"{name}: " if name else "") + why + (f" ({line})" if line else ""))
    made.named = True  # with the function and the line
    return made


def describe(args):
    """The tensors among the arguments, as "float32[2, 3] cpu"."""
    tensors = [x for x in flat(args) if isinstance(x, torch.Tensor)]
    return ", ".join(
        f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)} {x.device.type}" for x in tensors
    )


def flat(values):
    """The arguments of a call, without the lists that hold some of them."""
    for x in values:
        if isinstance(x, list | tuple):
            yield from flat(x)
        else:
            yield x
