"""Gradients of contractions: contractions of the same schedule."""

from invar import primitives as p
from invar.autograd.rules import no_gradient, reduced_to, rule


@rule("matmul")
def matmul(v):
    a, b, grad = v[0], v[1], v.grad
    trans_a, trans_b = v.attribute("trans_a", 0), v.attribute("trans_b", 0)
    if a.ndim == 1:
        a, grad = a.unsqueeze(0), grad.unsqueeze(-2)
    grads = [None, None]
    if v.needs(0):
        da = (
            p.matmul(b, grad, trans_a=trans_b, trans_b=1)
            if trans_a
            else p.matmul(grad, b, trans_b=1 - trans_b)
        )
        grads[0] = reduced_to(da, a.shape).reshape(v.shape(0))
    if v.needs(1):
        if b.ndim == 2 and a.ndim > 2 and not trans_a:  # one contraction over all rows
            a, grad = a.reshape(-1, a.shape[-1]), grad.reshape(-1, grad.shape[-1])
        db = (
            p.matmul(grad, a, trans_a=1, trans_b=trans_a)
            if trans_b
            else p.matmul(a, grad, trans_a=1 - trans_a, trans_b=0)
        )
        grads[1] = reduced_to(db, b.shape)
    return grads


no_gradient("matmul_integer")
