"""Gradients of data movement: the movement back; where elements were repeated, sums."""

import math

import torch
from invar import primitives as p
from invar.autograd.rules import reduced_to, rule, widened


@rule("expand", saves="")
def expand(v):
    return [v.reduced(0, v.grad)]


@rule("transpose", saves="")
def transpose(v):
    perm = v.attribute("perm") or list(range(v.grad.ndim))[::-1]
    return [v.grad.permute(sorted(range(len(perm)), key=perm.__getitem__))]


@rule("slice", saves="")
def take(v):
    """Zeros between and around the elements that were taken."""
    grad, shape = v.grad, v.shape(0)
    rank = len(shape)
    starts = v.attribute("starts") or [0] * rank
    steps = v.attribute("steps") or [1] * rank
    starts = [s + n if s < 0 else s for s, n in zip(starts, shape)]
    if not grad.numel():
        return [v.zeros(0)]
    if any(step < 0 for step in steps):
        grad = grad.flip([i for i, step in enumerate(steps) if step < 0])
        first = lambda s, step, n: s + (n - 1) * step if step < 0 else s
        starts = [first(*all) for all in zip(starts, steps, grad.shape)]
        steps = [abs(step) for step in steps]
    if any(step > 1 for step in steps):
        apart = [m for n in grad.shape for m in (n, 1)]
        between = [m for n, step in zip(grad.shape, steps) for m in (n, step)]
        grad = p.pad(grad.reshape(apart), begins=[0] * (2 * rank), shape=tuple(between))
        grad = grad.reshape([n * step for n, step in zip(v.grad.shape, steps)])
    return [p.pad(grad, begins=starts, shape=shape)]


@rule("concat", saves="")
def concat(v):
    axis, at, grads = v.axis(), 0, []
    for i in range(len(v)):
        size = v.shape(i)[axis]
        grads.append(v.grad.narrow(axis, at, size) if v.needs(i) else None)
        at += size
    return grads


@rule("pad", saves="")
def pad(v):
    shape = v.shape(0)
    begins = v.attribute("begins") or [0] * len(shape)
    inner = p.pad(v.grad, begins=[-n for n in begins], shape=shape) if v.needs(0) else None
    if not v.needs(1):
        return [inner, None][: len(v)]
    inside = torch.ones(shape, dtype=torch.bool, device=v.grad.device)
    inside = p.pad(inside, begins=begins, shape=tuple(v.grad.shape))
    outer = p.where(inside, v.constant(0.0), v.grad)
    return [inner, reduced_to(outer, ()).reshape(v.shape(1))]


@rule("pad_edge", "pad_reflect", "pad_wrap", saves="")
def continued(v):
    """Each element of x gets the sum over its copies, in row-major order (gather.9)."""
    shape, size = v.shape(0), math.prod(v.shape(0))
    places = torch.arange(size, device=v.grad.device).reshape(shape)
    begins = v.attribute("begins") or [0] * len(shape)
    places = getattr(p, v.call.op)(places, begins=begins, shape=tuple(v.grad.shape))
    grad, count = widened(v.grad), math.prod(v.grad.shape)
    flat = torch.zeros(size, dtype=grad.dtype, device=grad.device)
    flat = p.scatter_nd(flat, places.reshape(count, 1), grad.reshape(count), reduction=1)
    return [flat.reshape(shape)]


@rule("depth_to_space", saves="")
def depth_to_space(v):
    n, c, h, w = v.shape(0)
    b = v.attribute("blocksize")
    grad = v.grad.reshape(n, c // (b * b), h, b, w, b)
    order = (0, 1, 3, 5, 2, 4) if v.attribute("crd") else (0, 3, 5, 1, 2, 4)
    return [grad.permute(order).reshape(n, c, h, w)]


@rule("space_to_depth", saves="")
def space_to_depth(v):
    return [p.depth_to_space(v.grad, blocksize=v.attribute("blocksize"), crd=0)]


@rule("trilu", saves="")
def trilu(v):
    return [p.trilu(v.grad, upper=v.attribute("upper"), k=v.attribute("k"))]


@rule("reverse_sequence")
def reverse_sequence(v):
    return [p.reverse_sequence(v.grad, v[1], time_axis=v.attribute("time_axis")), None]


@rule("one_hot")
def one_hot(v):
    """Of [off, on]: the sums of the gradients where each stands."""
    axis, shape = v.attribute("axis"), tuple(v.grad.shape)
    truth = torch.tensor([False, True], device=v.grad.device)
    hot, zero = p.one_hot(v[0], truth, axis=axis, shape=shape, dtype="bool"), v.constant(0.0)
    off = reduced_to(p.where(hot, zero, v.grad), (1,))
    return [None, p.concat(off, reduced_to(p.where(hot, v.grad, zero), (1,)), axis=0)]


@rule("iota", saves="")
def iota(v):
    grads = [None, None]
    if v.needs(0):
        grads[0] = reduced_to(v.grad, ()).reshape(v.shape(0))
    if v.needs(1):
        steps = torch.arange(v.grad.shape[0], device=v.grad.device)
        product = p.mul(v.grad, p.cast(steps, dtype="f32"))
        grads[1] = reduced_to(product, ()).reshape(v.shape(1))
    return grads
