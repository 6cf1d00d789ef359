"""Gradients of reductions."""

from invar import primitives as p
from invar.autograd.rules import no_gradient, rule


def spread(v, grad):
    """`grad`, of a reduction's shape, along the reduced axes again."""
    shape = v.shape(0)
    axes = v.attribute("axes")
    axes = range(len(shape)) if axes is None else axes
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    return p.expand(grad.reshape(kept), shape=shape)


@rule("reduce_sum", saves="")
def reduce_sum(v):
    return [spread(v, v.grad)]


no_gradient("argmax", "argmin", "hardmax")
