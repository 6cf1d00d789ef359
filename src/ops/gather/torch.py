"""Reading and writing at indices in torch."""

import torch


def places(indices, n):
    """Negative ones count from the end."""
    return torch.where(indices < 0, indices + n, indices)


def gather_nd(x, indices, batch_dims):
    """Tuples of indices into the dimensions behind those of the batch."""
    rank = indices.dim() - 1
    batch = [
        torch.arange(n, device=x.device).view([-1 if d == i else 1 for d in range(rank)])
        for i, n in enumerate(indices.shape[:batch_dims])
    ]
    return x[(*batch, *indices.unbind(-1))]


def scatter_nd(x, indices, updates, reduction):
    """Slices that tuples of indices name, multiplied or compared with updates."""
    k = indices.shape[-1]
    place, slices = 0, 1
    for n, i in zip(x.shape[:k], indices.unbind(-1)):
        place, slices = place * n + places(i, n), slices * n
    flat, rows = x.reshape(slices, -1), place.reshape(-1, 1)
    joined = updates.reshape(rows.shape[0], flat.shape[1])
    return flat.scatter_reduce(0, rows.expand(joined.shape), joined, reduction).reshape(x.shape)
