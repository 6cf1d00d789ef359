"""Gradients of scans: scans in the other direction."""

from invar import primitives as p
from invar.autograd.rules import rule


@rule("cumsum", saves="")
def cumsum(v):
    exclusive, reverse = v.attribute("exclusive"), v.attribute("reverse")
    return [p.cumsum(v.grad, axis=v.axis(), exclusive=exclusive, reverse=1 - reverse)]


@rule("cumprod")
def cumprod(v):
    """The product of the elements before one, times the sum s of gradients of later results, each
    times the product of the elements between: s[k] = g[k] + x[k + 1] s[k + 1]. Steps of doubled
    length solve that without a division, so zeros need no care."""
    x, axis = v[0], v.axis()
    exclusive, reverse = v.attribute("exclusive"), v.attribute("reverse")

    def later(t, steps):
        """t[k + steps] (in the direction of the scan), and 0 where there is none."""
        begins = [0] * t.ndim
        begins[axis] = steps if reverse else -steps
        return p.pad(t, begins=begins, shape=tuple(t.shape))

    total = later(v.grad, 1) if exclusive else v.grad
    factor, steps = later(x, 1), 1
    while steps < x.shape[axis]:
        total = p.add(total, p.mul(factor, later(total, steps)))
        factor, steps = p.mul(factor, later(factor, steps)), 2 * steps
    return [p.mul(p.cumprod(x, axis=axis, exclusive=1, reverse=reverse), total)]
