"""Gradients of other views of the same elements."""

from invar.autograd.rules import no_gradient, rule


@rule("reshape", saves="")
def reshape(v):
    return [v.grad.reshape(v.shape(0))]


no_gradient("bitcast")
