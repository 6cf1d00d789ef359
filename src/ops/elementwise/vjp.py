"""Gradients of elementwise operations."""

from invar import primitives as p
from invar.autograd.rules import no_gradient, reduced_to, rule


@rule("add", "sub", saves="")
def add(v):
    grad = v.grad
    second = p.neg(grad) if v.call.op == "sub" and v.needs(1) else grad
    return [
        reduced_to(g, v.shape(i)) if v.needs(i) else None for i, g in enumerate((grad, second))
    ]


@rule("mul")
def mul(v):
    return [
        reduced_to(p.mul(v.grad, v[1 - i]), v.shape(i)) if v.needs(i) else None for i in range(2)
    ]


@rule("neg", saves="")
def neg(v):
    return [p.neg(v.grad)]


no_gradient("equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf")
no_gradient("sign", "floor", "ceil", "round", "trunc")
