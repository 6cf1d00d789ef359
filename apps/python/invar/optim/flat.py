"""Tensors joined end to end, so that one call of an elementwise operation serves many. Only copies:
how tensors are joined reaches no bit."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

# Elements that are joined; a larger tensor is alone. On a GPU few launches count, on the host
# caches.
MOST = {"cuda": 1 << 24, "cpu": 1 << 16}


def buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """The tensors of one device in lists, in order, each of at most MOST elements or of one
    tensor."""
    part: list[Tensor] = []
    size = 0
    for x in tensors:
        if part and size + x.numel() > MOST[x.device.type]:
            yield part
            part, size = [], 0
        part.append(x)
        size += x.numel()
    if part:
        yield part


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """Their elements in row-major order, end to end; the only tensor itself, not a copy, if it is
    contiguous."""
    if len(tensors) == 1:
        return tensors[0].reshape(-1)
    return torch._utils._flatten_dense_tensors(tensors)


def split_into(tensors: list[Tensor], flat: Tensor) -> None:
    """Copies the elements of `flat` into the tensors, in row-major order."""
    if len(tensors) == 1:
        tensors[0].copy_(flat.view(tensors[0].shape))
    else:
        torch._foreach_copy_(tensors, torch._utils._unflatten_dense_tensors(flat, tensors))
