"""Elements that indices name: gradients of embeddings, sums and other joins."""

import torch

from invar import ops
from invar.autograd.refusal import refused
from invar.reproducibility.kernels.elementwise import mul
from invar.reproducibility.kernels.handlers import computed, handler, p


@handler("embedding_dense_backward")
def embedding_backward(grad, indices, rows, padding_idx, scale_grad_by_freq):
    if scale_grad_by_freq:
        raise refused("torch.nn.functional.embedding", "scale_grad_by_freq is not covered")
    where = indices.reshape(-1)
    grad = grad.reshape(-1, grad.shape[-1])
    if padding_idx >= 0:
        kept = where != padding_idx
        where, grad = where[kept], grad[kept]
    zeros = torch.zeros((rows, grad.shape[-1]), dtype=torch.float32, device=grad.device)
    return computed(lambda g: p("scatter_nd", zeros, where.unsqueeze(-1), g, reduction=1), grad)


def added(x, dim, index, source):
    """x + source at the rows `index` along dim, in the order of index."""
    moved = lambda t: t.movedim(dim, 0).contiguous()
    result = computed(
        lambda x, s: p("scatter_nd", moved(x), index.reshape(-1, 1), moved(s), reduction=1),
        x,
        source,
    )
    return result.movedim(0, dim)


@handler("index_add")
def index_add(x, dim, index, source, alpha=1):
    return added(x, dim, index, source if alpha == 1 else mul(source, alpha))


@handler("scatter_add")
def scatter_add(x, dim, index, source):
    source = source[tuple(slice(n) for n in index.shape)]
    axis = dim % x.ndim
    return computed(
        lambda x, s: p("scatter_elements", x, index, s, axis=axis, reduction=1), x, source
    )


@handler("scatter_reduce")
def scatter_reduce(x, dim, index, source, reduce, *, include_self=True):
    return ops.scatter_reduce(x, dim, index, source, reduce, include_self=include_self)


@handler("index_reduce")
def index_reduce(x, dim, index, source, reduce, *, include_self=True):
    if not x.ndim:
        one = index_reduce(
            x.reshape(1), 0, index, source.reshape(-1), reduce, include_self=include_self
        )
        return one.reshape(())
    shape = [1] * x.ndim
    shape[dim] = -1
    where = index.reshape(shape).expand(source.shape)
    return ops.scatter_reduce(x, dim, where, source, reduce, include_self=include_self)
