"""What lies outside of the guarantee is refused by name, with the user's line."""

import linecache
import os
import sys

import torch

from invar import _native

_LIBRARIES = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (torch.__file__, _native.__file__)
)


class Outside(_native.NotCovered, NotImplementedError):
    """A torch operation that has no reproducible counterpart."""


def user_line():
    """The innermost line that is neither torch's nor Invar's, as "file:line: text"; "" where there
    is none."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_LIBRARIES) and not file.startswith("<frozen"):
            text = linecache.getline(file, frame.f_lineno).strip()
            return f"{file}:{frame.f_lineno}: {text}"
        frame = frame.f_back
    return ""


def refused(name, why):
    """The exception for one operation."""
    line = user_line()
    return Outside(f"{name}: {why}" + (f" ({line})" if line else ""))


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
