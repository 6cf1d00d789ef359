"""Scatters that join by products and extremes, as nodes of the graph of gradients."""

import torch

from invar import primitives as p
from invar.autograd.rules import constant


class Joined(torch.autograd.Function):
    """joined(x, index, updates, axis, reduction) of scatter_elements with reductions that its rule
    does not have: 2 (product), 3 and 4 (least and largest, of which equals share the gradient)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, index, updates, axis, reduction):
        at = {"axis": axis, "reduction": reduction}
        return p.scatter_elements(x.detach(), index, updates.detach(), **at)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, index, updates, ctx.axis, ctx.reduction = inputs
        ctx.save_for_backward(x, index, updates, output)

    @staticmethod
    def backward(ctx, grad):
        x, index, updates, y = ctx.saved_tensors
        shares = _of_product if ctx.reduction == 2 else _of_extreme
        first, second = shares(grad, x, index, updates, y, ctx.axis)
        return first, None, second, None, None


def _scatter(x, index, updates, axis, reduction):
    return p.scatter_elements(x, index, updates, axis=axis, reduction=reduction)


def _of_extreme(grad, x, index, updates, y, axis):
    """The gradient of a place, divided by how many have its value, for each of them."""
    one, zero = constant(grad, 1.0), constant(grad, 0.0)
    of = lambda v: p.gather_elements(v, index, axis=axis)
    own, chosen = p.equal(x, y), p.equal(updates, of(y))
    counts = [p.where(found, one, zero) for found in (own, chosen)]
    share = p.div(grad, p.max(_scatter(counts[0], index, counts[1], axis, 1), one))
    return p.where(own, share, zero), p.where(chosen, of(share), zero)


def _of_product(grad, x, index, updates, y, axis):
    """The gradient times the product of all other factors of a place: that of the factors that are
    not 0, divided by the own one, where no other one is 0."""
    one, zero = constant(grad, 1.0), constant(grad, 0.0)
    of = lambda v: p.gather_elements(v, index, axis=axis)
    none = [p.equal(v, zero) for v in (x, updates)]
    factors = [p.where(n, one, v) for n, v in zip(none, (x, updates))]
    zeros = _scatter(*_with(index, [p.where(n, one, zero) for n in none]), axis, 1)
    product = p.mul(grad, Joined.apply(factors[0], index, factors[1], axis, 2))

    def share(own, factor, zeros, product):
        others = p.where(own, p.sub(zeros, one), zeros)
        return p.where(p.equal(others, zero), p.div(product, factor), zero)

    return (
        share(none[0], factors[0], zeros, product),
        share(none[1], factors[1], of(zeros), of(product)),
    )


def _with(index, pair):
    return pair[0], index, pair[1]
