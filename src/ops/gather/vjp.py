"""Gradients of gathers and scatters: scatters that add, in the order of gather.9, and gathers."""

import torch
from invar import NotCovered
from invar import primitives as p
from invar.autograd.rules import rule

_NONE, _ADD = 0, 1  # `reduction`


def zeros(shape, grad):
    if grad.dtype not in (torch.float32, torch.float64):
        raise NotCovered(f"the gradient of a gather of {grad.dtype}: f32 and f64 are")
    return torch.zeros(shape, dtype=grad.dtype, device=grad.device)


def widened(grad):
    """As scatters add it."""
    narrow = grad.dtype in (torch.bfloat16, torch.float16)
    return p.cast(grad, shape=grad.shape, dtype="f32") if narrow else grad


@rule("gather", saves="others")
def gather(v):
    index, grad, shape = v[1], widened(v.grad), list(v.shape(0))
    axis = v.axis() or 0
    # Index dimensions and the axis come first: row i of the sum has the updates of index i.
    first = list(range(axis, axis + index.ndim))
    others = [d for d in range(grad.ndim) if d not in first]
    beside = shape[:axis] + shape[axis + 1 :]
    rows = p.scatter_nd(
        zeros([shape[axis], *beside], grad),
        index.unsqueeze(-1),
        grad.permute(first + others),
        reduction=_ADD,
    )
    return [rows.movedim(0, axis), None]


@rule("gather_elements", saves="others")
def gather_elements(v):
    grad = widened(v.grad)
    sums = p.scatter_elements(zeros(v.shape(0), grad), v[1], grad, axis=v.axis(), reduction=_ADD)
    return [sums, None]


@rule("gather_nd", saves="others")
def gather_nd(v):
    index, grad, shape = v[1], widened(v.grad), v.shape(0)
    batches = v.attribute("batch_dims")
    if batches:  # scatter_nd has no batches: their indices come first in each tuple
        leading = index.shape[:-1]
        counted = [
            torch.arange(n, device=index.device)
            .reshape([n if i == d else 1 for i in range(len(leading))])
            .expand(leading)
            for d, n in enumerate(leading[:batches])
        ]
        index = torch.cat([torch.stack(counted, -1), index], -1)
    sums = p.scatter_nd(zeros(shape, grad), index, grad, reduction=_ADD)
    return [sums, None]


def kept_by(scattered, gathered, counted):
    """Which updates stay where each replaces those before it: those whose number is found where it
    was written."""
    return p.equal(gathered(scattered(counted)), counted)


def scatter_gradients(v, scattered, gathered, places, updates):
    """scattered(x, u, how): the scatter of u; gathered(x): what is at its places. `places` is the
    shape of the numbers of updates, `updates` that of one update for each."""
    how = v.attribute("reduction")
    if how not in (_NONE, _ADD):
        raise NotCovered(
            f"{v.call.op}: the gradient with reduction {how}; covered are 0 (none), 1 (add)"
        )
    grads = [None, None, None]
    if v.needs(0):
        none = torch.zeros(v.shape(2), dtype=v.grad.dtype, device=v.grad.device)
        grads[0] = scattered(v.grad, none, _NONE) if how == _NONE else v.grad
    if v.needs(2):
        grads[2] = gathered(v.grad)
        if how == _NONE:
            count = torch.arange(places.numel(), device=v.grad.device).reshape(places)
            empty = torch.full(updates, -1, device=v.grad.device)
            stays = kept_by(lambda u: scattered(empty, u, _NONE), gathered, count)
            stays = stays.reshape([*places, *[1] * (v.grad.ndim - len(updates))])
            nothing = torch.zeros((), dtype=v.grad.dtype, device=v.grad.device)
            grads[2] = p.where(stays, grads[2], nothing)
    return grads


@rule("scatter_elements", saves="others")
def scatter_elements(v):
    index, axis = v[1], v.axis()
    return scatter_gradients(
        v,
        lambda x, u, how: p.scatter_elements(x, index, u, axis=axis, reduction=how),
        lambda x: p.gather_elements(x, index, axis=axis),
        index.shape,
        v.shape(0),
    )


@rule("scatter_nd", saves="others")
def scatter_nd(v):
    index = v[1]
    return scatter_gradients(
        v,
        lambda x, u, how: p.scatter_nd(x, index, u, reduction=how),
        lambda x: p.gather_nd(x, index, batch_dims=0),
        index.shape[:-1],
        v.shape(0)[: index.shape[-1]],
    )
